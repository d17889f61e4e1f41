"""Every image mode that Pillow reads is kept, converted with a message, or rejected by name."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.test_warp import png16
from warpkit.cli.app import main

PIXELS = np.random.default_rng(0).integers(0, 256, (9, 12, 4), dtype=np.uint8)
RGB, GREY = Image.fromarray(PIXELS[..., :3].copy()), Image.fromarray(PIXELS[..., 0].copy())
DEEP = PIXELS[..., 0].astype(np.uint16) * 256 + 17
WIDE = PIXELS[..., 0].astype(np.int32) * 8_000_001 - 1_000_000_000
"""32-bit values that neither 16 bits nor a float32 hold."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def turned(source: str, target: str) -> int:
    return main(["warp", source, target, "--angle", "180"])


def result(name: str, mode: str | None = None) -> np.ndarray:
    with Image.open(name) as image:
        assert mode in (None, image.mode)
        return np.array(image)


def cmyk() -> Image.Image:
    return Image.frombytes("CMYK", (12, 9), PIXELS.tobytes())


KEPT = {
    "L tif": (GREY, "L"),
    "LA tif": (Image.fromarray(PIXELS[..., :2].copy()), "LA"),
    "RGB tif": (RGB, "RGB"),
    "RGBA tif": (Image.fromarray(PIXELS), "RGBA"),
    "CMYK tif": (cmyk(), "CMYK"),
    "I;16 tif": (Image.fromarray(DEEP), "I;16"),
    "I;16 png": (Image.fromarray(DEEP), "I;16"),
    "I tif": (Image.fromarray(WIDE), "I"),
    "F tif": (Image.fromarray(WIDE.astype(np.float32)), "F"),
    "F pfm": (Image.fromarray(WIDE.astype(np.float32)), "F"),
}


@pytest.mark.parametrize("kind", KEPT)
def test_supported_modes_are_kept_without_a_message(kind: str, capsys: pytest.CaptureFixture[str]):
    image, mode = KEPT[kind]
    ending = kind.split()[1]
    image.save(f"in.{ending}")
    assert turned(f"in.{ending}", f"out.{ending}") == 0
    np.testing.assert_array_equal(result(f"out.{ending}", mode), np.rot90(np.array(image), 2))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("order", ["<", ">"])
def test_16_bit_images_of_either_byte_order(order: str, capsys: pytest.CaptureFixture[str]):
    mode = "I;16" if order == "<" else "I;16B"
    Image.frombytes(mode, (12, 9), DEEP.astype(f"{order}u2").tobytes()).save("in.tif")
    assert turned("in.tif", "out.png") == 0
    np.testing.assert_array_equal(result("out.png").astype(np.uint16), DEEP[::-1, ::-1])
    assert capsys.readouterr() == ("", "")


def test_a_16_bit_pgm(capsys: pytest.CaptureFixture[str]):
    Path("in.pgm").write_bytes(b"P5 12 9 65535 " + DEEP.astype(">u2").tobytes())
    assert turned("in.pgm", "out.png") == turned("in.pgm", "out.pgm") == 0
    np.testing.assert_array_equal(result("out.png").astype(np.uint16), DEEP[::-1, ::-1])
    np.testing.assert_array_equal(result("out.pgm").astype(np.uint16), DEEP[::-1, ::-1])
    assert capsys.readouterr() == ("", "")


def test_32_bit_images_are_interpolated_and_rounded_once():
    Image.fromarray(WIDE).save("in.tif")
    assert main(["warp", "in.tif", "out.tif", "--translate", ".25", "0", "--border", "wrap"]) == 0
    mixed = 0.75 * WIDE + 0.25 * np.roll(WIDE.astype(np.float64), 1, axis=1)
    assert np.abs(result("out.tif", "I") - mixed).max() <= 0.5


def test_a_cmyk_jpeg_stays_cmyk():
    cmyk().resize((96, 72)).save("in.jpg", quality=95)
    assert main(["warp", "in.jpg", "out.jpg"]) == 0
    before, after = result("in.jpg", "CMYK").astype(int), result("out.jpg", "CMYK")
    assert np.abs(before - after).mean() < 4  # compressed twice; inverted inks would differ by 128


LAB = Image.frombytes("LAB", (12, 9), np.tile(np.array([138, 81, 70], np.uint8), 108).tobytes())
"""L* = 54.3 (of 100 as 255), a* = 80.8, b* = 69.9 under D50: the red of sRGB, (255, 0, 0)."""
SAVED = {
    "in.png": {
        "black and white": (GREY.convert("1"), {}),
        "grey with a transparent colour": (GREY, {"transparency": 7}),
        "RGB with a transparent colour": (RGB, {"transparency": (1, 2, 3)}),
        "palette": (RGB.quantize(16), {}),
    },
    "in.tif": {
        "palette with alpha": (RGB.quantize(16).convert("PA"), {}),
        "YCbCr": (RGB.convert("YCbCr"), {}),
        "CMYK": (cmyk(), {}),
        "LAB": (LAB, {}),
    },
}
CONVERTED = [
    ("in.png", "black and white", "out.png", "grey"),
    ("in.png", "grey with a transparent colour", "out.png", "grey with alpha"),
    ("in.png", "RGB with a transparent colour", "out.png", "RGBA"),
    ("in.png", "palette", "out.jpg", "RGB"),
    ("in.png", "palette", "out.tga", "RGB"),
    ("in.tif", "YCbCr", "out.png", "RGB"),
    ("in.tif", "CMYK", "out.png", "RGB"),
    ("in.tif", "CMYK", "out.webp", "RGB"),
    ("in.tif", "LAB", "out.tif", "RGB"),
]
if "PA" in Image.MODES:
    CONVERTED.append(("in.tif", "palette with alpha", "out.tif", "RGBA"))


@pytest.mark.parametrize(("source", "held", "target", "written"), CONVERTED)
def test_conversions_are_reported(
    source: str, held: str, target: str, written: str, capsys: pytest.CaptureFixture[str]
):
    image, options = SAVED[source][held]
    image.save(source, **options)
    assert turned(source, target) == 0
    assert capsys.readouterr() == ("", f"warpkit: {source}: {held} converted to {written}\n")
    mode = {"grey": "L", "grey with alpha": "LA"}.get(written, written)
    found = result(target, mode)
    if held == "LAB":
        assert np.abs(found.astype(int) - (255, 0, 0)).max() <= 8  # 8-bit LAB rounds colours
    elif target != "out.jpg":
        with Image.open(source) as file:
            np.testing.assert_array_equal(found, np.rot90(np.array(file.convert(mode)), 2))


@pytest.mark.parametrize("mode", ["RGBX", "HSV", "La", "RGBa", "I;16B"])
def test_modes_without_a_file_format_are_read_too(mode: str):
    from warpkit.cli.image_kinds import decode

    first = {"La": "LA", "RGBa": "RGBA", "I;16B": "I;16B"}.get(mode, "RGB")
    image = Image.frombytes("I;16B", (12, 9), DEEP.astype(">u2").tobytes())
    if first != mode or mode in ("RGBX", "HSV"):
        image = Image.fromarray(PIXELS).convert(first).convert(mode)
    picture = decode(image)
    if mode == "I;16B":
        np.testing.assert_array_equal(picture.pixels[0].numpy(), DEEP)
    else:
        wanted = {"La": "LA", "RGBa": "RGBA"}.get(mode, "RGB")
        assert picture.mode == wanted
        expected = np.array(image.convert(wanted))
        np.testing.assert_array_equal(picture.pixels.permute(1, 2, 0).numpy(), expected)


@pytest.mark.parametrize("name", ["in.png", "in.ppm"])
def test_16_bit_colours_are_read_as_pillow_does(name: str, capsys: pytest.CaptureFixture[str]):
    png16("in.png")
    Path("in.ppm").write_bytes(b"P6 2 1 65535 " + bytes(range(0, 240, 20)))
    assert turned(name, "out.png") == 0
    said = f"warpkit: {name}: 16-bit RGB converted to 8-bit RGB\n"
    assert capsys.readouterr() == ("", said)
    with Image.open(name) as file:
        np.testing.assert_array_equal(result("out.png", "RGB"), np.rot90(np.array(file), 2))


def test_a_result_with_too_many_colours_for_a_palette(capsys: pytest.CaptureFixture[str]):
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).quantize(256).save("in.png")
    assert main(["warp", "in.png", "out.png", "--angle", "9"]) == 0
    said = "warpkit: in.png: palette converted to palette of the 256 nearest colours\n"
    assert capsys.readouterr().err == said
    result("out.png", "P")


def test_a_gif_stays_transparent():
    pixels = np.full((9, 9, 4), (200, 10, 90, 255), np.uint8)
    pixels[:4] = 0
    Image.fromarray(pixels).save("in.gif")
    for target in ("out.gif", "out.tif"):
        assert turned("in.gif", target) == 0
        with Image.open(target) as out:
            found = np.array(out.convert("RGBA"))
        np.testing.assert_array_equal(found[..., 3], pixels[::-1, ::-1, 3])


def test_a_cmyk_profile_is_not_written_to_an_rgb_file():
    cmyk().save("in.tif", icc_profile=b"of inks")
    assert turned("in.tif", "out.png") == turned("in.tif", "out.tif") == 0
    with Image.open("out.png") as rgb, Image.open("out.tif") as inks:
        assert "icc_profile" not in rgb.info
        assert inks.info["icc_profile"] == b"of inks"


REFUSED = {
    ("rgba.png", "out.jpg"): "JPEG does not hold RGBA (try .png)",
    ("rgba.png", "out.bmp"): "BMP does not hold RGBA (try .png)",
    ("rgba.png", "out.ppm"): "PPM does not hold RGBA (try .png)",
    ("deep.png", "out.webp"): "WEBP does not hold 16-bit grey (try .png or .tif)",
    ("deep.png", "out.gif"): "GIF does not hold 16-bit grey (try .png or .tif)",
    ("wide.tif", "out.png"): "PNG does not hold 32-bit grey beyond 0 to 65535 (try .tif)",
    ("next.tif", "out.png"): "PNG does not hold 32-bit grey beyond 0 to 65535 (try .tif)",
    ("below.tif", "out.png"): "PNG does not hold 32-bit grey beyond 0 to 65535 (try .tif)",
    ("float.tif", "out.png"): "PNG does not hold floating-point grey (try .tif)",
    ("float.tif", "out.gif"): "GIF does not hold floating-point grey (try .tif)",
}


@pytest.mark.parametrize("names", REFUSED)
def test_a_format_that_cannot_hold_the_mode_is_one_line(
    names: tuple[str, str], capsys: pytest.CaptureFixture[str], folder: Path
):
    Image.fromarray(PIXELS).save("rgba.png")
    Image.fromarray(DEEP).save("deep.png")
    Image.fromarray(WIDE).save("wide.tif")
    Image.fromarray(WIDE.clip(0, 2**16)).save("next.tif")
    Image.fromarray(WIDE.clip(-1, 2**16 - 1)).save("below.tif")
    Image.fromarray(WIDE.astype(np.float32)).save("float.tif")
    assert turned(*names) == 1
    assert capsys.readouterr() == ("", f"warpkit: {names[1]}: {REFUSED[names]}\n")
    assert not (folder / names[1]).exists()


def test_32_bit_values_that_fit_16_bits_are_written_to_a_png(capsys: pytest.CaptureFixture[str]):
    levels = WIDE.clip(0, 2**16 - 1)
    Image.fromarray(levels).save("in.tif")
    assert turned("in.tif", "out.png") == 0
    np.testing.assert_array_equal(result("out.png").astype(np.uint16), levels[::-1, ::-1])
    said = "warpkit: in.tif: 32-bit grey converted to 16-bit grey\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP", "PPM", "TGA", "ICO"])
def test_broken_files_are_one_line(kind: str, capsys: pytest.CaptureFixture[str], folder: Path):
    whole = io.BytesIO()
    RGB.save(whole, kind)
    generator = np.random.default_rng(1)
    for _ in range(16):
        data = bytearray(whole.getvalue())
        for at in generator.integers(0, min(len(data), 120), 4):
            data[at] = generator.integers(0, 256)
        (folder / "in").write_bytes(data)
        status = main(["warp", "in", "out.png", "--size", "4", "4"])
        out, err = capsys.readouterr()
        assert (status, out) in ((0, ""), (1, ""))
        assert len(err.splitlines()) <= 1
        assert all(line.startswith("warpkit: in: ") for line in err.splitlines())
