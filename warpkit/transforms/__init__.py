"""torchvision's geometric v2 transforms, with warpkit's sampling.

Subclasses of torchvision's own: the same argument names, ranges and conventions (angles as there,
shears as torchvision defines them), the same random draws from the same seed, and torchvision's
code transforms boxes and keypoints through the same map. warpkit samples images, videos and masks,
with gradients also with a fill, 8 and 16 bits rounded as in OpenCV, positions in float64, and every
interpolation and border. Each transform has a method `map(params, size)` that returns a matrix (3,
3), source pixel -> output pixel, or a flow (h, w, 2) as `warp_flow` takes it. torch.jit.script
gives torchvision's first-generation transform of the same name, with its pixels, and raises an
error for borders and interpolations that it lacks. `Fused` combines consecutive transforms into one
map and samples once; torchvision's own Pad and RandomCrop may be among them.

`affine`, `perspective`, `elastic`, `resized` and `exact` have the transforms and `base` their
base class, `arguments` and `borders` validate their arguments, `images` applies them to any kind of
image. `fused` splits a list into `runs` (in `batches` drawn image by image), including
torchvision's `crops`, and warns about those that are `not_fusible`; `composed` is a run's map,
by which `sampling` samples and `labels` moves boxes and key points.
"""

from __future__ import annotations

from warpkit.core.environment import how_to_install
from warpkit.core.public import listing

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
__dir__ = listing(__all__)
