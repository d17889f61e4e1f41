"""The rules of sizes, crops and padding as lines of Python."""

from __future__ import annotations

from warpkit.validation.programs.geometry import EXACT, OF_WHOLE, SIDES, TWICE, Geometry

NEAR = {
    "floor": "math.floor({})",
    "even": "round({})",
    "ceil": "math.ceil({})",
    "half_up": "math.floor({} + 0.5)",
    "floor_and_one": "math.floor({}) + 1",
}
OFFSETS = {
    "even": "round(({}) / 2)",
    "floor": "({}) // 2",
    "ceil": "-(-({}) // 2)",
    "end": "0",
    "start": "{}",
}


def lines(geometry: Geometry) -> list[str]:
    """Lines that compute h and w, the size after the resize, from height and width."""
    g = geometry
    if g.rule == "keep":
        code = ["h, w = height, width"]
    elif g.rule == "fixed":
        code = [f"h, w = {g.size[0]}, {g.size[1]}"]
    elif g.rule == "factor":
        near = NEAR[SIDES[g.rounding][1]]
        code = [f"h, w = {near.format(f'height * {g.size}')}, {near.format(f'width * {g.size}')}"]
    elif g.rule == "height":
        code = _height(g)
    elif g.rule == "area":
        return _area(g)
    else:
        code = _rectangle(g) if isinstance(g.size, tuple) else _side(g)
    if g.multiple is not None:
        near = NEAR[g.multiple_rounding.removesuffix(OF_WHOLE)]
        exact = "h, w"
        if not g.multiple_rounding.endswith(OF_WHOLE) and g.rule not in ("keep", "fixed"):
            exact = "height * factor, width * factor"
        of = g.multiple
        multiple = f"max({of}, {near.format(f'side / {of}')} * {of})"
        code.append(f"h, w = ({multiple} for side in ({exact}))")
    return code if g.rule == "fixed" else [*code, "h, w = max(1, h), max(1, w)"]


def _height(g: Geometry) -> list[str]:
    how, name = SIDES[g.rounding]
    exact = f"{g.size} * (width / height)" if how == "aspect" else f"{g.size} * width / height"
    wide = NEAR[name].format(exact)
    return [f"h, w = {g.size}, {wide if g.limit is None else f'min({wide}, {g.limit})'}"]


def _area(g: Geometry) -> list[str]:
    least, most = g.size
    of = g.multiple or 1
    return [
        f"h, w = (max({of}, round(side / {of}) * {of}) for side in (height, width))",
        f"if h * w > {most}:",
        f"    beta = math.sqrt(height * width / {most})",
        "    sides = height / beta, width / beta",
        f"    h, w = (max({of}, math.floor(side / {of}) * {of}) for side in sides)",
        f"elif h * w < {least}:",
        f"    beta = math.sqrt({least} / (height * width))",
        f"    h, w = (math.ceil(side * beta / {of}) * {of} for side in (height, width))",
    ]


def _rectangle(g: Geometry) -> list[str]:
    how, name = SIDES[g.rounding]
    near, (high, wide) = NEAR[name], g.size
    if how == "ratio":
        pick = "min" if g.rule == "shortest" else "max"
        code = [f"ratio = {pick}(height / {high}, width / {wide})"]
        code += [] if g.enlarge else ["ratio = max(ratio, 1.0)"]
        return [*code, *_both(near, "height / ratio", "width / ratio")]
    pick = "max" if g.rule == "shortest" else "min"
    code = [f"factor = {pick}({high} / height, {wide} / width)"]
    code += [] if g.enlarge else ["factor = min(factor, 1.0)"]
    if how == "both":
        return [*code, *_both(near, "height * factor", "width * factor")]
    if how != "quotient":
        raise ValueError("to_code: sides that are divided in float32 have no code")
    return [
        *code,
        f"if factor == {high} / height:",
        f"    h, w = {high}, {near.format(f'width / height * {high}')}",
        "else:",
        f"    h, w = {near.format(f'height / width * {wide}')}, {wide}",
        *([] if g.enlarge else ["if factor == 1.0:", "    h, w = height, width"]),
    ]


def _both(near: str, h: str, w: str) -> list[str]:
    return [f"h, w = {near.format(h)}, {near.format(w)}"]


def _side(g: Geometry) -> list[str]:
    how, name = SIDES[g.rounding]
    near, n = NEAR[name], g.size
    if g.limit is not None and g.limit_rounding != "torchvision":
        raise ValueError("to_code: a limit as in DETR or mmcv has no code")
    side = f"side = {'min' if g.rule == 'shortest' else 'max'}(height, width)"
    code = [side, f"factor = {n} / side"]
    exact = {
        "quotient": f"{n} * v / side",
        "both": "v * factor",
        "other": "v * factor",
        "aspect": f"{n} * (v / side)",
        "ratio": f"v / (side / {n})",
    }.get(how)
    if exact is None:
        raise ValueError("to_code: sides that are divided in float32 have no code")
    rounded = near.format(exact)
    each = rounded if how in ("both", "ratio") else f"{n} if v == side else {rounded}"
    code.append(f"h, w = ({each} for v in (height, width))")
    conditions = [f"side <= {n}"] if not g.enlarge else []
    conditions += [f"side >= {n}"] if not g.shrink else []
    limited = f"max(height, width) / side * {n} > {g.limit}"
    for condition in conditions:
        code.append(f"if {condition}{'' if g.limit is None else f' and not {limited}'}:")
        code += ["    h, w, factor = height, width, 1.0"]
    if g.limit is not None:
        code += [
            f"if max(h, w) > {g.limit} and {limited}:",
            f"    new = max(1, int({g.limit} * min(h, w) / max(h, w)))",
            f"    h, w = ({g.limit}, new) if height > width else (new, {g.limit})",
        ]
    return code


def before_lines(g: Geometry) -> list[str]:
    """Lines that compute rows, columns, y and x of what comes before the resize."""
    assert g.before is not None
    kind, what = g.before
    if what == "aspect" or kind == "box":
        high, wide = g.size
        if g.before_rounding == EXACT:
            return [
                f"rows = min(height, width / ({wide} / {high}))",
                f"columns = min(width, {wide} / {high} * height)",
                "x, y = (width - columns) * 0.5, (height - rows) * 0.5",
            ]
        return [
            f"rows = min(height, width * {high} // {wide})",
            f"columns = min(width, height * {wide} // {high})",
            "x, y = (width - columns) // 2, (height - rows) // 2",
        ]
    if kind == "pad":
        offset = OFFSETS["floor" if g.before_rounding == TWICE else g.before_rounding]
        y, x = (offset.format(f"max(height, width) - {side}") for side in ("height", "width"))
        code = [f"y, x = {y}, {x}", "rows = columns = max(height, width)"]
        if g.before_rounding == TWICE:
            code[1] = "rows, columns = height + 2 * y, width + 2 * x"
        return code
    offset = OFFSETS[g.before_rounding]
    part = "min(height, width)" if what == "square" else f"int({what} * min(height, width))"
    y, x = (offset.format(f"{side} - rows") for side in ("height", "width"))
    return [f"rows = columns = max(1, {part})", f"y, x = {y}, {x}"]


def window_lines(g: Geometry, *, resized: bool) -> list[str]:
    """Lines that compute rows and columns of the result, and where a crop begins."""
    code = [] if resized else ["h, w = height, width"]
    if g.stride is not None:
        of = g.stride
        code.append(f"rows, columns = -(-h // {of}) * {of}, -(-w // {of}) * {of}")
    else:
        assert g.window is not None
        code.append(f"rows, columns = {g.window[0]}, {g.window[1]}")
    offset = OFFSETS[g.crop_rounding]
    y, x = (offset.format(f"max({a} - {b}, 0)") for a, b in (("h", "rows"), ("w", "columns")))
    return [*code, f"y, x = {y}, {x}"]


def place_lines(g: Geometry) -> list[str]:
    """Lines that compute where the picture begins in its padding."""
    if g.place == EXACT:
        raise ValueError("to_code: padding that begins as in TensorFlow has no code")
    top, left = (OFFSETS[g.place].format(rest) for rest in ("rows - h", "columns - w"))
    return [f"top, left = {top}, {left}"]
