"""Finds perturbations and patches that survive transformations, by gradient descent.

Everything here minimises: `objective` takes images in [0, 1] and returns a scalar, the mean over
them. Images come image by image: with B images and n samples, (B * n, C, H, W) holds the n views of
image 0 first. Labels follow with ``labels.repeat_interleave(len(views) // len(labels))``.

`scaling` finds an image that a resize turns into another one. `perturbation`, `flow_perturbation`
and `patch` are the other attacks, and `descent` is their loop; `distribution`, `photometric` and
`draws` draw the random numbers of each step, from which `views` or, for patches, `scene` and
`surface` make images. `pipeline` is the attacked program, made of `steps`, one of which is
`compression`; `pictures` go from one to the next, and `trials` find out what a step takes.
`batches` provides scenes, `ball` and `penalties` limit the result, and `cuts` finds the call that
detached a gradient.
"""

from warpkit.attacks.compression import jpeg as jpeg
from warpkit.attacks.distribution import AffineDistribution as AffineDistribution
from warpkit.attacks.distribution import PerspectiveDistribution as PerspectiveDistribution
from warpkit.attacks.expectations import expectation as expectation
from warpkit.attacks.flow_perturbation import FlowPerturbation as FlowPerturbation
from warpkit.attacks.flow_perturbation import optimize_flow as optimize_flow
from warpkit.attacks.patch import Patch as Patch
from warpkit.attacks.patch import optimize_patch as optimize_patch
from warpkit.attacks.penalties import nonprintability as nonprintability
from warpkit.attacks.penalties import total_variation as total_variation
from warpkit.attacks.perturbation import Perturbation as Perturbation
from warpkit.attacks.perturbation import optimize_perturbation as optimize_perturbation
from warpkit.attacks.photometric import Photometric as Photometric
from warpkit.attacks.pipeline import Pipeline as Pipeline
from warpkit.attacks.pipeline import normalize as normalize
from warpkit.attacks.pipeline import on_floats as on_floats
from warpkit.attacks.pipeline import on_uint8 as on_uint8
from warpkit.attacks.pipeline import reverse_channels as reverse_channels
from warpkit.attacks.pipeline import to_uint8 as to_uint8
from warpkit.attacks.scaling import ScalingAttack as ScalingAttack
from warpkit.attacks.scaling import scaling_attack as scaling_attack
from warpkit.attacks.surface import Cylinder as Cylinder
from warpkit.core.public import listing

__all__ = [
    "AffineDistribution",
    "Cylinder",
    "FlowPerturbation",
    "Patch",
    "PerspectiveDistribution",
    "Perturbation",
    "Photometric",
    "Pipeline",
    "ScalingAttack",
    "expectation",
    "jpeg",
    "nonprintability",
    "normalize",
    "on_floats",
    "on_uint8",
    "optimize_flow",
    "optimize_patch",
    "optimize_perturbation",
    "reverse_channels",
    "scaling_attack",
    "to_uint8",
    "total_variation",
]
__dir__ = listing(__all__)
