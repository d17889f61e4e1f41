"""Identifies a preprocessing program from outside, and compares two of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from torch import Tensor

from warpkit.core import checks
from warpkit.core.progress import bar_named
from warpkit.types import Takes
from warpkit.validation.pairs.procedure import identify_pairs_by
from warpkit.validation.programs import comparison
from warpkit.validation.programs.comparison import PipelineComparison
from warpkit.validation.programs.images import as_pictures, parting_pictures
from warpkit.validation.programs.procedure import identify_by
from warpkit.validation.programs.program import check_takes
from warpkit.validation.programs.report import Preprocessing


def identify(
    pipeline: Callable[[Any], Any], *, takes: Takes = "auto", progress: bool = False
) -> Preprocessing:
    """Identify a preprocessing program by calling it, verify the result, and return a twin.

    The program is called 60 to 110 times, at most 240 times for each kind of input (480 if a JPEG
    file comes first, more if its results have fewer than 33,000 values), on test images, each a
    separate copy. To verify the result, `.pipeline` must give the program's values on at least
    200,000 values that were not used to find it; it has gradients. What remains unknown is reported
    as such, with the nearest known program.

    Args:
        pipeline: any callable that takes one image and returns an array, a tensor, a PIL image, or
            a dict that contains one ("pixel_values"): a chain of torchvision, albumentations or
            OpenCV operations, an image processor of transformers, or a function of your own.
        takes: "pil" (RGB), "array" (H, W, 3) uint8, "tensor" (3, H, W) uint8, "file" (the path of a
            PNG file, or its bytes); "auto" tries all of them, files last, and prefers one that
            returns numbers and changes something.
        progress: show a bar on the terminal.

    Returns:
        A `Preprocessing`: a JPEG file that comes first, size, crop, padding, filter, library,
        rounding, channels, gain, offset, layout, and `.pipeline`, an `attacks.Pipeline` on images
        (N, 3, H, W) in [0, 1].

    Raises:
        ValueError: the program raises an error on every kind of input that was tried; that error is
        the cause. TypeError: the program cannot be called.

    >>> import numpy as np
    >>> result = identify(lambda image: image[..., ::-1] / np.float32(255), takes="array")
    >>> result.rule, result.channels, result.differing
    ('keep', 'reversed', 0)
    >>> result = identify(lambda image: (image / 255.0) ** 2.2, takes="array")  # a gamma
    >>> result.pipeline is None, result.reasons[0][:53]
    (True, 'Not known: Level 128 comes out as level 55.978: numbe')
    """
    _check_program("identify", "pipeline", pipeline)
    checks.check_bool("identify", "progress", progress)
    kinds = check_takes("identify", takes)
    return identify_by("identify", "pipeline", pipeline, kinds, progress=progress)


def identify_pairs(
    images: Sequence[Any], results: Sequence[Any], *, progress: bool = False
) -> Preprocessing:
    """Identify the program that made a data set, from its results and their originals.

    Every value of every pair is compared with each known resize, size rule, crop and padding.
    Attributes that the pairs do not determine are None, and `.candidates` lists all programs that
    fit, or the nearest if none gives every value. Results that are JPEG files are compared with
    each candidate encoded with the file's own tables. Four pairs determine most programs.

    Args:
        images: the originals: arrays (H, W, 3) or (H, W) uint8, tensors (3, H, W) uint8, PIL images
            or files. Each is tried with and without its EXIF orientation.
        results: the result for each: arrays or tensors (C, h, w), (h, w, C) or (h, w), with or
            without a batch of one, of any type of numbers; PIL images, or files. Where both are
            files they are matched by name without the suffix, if any names are common.
        progress: show a bar on the terminal.

    Returns:
        A `Preprocessing` without `.takes`. `.differing` and `.compared` count the values of the
        described pairs. If several programs made the results, `.groups` has their indices in
        `images`, and the attributes describe the largest group. `.reasons` say what is
        undetermined, and what was skipped.

    Raises:
        ValueError: nothing can be read, the lists have different lengths, or no result shows its
            picture. TypeError: an argument has another type.

    >>> import numpy as np, torch, warpkit as wk
    >>> images = [np.random.default_rng(k).integers(0, 256, (60, 90 + k, 3)) for k in range(4)]
    >>> images = [image.astype(np.uint8) for image in images]
    >>> small = [
    ...     wk.resize(torch.tensor(image).movedim(-1, 0), (32, 32), arithmetic="pillow")
    ...     for image in images
    ... ]
    >>> result = identify_pairs(images, small)
    >>> result.rule, result.size, result.arithmetic, result.interpolation, result.differing
    ('fixed', (32, 32), 'pillow', 'bilinear', 0)
    """
    name = "identify_pairs"
    checks.check_bool(name, "progress", progress)
    lists = []
    for argument, items in (("images", images), ("results", results)):
        if isinstance(items, (str, bytes, PathLike)) or not hasattr(items, "__iter__"):
            wanted = "a sequence of arrays, PIL images or files"
            checks.fail(name, argument, wanted, checks.kind_of(items), TypeError)
        lists.append(list(items))
        if not lists[-1]:
            checks.fail(name, argument, "at least one", "none")
    return identify_pairs_by(name, lists[0], lists[1], progress=progress)


def compare_pipelines(
    first: Callable[[Any], Any],
    second: Callable[[Any], Any],
    *,
    takes: Sequence[Takes] = ("auto", "auto"),
    images: Any = None,
    model: Callable[[Tensor], Any] | None = None,
    progress: bool = False,
) -> PipelineComparison:
    """Identify two preprocessing programs and explain their differences, the worst first.

    Args:
        first, second: programs, as for `identify`.
        takes: the kind of input of each program.
        images: the pictures to compare on: PIL images, files, arrays (H, W, 3) uint8 or tensors
            (3, H, W), uint8 or in [0, 1]. None: three built-in test pictures, and others of sizes
            that the two programs round apart.
        model: a callable on float32 numbers (1, C, h, w), such as the network behind the programs.
            The comparison reports how far its outputs change, in total and by each finding.
        progress: show bars on the terminal.

    Returns:
        A `PipelineComparison`. The effect of each finding is measured separately: the first
        program's twin gets this one attribute of the second program. What could not be compared is
        a finding too: a picture that a program refuses, numbers that are not finite.

    Raises:
        ValueError: `images` contains no image, and the errors of `identify`.
        TypeError: `images` has another type, and the errors of `identify`.

    >>> import numpy as np
    >>> first = lambda image: image / np.float32(255)
    >>> comparison = compare_pipelines(first, lambda image: first(image)[..., ::-1])
    >>> comparison.equal, [finding.kind for finding in comparison.findings]
    (False, ['channels'])
    """
    name = "compare_pipelines"
    checks.check_bool(name, "progress", progress)
    programs = []
    pictures = as_pictures(name, images)
    both = _check_both(name, takes)
    for argument, program, kind in zip(("first", "second"), (first, second), both, strict=True):
        _check_program(name, argument, program)
        kinds = check_takes(name, kind)
        with bar_named(f"identify {argument}"):
            answer = identify_by(name, argument, program, kinds, progress=progress)
        programs.append((answer, program))
    if model is not None:
        _check_program(name, "model", model)
    twins = [answer.twin for answer, _ in programs]
    if images is None and twins[0] is not None and twins[1] is not None:
        pictures += parting_pictures(twins[0].geometry, twins[1].geometry, pictures)
    return comparison.compare(programs[0], programs[1], pictures, model)


def assert_same_pipeline(
    first: Callable[[Any], Any],
    second: Callable[[Any], Any],
    *,
    takes: Sequence[Takes] = ("auto", "auto"),
    images: Any = None,
    last_bits: bool = True,
) -> None:
    """Fail with the findings of `compare_pipelines` if two programs differ; for use in pytest.

    last_bits: allow differences of at most one level that come from arithmetic or rounding alone.
    The other arguments are those of `compare_pipelines`. Raises AssertionError.

    >>> import numpy as np
    >>> assert_same_pipeline(lambda image: image / 255, lambda image: image * (1 / 255))
    """
    name = "assert_same_pipeline"
    checks.check_bool(name, "last_bits", last_bits)
    result = compare_pipelines(first, second, takes=takes, images=images)
    if not (result.only_last_bits if last_bits else result.equal):
        raise AssertionError(f"{name}: the programs differ. {result}")


def _check_program(name: str, argument: str, program: object) -> None:
    if not callable(program):
        wanted = "a callable that takes one image"
        checks.fail(name, argument, wanted, checks.kind_of(program), TypeError)


def _check_both(name: str, takes: Any) -> tuple[str, str]:
    """The kind of input of each program."""
    if isinstance(takes, str) or not isinstance(takes, Sequence) or len(takes) != 2:
        checks.fail(name, "takes", "two of 'auto', 'pil', 'array', 'tensor', 'file'", repr(takes))
    return takes[0], takes[1]
