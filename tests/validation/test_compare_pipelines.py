"""`compare_pipelines`: the differences, the worst first, each measured alone."""

from __future__ import annotations

import datetime
import json

import cv2
import numpy as np
import pytest
import torch
import torchvision.transforms as T
from PIL import Image

from warpkit.cli import main
from warpkit.validation import assert_same_pipeline, compare_pipelines

TRAINED = T.Compose([T.Resize(72), T.CenterCrop(64), T.ToTensor()])


def served(x: np.ndarray) -> np.ndarray:
    return cv2.resize(x, (64, 64))[..., ::-1].transpose(2, 0, 1) / np.float32(255)


def squeezed(name: int, image: Image.Image) -> np.ndarray:
    return np.asarray(image.resize((64, 64), name), np.float32).transpose(2, 0, 1) / 255


def kinds(comparison) -> list[str]:
    return [finding.kind for finding in comparison.findings]


def test_geometry_channels_and_antialias_are_distinguished():
    comparison = compare_pipelines(TRAINED, served)
    assert not comparison.equal
    assert not comparison.only_last_bits
    assert kinds(comparison) == ["size", "channels", "antialias"]
    text = str(comparison)
    assert (
        "A keeps the aspect (shorter side 72) and crops the centre; B squeezes to 64 x 64" in text
    )
    assert "channels reversed" in text
    assert "B samples without antialias" in text
    assert all(finding.differing > 0 for finding in comparison.findings)


def test_each_finding_is_measured_alone():
    def nothing_else(x):
        return cv2.resize(x, (64, 64)).transpose(2, 0, 1) / np.float32(255)

    comparison = compare_pipelines(nothing_else, served)
    (finding,) = comparison.findings
    assert finding.kind == "channels"
    # the only difference, so it changes as much alone as all together
    assert (finding.differing, finding.compared) == (comparison.differing, comparison.compared)
    assert finding.largest == pytest.approx(comparison.largest, abs=1e-3)


def test_differences_in_the_last_bits_are_named():
    rounded = T.Compose([T.Resize((64, 64)), T.ToTensor()])
    floats = T.Compose([T.ToTensor(), T.Resize((64, 64))])
    comparison = compare_pipelines(rounded, floats)
    assert "rounding" in kinds(comparison)
    assert comparison.only_last_bits
    assert not comparison.equal
    assert "A rounds to 8 bits before normalising, B stays in floats: last bits" in str(comparison)
    assert_same_pipeline(rounded, floats)
    with pytest.raises(AssertionError, match="the programs differ"):
        assert_same_pipeline(rounded, floats, last_bits=False)


def test_the_same_program_twice_gives_no_finding():
    comparison = compare_pipelines(TRAINED, TRAINED)
    assert comparison.equal
    assert comparison.findings == []
    assert "none differs" in str(comparison)
    assert_same_pipeline(TRAINED, TRAINED, last_bits=False)
    with pytest.raises(AssertionError, match="channels reversed"):
        assert_same_pipeline(TRAINED, served)


def test_differences_in_values_layout_and_padding():
    first = lambda x: cv2.resize(x, (64, 64)) / np.float32(255)  # noqa: E731
    second = lambda x: (cv2.resize(x, (64, 64)) / np.float32(127.5) - 1).transpose(2, 0, 1)  # noqa: E731
    assert kinds(compare_pipelines(first, second)) == ["layout", "values"]

    def letterbox(x, level):
        factor = 64 / max(x.shape[:2])
        height, width = (round(side * factor) for side in x.shape[:2])
        result = np.full((64, 64, 3), level, np.uint8)
        top, left = (64 - height) // 2, (64 - width) // 2
        result[top : top + height, left : left + width] = cv2.resize(x, (width, height))
        return result

    comparison = compare_pipelines(lambda x: letterbox(x, 0), lambda x: letterbox(x, 114))
    assert kinds(comparison) == ["pad"]
    assert comparison.findings[0].largest == 114


def test_an_unknown_program_is_reported():
    comparison = compare_pipelines(served, lambda x: served(x) ** 2)
    assert any("of B: Not known" in finding.message for finding in comparison.findings)
    assert not comparison.only_last_bits


def test_a_program_that_returns_no_image_is_reported(tmp_path):
    comparison = compare_pipelines(served, lambda x: "words")
    assert str(comparison).split("\n")[0] == "Nothing could be compared."
    assert kinds(comparison) == ["arithmetic"]
    assert "of B: Not known: What it returns is no picture (str)" in str(comparison)
    assert not comparison.equal
    comparison.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Nothing could be compared." in page
    assert "Pictures" not in page

    def broken(x):
        raise RuntimeError("no device")

    with pytest.raises(ValueError, match="`second` raises RuntimeError on a picture of 480 x 640"):
        compare_pipelines(served, broken)


def letterboxed(near, *, centred: bool, how: int = cv2.INTER_LINEAR):
    """A letterbox of 96 x 96 with a rounding of its sides."""

    def program(x: np.ndarray) -> np.ndarray:
        factor = 96 / max(x.shape[:2])
        height, width = (near(side * factor) for side in x.shape[:2])
        result = np.zeros((96, 96, 3), np.uint8)
        top, left = ((96 - height) // 2, (96 - width) // 2) if centred else (0, 0)
        resized = cv2.resize(x, (width, height), interpolation=how)
        result[top : top + height, left : left + width] = resized
        return result

    return program


def test_rounded_sides_are_compared_whatever_else_differs():
    nearest = letterboxed(round, centred=True)
    for centred, wanted in ((False, ["pad", "size"]), (True, ["size"])):
        comparison = compare_pipelines(nearest, letterboxed(int, centred=centred))
        assert kinds(comparison) == wanted
        size = comparison.findings[-1]
        assert "A rounds sides to the nearest" in size.message
        assert "B down (side * factor, both)" in size.message
        assert size.differing > 0  # the built-in pictures show it
        assert comparison.differing > 0
        example = size.message.partition(": ")[2].split(" ")
        h, w = int(example[0]), int(example[2])
        of_a, of_b = ([near(v * 96 / max(h, w)) for v in (h, w)] for near in (round, int))
        assert example[4:7] == [str(of_a[0]), "x", str(of_a[1])]
        assert example[9:12] == [str(of_b[0]), "x", str(of_b[1])]
        with pytest.raises(AssertionError, match="A rounds sides to the nearest"):
            assert_same_pipeline(nearest, letterboxed(int, centred=centred))


def test_filters_are_compared_where_no_rule_of_sizes_is_known():
    def program(x: np.ndarray, how: int) -> np.ndarray:
        h, w = x.shape[:2]
        return cv2.resize(x, (40 + w // 7 * 3 + w % 3, 50 + h // 5 + h % 2), interpolation=how)

    area = lambda x: program(x, cv2.INTER_AREA)  # noqa: E731
    comparison = compare_pipelines(area, lambda x: program(x, cv2.INTER_CUBIC))
    assert comparison.first.rule is None
    assert comparison.first.interpolation == "area"
    assert comparison.first.arithmetic is None
    assert "No rule of sizes" in str(comparison.first)
    finding = comparison.findings[0]
    assert finding.message == "A is area, B bicubic"
    # nothing else differs, so it alone changes what all changes (bicubic: with or without IPP)
    assert finding.differing == pytest.approx(comparison.differing, rel=1e-3)
    assert not compare_pipelines(area, TRAINED).equal


def test_the_worst_finding_comes_first():
    def first(x: np.ndarray) -> np.ndarray:
        return cv2.resize(x, (64, 64)) / np.float32(255)

    def second(x: np.ndarray) -> np.ndarray:  # a small padding, all channels reversed
        return np.pad(cv2.resize(x, (64, 64)), ((0, 0), (0, 0), (0, 0)))[..., ::-1] / 254.0

    comparison = compare_pipelines(first, second)
    assert kinds(comparison) == ["channels", "values", "layout"]
    means = [finding.mean for finding in comparison.findings]
    assert means == sorted(means, reverse=True)
    assert means[-1] == 0  # the type alone


def test_numbers_that_do_not_compare_differ():
    def program(x: np.ndarray, number: float = np.nan) -> np.ndarray:
        y = cv2.resize(x, (64, 64)).astype(np.float32)
        if (x != x[0, 0]).any():  # flat pictures are as they should be
            y[3, 4] = number
        return y

    for number in (np.nan, np.inf):
        wrong = lambda x, n=number: program(x, n)  # noqa: E731
        for other in (wrong, lambda x: program(x, 7.0)):
            comparison = compare_pipelines(wrong, other)
            assert not comparison.equal
            assert not comparison.only_last_bits
            assert comparison.differing >= 9  # 3 channels of one pixel, in 3 pictures
            assert comparison.largest == np.inf
            assert "numbers that do not compare" in str(comparison)
            assert json.loads(json.dumps(comparison.as_dict()))["largest"] is None


def test_an_image_that_a_program_rejects_is_a_difference():
    def rejects(x: np.ndarray) -> np.ndarray:
        if x.shape[0] == 333:
            raise ValueError("not this one")
        return cv2.resize(x, (64, 64))

    def takes_all(x: np.ndarray) -> np.ndarray:
        return cv2.resize(x, (64, 64))

    for first, second, said in (
        (rejects, takes_all, "A does not give numbers for built-in (333 x 333)"),
        (takes_all, rejects, "B does not give numbers for built-in (333 x 333)"),
        (rejects, rejects, "neither program gives numbers for built-in (333 x 333)"),
    ):
        comparison = compare_pipelines(first, second)
        assert not comparison.equal
        assert not comparison.only_last_bits
        assert comparison.differing == 0
        assert kinds(comparison) == ["values"]
        assert said in comparison.findings[0].message
        assert "not this one" in comparison.findings[0].message
        with pytest.raises(AssertionError, match="not this one"):
            assert_same_pipeline(first, second)
    picture = np.zeros((333, 90, 3), np.uint8)
    nothing = compare_pipelines(rejects, rejects, images=[picture])
    assert not nothing.equal
    assert not nothing.only_last_bits
    assert str(nothing).startswith("Nothing could be compared.")


def test_limits_follow_the_range_of_an_unknown_programs_numbers():
    def bent(power: float, scale: float):
        return lambda x: (cv2.resize(x, (64, 64)) / 255.0) ** power * scale

    for scale in (1e-4, 1.0, 1e6):
        comparison = compare_pipelines(bent(2.2, scale), bent(0.5, scale))
        assert comparison.differing > 0.9 * comparison.compared
        assert 100 < comparison.largest < 255
        assert not comparison.only_last_bits
        same = compare_pipelines(bent(2.2, scale), bent(2.2, scale))
        assert same.equal
        assert "On these pictures alone, as B: Not known" in str(same)


def test_a_partly_known_program_is_compared_and_reported():
    def other(x):
        if max(x.shape[:2]) > 1024:
            x = x[:1024, :1024]
        return cv2.resize(x, (64, 64), interpolation=cv2.INTER_AREA)

    comparison = compare_pipelines(lambda x: cv2.resize(x, (64, 64)), other)
    assert kinds(comparison) == ["interpolation", "arithmetic"]
    assert "on pictures longer than" in comparison.findings[1].message


def test_the_drift_of_a_model_is_measured_for_each_finding():
    def model(numbers: torch.Tensor) -> torch.Tensor:
        return numbers.mean((2, 3))

    comparison = compare_pipelines(TRAINED, served, model=model)
    assert comparison.outputs is not None
    assert comparison.outputs.largest > 0
    channels = next(f for f in comparison.findings if f.kind == "channels")
    assert channels.outputs is not None
    assert channels.outputs.largest > 0


def test_a_users_images_are_accepted(tmp_path):
    photograph = Image.effect_noise((90, 70), 60).convert("RGB")
    array = np.asarray(photograph)
    tensor = torch.from_numpy(array.copy()).movedim(-1, 0)
    for images in ([photograph], [array], [tensor], tensor, torch.stack([tensor])):
        assert compare_pipelines(served, served, images=images).compared == 64 * 64 * 3
    file = tmp_path / "photograph.png"
    photograph.save(file)
    for images in (file, str(file), [file]):
        comparison = compare_pipelines(served, served, images=images)
        assert comparison.compared == 64 * 64 * 3
        assert comparison.pictures == [f"{file} (70 x 90)"]
    with pytest.raises(ValueError, match=r"images\[0\].*nowhere.png \(no such file\)"):
        compare_pipelines(served, served, images=["nowhere.png"])
    with pytest.raises(ValueError, match="takes"):
        compare_pipelines(served, served, takes="array")


def test_the_html_page_and_json(tmp_path):
    comparison = compare_pipelines(TRAINED, served)
    comparison.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("data:image/png;base64") >= 5
    assert "channels reversed" in page
    assert "A is torchvision.transforms.transforms.Compose" in page
    assert "B is tests.validation.test_compare_pipelines.served" in page
    assert f"Compared on {datetime.date.today().isoformat()}" in page
    assert page.count("built-in (480 x 640)") == 2  # in the list, and above its pictures
    cell = comparison._repr_html_()
    assert cell is not None
    assert "channels reversed" in cell
    assert 2 <= cell.count("data:image/png;base64") <= 5
    comparison.to_json(tmp_path / "page.json")
    assert json.loads((tmp_path / "page.json").read_text())["findings"][0]["kind"] == "size"


PROGRAMS = """
import cv2
import numpy as np

def first(x):
    return cv2.resize(x, (64, 64))

def second(x):
    return cv2.resize(x, (64, 64), interpolation=cv2.INTER_AREA)

def unknown(x):
    return (x / 255.0) ** 2

number = 3
"""


def test_the_command_line_compares_programs(tmp_path, capsys):
    file = tmp_path / "programs.py"
    file.write_text(PROGRAMS)
    assert main(["identify", f"{file}:first", "--json", str(tmp_path / "found.json")]) == 0
    assert "Every picture becomes 64 x 64" in capsys.readouterr().out
    assert json.loads((tmp_path / "found.json").read_text())["rule"] == "fixed"
    assert main(["identify", f"{file}:unknown", "--takes", "array"]) == 1
    command = ["compare", f"{file}:first", f"{file}:second", "--html", str(tmp_path / "page.html")]
    assert main(command) == 1
    assert "interpolation: A is bilinear, B area" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text()
    assert f"A is {file}:first, B is {file}:second" in page
    assert main(["compare", f"{file}:first", f"{file}:first"]) == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("first", "names no program"),
        ("nowhere.py:first", "no such file"),
        ("no_such_package_:first", "No module named"),
        ("{file}:third", "has no third"),
        ("{file}:number", "cannot be called"),
    ],
)
def test_missing_programs_are_one_line(tmp_path, capsys, name, words):
    file = tmp_path / "programs.py"
    file.write_text(PROGRAMS)
    assert main(["identify", name.format(file=file)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
