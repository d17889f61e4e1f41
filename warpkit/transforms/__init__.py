"""torchvision's geometric v2 transforms, with warpkit's sampling.

Subclasses of torchvision's own: the same argument names, ranges and conventions (angles as there,
shears as torchvision defines them), the same random draws from the same seed, and boxes and
keypoints moved by torchvision's code through the same map. Images, videos and masks are sampled by
warpkit's functions: gradients also with a fill, 8 and 16 bits rounded as in OpenCV, positions in
float64, every interpolation and border. Each has a method `map(params, size)` that says where
pixels go: a matrix (3, 3), source pixel -> output pixel, or a flow (h, w, 2) as `warp_flow` takes.
torch.jit.script gives torchvision's first transform of the name, with its pixels, and refuses what
that does not have: another border, other interpolations.
`Fused` makes one map of those that follow each other and samples once; torchvision's own Pad and
RandomCrop may be among them.

`affine`, `perspective`, `elastic`, `resized` and `exact` have the transforms and `family` their
base, `arguments` and `borders` what they are made with, `images` what they do to any kind of image.
`fused` splits a list into `runs` (in `batches` drawn image by image), with torchvision's `crops` in
them, and names what stays `unfused`; `composed` is a run's one map, by which `sampling` samples and
`labels` moves boxes and key points.
"""

from __future__ import annotations

from warpkit.core.environment import how_to_install

try:
    import PIL.Image as _  # noqa: F401
    import torchvision as _torchvision  # noqa: F401
except ModuleNotFoundError as error:
    needs = f"warpkit.transforms needs torchvision: {how_to_install('torchvision')}"
    raise ModuleNotFoundError(needs, name=error.name) from error

from warpkit.transforms.affine import RandomAffine, RandomRotation
from warpkit.transforms.elastic import ElasticTransform
from warpkit.transforms.exact import CenterCrop, RandomHorizontalFlip, RandomVerticalFlip
from warpkit.transforms.fused import Fused
from warpkit.transforms.perspective import RandomPerspective
from warpkit.transforms.resized import RandomResizedCrop, Resize

__all__ = [
    "CenterCrop",
    "ElasticTransform",
    "Fused",
    "RandomAffine",
    "RandomHorizontalFlip",
    "RandomPerspective",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
]
