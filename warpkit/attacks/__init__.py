"""Perturbations and patches that survive transformations, found by gradient descent.

Everything here minimises: `objective` takes images in [0, 1] and returns a scalar, the mean over
them. Images come image by image: with B images and n samples, (B * n, C, H, W) holds the n views of
image 0 first. Labels follow with ``labels.repeat_interleave(len(views) // len(labels))``.
"""

from warpkit.attacks.distribution import AffineDistribution as AffineDistribution
from warpkit.attacks.flow_perturbation import FlowPerturbation as FlowPerturbation
from warpkit.attacks.flow_perturbation import optimize_flow as optimize_flow
from warpkit.attacks.patch import Patch as Patch
from warpkit.attacks.patch import optimize_patch as optimize_patch
from warpkit.attacks.perturbation import Perturbation as Perturbation
from warpkit.attacks.perturbation import optimize_perturbation as optimize_perturbation
from warpkit.attacks.views import expectation as expectation

__all__ = [
    "AffineDistribution",
    "FlowPerturbation",
    "Patch",
    "Perturbation",
    "expectation",
    "optimize_flow",
    "optimize_patch",
    "optimize_perturbation",
]
