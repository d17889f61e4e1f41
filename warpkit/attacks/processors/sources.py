"""Loads a configuration from a file, a folder, a dict, or an object that has one."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpkit.attacks.processors.configuration import NAME
from warpkit.core import checks
from warpkit.core.environment import how_to_install

FILES = (
    "processor_config.json",
    "preprocessor_config.json",
    "open_clip_config.json",
    "config.json",
)
"""The files of a folder, in order of priority."""
WITHIN = {
    "image_processor": (),
    "pretrained_cfg": ("architecture",),
    "data_config": ("architecture",),
    "preprocess_cfg": ("resize_mode", "model_cfg"),
}
"""The key of the wanted part in a larger configuration, and the entry that names its library."""
WANTED = "a preprocessor_config.json (its path or its dict), or an image processor"


def read(source: Any) -> tuple[dict[str, Any], str | None]:
    """The configuration of `source`, and the library that an object uses."""
    if isinstance(source, str | os.PathLike):
        return _from_path(Path(source)), None
    if isinstance(source, Mapping):
        return _inner(source), None
    if dataclasses.is_dataclass(source) and not isinstance(source, type):
        return _inner(dataclasses.asdict(source)), None
    if isinstance(source, type):
        checks.fail(NAME, "source", WANTED, checks.kind_of(source), TypeError)
    inner = getattr(source, "image_processor", None)
    source = source if inner is None else inner
    if callable(getattr(source, "to_json_string", None)):
        config = json.loads(source.to_json_string())
        if "size" in config:  # Idefics's older name; an object keeps it as it was made
            config.pop("image_size", None)
        if getattr(source, "return_row_col_info", None):  # left out of what it saves
            config["return_row_col_info"] = True
        libraries = {"pil": "pillow", "torchvision": "torchvision"}
        return _inner(config), libraries.get(str(getattr(source, "backend", None)))
    checks.fail(NAME, "source", WANTED, type(source).__name__, TypeError)


def _from_path(path: Path) -> dict[str, Any]:
    if not path.exists() and path.suffix != ".json":
        raise FileNotFoundError(
            f"{NAME}: `source` must be {WANTED}, got {str(path)!r}, which is no file here. Of a "
            f"model's name transformers makes the object: AutoImageProcessor.from_pretrained("
            f"{str(path)!r}), with the extra `processors` ({how_to_install('processors')})"
        )
    if not path.is_dir():
        return _inner(_from_file(path))
    for name in FILES:
        if (path / name).is_file():
            config = _from_file(path / name)
            if name != FILES[0] or "image_processor" in config:
                return _inner(config)
    checks.fail(NAME, "source", WANTED, f"{str(path)!r}, a folder with none of {', '.join(FILES)}")


def _from_file(path: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # not UTF-8, or not JSON
        raise ValueError(f"{NAME}: `source` {str(path)!r} holds no JSON: {error}") from error
    if not isinstance(config, dict):
        checks.fail(NAME, "source", WANTED, f"{str(path)!r}, which holds no object")
    return config


def _inner(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a larger configuration that describes the preprocessing."""
    for key, marks in WITHIN.items():
        if isinstance(config.get(key), Mapping):
            outer = {k: config[k] for k in marks if k in config}
            return {**dict.fromkeys(marks), **outer, **_inner(config[key])}
    return dict(config)
