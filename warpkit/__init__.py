"""warpkit: OpenCV's and Pillow's geometric image operations, bit-exact and differentiable."""

import importlib
import sys
import typing
import warnings

from warpkit.core.public import listing as _listing

if typing.TYPE_CHECKING:
    from warpkit import attacks as attacks
    from warpkit import camera as camera
    from warpkit import distributed as distributed
    from warpkit import flow as flow
    from warpkit import indexing as indexing
    from warpkit import nn as nn
    from warpkit import opencv as opencv
    from warpkit import transforms as transforms
    from warpkit import types as types
    from warpkit import validation as validation
    from warpkit.alignment import Alignment as Alignment
    from warpkit.alignment import align as align
    from warpkit.flow.images import warp_flow as warp_flow
    from warpkit.geometry import affine_from_points as affine_from_points
    from warpkit.geometry import affine_matrix as affine_matrix
    from warpkit.geometry import box_to_matrix as box_to_matrix
    from warpkit.geometry import compose as compose
    from warpkit.geometry import from_theta as from_theta
    from warpkit.geometry import image_center as image_center
    from warpkit.geometry import invert as invert
    from warpkit.geometry import perspective_from_points as perspective_from_points
    from warpkit.geometry import pixel_grid as pixel_grid
    from warpkit.geometry import resize_matrix as resize_matrix
    from warpkit.geometry import rotation_matrix as rotation_matrix
    from warpkit.geometry import similarity_from_points as similarity_from_points
    from warpkit.geometry import to_theta as to_theta
    from warpkit.geometry import transform_boxes as transform_boxes
    from warpkit.geometry import transform_points as transform_points
    from warpkit.gradients import GradientReport as GradientReport
    from warpkit.gradients import GradientSupport as GradientSupport
    from warpkit.gradients import check_gradients as check_gradients
    from warpkit.gradients import gradient_support as gradient_support
    from warpkit.gradients import quantize as quantize
    from warpkit.gradients import straight_through as straight_through
    from warpkit.gradients import through_uint8 as through_uint8
    from warpkit.letterboxing import Letterbox as Letterbox
    from warpkit.letterboxing import letterbox as letterbox
    from warpkit.patches import crop_patches as crop_patches
    from warpkit.patches import paste_patches as paste_patches
    from warpkit.patches import transform_patches as transform_patches
    from warpkit.resizing import resize as resize
    from warpkit.resizing import resize_axes as resize_axes
    from warpkit.warp import remap as remap
    from warpkit.warp import sample_pixels as sample_pixels
    from warpkit.warp import warp_affine as warp_affine
    from warpkit.warp import warp_perspective as warp_perspective
else:
    _PLACES = {
        "alignment": (
            "Alignment",
            "align",
        ),
        "flow.images": ("warp_flow",),
        "geometry": (
            "affine_from_points",
            "affine_matrix",
            "box_to_matrix",
            "compose",
            "from_theta",
            "image_center",
            "invert",
            "perspective_from_points",
            "pixel_grid",
            "resize_matrix",
            "rotation_matrix",
            "similarity_from_points",
            "to_theta",
            "transform_boxes",
            "transform_points",
        ),
        "gradients": (
            "GradientReport",
            "GradientSupport",
            "check_gradients",
            "gradient_support",
            "quantize",
            "straight_through",
            "through_uint8",
        ),
        "letterboxing": (
            "Letterbox",
            "letterbox",
        ),
        "patches": (
            "crop_patches",
            "paste_patches",
            "transform_patches",
        ),
        "resizing": (
            "resize",
            "resize_axes",
        ),
        "warp": (
            "remap",
            "sample_pixels",
            "warp_affine",
            "warp_perspective",
        ),
    }
    _MODULES = (
        "attacks",
        "camera",
        "distributed",
        "flow",
        "indexing",
        "nn",
        "opencv",
        "transforms",
        "types",
        "validation",
    )
    _MOVED_TO_INDEXING = (
        "assign",
        "assign_2d",
        "linear_lookup",
        "lookup_2d",
        "residual_lookup",
        "soft_one_hot",
        "superposition_assign",
        "superposition_lookup",
    )

    def _load():
        """Import the functions, and with them the operators of compiled and exported programs."""
        for place, names in _PLACES.items():
            module = importlib.import_module(f"warpkit.{place}")
            globals().update({name: getattr(module, name) for name in names})
        for name in ("warp", "resize", "antialias"):
            importlib.import_module(f"warpkit.engine.operators.{name}")

    def __getattr__(name):
        """Load the functions, or a module, on first use: the command line's help needs no torch.

        The lookups and assignments were here before 0.3, and still work with a warning.
        """
        if name in _MODULES:
            return importlib.import_module(f"warpkit.{name}")
        if name in __all__:
            _load()
            return globals()[name]
        if name in _MOVED_TO_INDEXING:
            warnings.warn(
                f"warpkit.{name} is now warpkit.indexing.{name}; the old name goes after 0.3",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(importlib.import_module("warpkit.indexing"), name)
        raise AttributeError(f"module 'warpkit' has no attribute {name!r}")


__version__ = "0.3.0"
__all__ = [
    "Alignment",
    "GradientReport",
    "GradientSupport",
    "Letterbox",
    "affine_from_points",
    "affine_matrix",
    "align",
    "box_to_matrix",
    "check_gradients",
    "compose",
    "crop_patches",
    "from_theta",
    "gradient_support",
    "image_center",
    "invert",
    "letterbox",
    "paste_patches",
    "perspective_from_points",
    "pixel_grid",
    "quantize",
    "remap",
    "resize",
    "resize_axes",
    "resize_matrix",
    "rotation_matrix",
    "sample_pixels",
    "similarity_from_points",
    "straight_through",
    "through_uint8",
    "to_theta",
    "transform_boxes",
    "transform_patches",
    "transform_points",
    "warp_affine",
    "warp_flow",
    "warp_perspective",
]
if not typing.TYPE_CHECKING:
    __dir__ = _listing(__all__, _MODULES, ["__version__"])
    if "torch" in sys.modules:  # it took the time; now torch.export.load finds the operators
        _load()
