"""The examples at small sizes: the claims of their tables hold, and pictures are written."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from examples import (
    calibrate,
    digits,
    find_rotation,
    frame_interpolation,
    lens_patch,
    matched_views,
    parity_matters,
    parquet_data_set,
    real_patch,
    resize_matters,
    robust_perturbation,
    scaling_attack,
    serving_differs,
    small_classifier,
    spatial_transformer,
    stereo_depth,
)
from examples.digits import Digits
from warpkit.cli.attack.small_classifier import read_small_classifier


@pytest.fixture(scope="module")
def data() -> tuple[Digits, Digits]:
    return digits.load()


def check_picture(path: Path) -> None:
    """Check that a file is a PNG with more than one colour."""
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 200
        assert len(set(picture.convert("L").resize((40, 40)).tobytes())) > 20


def test_digits_are_split_the_same_way_every_time(data: tuple[Digits, Digits]):
    training, test = data
    assert (len(training), len(test)) == (1297, 500)
    assert training.images.shape[1:] == (1, digits.SIZE, digits.SIZE)
    assert 0 <= training.images.min() < training.images.max() <= 1
    again = digits.load()[1]
    assert torch.equal(again.images, test.images)
    assert set(test.labels.tolist()) == set(range(10))


def test_a_spatial_transformer_raises_accuracy(data: tuple[Digits, Digits], tmp_path: Path):
    training, test = data
    scores, models = spatial_transformer.run(1, 4, (training.take(slice(640)), test))
    assert scores["similarity + the net"][0] > scores["the net"][0] + 0.1
    assert spatial_transformer.table(scores, models).row_count == 4
    out = tmp_path / "out.png"
    spatial_transformer.draw(out, models, test)
    check_picture(out)


def test_a_perturbation_with_transformations_in_the_loop_survives_new_ones(
    data: tuple[Digits, Digits], tmp_path: Path
):
    rates, images = robust_perturbation.run(data, count=8, epochs=4, steps=10, epsilons=(0.2,))
    clean, plain, robust = rates[0.2].values()
    assert clean < plain < robust
    assert robust > plain + 0.05
    assert robust_perturbation.table(rates, 10).row_count == 1
    out = tmp_path / "out.png"
    robust_perturbation.draw(out, rates, images)
    check_picture(out)


def test_parity_is_judged_by_cv2(data: tuple[Digits, Digits], tmp_path: Path):
    rates = parity_matters.run(data, seeds=1, count=3, epochs=2, steps=3, levels=(32,))
    assert set(rates) == {("nearest", 32), ("bilinear", 32)}
    assert all(0 <= rate <= 1 for pairs in rates.values() for pair in pairs for rate in pair)
    assert parity_matters.table(rates).row_count == 2
    out = tmp_path / "out.png"
    parity_matters.draw(out, rates)
    check_picture(out)


def test_opencvs_arithmetic_has_the_pipelines_pixels(data: tuple[Digits, Digits]):
    """The network sees the same bits as after cv2."""
    from warpkit.attacks.expectations import views

    files = data[1].take(slice(3)).images
    files = (files * 255).round() / 255
    matrices = robust_perturbation.MOVES.sample(4, size=(digits.SIZE, digits.SIZE))
    for how in parity_matters.INTERPOLATIONS:
        options = {"interpolation": how, "arithmetic": parity_matters.ARITHMETIC}
        assert torch.equal(
            views(files, matrices, True, options), parity_matters.pipeline(files, matrices, how)
        )


def test_a_camera_is_calibrated_as_by_cv2(tmp_path: Path):
    result = calibrate.run(4, noise=0.02, steps=300)
    focal = slice(0, 4)
    # both minimise the error of the same corners and agree to 1/100 pixel; both are 1 pixel off
    assert (result.descent - result.opencv)[focal].abs().max() < 0.05
    assert (result.descent - result.opencv)[4:].abs().max() < 1e-3
    assert abs(result.errors[0] - result.errors[1]) < 1e-3
    assert (result.descent - result.truth)[focal].abs().max() < 3
    assert (result.descent - result.truth)[4].abs() < 0.03
    assert calibrate.table(result).row_count == 10
    out = tmp_path / "out.png"
    calibrate.draw(out, result)
    check_picture(out)


def test_a_patch_optimised_through_a_lens_works_in_opencvs_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lens_patch, "learn", partial(lens_patch.learn, steps=60))
    images = lens_patch.Crops(8, seed=1).images
    ours, theirs = lens_patch.LOOPS["what the lens shows"](images), lens_patch.by_opencv(images)
    assert (ours - theirs).abs().mean() < 0.004  # rounding to 8 bits gives 0.001
    rates, scenes = lens_patch.run(40, steps=15, targets=1)
    assert set(rates) == {"no patch", *lens_patch.LOOPS}
    assert rates["what the lens shows"][0] > rates["no patch"][0]
    assert lens_patch.table(rates).row_count == 3
    lens_patch.draw(tmp_path / "picture.png", scenes)
    check_picture(tmp_path / "picture.png")


def test_the_rotation_of_a_view_of_the_sphere_is_found(tmp_path: Path):
    sphere, found = find_rotation.run(1)
    (one,) = found
    assert find_rotation.apart(one.truth, one.guess) > 20
    assert find_rotation.apart(one.truth, one.rotation) < 0.05
    assert abs(one.field - find_rotation.FIELD) < 0.05
    assert find_rotation.table(found).row_count == 1
    find_rotation.draw(tmp_path / "picture.png", sphere, found)
    check_picture(tmp_path / "picture.png")


def two_photographs(folder: Path, cell: int = 1) -> None:
    """A surface before another, as scikit-image has its pair, with cells of equal pixels."""
    draw = np.random.default_rng(0)
    right = draw.integers(0, 120, (64 // cell, 96 // cell, 3), np.uint8)
    right = right.repeat(cell, 0).repeat(cell, 1)
    disparity = np.full((64, 96), 4.0, np.float32)
    disparity[20:44, 40:60] = 12  # stands before columns 32 to 39 in the right photograph
    columns = (np.arange(96) - disparity.astype(int)).clip(0)
    left = np.take_along_axis(right, columns[..., None], 1)
    left[20:44, 32:40] = 255
    disparity[:4] = np.inf
    for name, image in (("left", left), ("right", right)):
        Image.fromarray(image).save(folder / f"motorcycle_{name}.png")
    np.savez(folder / "motorcycle_disp.npz", disparity)


def test_depth_and_flow_are_found_by_matching(tmp_path: Path):
    two_photographs(tmp_path, 4)
    pair = stereo_depth.load(tmp_path)
    found = matched_views.match(pair)
    assert found.right["depth"] > 0.8
    assert found.right["flow"] > 0.5
    matched_views.draw(tmp_path / "picture.png", pair, found)
    check_picture(tmp_path / "picture.png")


def test_a_photograph_is_seen_from_another_camera(tmp_path: Path):
    two_photographs(tmp_path)
    pair = stereo_depth.load(tmp_path)
    seen = stereo_depth.synthesise(pair)
    found = stereo_depth.errors(pair, seen)
    assert found["not hidden"] < 0.01 < 100 < found["hidden"]
    assert seen.occluded is not None
    assert seen.occluded.sum() == 24 * 8
    assert not seen.valid[:, :4].any()
    stereo_depth.draw(tmp_path / "picture.png", pair, seen)
    check_picture(tmp_path / "picture.png")
    true = stereo_depth.Found(
        torch.zeros(3), torch.tensor([-1.0, 0, 0]), stereo_depth.relative(pair)[1],
        torch.tensor(stereo_depth.LENS[:2]),
    )  # fmt: skip
    text = stereo_depth.describe(pair, true)
    assert text.startswith("rotation off by 0.00 degrees, direction by 0.00, depth by 0.0 %")


def test_a_patch_is_evaluated_by_the_real_program(tmp_path: Path):
    cups = real_patch.Cups(6, seed=0)
    levels = (cups.images * 255).round().byte()
    one = replace(real_patch.WORLD, drawn=False)
    file = [real_patch.QUALITY] * len(levels)
    assert torch.equal(one.steps(levels), real_patch.program(levels, file))
    assert not torch.equal(one.steps(levels), real_patch.program(levels))
    model = real_patch.detector(0, count=16, steps=3)
    scenes = {}
    for name in ("all of it", "turns and sizes alone"):
        patch = real_patch.search(model, cups, real_patch.LOOPS[name], 2, 0)
        assert patch.min() >= 0
        assert patch.max() <= 1
        scenes[name] = real_patch.photographed(cups, patch, 1)
    assert scenes["all of it"].shape == (6, 3, real_patch.SCENE, real_patch.SCENE)
    assert real_patch.table({name: [0.5, 0.7] for name in scenes}).row_count == 2
    real_patch.draw(tmp_path / "picture.png", scenes)
    check_picture(tmp_path / "picture.png")


def test_the_small_classifier_learns_and_is_saved_and_loaded(tmp_path: Path):
    model = small_classifier.learn(small_classifier.Views(10, seed=1), 20)
    unseen = small_classifier.Views(4, seed=2)
    rates = small_classifier.accuracy(model, unseen, torch.Generator().manual_seed(3))
    assert sum(rates.values()) / len(rates) > 0.6  # five classes: 0.2 by chance
    assert small_classifier.table(rates).row_count == 5
    small_classifier.write_small_classifier(model, list(rates), tmp_path / "net.pt")
    again, labels = read_small_classifier(tmp_path / "net.pt")
    assert labels == list(rates)
    torch.testing.assert_close(again(unseen.images), model(unseen.images), rtol=0, atol=0.05)


def test_a_scaling_attack_works_only_for_its_resize(tmp_path: Path):
    hidden = scaling_attack.wk.resize(scaling_attack.load("rocket"), scaling_attack.SIZE)
    found = scaling_attack.attack("cv2 linear", scaling_attack.load("coffee"), hidden, 60)
    assert found.missed["cv2 linear"] < 15
    assert found.missed["cv2 area"] > 50
    assert found.missed["Pillow bilinear"] > 50
    assert [name for name, fooled in found.fooled.items() if fooled] == [
        *("cv2 linear", "torchvision, antialias=False", "cv2 cubic")
    ]
    scaling_attack.draw({"cv2 linear": found, "cv2 area": found}, tmp_path / "picture.png")
    check_picture(tmp_path / "picture.png")
    assert "cv2 linear" in scaling_attack.table({"cv2 linear": found})


def test_an_attack_with_the_programs_resize_succeeds(data: tuple[Digits, Digits], tmp_path: Path):
    rates = resize_matters.run(data, count=8, epochs=4, steps=10, level=32)
    assert len(rates) == 6
    for row in rates.values():
        assert row["its own"] > 0.3
    assert rates["by 5", "cv2 area"]["F.interpolate"] < 0.2
    assert resize_matters.table(rates).row_count == 6
    resize_matters.draw(tmp_path / "picture.png", rates)
    check_picture(tmp_path / "picture.png")


def test_warpkit_has_the_programs_pixels():
    """The attack differentiates the pixels that the program reads."""
    files = torch.randint(0, 256, (1, 1, 120, 120), dtype=torch.uint8)
    for program, own in resize_matters.PROGRAMS.values():
        assert torch.equal(own(files)[0, 0], torch.from_numpy(program(files[0, 0].numpy())))


def test_the_data_set_example_draws_images_and_reports_a_missing_ray(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    files = parquet_data_set.draw_pictures(8)
    small = parquet_data_set.by_pillow(files[0])
    assert small.shape == (3, 224, 224)
    assert small.std() > 5
    with pytest.raises(OSError, match="truncated"):
        parquet_data_set.by_pillow(files[parquet_data_set.CUT])
    monkeypatch.setattr(parquet_data_set, "find_spec", lambda name: None)
    assert parquet_data_set.main([]) == 0
    assert capsys.readouterr().out.startswith("skipped: this example needs Ray")


def test_a_model_with_wrong_preprocessing_in_serving_is_corrected(data: tuple[Digits, Digits]):
    training, test = data
    few = (training.take(slice(600)), test.take(slice(150)))
    scores, comparison = serving_differs.run(few, epochs=12)
    assert scores["as served"] < scores["as trained"] - 0.04
    assert scores["as served, by the twin"] == scores["as trained"]
    assert [finding.kind for finding in comparison.findings] == ["antialias"]
    assert comparison.outputs is not None
    assert comparison.outputs.mean > 0.3
    assert serving_differs.table(scores).row_count == 3


def test_softmax_splatting_gives_the_best_frame_between_two(tmp_path: Path):
    found, made = frame_interpolation.run(256)
    fade, average, softmax = (found[method] for method in frame_interpolation.METHODS)
    assert average[0] > fade[0] + 5
    assert softmax[0] > average[0] + 5
    assert softmax[1] > average[1] + 8
    assert frame_interpolation.table(found).row_count == 3
    out = tmp_path / "out.png"
    frame_interpolation.draw(out, made)
    check_picture(out)
