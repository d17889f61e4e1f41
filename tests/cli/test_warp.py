"""`warpkit warp`: the right pixels, the image's own kind, and one line for every error."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import warpkit as wk
from tests.support import ROOT
from tests.support.forks import python
from warpkit.cli.app import main

PIXELS = np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8)
"""A square of odd side: a quarter turn about its middle carries pixels to pixels."""

TURNED = PIXELS[::-1, ::-1]
HALVES = np.rint(np.arange(9) / 2).astype(int)  # ties to even


def shifted(right: int, down: int, fill: int = 0) -> np.ndarray:
    """PIXELS shifted to the right and down."""
    result = np.full_like(PIXELS, fill)
    result[down:, right:] = PIXELS[: 9 - down, : 9 - right]
    return result


def sheared() -> np.ndarray:
    """PIXELS with row y shifted to the right by y."""
    rows = [np.concatenate([np.zeros_like(row[:y]), row[: 9 - y]]) for y, row in enumerate(PIXELS)]
    return np.stack(rows)


WARPS = {
    "": PIXELS,
    "--angle 90": np.rot90(PIXELS),
    "--angle -90": np.rot90(PIXELS, -1),
    "--angle 180 --center 0 0 --translate 8 8": TURNED,
    "--translate 2 1": shifted(2, 1),
    "--translate -2 -1 --border wrap": np.roll(PIXELS, (-1, -2), (0, 1)),
    "--translate -2 -1 --border constant,wrap": np.roll(
        np.concatenate((PIXELS[1:], 0 * PIXELS[:1])), -2, 1
    ),
    "--translate 2 1 --border-value 7": shifted(2, 1, 7),
    "--scale 2 --center 0 0 --interpolation nearest": PIXELS[HALVES][:, HALVES],
    "--shear 45 --center 0 0": sheared(),
    "--matrix 1 0 2 0 1 1": shifted(2, 1),
    "--matrix=1 0 2 0 1 1": shifted(2, 1),
    "--matrix 1,0,2,0,1,1": shifted(2, 1),
    "--matrix 2 0 4 0 2 2 0 0 2": shifted(2, 1),
    "--matrix -1 0 8 0 -1 8 --size 4 6": TURNED[:4, :6],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder that holds in.png."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(PIXELS).save("in.png")
    return tmp_path


def result(name: str = "out.png") -> np.ndarray:
    """The pixels of a written file."""
    with Image.open(name) as image:
        return np.array(image)


@pytest.mark.parametrize("options", WARPS)
def test_each_option_gives_the_expected_pixels(options: str):
    assert main(["warp", "in.png", "out.png", *options.split()]) == 0
    np.testing.assert_array_equal(result(), WARPS[options])


def test_options_may_precede_the_files():
    assert main(["warp", "--translate", "2", "1", "in.png", "out.png"]) == 0
    np.testing.assert_array_equal(result(), shifted(2, 1))


def test_shear_along_y():
    Image.fromarray(PIXELS.swapaxes(0, 1)).save("in.png")
    assert main(["warp", "in.png", "out.png", "--shear", "0", "45", "--center", "0", "0"]) == 0
    np.testing.assert_array_equal(result().swapaxes(0, 1), sheared())


def test_one_border_value_per_channel():
    words = ["--translate", "2", "1", "--border-value", "1", "2", "3"]
    assert main(["warp", "in.png", "out.png", *words]) == 0
    assert (result()[0] == (1, 2, 3)).all()


@pytest.mark.parametrize("arithmetic", ["exact", "opencv4", "opencv5"])
def test_the_arithmetic_is_passed_to_the_warp(arithmetic: str):
    words = ["--matrix", *["0.9", "0.2", "1.3", "-0.1", "1.1", "0.4"], "--arithmetic", arithmetic]
    assert main(["warp", "in.png", "out.png", *words]) == 0
    matrix = torch.tensor([[0.9, 0.2, 1.3], [-0.1, 1.1, 0.4]], dtype=torch.float64)
    image = torch.from_numpy(PIXELS).permute(2, 0, 1)
    expected = wk.warp_affine(image, matrix, arithmetic=arithmetic).permute(1, 2, 0)
    np.testing.assert_array_equal(result(), expected.numpy())


def test_the_default_centre_of_an_oblong_image_is_its_middle():
    Image.fromarray(PIXELS[:4]).save("in.png")
    assert main(["warp", "in.png", "out.png", "--angle", "180"]) == 0
    np.testing.assert_array_equal(result(), PIXELS[:4][::-1, ::-1])


def grey16() -> Image.Image:
    """16-bit grey with values that 8 bits cannot hold."""
    return Image.fromarray(PIXELS[..., 0].astype(np.uint16) * 256 + 17)


KINDS = {
    "1": (Image.fromarray(PIXELS[..., 0]).convert("1"), "L"),
    "L": (Image.fromarray(PIXELS[..., 0]), "L"),
    "LA": (Image.fromarray(PIXELS[..., :2]), "LA"),
    "RGB": (Image.fromarray(PIXELS), "RGB"),
    "RGBA": (Image.fromarray(np.concatenate([PIXELS, PIXELS[..., :1]], -1)), "RGBA"),
    "P": (Image.fromarray(PIXELS).quantize(16), "P"),
    "I;16": (grey16(), "I;16"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_png_keeps_its_mode(kind: str):
    image, expected = KINDS[kind]
    image.save("in.png")
    assert main(["warp", "in.png", "out.png", "--angle", "90"]) == 0
    with Image.open("out.png") as out, Image.open("in.png") as saved:
        # Pillow before 11.3 opens a 16-bit grey PNG as mode I
        assert out.mode == (saved.mode if kind == "I;16" else expected)
        exact = "RGB" if kind == "P" else expected
        turned = np.rot90(np.array(image.convert(exact)))
        np.testing.assert_array_equal(np.array(out.convert(exact)), turned)


@pytest.mark.parametrize("angle", ["90", "30"])
def test_a_transparent_palette_keeps_its_alpha(angle: str):
    image = Image.fromarray(PIXELS).quantize(16)
    image.save("in.png", transparency=3)
    with Image.open("in.png") as file:
        pixels = np.array(file.convert("RGBA"))
    assert main(["warp", "in.png", "out.png", "--angle", angle]) == 0
    with Image.open("out.png") as out:
        assert out.mode == "P"
        colours = np.array(out.convert("RGBA"))
    if angle == "90":
        np.testing.assert_array_equal(colours, np.rot90(pixels))
    assert (colours[..., 3] < 255).any()
    assert (colours[..., 3] == 255).any()


def test_a_palette_becomes_rgb_in_a_format_without_one():
    Image.fromarray(PIXELS).quantize(16).save("in.png")
    assert main(["warp", "in.png", "out.jpg"]) == 0
    assert result("out.jpg").shape == (9, 9, 3)


def test_float_images_pass_through_tiff():
    values = PIXELS[..., 0].astype(np.float32) / 3
    Image.fromarray(values).save("in.tif")
    assert main(["warp", "in.tif", "out.tif", "--angle", "180"]) == 0
    np.testing.assert_array_equal(result("out.tif"), values[::-1, ::-1])


def test_exif_orientation_is_applied():
    exif = Image.Exif()
    exif[274] = 6  # to be rotated clockwise by 90 degrees for display
    Image.fromarray(PIXELS[:4]).save("in.png", exif=exif)
    assert main(["warp", "in.png", "out.png"]) == 0
    np.testing.assert_array_equal(result(), np.rot90(PIXELS[:4], -1))
    with Image.open("out.png") as out:
        assert 274 not in out.getexif()


def test_the_colour_profile_is_kept():
    Image.fromarray(PIXELS).save("in.png", icc_profile=b"a profile")
    assert main(["warp", "in.png", "out.png"]) == 0
    with Image.open("out.png") as out:
        assert out.info["icc_profile"] == b"a profile"


def test_a_result_goes_where_a_link_points(folder: Path):
    (folder / "link.png").symlink_to("out.png")
    for _ in range(2):
        assert main(["warp", "in.png", "link.png", "--angle", "180"]) == 0
        assert (folder / "link.png").is_symlink()
        np.testing.assert_array_equal(result("out.png"), TURNED)


def test_a_failed_write_leaves_the_old_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (folder / "out.png").write_bytes(b"old")

    def fail(self: Image.Image, file, **options):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", fail)
    assert main(["warp", "in.png", "out.png"]) == 1
    assert capsys.readouterr().err == "warpkit: out.png: No space left on device\n"
    assert (folder / "out.png").read_bytes() == b"old"
    assert sorted(path.name for path in folder.iterdir()) == ["in.png", "out.png"]


BAD = {
    "warp": (2, "Missing argument 'IN'."),
    "warp in.png": (2, "Missing argument 'OUT'."),
    "spin": (2, "No such command 'spin'."),
    "warp in.png o.png more": (
        2,
        "takes IN and OUT, or --out DIR for several images, got 3 files",
    ),
    "warp in.png o.png --twist": (2, "No such option: --twist"),
    "warp in.png o.png --angle": (2, "Option '--angle' requires an argument."),
    "warp in.png o.png --angle x": (2, "Invalid value for '--angle': 'x' is not a finite number"),
    "warp in.png o.png --angle inf": (
        2,
        "Invalid value for '--angle': 'inf' is not a finite number",
    ),
    "warp in.png o.png --scale 0": (
        2,
        "Invalid value for '--scale': takes 1 positive number, got 0",
    ),
    "warp in.png o.png --translate 1 --angle 2": (
        2,
        "Invalid value for '--translate': takes 2 numbers, got 1",
    ),
    "warp in.png o.png --size 2.5 3": (
        2,
        "Invalid value for '--size': takes 2 whole positive numbers, got 2.5 3",
    ),
    "warp in.png o.png --matrix 1 2 3": (
        2,
        "Invalid value for '--matrix': takes 6 or 9 numbers, got 3",
    ),
    "warp in.png o.png --matrix 1 1 0 1 1 0": (2, "--matrix must be invertible"),
    "warp in.png o.png --matrix 1 0 0 0 1 0 --angle 3": (
        2,
        "--matrix takes the place of --angle: give one of them",
    ),
    "warp in.png o.png --border-value 1 2": (
        2,
        "--border-value takes 1 or 3 numbers for this image, got 2",
    ),
    "warp in.png o.png --interpolation cubic": (
        2,
        (
            "Invalid value for '--interpolation': 'cubic' is not one of "
            "nearest, bilinear, bicubic, lanczos4"
        ),
    ),
    "warp in.png o.png --border transparent": (
        2,
        (
            "Invalid value for '--border': 'transparent' is not one of "
            "constant, replicate, reflect, reflect_101, wrap, nor two of them as Y,X"
        ),
    ),
    "warp none.png o.png": (1, "none.png: No such file or directory"),
    "warp . o.png": (1, ".: Is a directory"),
    "warp text.png o.png": (1, "text.png: not an image that Pillow can read"),
    "warp half.png o.png": (1, "half.png: image file is truncated"),
    "warp in.png nowhere/o.png": (1, "nowhere/o.png: No such file or directory"),
    "warp in.png text.png/o.png": (1, "text.png/o.png: Not a directory"),
    "warp in.png o.xyz": (
        1,
        "o.xyz: the ending '.xyz', which names no image format to write (try .png)",
    ),
    "warp in.png o": (1, "o: no ending, which names no image format to write (try .png)"),
    "warp deep.png o.jpg": (1, "o.jpg: JPEG does not hold 16-bit grey (try .png or .tif)"),
    "demo in.png": (
        1,
        (
            "in.png: the photograph must have at least 64 pixels a side and be no long strip, "
            "got 9 x 9"
        ),
    ),
    "demo --out demo.jpg": (1, "demo.jpg: the figure is a PNG: its name must end in .png"),
}


def png16(path: str) -> None:
    """A PNG with 16 bits per colour channel, which Pillow cannot write."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header, row = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0), bytes(7)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row)) + chunk(b"IEND", b"")
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)


@pytest.mark.parametrize("line", BAD)
def test_an_error_is_one_line(line: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "text.png").write_text("hello")
    grey16().save("deep.png")
    png16("colours.png")
    Path("colours.ppm").write_bytes(b"P6 2 1 65535 " + bytes(12))
    Image.effect_noise((200, 200), 50).save("half.png")
    with open("half.png", "r+b") as file:
        file.truncate(20_000)
    before = sorted(folder.iterdir())
    status, message = BAD[line]
    assert main(line.split()) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"warpkit: {message}\n")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("words", [[], ["--help"], ["warp", "--help"], ["demo", "-h"]])
def test_help_fits_a_terminal(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(words) == 0
    text = capsys.readouterr().out
    assert text.startswith("Usage: warpkit")
    assert max(map(len, text.splitlines())) <= 80


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"warpkit {wk.__version__}\n"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process, with this package."""
    root = str(ROOT)
    code = f"import sys; sys.path.insert(0, {root!r}); "
    return subprocess.run(
        [*python(), "-c", code + command[0], *command[1:]], capture_output=True, text=True
    )


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "warpkit", "warp", "in.png", "out.png"]  # not forked
    done = subprocess.run(
        [*command, "--matrix", "-1", "0", "8", "0", "-1", "8"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    np.testing.assert_array_equal(result(), TURNED)
    module = "import runpy; runpy.run_module('warpkit', run_name='__main__')"
    done = run(module, "warp", "in.png")
    assert (done.returncode, done.stderr) == (2, "warpkit: Missing argument 'OUT'.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is full")
@pytest.mark.parametrize("word", ["--help", "--version"])
def test_a_full_output_device_is_one_line(word: str):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*python(), "-m", "warpkit", word],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    message = "warpkit: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_a_missing_package_is_named():
    done = run(
        "sys.modules['typer'] = None; from warpkit.__main__ import main; sys.exit(main(['warp']))"
    )
    message = "warpkit: the command line needs typer: pip install '.[cli]' in a checkout\n"
    assert (done.returncode, done.stderr) == (1, message)
