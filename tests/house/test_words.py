"""The words of the code: standard terms, one meaning each, and shapes where tensors are handed on.

docs/code.md has the glossary.
"""

from __future__ import annotations

import ast
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

import warpkit as wk

PACKAGE = Path(wk.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

EVERYWHERE = {
    "LANES": "CHANNELS_PER_VECTOR, CHANNEL_BLOCK or OPENCV_VECTOR_FLOATS",
    "MISSING": "MISSING_BORDERS",
    "NOTHING": "NO_TAP_INSIDE",
    "SIDE": "MAX_SIDE or TILE",
    "WHOLE": "ALL_TAPS_INSIDE or WHOLE_NUMBERS",
    "Call": "WarpShapes, CudaLaunch or ParityCall",
    "Deal": "WorkPartition",
    "Direct": "EagerWarp",
    "Grid": "FixedGrid or FloatGrid",
    "JoinGraph": "KeepInGraph",
    "Labels": "DimLabels",
    "Moves": "PatchMotion",
    "Operator": "BackendOperators",
    "Operators": "BackendOperators",
    "Paint": "LayerOptions",
    "Plan": "WarpPlan, OpenCVPlan, OpaquePlan or CompositePlan",
    "Promise": "Guarantee",
    "Reads": "ReadPixels",
    "Rule": "SamplingRule",
    "Scene": "PatchScene or RowPictures",
    "Tap": "AxisTap or ReadTap",
    "Task": "PeerTask",
    "Total": "AllReduceSum",
    "Watch": "GradientTracer",
    "Wrap": "ShardToDTensor",
    "aim": "first_tap, taps_at or window_offsets",
    "choose": "select_backend",
    "credit": "add_fill_gradient",
    "credited": "needs_grad_fill",
    "deal": "partition",
    "dealt": "shares",
    "least": "min_signed",
    "minus_nothing": "with_gradient_of",
    "most": "max_signed",
    "own": "what it is",
    "plain": "..._reference",
    "promise": "guaranteed",
    "promises": "guarantees",
    "pull": "vjp",
    "pull_inverse": "inverse_vjp",
    "see": "render",
    "serves": "supports",
    "slots": "accumulators",
    "told": "describe",
    "why_not": "unsupported_reasons",
}
"""Names that no module has, and what stands for them."""

ENGINE = {
    "inverse": "to_source",
    "like": "restore_memory_format",
    "locate": "map_tile",
    "outside": "fill",
    "painters": "sources",
    "shown": "fill, top_object or enabled",
    "start": "dst, src, mapping_start, sum_start ...",
    "tall": "tile_rows or height",
    "to_image": "needs_grad_image or grad_image",
    "to_outside": "needs_grad_fill or grad_fill",
    "to_where": "needs_grad_mapping or grad_mapping",
    "where": "mapping",
    "wide": "tile_columns or width",
}
"""The same for the engine; elsewhere some are public arguments."""

ALLOWED = {
    ("engine/arithmetic/guarantees.py", "where"),  # a guarantee's: where it holds
    ("engine/arithmetic/opencv_matrices.py", "inverse"),  # OpenCV's function
    ("engine/sampling/antialias.py", "start"),  # of a range
    ("validation/suite.py", "promise"),
    ("validation/resizes.py", "promise"),  # a public field
}


@cache
def tokens(path: Path) -> list[tokenize.TokenInfo]:
    with tokenize.open(path) as file:
        return list(tokenize.generate_tokens(file.readline))


def names(path: Path) -> set[str]:
    """The names of a file that are not attributes of something."""
    before, found = "", set()
    for token in tokens(path):
        if token.type == tokenize.NAME and before != ".":
            found.add(token.string)
        if token.type in (tokenize.NAME, tokenize.OP):
            before = token.string
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_old_words_are_gone(path):
    file = path.relative_to(PACKAGE).as_posix()
    refused = {**EVERYWHERE, **(ENGINE if file.startswith("engine/") else {})}
    for word in sorted(names(path) & set(refused)):
        assert (file, word) in ALLOWED, f"{file}: {word} is {refused[word]} here"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_texts_name_what_is_there(path):
    """Old words in comments and docstrings: in capitals, or between backticks."""
    kinds = tokenize.STRING, tokenize.COMMENT
    text = "\n".join(token.string for token in tokens(path) if token.type in kinds)
    quoted = {name.split(".")[-1] for name in re.findall(r"`([\w.]+)`", text)}
    capitals = {word for word in EVERYWHERE if word.isupper()} - {"MISSING", "WHOLE"}
    found = {word for word in capitals if re.search(rf"\b{word}\b", text)}
    assert not found | (quoted & set(EVERYWHERE)), path


@cache
def functions() -> list[tuple[str, ast.FunctionDef]]:
    """Every function of the package, and its file."""
    trees = [(p.relative_to(PACKAGE).as_posix(), ast.parse(p.read_text())) for p in FILES]
    nodes = [(file, node) for file, tree in trees for node in ast.walk(tree)]
    return [(file, node) for file, node in nodes if isinstance(node, ast.FunctionDef)]


def arguments(function: ast.FunctionDef) -> list[ast.arg]:
    """All but *args and **kwargs."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def is_tensor(argument: ast.arg) -> bool:
    """Whether the annotation is Tensor, perhaps with something else."""
    said = "" if argument.annotation is None else ast.unparse(argument.annotation)
    return re.search(r"(?<![\w.])Tensor\b", said) is not None and "Callable" not in said


SHAPE = re.compile(
    r"\((?:\.\.\.|\(\)|\*?[A-Z](?:\b|,)|[hwNCKPS]\b)[^)]*\)|\(\)|[Oo]f (?:one|any) shape"
)
"""A shape as docstrings have it: (..., C, H, W), (N, 4), (*P, h, w, 2), ()."""

SAME = re.compile(r"\b(?:[Aa]s|of|[Ss]ee) (?:of )?`[\w.]+`")
"""A reference to the function whose shapes they are."""


def test_functions_of_several_tensors_say_their_shapes():
    several = [(f, n) for f, n in functions() if sum(map(is_tensor, arguments(n))) > 1]
    assert len(several) > 150
    silent = [
        f"{file}: {node.name}"
        for file, node in several
        if not (SHAPE.search(text := ast.get_docstring(node) or "") or SAME.search(text))
    ]
    assert silent == []


def test_functions_have_few_parameters():
    """But public ones, which have their own reasons, and Triton's entries."""
    for file, node in functions():
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        is_public = not node.name.startswith("_") and not file.startswith("engine/")
        if "triton.jit" in decorators or is_public:
            continue
        count = len(arguments(node))
        assert count <= 12, f"{file}: {node.name} has {count} parameters"
