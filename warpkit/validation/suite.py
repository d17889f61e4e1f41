"""The settings that a report covers, their inputs, and the result of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from warpkit import geometry
from warpkit.core import checks
from warpkit.engine.arithmetic.guarantees import Guarantee, arithmetic_of, guaranteed
from warpkit.validation import peers
from warpkit.validation.calls import FLAGS, MODES, ParityCall, by_opencv, by_warpkit, compare
from warpkit.validation.metrics import Figures, Parity, figures

KINDS = ("affine", "perspective", "remap")
DTYPES = ("uint8", "uint16", "int16", "float32", "float64")
CHANNELS = (1, 3, 4)
CROP = (80, 125)
"""(H, W) of the warped images: 125 is no multiple of a vector register, which tests row ends."""

PEER_DTYPES = ("uint8", "float32")
TURNS: tuple[dict[str, Any], ...] = (
    {"angle": 17.0, "scale": 1.2, "translation": (3.0, -2.0)},
    {"angle": -140.0, "scale": 0.6, "translation": (-5.0, 4.0)},
)
TILTS = (
    ((1.05, 0.12, -9.3), (-0.08, 1.1, 3.7), (0.0011, -0.0007, 1.0)),
    ((0.7, -0.2, 30.1), (0.15, 0.8, 2.3), (-0.0009, 0.0016, 1.0)),
)


@dataclass(frozen=True)
class Setting:
    """One row's question: does warpkit reproduce OpenCV's warp with these options?"""

    map: str
    interpolation: str
    border: str
    dtype: str
    channels: int

    def promised(self, version: str) -> Guarantee:
        """What is guaranteed under the arithmetic of OpenCV's `version`."""
        return guaranteed(
            version,
            dtype=self.dtype,
            channels=self.channels,
            interpolation=self.interpolation,
            border=self.border,
        )


@dataclass(frozen=True)
class Row:
    """One setting, and how far warpkit and the peers are from OpenCV over all images."""

    setting: Setting
    parity: Parity
    promise: Guarantee
    peers: dict[str, Figures | None]
    """By name; None for a peer that does not support the setting."""

    @property
    def guaranteed(self) -> Figures | None:
        """The figures of the pixels that are guaranteed to be OpenCV's."""
        parts = {"everywhere": self.parity, "interior": self.parity.interior, "nowhere": None}
        return parts[self.promise.where]

    @property
    def open(self) -> Figures | None:
        """The figures of the pixels without a guarantee."""
        parts = {"everywhere": None, "interior": self.parity.border, "nowhere": self.parity}
        return parts[self.promise.where]

    @property
    def passed(self) -> bool:
        """Whether all guaranteed pixels are equal to OpenCV's."""
        return self.guaranteed is None or self.guaranteed.differing == 0

    @property
    def white(self) -> float:
        """The difference between white and black in the image's type, to state differences in
        levels."""
        return {"uint8": 255.0, "uint16": 65535.0, "int16": 65535.0}.get(self.setting.dtype, 1.0)


def settings() -> tuple[Setting, ...]:
    """Every map, interpolation and border of OpenCV, with every type and number of channels."""
    sets = product(KINDS, FLAGS, MODES, DTYPES, CHANNELS)
    return tuple(Setting(*values) for values in sets)


class Suite:
    """The inputs, and the runs over them."""

    def __init__(self, photographs: Sequence[Tensor], cv2: Any, arithmetic: str) -> None:
        self.photographs = torch.stack([crop(p) for p in photographs])
        self.cv2 = cv2
        self.arithmetic = arithmetic
        self.count = len(photographs) + 1  # white noise
        self.peers = peers.versions()

    def images(self, setting: Setting) -> Tensor:
        """(B, C, H, W) of the setting's type and channels; the last image is noise."""
        generator = torch.Generator().manual_seed(7)
        shape = (1, setting.channels, *CROP)
        if setting.dtype.startswith("float"):
            dtype = getattr(torch, setting.dtype)
            noise = torch.rand(shape, generator=generator, dtype=torch.float64, device="cpu").to(
                dtype
            )
        else:
            noise = torch.randint(0, 65536, shape, generator=generator, device="cpu")
            noise = (noise >> 8 if setting.dtype == "uint8" else noise) / 1.0
            noise = noise - 32768 if setting.dtype == "int16" else noise
            noise = noise.to(getattr(torch, setting.dtype))
        grey = self.photographs.float().mean(1, keepdim=True).round()
        channels = {1: grey, 3: self.photographs, 4: torch.cat((self.photographs, grey), 1)}
        return torch.cat((to_type(channels[setting.channels], setting.dtype), noise))

    def call(self, setting: Setting) -> ParityCall:
        """The warp of all images, each with one of two maps."""
        image = self.images(setting)
        options: dict[str, Any] = {
            "interpolation": setting.interpolation,
            "border": setting.border,
            "border_value": border_value(setting),
        }
        if setting.border == "transparent":
            options["background"] = image.flip(-1, -2).roll(1, 0).contiguous()
        return ParityCall(setting.map, image, self.where(setting.map), options)

    def where(self, kind: str) -> Tensor:
        """The maps: (B, 2, 3), (B, 3, 3) or (B, h, w, 2)."""
        which = torch.arange(self.count, device="cpu") % 2
        if kind == "affine":
            turns = [geometry.affine_matrix(**doubles(part)) for part in parts()]
            return torch.stack(turns)[which]
        if kind == "perspective":
            return torch.tensor(TILTS, dtype=torch.float64, device="cpu")[which]
        return torch.stack([waves(9.0), waves(2.3)])[which]

    def run(self, setting: Setting) -> Row:
        """One row."""
        call, promise = self.call(setting), Guarantee("nowhere", "another arithmetic")
        got = by_warpkit(call, self.arithmetic)
        expected = by_opencv(self.cv2, call, "parity_suite")
        version = self.cv2.__version__
        if self.arithmetic == arithmetic_of(version):
            promise = setting.promised(version)
        if not self.cv2.useOptimized():
            promise = Guarantee("nowhere", "OpenCV's vector code is off")
        parity = compare(call, got, expected, self.arithmetic, self.cv2)
        white = 1.0 if got.is_floating_point() else 255.0
        others = {}
        if setting.dtype in PEER_DTYPES:
            for name, result in self.others(setting, call).items():
                others[name] = None if result is None else figures(result, expected, white)
        return Row(setting, parity, promise, {name: others.get(name) for name in self.peers})

    def others(self, setting: Setting, call: ParityCall) -> dict[str, Tensor | None]:
        """The results of the installed peers for a call."""
        task = peers.PeerTask(
            setting.map,
            call.image,
            call.where,
            [parts()[k % 2] for k in range(self.count)] if setting.map == "affine" else None,
            setting.interpolation,
            setting.border,
            torch.tensor(border_value(setting), device="cpu"),
        )
        return {name: peers.PEERS[name](task) for name in self.peers}


def crop(photograph: Tensor) -> Tensor:
    """The centre of a photograph (C, H, W) as RGB uint8 of size CROP; a small one is tiled."""
    colours = photograph[:3] if photograph.shape[0] >= 3 else photograph[:1].expand(3, -1, -1)
    if colours.is_floating_point():
        colours = colours.clamp(0, 1) * 255
    elif colours.dtype != torch.uint8:
        limits = torch.iinfo(colours.dtype)
        colours = (colours.double() - limits.min) * (255 / (limits.max - limits.min))
    colours = colours.double().round().to(torch.uint8)
    for dim, side in ((-2, CROP[0]), (-1, CROP[1])):
        start = max(0, (colours.shape[dim] - side) // 2)
        index = (start + torch.arange(side, device="cpu")) % colours.shape[dim]
        colours = colours.index_select(dim, index)
    return colours


def to_type(image: Tensor, dtype: str) -> Tensor:
    """8-bit values in another type: over the whole range of integers, or [0, 1] for floats."""
    values = image.double()
    conversions = {
        "uint8": values,
        "uint16": values * 257,
        "int16": values * 257 - 32768,
        "float32": values / 255,
        "float64": values / 255,
    }[dtype]
    return conversions.to(getattr(torch, dtype))


def border_value(setting: Setting) -> list[float]:
    """One value for each channel, between black and white."""
    shares = torch.tensor([0.2, 0.75, 0.4, 0.6][: setting.channels], device="cpu")
    values = to_type((shares * 255).round(), setting.dtype)
    return values.double().tolist()


def parts() -> list[dict[str, Any]]:
    """The parameters of the affine maps, about the image's centre."""
    return [{**turn, "center": geometry.image_center(CROP)} for turn in TURNS]


def doubles(part: dict[str, Any]) -> dict[str, Tensor]:
    return {
        name: torch.tensor(value, dtype=torch.float64, device="cpu") for name, value in part.items()
    }


def waves(period: float) -> Tensor:
    """A field of points (H, W, 2), some of which are a few pixels outside the image."""
    y, x = torch.meshgrid(
        *(torch.arange(n, dtype=torch.float64, device="cpu") for n in CROP), indexing="ij"
    )
    points = torch.stack((x + 4 * torch.sin(y / period) - 3, y + 5 * torch.cos(x / period)), -1)
    return points.float().double()  # cv2 stores maps as float32


def name_images(
    name: str, images: Tensor | Sequence[Tensor] | Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The photographs by name; those of a batch (B, C, H, W) or a sequence are numbered."""
    if isinstance(images, Mapping):
        return dict(images)
    if not isinstance(images, Tensor | Sequence) or isinstance(images, checks.TEXT):
        wanted = "tensors (C, H, W): a batch, a sequence or a mapping by name"
        checks.fail(name, "images", wanted, type(images).__name__, TypeError)
    if isinstance(images, Tensor) and images.ndim == 3:
        images = [images]
    return {f"image {k}": image for k, image in enumerate(images, 1)}
