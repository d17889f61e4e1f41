"""The signatures of functions: shapes of their tensors in the docstring, and few parameters."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import warpkit as wk

PACKAGE = Path(wk.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def functions() -> list[tuple[str, ast.FunctionDef]]:
    """Every function of the package, and its file."""
    trees = [(p.relative_to(PACKAGE).as_posix(), ast.parse(p.read_text())) for p in FILES]
    nodes = [(file, node) for file, tree in trees for node in ast.walk(tree)]
    return [(file, node) for file, node in nodes if isinstance(node, ast.FunctionDef)]


def arguments(function: ast.FunctionDef) -> list[ast.arg]:
    """All parameters except *args and **kwargs."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def is_tensor(argument: ast.arg) -> bool:
    """Whether the annotation contains Tensor."""
    said = "" if argument.annotation is None else ast.unparse(argument.annotation)
    return re.search(r"(?<![\w.])Tensor\b", said) is not None and "Callable" not in said


SHAPE = re.compile(
    r"\((?:\.\.\.|\(\)|\*?[A-Z](?:\b|,)|[hwNCKPS]\b)[^)]*\)|\(\)|[Oo]f (?:one|any) shape"
)
"""A shape as docstrings write it: (..., C, H, W), (N, 4), (*P, h, w, 2), ()."""

SAME = re.compile(r"\b(?:[Aa]s|of|[Ss]ee) (?:of |in )?`[\w.]+`")
"""A reference to another function for the shapes."""


def test_functions_of_several_tensors_document_their_shapes():
    several = [(f, n) for f, n in functions() if sum(map(is_tensor, arguments(n))) > 1]
    assert len(several) > 150
    silent = [
        f"{file}: {node.name}"
        for file, node in several
        if not (SHAPE.search(text := ast.get_docstring(node) or "") or SAME.search(text))
    ]
    assert silent == []


def test_functions_have_few_parameters():
    """Public functions and Triton's entry points are exempt."""
    for file, node in functions():
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        is_public = not node.name.startswith("_") and not file.startswith("engine/")
        if is_public or {"triton.jit", "kernel"} & set(decorators):
            continue
        count = len(arguments(node))
        assert count <= 12, f"{file}: {node.name} has {count} parameters"
