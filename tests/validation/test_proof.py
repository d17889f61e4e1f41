"""Planted wrong results: the proof detects each of them."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.support.hostile_programs import PROGRAMS, SIDE, resized
from warpkit.validation import identify
from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.program import Program
from warpkit.validation.programs.search import Search
from warpkit.validation.programs.values import Measured
from warpkit.validation.programs.verify import prove, where_it_fails


def proved(program, found):
    """The proof of the pipeline found for `resized`, run on another program."""
    asked = Program(program, "array", lambda words: None)
    asked.layout = "HWC"
    measured = Measured((found.twin.values,), 2e-4, False)
    search = Search(asked, measured, [found.twin.geometry], found.twin.padding)
    return prove(search, found.twin, (SIDE, SIDE), 1)


@pytest.fixture(scope="module")
def found():
    answer = identify(resized, takes="array")
    assert answer.known
    return answer


def test_the_right_pipeline_passes(found):
    proof = proved(resized, found)
    assert (proof.differing, proof.largest, proof.failed) == (0, 0.0, [])
    assert proof.compared >= 200_000


def one_level(x):
    y = resized(x).copy()
    y[::32, ::32, 1] ^= 1  # 9 of 27,648 values: one pixel in a thousand
    return y


def only_far(x):
    y = resized(x).copy()
    return y ^ 1 if min(x.shape[:2]) > 4 * SIDE else y


def only_larger(x):
    y = resized(x).copy()
    return y ^ 1 if max(x.shape[:2]) < SIDE else y


@pytest.mark.parametrize("program", [one_level, only_far, only_larger])
def test_a_planted_difference_is_detected(found, program):
    proof = proved(program, found)
    assert proof.differing > 0
    assert proof.failed
    answer = identify(program, takes="array")
    assert not answer.known
    assert answer.arithmetic is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_differences_on_some_images_are_detected(found, name):
    assert proved(PROGRAMS[name], found).differing > 0


WHERE = {
    "scales below 1 / 3": "where a side grows",
    "scales above 4": "where a side shrinks by more than 4",
    "one scale above 6": "where a side shrinks by more than 5.3",
    "first at most 4096": "on pictures longer than 617 pixels",
    "long ones cut": "on pictures of 10 to 1",
    "weak contrast stretched": "on dark and pale pictures",
    "those without colours blurred": "on pictures without colours",
    "black and white ones": "on black and white pictures",
    "the size that is wanted": None,
    "odd sides": None,
}


@pytest.mark.parametrize("name", WHERE)
def test_the_place_of_differing_values_is_reported(found, name):
    assert where_it_fails(proved(PROGRAMS[name], found), found.twin) == WHERE[name]


def test_too_few_values_prove_nothing():
    asked = []

    def program(x):
        asked.append(x.shape)
        if len(asked) > 52:
            raise OSError("gone")
        return resized(x)

    answer = identify(program, takes="array")
    assert not answer.known
    assert answer.pipeline is None
    assert "It refuses most pictures: only" in answer.reasons[0]


def test_a_row_at_one_size_is_detected():
    """A rule that rounds the other side differently at few sizes, which the proof includes."""

    def program(x):
        short = min(x.shape[:2])
        sides = [64 if v == short else int(64 * v / short) for v in x.shape[:2]]
        return cv2.resize(x, (sides[1], sides[0]))

    def off_by_a_row(x):
        y = program(x)
        return y if x.shape[0] % 7 else np.concatenate([y, y[-1:]])

    answer = identify(program, takes="array")
    assert answer.known
    wrong = replace(answer.twin.geometry, rounding="n * v / s even")
    sizes = [(h, 100) for h in range(101, 140)]
    assert any(wrong.placement(*s).size != answer.twin.geometry.placement(*s).size for s in sizes)
    assert not identify(off_by_a_row, takes="array").known


def test_another_rule_for_long_images_is_detected():
    """The rule of other images must not be claimed if long images were excluded to find it."""

    def program(x):
        factor = 96 / max(x.shape[:2])
        height, width = (max(30, int(side * factor)) for side in x.shape[:2])  # 30: beyond 3.2
        result = np.zeros((96, 96, 3), np.uint8)
        result[:height, :width] = cv2.resize(x, (width, height))
        return result

    answer = identify(program, takes="array")
    assert (answer.rule, answer.size) == ("longest", 96)
    assert answer.arithmetic is None
    assert answer.differing > 0


def test_sides_are_rounded_as_in_the_libraries():
    def size(geometry, height, width):
        return geometry.placement(height, width).size

    # TensorFlow's resize_with_pad in float32: 114 / (114 / 112) is slightly less than 112
    tensorflow = Geometry("longest", 112, rounding="v / (s / n) floor, float32", place="exact")
    assert size(tensorflow, 114, 57) == (111, 55)
    assert replace(tensorflow, window=(112, 112)).placement(114, 57).corner == (0, -28)
    # torchvision: int(size * long / short); with max_size int(max_size * short / long)
    assert size(Geometry("shortest", 256), 480, 641) == (256, 341)
    assert size(Geometry("shortest", 800, limit=533), 172, 448) == (204, 533)
    # DETR: the shorter side by round, the longer by int: 205 and 532 x 297, not 533
    detr = Geometry("shortest", 800, limit=533, limit_rounding="detr")
    assert size(detr, 172, 448) == (205, 533)
    assert size(detr, 801, 447) == (532, 297)
    # mmcv: both by int(side * factor + 0.5)
    mmcv = Geometry("shortest", 800, limit=533, limit_rounding="factor", rounding="v * r half up")
    assert size(mmcv, 172, 448) == (205, 533)
    assert size(mmcv, 801, 447) == (533, 297)


def least_side(x):
    """rapidocr's detector: multiples of 32, and sides below 30 are raised first."""
    height, width = x.shape[:2]
    factor = max(1.0, 30 / min(height, width))
    sides = (max(32, round(side * factor / 32) * 32) for side in (width, height))
    return cv2.resize(x, tuple(sides))


def test_a_least_side_is_not_taken_for_a_rounding():
    """The twin keeps 24 x 193; the program makes 32 x 256 of it."""
    answer = identify(least_side, takes="array")
    assert not answer.known
    assert "with a side of 24 pixels" in str(answer)
