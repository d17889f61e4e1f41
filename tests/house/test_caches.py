"""No cache is keyed by a tensor or an array of a caller, or holds one.

Such a key keeps the memory alive, and is found again after `set_` or `resize_` has changed the
tensor: a call then reads what is no longer there.
"""

from __future__ import annotations

import ast
import re

from tests.house.test_rules import FILES, modules

HOLDERS = re.compile(r"\b(Tensor|ndarray|Parameter|Module)\b")
"""Types of a caller's numbers."""
CACHES = ("cache", "lru_cache", "functools.cache", "functools.lru_cache")
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def classes_with_arrays(tree: ast.AST) -> set[str]:
    """Classes of a file that have a field of such a type: as a key they hold it, too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            fields = [n.annotation for n in node.body if isinstance(n, ast.AnnAssign)]
            if any(HOLDERS.search(ast.unparse(f)) for f in fields):
                found.add(node.name)
    return found


def holders_of(name: str) -> set[str]:
    """The classes with arrays that a module defines or imports."""
    tree = TREES[modules()[name]]
    found = classes_with_arrays(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("warpkit."):
            source = modules().get((node.module or "").removeprefix("warpkit."))
            theirs = classes_with_arrays(TREES[source]) if source else set()
            found |= {alias.asname or alias.name for alias in node.names if alias.name in theirs}
    return found


def cached(tree: ast.AST) -> list[ast.FunctionDef]:
    """The functions under a cache of functools."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(d).split("(")[0] in CACHES for d in node.decorator_list)
    ]


def faults(tree: ast.AST, holders: set[str]) -> list[str]:
    """Cached functions keyed by arrays, and tables of a module that are declared to hold some."""
    found = []
    words = re.compile("|".join((HOLDERS.pattern, *(rf"\b{name}\b" for name in sorted(holders)))))
    for function in cached(tree):
        arguments = function.args
        for given in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            kind = ast.unparse(given.annotation) if given.annotation else "nothing"
            if given.annotation is None or words.search(kind) or kind == "Any":
                found.append(f"{function.name}({given.arg}: {kind})")
    for node in tree.body if isinstance(tree, ast.Module) else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict | ast.Call):
            kind = ast.unparse(node.annotation)
            empty = not (isinstance(node.value, ast.Dict) and node.value.keys)
            if empty and kind.startswith(("dict", "list", "set")) and words.search(kind):
                found.append(f"{ast.unparse(node.target)}: {kind}")
    return found


def test_no_cache_is_keyed_by_arrays():
    found = {name: faults(TREES[path], holders_of(name)) for name, path in modules().items()}
    assert sum(len(cached(tree)) for tree in TREES.values()) > 50
    assert not {name: wrong for name, wrong in found.items() if wrong}


def test_the_rule_finds_each_kind():
    code = """
@lru_cache(maxsize=8)
def one(x: Tensor): ...
@cache
def two(x: int, *, y: np.ndarray | None = None): ...
@lru_cache
def three(x: Holder, y): ...
KEPT: dict[int, Tensor] = {}
FIXED: dict[str, int] = {}
@cache
def right(x: tuple[int, ...], y: torch.dtype): ...
"""
    assert faults(ast.parse(code), {"Holder"}) == [
        "one(x: Tensor)",
        "two(y: np.ndarray | None)",
        "three(x: Holder)",
        "three(y: nothing)",
        "KEPT: dict[int, Tensor]",
    ]
