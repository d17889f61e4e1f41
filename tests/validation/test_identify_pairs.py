"""`identify_pairs` names data sets from their pairs, and leaves open what pairs cannot show."""

from __future__ import annotations

import dataclasses
import io
import json

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from tests.support.drawn_pairs import draw_run, judged, pictures, through_jpeg
from warpkit.validation import identify_pairs


def photographs(count: int = 4, seed: int = 3) -> list[np.ndarray]:
    return pictures(np.random.default_rng(seed), count, 0)


def by_pillow(image: np.ndarray, side: int = 48, filter_: int = Image.Resampling.BILINEAR):
    return np.asarray(Image.fromarray(image).resize((side, side), filter_))


@pytest.mark.parametrize("seed", range(301, 306))
def test_lossless_results_are_named_completely(seed):
    run = draw_run(seed, "lossless")
    found = identify_pairs(run.images, run.results)
    assert judged(run, found) == ("whole", "")
    assert found.known
    assert found.takes is None
    assert found.differing == 0
    assert found.compared == sum(np.size(result) for result in run.results)


@pytest.mark.parametrize("seed", [311, 312])
def test_jpeg_files_are_named_by_encoding_again(seed):
    run = draw_run(seed, "files")
    found = identify_pairs(run.images, run.results)
    assert judged(run, found) == ("whole", "")
    assert found.differing == 0


@pytest.mark.parametrize(("seed", "kind"), [(20074, "lossless"), (20297, "files")])
def test_two_libraries_that_give_the_same_results_both_remain(seed, kind):
    run = draw_run(seed, kind)
    found = identify_pairs(run.images, run.results)
    assert judged(run, found) == ("alike", "the same results by opencv and torch")
    assert found.arithmetic is None
    assert found.interpolation == "bicubic"
    # the evaluation calls both libraries, so a third with other results would fail
    other = dataclasses.replace(found.candidates[0][0], arithmetic="pillow")
    found.candidates.append((other, 0.0, 0.0))
    assert judged(run, found) == ("open", "open: arithmetic")


@pytest.mark.parametrize("seed", [321, 322])
def test_decoded_jpegs_rank_the_filter_first_but_are_not_named(seed):
    run = draw_run(seed, "lossy")
    found = identify_pairs(run.images, run.results)
    assert judged(run, found)[0] == "first"
    assert (found.arithmetic, found.interpolation, found.antialias) == (None, None, None)
    assert found.pipeline is None
    assert len(found.candidates) >= 5
    distances = [distance for _, _, distance in found.candidates]
    assert distances == sorted(distances)


@pytest.mark.parametrize("seed", [330, 331])
def test_two_programs_in_one_folder_are_separated(seed):
    run = draw_run(seed, "two")
    found = identify_pairs(run.images, run.results)
    assert judged(run, found) == ("parted", "")
    assert found.differing == 0
    assert found.compared == sum(run.results[k].size for k in found.groups[0])


def test_the_pipeline_found_gives_the_results_and_a_gradient():
    images = photographs()
    mean, deviation = np.float32([0.5, 0.4, 0.3]), np.float32([0.2, 0.3, 0.25])
    results = [
        ((by_pillow(i)[..., ::-1] / np.float32(255) - mean) / deviation).transpose(2, 0, 1)[None]
        for i in images
    ]
    found = identify_pairs(images, results)
    assert (found.layout, found.batched, found.dtype) == ("CHW", True, "float32")
    assert found.channels == "reversed"
    for image, result in zip(images, results, strict=True):
        given = torch.tensor(image).movedim(-1, 0)[None] / 255
        given.requires_grad_()
        made = found.pipeline(given)
        # gain and offset come from a float32 lattice: 1e-6 of the largest
        torch.testing.assert_close(made, torch.tensor(result), rtol=0, atol=1e-5)
        made.sum().backward()
        assert given.grad.abs().sum() > 0


def test_unrounded_float_results():
    images = photographs()
    results = [
        F.interpolate(
            torch.tensor(i).movedim(-1, 0)[None].float() / 255, (53, 61), mode="bilinear"
        )[0]
        for i in images
    ]
    found = identify_pairs(images, results)
    assert (found.interpolation, found.antialias, found.rounded) == ("bilinear", False, False)
    assert found.arithmetic == "torch"
    np.testing.assert_allclose(found.gain, 1 / 255, rtol=1e-5)
    np.testing.assert_allclose(found.offset, 0, atol=1e-6)


def test_gray_results_are_named():
    images = photographs()
    results = [np.asarray(Image.fromarray(by_pillow(i)).convert("L")) for i in images]
    found = identify_pairs(images, results)
    assert (found.channels, found.layout) == ("gray", "HW")
    assert found.weights == (0.299, 0.587, 0.114)
    assert (found.interpolation, found.arithmetic, found.differing) == ("bilinear", "pillow", 0)


def test_originals_of_one_shape_leave_rule_and_size_open():
    images = [image[:90, :90] for image in photographs()]
    found = identify_pairs(images, [by_pillow(image) for image in images])
    assert (found.rule, found.size, found.canvas) == (None, None, (48, 48))
    assert (found.interpolation, found.arithmetic) == ("bilinear", "pillow")
    assert found.pipeline is not None
    assert not found.known
    assert found.reasons == ["These pairs do not tell: rule, size."]


def test_gray_originals_leave_the_order_open():
    images = [image.mean(-1).astype(np.uint8) for image in photographs()]
    results = [np.asarray(Image.fromarray(i).resize((48, 48), 3).convert("RGB")) for i in images]
    found = identify_pairs(images, results)
    assert found.channels is None
    assert (found.interpolation, found.arithmetic, found.differing) == ("bicubic", "pillow", 0)
    assert found.reasons == ["These pairs do not tell: channels."]


def test_exactly_half_the_size_leaves_the_filter_open():
    images = [image[:80, :k] for image, k in zip(photographs(), (60, 70, 80, 90), strict=True)]
    results = [cv2.resize(i, (i.shape[1] // 2, 40), interpolation=cv2.INTER_AREA) for i in images]
    found = identify_pairs(images, results)
    assert found.interpolation is None
    assert found.arithmetic is not None
    names = {program.interpolation for program, _, _ in found.candidates}
    assert names >= {"bilinear", "area", "bilinear_exact"}
    assert all(share == 0 for _, share, _ in found.candidates)
    assert found.pipeline is not None


def test_uniform_images_only_show_the_size():
    images = [np.full((60 + k, 90, 3), 40 + k, np.uint8) for k in range(4)]
    found = identify_pairs(images, [by_pillow(image) for image in images])
    assert (found.rule, found.size) == ("fixed", (48, 48))
    assert (found.interpolation, found.arithmetic, found.pipeline) == (None, None, None)


def test_mirrored_and_randomly_cropped_results_are_unknown():
    images = photographs()
    mirrored = identify_pairs(images, [by_pillow(image)[:, ::-1] for image in images])
    assert "mirrored" in mirrored.reasons[0]
    corners = [(0, 0), (30, 5), (3, 40), (20, 33)]
    cut = [image[y : y + 50, x : x + 50] for image, (y, x) in zip(images, corners, strict=True)]
    cropped = identify_pairs(images, [by_pillow(image, 40) for image in cut])
    for found in (mirrored, cropped):
        assert found.arithmetic is None
        assert found.pipeline is None
        assert found.reasons[0].startswith("Not known")


def test_a_modified_pair_stays_in_its_group_and_prevents_a_name():
    images = photographs()
    results = [by_pillow(image) for image in images]
    results[2] = results[2].copy()
    results[2][5, 5] ^= 1
    found = identify_pairs(images, results)
    assert found.groups is None
    assert (found.arithmetic, found.differing) == (None, 3)
    assert found.candidates[0][0].arithmetic == "pillow"
    assert "Without 1 of the pairs (2) the first candidate does" in found.reasons[0]


def test_changed_contrast_is_reported():
    images = photographs()
    results = [np.clip(by_pillow(i) * 0.8 + 12, 0, 255).astype(np.uint8) for i in images]
    found = identify_pairs(images, results)
    assert found.arithmetic is None
    assert "contrast or brightness" in found.reasons[0]


def test_both_orientations_of_exif_are_tried(tmp_path):
    images, results = [], []
    for k, image in enumerate(photographs()):
        tagged = Image.fromarray(image)
        exif = tagged.getexif()
        exif[0x0112] = (6, 3, 8, 1)[k]
        tagged.save(tmp_path / f"{k}.png", exif=exif)
        images.append(tmp_path / f"{k}.png")
        turned = np.rot90(image, (3, 2, 1, 0)[k]) if k % 2 == 0 else image  # some programs apply it
        results.append(by_pillow(np.ascontiguousarray(turned)))
    found = identify_pairs(images, results)
    assert (found.arithmetic, found.interpolation, found.differing) == ("pillow", "bilinear", 0)


def test_files_are_matched_by_name_and_broken_ones_left_out(tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    images, results = [], []
    for k, image in enumerate(photographs(6)):
        Image.fromarray(image).save(tmp_path / f"{k}.png")
        images.append(tmp_path / f"{k}.png")
        results.append(made / f"{k}.jpg")
        results[-1].write_bytes(through_jpeg(by_pillow(image), 85, 2))
    results[1].write_bytes(b"no picture")
    results[2].write_bytes(results[2].read_bytes()[:300])
    found = identify_pairs(images[:5], results[::-1])
    assert (found.arithmetic, found.differing, found.groups) == ("pillow", 0, None)
    assert found.known
    assert len(found.left_out) == 3
    text = str(found)
    assert all(str(path) in text for path in (results[1], results[2], results[5]))
    found.to_json(tmp_path / "found.json")
    written = json.loads((tmp_path / "found.json").read_text())
    assert written["candidates"][0]["program"]["arithmetic"] == "pillow"


def test_pil_images_with_jpeg_tables():
    images = photographs()
    results = [Image.open(io.BytesIO(through_jpeg(by_pillow(i), 90, 0))) for i in images]
    found = identify_pairs([Image.fromarray(image) for image in images], results)
    assert (found.arithmetic, found.interpolation, found.differing) == ("pillow", "bilinear", 0)


IMAGES = photographs(2)


@pytest.mark.parametrize(
    ("images", "results", "error", "said"),
    [
        ([], [], ValueError, "`images` must be at least one, got none"),
        ("folder", ["a"], TypeError, "`images` must be a sequence of arrays, PIL images or files"),
        (IMAGES, IMAGES[:1], ValueError, "one result for each of 2 images, got 1"),
        (IMAGES, [1, 2], TypeError, r"`results\[0\]` must be an array, a tensor, a PIL image or"),
        ([IMAGES[0] / 255], IMAGES[:1], TypeError, r"`images\[0\]` must be .* got float64"),
        (IMAGES, [np.zeros((5, 7, 4))] * 2, ValueError, "an axis of 1 or 3 channels"),
        (
            ["no/0.png"],
            ["no/0.jpg"],
            ValueError,
            "one pair that can be read, got no/0.png .no such",
        ),
        (IMAGES, [np.full((9, 9, 3), np.nan)] * 2, ValueError, "finite numbers"),
        (IMAGES, [IMAGES[0], IMAGES[1] / 2], ValueError, "of one type and one number of axes"),
    ],
)
def test_errors(images, results, error, said):
    with pytest.raises(error, match=f"identify_pairs: .*{said}"):
        identify_pairs(images, results)


def test_results_of_other_images_are_rejected():
    others = [by_pillow(image) for image in photographs(4, seed=9)]
    noise = np.random.default_rng(0).integers(0, 256, (4, 90, 120, 3), np.uint8)
    with pytest.raises(ValueError, match="what a resize, a crop or a letterbox makes of"):
        identify_pairs(list(noise), others)
