"""Warps as lines of Python."""

from __future__ import annotations

from collections.abc import Sequence

from warpkit.validation.programs.matrices import Corners
from warpkit.validation.programs.warp_twin import Warp

CV2_BORDERS = {
    "constant": "CONSTANT",
    "replicate": "REPLICATE",
    "reflect": "REFLECT",
    "reflect_101": "REFLECT_101",
    "wrap": "WRAP",
}
CV2_FLAGS = {
    "nearest": "NEAREST",
    "bilinear": "LINEAR",
    "bicubic": "CUBIC",
    "lanczos4": "LANCZOS4",
}
NUMPY_MODES = {
    "replicate": "edge",
    "reflect": "symmetric",
    "reflect_101": "reflect",
    "wrap": "wrap",
}
TORCH_BORDERS = {"constant": "zeros", "replicate": "border", "reflect": "reflection"}


def lines(library: str, warp: Warp, levels: Sequence[float]) -> list[str]:
    """Lines that warp `image`, in warpkit's and cv2's own numbers; Pillow and torch have other
    arithmetics: the same warp, other last bits. levels: the border value of red, green and blue.

    Raises ValueError if the library lacks the interpolation or the border."""
    rows, columns = warp.size
    tidy = tuple(int(v) if v == int(v) else v for v in levels)
    sides = {"cv2": "image.shape[:2]", "pillow": "image.size[::-1]"}
    code = [f"height, width = {sides.get(library, 'image.shape[-2:]')}"]
    code += _matrix(library, warp)
    if library == "warpkit":
        image = "image" if warp.rounded else "image.float()"
        options = [f"size=({rows}, {columns})", f"interpolation={warp.interpolation!r}"]
        options += [f"border={warp.border!r}", f"border_value={tidy}"]
        options.append(f"arithmetic={warp.arithmetic!r}")
        name = "warp_perspective" if _is_perspective(warp) else "warp_affine"
        return [*code, f"image = wk.{name}({image}, matrix, {', '.join(options)})"]
    if library == "cv2":
        image = "np.ascontiguousarray(image)" if warp.rounded else "image.astype(np.float32)"
        options = [f"flags=cv2.INTER_{CV2_FLAGS[warp.interpolation]}"]
        options += [f"borderMode=cv2.BORDER_{CV2_BORDERS[warp.border]}", f"borderValue={tidy}"]
        name = "warpPerspective" if _is_perspective(warp) else "warpAffine"
        call = f"cv2.{name}({image}, matrix, ({columns}, {rows}), {', '.join(options)})"
        return [*code, f"image = {call}"]
    write = _by_pillow if library == "pillow" else _by_torch
    return code + write(warp, tidy)


def _is_perspective(warp: Warp) -> bool:
    return warp.corners is not None or (warp.matrix is not None and len(warp.matrix) == 3)


def _matrix(library: str, warp: Warp) -> list[str]:
    """Lines that give `matrix`, (2, 3) or (3, 3), source -> result."""
    as_arrays = library in ("cv2", "pillow")
    make = "np.array" if as_arrays else "torch.tensor"
    double = "np.float64" if as_arrays else "torch.float64"
    if warp.matrix is not None:
        text = "[" + ", ".join(str(list(row)) for row in warp.matrix) + "]"
        return [f"matrix = {make}({text}, dtype={double})"]
    if warp.corners is not None:
        return _of_corners(library, warp.corners)
    rows, columns = warp.size
    scale = f"{columns} / (max(width, height * {columns} / {rows}) * {warp.part})"
    return [
        f"scale = {scale}",
        f"x, y = {columns} / 2 - scale * (width / 2), {rows} / 2 - scale * (height / 2)",
        f"matrix = {make}([[scale, 0.0, x], [0.0, scale, y]], dtype={double})",
    ]


def _of_corners(library: str, corners: Corners) -> list[str]:
    """Pillow and torch have no function for four points: their programs solve the equations."""
    less = f" - {corners.less}" if corners.less else ""
    points = ", ".join(f"({x} * (width{less}), {y} * (height{less}))" for x, y in corners.parts)
    made = [f"source, result = [{points}], {[*corners.to]}"]
    if library == "warpkit":
        call = "wk.opencv.getPerspectiveTransform(torch.tensor(source), torch.tensor(result))"
        return [*made, f"matrix = {call}"]
    if library == "cv2":
        call = "cv2.getPerspectiveTransform(np.float32(source), np.float32(result))"
        return [*made, f"matrix = {call}"]
    module, array = ("np", "array") if library == "pillow" else ("torch", "tensor")
    double = f"{module}.float64"
    return [
        *made,
        "pairs = [(x, y, u, v) for (x, y), (u, v) in zip(source, result)]",
        "rows = [(x, y, 1, 0, 0, 0, -x * u, -y * u) for x, y, u, v in pairs]",
        "rows += [(0, 0, 0, x, y, 1, -x * v, -y * v) for x, y, u, v in pairs]",
        "ends = [u for _, _, u, _ in pairs] + [v for _, _, _, v in pairs]",
        f"rows, ends = ({module}.{array}(one, dtype={double}) for one in (rows, ends))",
        f"entries = {module}.linalg.solve(rows, ends).tolist()",
        f"matrix = {module}.{array}([*entries, 1.0], dtype={double}).reshape(3, 3)",
    ]


def _by_pillow(warp: Warp, levels: Sequence[float]) -> list[str]:
    """Pillow reads at pixel centres that are half a pixel further, and borders of one colour."""
    name = {"nearest": "NEAREST", "bilinear": "BILINEAR", "bicubic": "BICUBIC"}
    if warp.interpolation not in name:
        raise ValueError(f"to_code: library='pillow' has no {warp.interpolation} warp")
    rows, columns = warp.size
    projects = _is_perspective(warp)
    whole = "matrix" if projects else "np.vstack([matrix, [0, 0, 1]])"
    code = [
        f"matrix = np.linalg.inv({whole})",
        "half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])",
        "matrix = half @ matrix @ np.linalg.inv(half)",
    ]
    shift = "matrix = np.array([[1, 0, {0}], [0, 1, {0}], [0, 0, 1]]) @ matrix"
    fill = ""
    if warp.border == "constant":
        colour = tuple(round(v) for v in levels)
        colour = colour if len(colour) == 3 else colour * 3
        fill = f", fillcolor={colour}"
        code += [  # edges blend with the border, which fillcolor does not
            f"canvas = np.full((height + 8, width + 8, 3), {colour}, np.uint8)",
            "canvas[4:-4, 4:-4] = np.array(image)",
            "image = Image.fromarray(canvas)",
            shift.format(4),
        ]
    else:  # a wide edge of the picture's own pixels
        mode = NUMPY_MODES[warp.border]
        code += [
            "edge = max(height, width)",
            "edges = ((edge, edge), (edge, edge), (0, 0))",
            f"image = Image.fromarray(np.pad(np.array(image), edges, mode={mode!r}))",
            shift.format("edge"),
        ]
    kind, count = ("PERSPECTIVE", 8) if projects else ("AFFINE", 6)
    coefficients = f"(matrix / matrix[2, 2]).ravel().tolist()[:{count}]"
    call = f"image.transform(({columns}, {rows}), Image.Transform.{kind}, {coefficients}"
    filtered = f"resample=Image.Resampling.{name[warp.interpolation]}{fill}"
    return [*code, f"image = np.array({call}, {filtered}))"]


def _by_torch(warp: Warp, levels: Sequence[float]) -> list[str]:
    """grid_sample, on levels from which the border value is subtracted: its border is zero."""
    modes = ("nearest", "bilinear", "bicubic")
    if warp.interpolation not in modes or warp.border not in TORCH_BORDERS:
        raise ValueError(
            f"to_code: library='torch' has no {warp.interpolation} warp with border {warp.border}"
        )
    rows, columns = warp.size
    options = f"mode={warp.interpolation!r}, padding_mode={TORCH_BORDERS[warp.border]!r}"
    options += ", align_corners=False"
    whole = "matrix"
    if not _is_perspective(warp):
        whole = "torch.cat([matrix, torch.tensor([[0.0, 0.0, 1.0]])]).double()"
    code = [
        f"inverse = torch.linalg.inv({whole})",
        f"y, x = torch.meshgrid(torch.arange({rows}.0), torch.arange({columns}.0), indexing='ij')",
        "points = torch.stack([x, y, torch.ones_like(x)], -1).double() @ inverse.T",
        "points = points[..., :2] / points[..., 2:]",
        "grid = ((points + 0.5) * 2 / torch.tensor([width, height]) - 1).float()[None]",
        f"level = torch.tensor({tuple(levels)}, dtype=torch.float32)[:, None, None]",
        f"image = F.grid_sample((image.float() - level)[None], grid, {options})[0] + level",
    ]
    return [*code, "image = image.clamp(0, 255).round()"] if warp.rounded else code
