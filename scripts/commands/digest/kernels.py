"""Call the native library's kernels on fixed numbers, and print a digest of each result.

    scripts/digest kernels [FOLDER]

FOLDER holds the package; the default is this checkout. The script needs neither torch nor numpy, so
that plain Python can run it: scripts/test aarch64 compares the lines of an emulated processor with
those of this one. The first line names the instruction set.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from array import array
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

FLOAT32, FLOAT64 = 0, 1
AFFINE = 2
TILE = 32

CHANNELS, HEIGHT, WIDTH, ROWS, COLUMNS = 3, 45, 53, 40, 70
"""The sizes of an image, and of a result with two rows of tiles."""
BORDERS = range(5)
"""The codes of all borders except transparent: native/shared/call.h."""
MATRIX = array("d", [0.9, -0.35, 4.3, 0.4, 0.8, -3.7])


def numbers(count: int, seed: int, kind: str = "d") -> array[float]:
    """Numbers in [-1, 1] from a linear congruential generator: the same on every machine."""
    state, out = seed, array(kind)
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append((state >> 11) / 2**52 - 1)
    return out


def address(values: array[Any]) -> int:
    return values.buffer_info()[0]


def call(
    library: Any, family: str, task: str, units: int, arrays: dict[str, array[Any]], **options: int
) -> bytes:
    """Run a call from its named numbers; the other numbers of the block are 0.

    Returns the contents of the arrays after it, in their order.
    """
    values_of = {name: address(values) for name, values in arrays.items()}
    values_of |= {
        "task": library.tasks[task],
        "threads": 1,
        "end_unit": units,
        "run": units,
        **options,
    }
    fields = library.families[family]
    unknown = values_of.keys() - set(fields)
    assert not unknown, unknown
    block = array("q", [values_of.get(name, 0) for name in fields])
    library.run(address(block))
    return b"".join(values.tobytes() for values in arrays.values())


def warped(
    library: Any, task: str, units: int, arrays: dict[str, array[Any]], **options: int
) -> None:
    """A call of the warps, of one image under one matrix."""
    first = array("q", [0])
    fields = {"items": 1, "channels": CHANNELS, "height": HEIGHT, "width": WIDTH}
    fields |= {"out_height": ROWS, "out_width": COLUMNS, "kind": AFFINE, "mapping_size": 6}
    fields |= {"plane": HEIGHT * WIDTH, "line": WIDTH, "pixel": 1, "double_points": 1, **options}
    call(library, "warp", task, units, {"image_of": first, "mapping_of": first, **arrays}, **fields)


def forward(library: Any, taps: int, kind: str) -> bytes:
    """Warps of an image under one matrix and every border."""
    results, units = b"", -(-ROWS // TILE)
    image, fill = numbers(CHANNELS * HEIGHT * WIDTH, 1, kind), array(kind, [0.25])
    for border in BORDERS:
        out = array(kind, bytes(CHANNELS * ROWS * COLUMNS * fill.itemsize))
        arrays = {"image": image, "fill": fill, "mapping": MATRIX, "out": out}
        options = {"type": FLOAT32 if kind == "f" else FLOAT64, "number_bytes": fill.itemsize}
        options |= {
            "interpolation": TAPS.index(taps),
            "taps": taps,
            "border_y": border,
            "border_x": border,
        }
        warped(library, "nearest" if taps == 1 else "warp", units, arrays, **options)
        results += out.tobytes()
    return results


def backward(library: Any, taps: int, kind: str) -> bytes:
    """The gradients to image, matrix and fill of the same warps."""
    results, units = b"", -(-ROWS // TILE)
    size = CHANNELS * HEIGHT * WIDTH
    image, fill = numbers(size, 1, kind), array(kind, [0.25])
    grad = numbers(CHANNELS * ROWS * COLUMNS, 2, kind)
    # two jobs of one unit (`Job` in warp_call.h): clear the gradient, then process all tiles
    every = 2**62
    jobs = array("q", [0, 0, 0, 0, 0, 0, size, 0, every, 0, 0, units, 0, 0, 0, 0, 0, every])
    starts = array("q", [0, 2])
    for border in BORDERS:
        sums = (
            array(kind, bytes(size * fill.itemsize)),
            array("d", bytes(72)),
            array("d", bytes(8 * CHANNELS)),
        )
        names = "grad_image", "grad_mapping", "grad_fill"
        arrays = {"image": image, "fill": fill, "mapping": MATRIX, "grad": grad}
        arrays |= {"jobs": jobs, "starts": starts, **dict(zip(names, sums, strict=True))}
        options = {"type": FLOAT32 if kind == "f" else FLOAT64, "number_bytes": fill.itemsize}
        options |= {
            "interpolation": TAPS.index(taps),
            "taps": taps,
            "border_y": border,
            "border_x": border,
        }
        options |= {"needs_image": 1, "needs_mapping": int(taps > 1), "needs_fill": 1}
        warped(library, "backward", 1, arrays, **options)
        results += b"".join(each.tobytes() for each in sums)
    return results


def fit(library: Any, task: str) -> bytes:
    """Matrices of five lists of points."""
    count = 4 if task.startswith("four_points") else 9
    source, target = numbers(10 * count, 1), numbers(10 * count, 2)
    arrays = {"src": source, "dst": target, "good": array("q", bytes(40))}
    arrays["limits"] = array("d", [5.0] if task == "homography" else [2.0**-52, 1e300])
    arrays["matrix"] = numbers(40, 3) if task == "homography" else array("d", bytes(360))
    if task == "four_points_backward":
        arrays["grad"] = numbers(45, 3)
        arrays |= {f"grad_{name}": array("d", bytes(320)) for name in ("src", "dst")}
    if task == "similarity":
        arrays["weights"] = array("d", [abs(w) for w in numbers(5 * count, 4)])
    return call(library, "fits", task, 5, arrays, count=count)


def polar(library: Any, task: str, kind: str) -> bytes:
    """Lengths and angles of vectors, or the way back: blocks of 128, and three computed alone."""
    count, block, results = 259, 128, b""
    values = {"first": numbers(count, 1, kind), "second": numbers(count, 2, kind)}
    values["numbers"] = numbers(64, 3)  # a table, which is only read
    for degrees in (0, 1):
        buffers = {name: array(kind, bytes(count * 8)) for name in ("out", "out_second")}
        options = {"count": count, "channels": block, "degrees": degrees}
        options["double_points"] = int(kind == "d")
        arrays = {**values, **buffers, "far": array("q", [0])}
        results += call(library, "maps", task, -(-count // block), arrays, **options)
    return results


def transform(library: Any, kind: str) -> bytes:
    """A matrix for the three channels of every pixel of a picture."""
    count = ROWS * COLUMNS
    points = numbers(3 * count, 1)
    values = [round(127 + 127 * x) for x in points] if kind == "B" else points
    arrays = {"matrix": numbers(12, 2), "points": array(kind, values)}
    arrays["out"] = array(kind, bytes(len(points) * array(kind).itemsize))
    options = {"type": "fdB".index(kind), "rows": 3, "columns": 4, "channels": 3, "count": count}
    options |= {"line": COLUMNS, "vectors": COLUMNS // 8 * 8, "pairs": COLUMNS // 2 * 2}
    return call(library, "transform", "transformed", -(-count // 1024), arrays, **options)


def pairs(size: int, out_size: int, bits: int) -> tuple[array[int], array[int]]:
    """Bilinear along an axis as resize_torch.cpp reads it: pixels, and both weights of each."""
    places = [(n + 0.5) * size / out_size - 0.5 for n in range(out_size)]
    pixels = [min(max(int(place), 0), size - 2) for place in places]
    upper = [
        round(min(max(place - pixel, 0.0), 1.0) * 2**bits)
        for place, pixel in zip(places, pixels, strict=True)
    ]
    return array("i", pixels), array("i", [2**bits - w | w << 16 for w in upper])


def resize_torch(library: Any, inner: int) -> bytes:
    """F.interpolate's bilinear of bytes, in one band and one tile; inner: channels side by side."""
    height, width, bits, together = 30, 35, 14, 16
    options = {"height": HEIGHT, "width": WIDTH, "out_height": height, "out_width": width}
    options |= {"inner": inner, "bits": bits, "share": bits, "band": height, "tile_count": 1}
    line = -(-width * inner // 64) * 64
    options |= {"line": line, "lines": (-(-HEIGHT // together) * together + 1) * line}
    options |= {"turned": (WIDTH + 1) * inner * together, "summed": width * inner * together}
    image = array("B", [round(127 + 127 * x) for x in numbers(3 * HEIGHT * WIDTH, 1)])
    arrays = {"image": image, "out": array("B", bytes(3 * height * width))}
    for axis, size, out_size in (("x", WIDTH, width), ("y", HEIGHT, height)):
        arrays[f"{axis}_pixel"], arrays[f"{axis}_weight"] = pairs(size, out_size, bits)
        arrays[f"{axis}_begin"] = array("i", range(out_size))
        arrays[f"{axis}_end"] = array("i", range(1, out_size + 1))
    arrays |= {"read": array("i", range(HEIGHT)), "bands": array("i", [0, HEIGHT])}
    arrays["tiles"] = array("i", [0, width, 0, WIDTH])
    arrays["starts"] = array("q", [k * HEIGHT * WIDTH for k in range(3 // inner)])
    options["stride"] = WIDTH * inner
    return call(library, "resize", "resize_torch", 3 // inner, arrays, **options)


def sphere_backward(library: Any) -> bytes:
    """The gradient of a view of a sphere to its matrix, row by row."""
    matrix = array("d", [0.02, 0.001, -0.7, -0.002, 0.03, -0.6, 0.003, 0.001, 1.0])
    arrays = {"matrices": matrix, "places": numbers(2 * ROWS * COLUMNS, 1)}
    arrays["rows"] = array("d", bytes(72 * ROWS))
    options = {"height": ROWS, "width": COLUMNS, "sphere_height": 90, "sphere_width": 180}
    return call(library, "sphere", "sphere_backward", ROWS, arrays, **options)


def jpeg(library: Any, task: str) -> bytes:
    """An image as its JPEG file shows it, "4:2:0" in three bands, or its gradient."""
    size = {"channels": CHANNELS, "height": HEIGHT, "width": WIDTH}
    count = CHANNELS * HEIGHT * WIDTH
    images = array("f", [(x + 1) / 2 for x in numbers(count, 1)])
    arrays = {"images": images, "qualities": array("i", [60])}
    backward = task == "file_backward"
    arrays["grad_images" if backward else "out"] = array("f", bytes(4 * count))
    if backward:
        arrays["grad"] = numbers(count, 2, "f")
    halves = {"rows": 2, "columns": 2, "bands": 3, "band_rows": 1, "floats": 1}
    return call(library, "jpeg", task, 3, arrays, **size, **halves)


def others(library: Any) -> Iterator[tuple[str, bytes]]:
    """Results of kernels that are no warps, by name."""
    for task in ("four_points", "four_points_backward", "similarity", "homography"):
        yield task, fit(library, task)
    for task, (kind, bits) in product(("to_polar", "from_polar"), FLOATS.items()):
        yield f"{task} float{bits}", polar(library, task, kind)
    for kind, name in (("f", "float32"), ("d", "float64"), ("B", "uint8")):
        yield f"transform {name}", transform(library, kind)
    for inner in (1, 3):
        yield f"resize_torch {inner}", resize_torch(library, inner)
    yield "sphere_backward", sphere_backward(library)
    for task in ("through_file", "file_backward"):
        yield f"jpeg {task}", jpeg(library, task)


FLOATS = {"f": 32, "d": 64}
INTERPOLATIONS = {"nearest": 1, "bilinear": 2, "bicubic": 4, "lanczos4": 8}
TAPS = list(INTERPOLATIONS.values())


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def main() -> None:
    if "--help" in sys.argv:
        sys.exit(__doc__)
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[3])
    path = root / "warpkit" / "engine" / "cpu" / "library.py"
    spec = importlib.util.spec_from_file_location("library", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["library"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    library = module.open_file(module.PATH)
    print("isa", library.isa)
    for name, taps in INTERPOLATIONS.items():
        for kernel in (forward, backward):
            for kind, bits in FLOATS.items():
                print(f"{name} {kernel.__name__} float{bits}", digest(kernel(library, taps, kind)))
    for name, results in others(library):
        print(name, digest(results))


if __name__ == "__main__":
    main()
