"""One call of every public function as a model for export: scripts/record exports.

A call's tensors are inputs, so that their batch, points or rows may have any size; all other
arguments are constants of the graph. Warps and resizes are in `exported_pixel_calls`, cv2's names
in `exported_face_calls`.
"""

from __future__ import annotations

from functools import partial

import warpkit as wk
from tests.support.exported_inputs import (
    ANY,
    BOXES,
    BYTES,
    CAMERA,
    FIELD,
    FISHEYE,
    FLOW,
    HOMOGRAPHY,
    IMAGE,
    INDEX,
    LAID,
    LENS,
    MATRIX,
    OBJECTS,
    PAIRS,
    PLACES,
    QUAD,
    ROWS,
    SIZE,
    TURNED,
    WHICH,
    ExportedCall,
    floats,
    near,
)
from warpkit import attacks, camera, flow, indexing, transforms


def _geometry() -> list[ExportedCall]:
    return [
        ExportedCall("affine_from_points", "", wk.affine_from_points, PAIRS),
        ExportedCall("similarity_from_points", "", wk.similarity_from_points, PAIRS),
        ExportedCall(
            "perspective_from_points", "four pairs", wk.perspective_from_points, (QUAD, QUAD)
        ),
        ExportedCall("perspective_from_points", "", wk.perspective_from_points, PAIRS),
        ExportedCall(
            "affine_matrix",
            "",
            lambda a, s: wk.affine_matrix(angle=a, scale=s),
            (floats(*ANY), near(1.0)),
        ),
        ExportedCall(
            "rotation_matrix", "", lambda a: wk.rotation_matrix((3.0, 4.0), a), (floats(*ANY),)
        ),
        ExportedCall("box_to_matrix", "", partial(wk.box_to_matrix, size=(8, 9)), (BOXES,)),
        ExportedCall(
            "box_to_matrix", "turned boxes", partial(wk.box_to_matrix, size=(8, 9)), (TURNED,)
        ),
        ExportedCall(
            "box_to_matrix", "four corners", partial(wk.box_to_matrix, size=(8, 9)), (QUAD,)
        ),
        ExportedCall("compose", "", wk.compose, (MATRIX, HOMOGRAPHY)),
        ExportedCall("invert", "(2, 3)", wk.invert, (MATRIX,)),
        ExportedCall("invert", "(3, 3)", wk.invert, (HOMOGRAPHY,)),
        ExportedCall(
            "from_theta", "", partial(wk.from_theta, size_in=(24, 31), size_out=SIZE), (MATRIX,)
        ),
        ExportedCall(
            "to_theta", "", partial(wk.to_theta, size_in=(24, 31), size_out=SIZE), (MATRIX,)
        ),
        ExportedCall("transform_points", "", wk.transform_points, (HOMOGRAPHY, PLACES)),
        ExportedCall("transform_boxes", "", wk.transform_boxes, (BOXES, HOMOGRAPHY)),
        ExportedCall(
            "camera.rotation", "a vector", lambda v: camera.rotation(vector=v), (floats(*ANY, 3),)
        ),
        ExportedCall(
            "camera.rotation",
            "angles",
            lambda a: camera.rotation(yaw=a, pitch=10.0, roll=a),
            (floats(*ANY),),
        ),
    ]


def _patches() -> list[ExportedCall]:
    pictures = floats(1, 3, 24, 31)
    return [
        ExportedCall(
            "crop_patches", "", partial(wk.crop_patches, size=(7, 8)), (IMAGE, BOXES, WHICH)
        ),
        ExportedCall(
            "crop_patches",
            "turned boxes",
            partial(wk.crop_patches, size=(7, 8)),
            (IMAGE, TURNED, WHICH),
        ),
        ExportedCall(
            "transform_patches", "", wk.transform_patches, (pictures, BOXES, OBJECTS, WHICH)
        ),
        ExportedCall(
            "paste_patches", "", wk.paste_patches, (pictures, floats("boxes", 3, 7, 8), LAID, WHICH)
        ),
    ]


def _flows() -> list[ExportedCall]:
    small = near(0.0, shape=("batch", 24, 31, 2), noise=0.3)
    points = near([[2.0, 3.0], [25.0, 2.0], [27.0, 20.0], [3.0, 21.0], [14.0, 11.0]], noise=0.5)
    return [
        ExportedCall(
            "flow.bspline", "", partial(flow.bspline, size=SIZE), (floats("batch", 5, 6, 2),)
        ),
        ExportedCall("flow.compose", "", flow.compose, (FLOW, FLOW)),
        ExportedCall("flow.consistency", "", flow.consistency, (FLOW, FLOW)),
        ExportedCall(
            "flow.correlation",
            "a flow",
            partial(flow.correlation, radius=1),
            (floats("batch", 3, 24, 31), floats("batch", 3, 24, 31), FLOW),
        ),
        ExportedCall("flow.from_matrix", "", partial(flow.from_matrix, size=SIZE), (MATRIX,)),
        ExportedCall("flow.from_points", "", flow.from_points, (FIELD,)),
        ExportedCall("flow.integrate", "", flow.integrate, (small,)),
        ExportedCall("flow.invert", "", flow.invert, (small,)),
        ExportedCall("flow.jacobian_determinant", "", flow.jacobian_determinant, (FLOW,)),
        ExportedCall("flow.resize", "", partial(flow.resize, size=SIZE), (FLOW,)),
        ExportedCall("flow.splat", "", flow.splat, (IMAGE, FLOW)),
        ExportedCall(
            "flow.splat",
            "front",
            lambda image, field, depth: flow.splat(image, field, mode="front", depth=depth),
            (floats("batch", 3, 24, 31), floats("batch", 24, 31, 2), floats("batch", 1, 24, 31)),
        ),
        ExportedCall(
            "flow.thin_plate_points", "5 pairs", flow.thin_plate_points, (PLACES, points, points)
        ),
        ExportedCall(
            "flow.thin_plate_spline",
            "5 pairs",
            lambda a, b: flow.thin_plate_spline(a, b, SIZE),
            (points, points),
        ),
        ExportedCall("flow.to_image", "", flow.to_image, (FLOW,)),
        ExportedCall("flow.to_points", "", flow.to_points, (FLOW,)),
        ExportedCall("flow.transform_points", "", flow.transform_points, (PLACES, FLOW)),
    ]


def _cameras() -> list[ExportedCall]:
    sphere = floats("batch", 3, 16, 32)
    turn = near([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], noise=0.0)
    calls = []
    for model, lens in (("brown", LENS), ("fisheye", FISHEYE)):
        options = {"model": model}
        calls += [
            ExportedCall(
                "camera.distort", model, partial(camera.distort, **options), (IMAGE, CAMERA, lens)
            ),
            ExportedCall(
                "camera.distort_map",
                model,
                partial(camera.distort_map, size=SIZE, **options),
                (CAMERA, lens),
            ),
            ExportedCall(
                "camera.distort_points",
                model,
                partial(camera.distort_points, **options),
                (PLACES, CAMERA, lens),
            ),
            ExportedCall(
                "camera.undistort",
                model,
                partial(camera.undistort, **options),
                (IMAGE, CAMERA, lens),
            ),
            ExportedCall(
                "camera.undistort_map",
                model,
                partial(camera.undistort_map, size=SIZE, **options),
                (CAMERA, lens),
            ),
            ExportedCall(
                "camera.undistort_points",
                model,
                partial(camera.undistort_points, **options),
                (PLACES, CAMERA, lens),
            ),
            ExportedCall(
                "camera.optimal_camera_matrix",
                model,
                partial(camera.optimal_camera_matrix, size=(24, 31), alpha=0.5, **options),
                (CAMERA, lens),
            ),
        ]
    depth = floats("batch", 1, 24, 31)
    turned = near([[0.8, 0.0, 0.6], [0.0, 1.0, 0.0], [-0.6, 0.0, 0.8]], noise=0.0)
    pose = near([[1.0, 0, 0, 0.3], [0, 1, 0, -0.1], [0, 0, 1, 0.2]], noise=1e-4)
    return [
        *calls,
        ExportedCall("camera.pose", "", camera.pose, (turned, floats("batch", 3))),
        ExportedCall(
            "camera.depth_points",
            "pinholes",
            lambda depth, *cameras: camera.depth_points(depth + 1, *cameras),
            (depth, CAMERA, pose),
        ),
        ExportedCall(
            "camera.plane_sweep",
            "pinholes",
            lambda view, sources, camera_matrix, pose: camera.plane_sweep(
                view, sources, [1.0, 2.0], camera_matrix, pose[..., None, :, :]
            ),
            (floats("batch", 4, 24, 31), floats("batch", 1, 4, 24, 31), CAMERA, pose),
        ),
        ExportedCall(
            "camera.warp_depth",
            "pinholes, hidden points",
            lambda image, depth, *cameras: camera.warp_depth(
                image, depth + 1, *cameras, other_depth=2 - depth
            ),
            (floats("batch", 3, 24, 31), depth, CAMERA, pose),
        ),
        ExportedCall(
            "camera.from_cube",
            "",
            partial(camera.from_cube, size=(12, 24)),
            (floats("batch", 6, 3, 8, 8),),
        ),
        ExportedCall(
            "camera.from_sphere",
            "rotation",
            lambda image, r: camera.from_sphere(image, SIZE, field_of_view=80, rotation=r),
            (sphere, turn),
        ),
        ExportedCall("camera.to_cube", "", partial(camera.to_cube, side=8), (sphere,)),
        ExportedCall(
            "camera.to_sphere",
            "rotation",
            lambda image, r: camera.to_sphere(image, (16, 32), field_of_view=80, rotation=r),
            (IMAGE, turn),
        ),
    ]


def _lookups() -> list[ExportedCall]:
    weights = floats("rows", 10)
    return [
        ExportedCall("indexing.assign", "", indexing.assign, (ROWS, INDEX, floats("rows", 4))),
        ExportedCall(
            "indexing.assign_2d",
            "",
            indexing.assign_2d,
            (floats(10, 4, 3), floats(3), floats(10), floats(4)),
        ),
        ExportedCall("indexing.linear_lookup", "", indexing.linear_lookup, (ROWS, INDEX)),
        ExportedCall(
            "indexing.lookup_2d",
            "",
            indexing.lookup_2d,
            (floats(10, 4, 3), weights, floats("rows", 4)),
        ),
        ExportedCall("indexing.residual_lookup", "", indexing.residual_lookup, (ROWS, INDEX)),
        ExportedCall(
            "indexing.soft_one_hot", "", partial(indexing.soft_one_hot, length=10), (INDEX,)
        ),
        ExportedCall(
            "indexing.superposition_assign",
            "",
            indexing.superposition_assign,
            (ROWS, weights, floats("rows", 4)),
        ),
        ExportedCall(
            "indexing.superposition_lookup", "", indexing.superposition_lookup, (ROWS, weights)
        ),
    ]


def _programs() -> list[ExportedCall]:
    clip = {
        "image_processor_type": "CLIPImageProcessor",
        "size": {"shortest_edge": 16},
        "crop_size": {"height": 16, "width": 16},
    }
    qwen = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": 56 * 56,
        "max_pixels": 56 * 84,
    }
    pillow = partial(wk.resize, size=SIZE, arithmetic="pillow")
    return [
        ExportedCall("quantize", "", wk.quantize, (IMAGE,)),
        ExportedCall("straight_through", "", wk.straight_through, (IMAGE, IMAGE)),
        ExportedCall(
            "through_uint8", "resize, pillow", lambda x: wk.through_uint8(pillow, x), (IMAGE,)
        ),
        ExportedCall(
            "attacks.Pipeline",
            "resize, normalize",
            attacks.Pipeline(pillow, attacks.normalize([0.5] * 3, [0.2] * 3)),
            (IMAGE,),
        ),
        ExportedCall(
            "attacks.Pipeline",
            "resize, normalize; uint8",
            attacks.Pipeline(pillow, attacks.normalize([0.5] * 3, [0.2] * 3)),
            (BYTES,),
        ),
        ExportedCall(
            "attacks.Pipeline.from_processor",
            "CLIP, torchvision; uint8",
            attacks.Pipeline.from_processor(clip),
            (BYTES,),
        ),
        ExportedCall(
            "attacks.Pipeline.from_processor",
            "CLIP, pillow; uint8",
            attacks.Pipeline.from_processor(clip, library="pillow"),
            (BYTES,),
        ),
        ExportedCall(
            "attacks.Pipeline.from_processor",
            "CLIP, pillow",
            attacks.Pipeline.from_processor(clip, library="pillow"),
            (IMAGE,),
        ),
        ExportedCall(
            "attacks.Pipeline.from_processor",
            "Qwen2VL; uint8",
            attacks.Pipeline.from_processor(qwen),
            (BYTES,),
        ),
        ExportedCall("attacks.jpeg", "", attacks.Pipeline(attacks.jpeg()), (BYTES,)),
        ExportedCall("attacks.normalize", "", attacks.normalize([0.5] * 3, [0.2] * 3), (IMAGE,)),
        ExportedCall("attacks.reverse_channels", "", attacks.reverse_channels, (IMAGE,)),
        ExportedCall("attacks.to_uint8", "", attacks.to_uint8, (IMAGE,)),
        ExportedCall("attacks.total_variation", "", attacks.total_variation, (floats(3, 8, 9),)),
        ExportedCall(
            "attacks.nonprintability", "", attacks.nonprintability, (floats(3, 8, 9), floats(5, 3))
        ),
        ExportedCall(
            "attacks.Photometric", "", attacks.Photometric(brightness=(0.1, 0.1)), (IMAGE,)
        ),
        ExportedCall("attacks.on_uint8", "", attacks.on_uint8(lambda x: x // 2), (IMAGE,)),
        ExportedCall("attacks.on_floats", "", attacks.on_floats(lambda x: 1 - x), (IMAGE,)),
        ExportedCall("transforms.Resize", "", transforms.Resize(SIZE), (IMAGE,)),
        ExportedCall(
            "transforms.Resize",
            "uint8, arithmetic pillow",
            transforms.Resize(SIZE, arithmetic="pillow"),
            (BYTES,),
        ),
        ExportedCall("transforms.CenterCrop", "", transforms.CenterCrop((10, 12)), (IMAGE,)),
        *(
            ExportedCall(f"transforms.{type(transform).__name__}", "", transform, (IMAGE,))
            for transform in (
                transforms.ElasticTransform(),
                transforms.RandomAffine(10),
                transforms.RandomHorizontalFlip(),
                transforms.RandomPerspective(),
                transforms.RandomResizedCrop(9),
                transforms.RandomRotation(10),
                transforms.RandomVerticalFlip(),
            )
        ),
        ExportedCall(
            "transforms.Fused",
            "Resize, CenterCrop",
            transforms.Fused([transforms.Resize(SIZE), transforms.CenterCrop((10, 12))]),
            (IMAGE,),
        ),
    ]


def calls() -> list[ExportedCall]:
    """All calls except warps and resizes."""
    makers = (_geometry, _patches, _flows, _cameras, _lookups, _programs)
    return [call for maker in makers for call in maker()]


WITHOUT_TENSORS = "no tensor comes in: what it returns is a constant of the graph"
OF_PROGRAMS = "looks at programs and gradients, and is no part of a model"
FINDS = "a search, step by step until it fits: make it before the export"
NOT_CALLED = {
    "image_center": WITHOUT_TENSORS,
    "pixel_grid": WITHOUT_TENSORS,
    "resize_matrix": WITHOUT_TENSORS,
    "opencv.getRotationMatrix2D": WITHOUT_TENSORS,
    "check_gradients": OF_PROGRAMS,
    "gradient_support": OF_PROGRAMS,
    **dict.fromkeys(
        (
            "align",
            "attacks.expectation",
            "attacks.optimize_flow",
            "attacks.optimize_patch",
            "attacks.optimize_perturbation",
            "attacks.scaling_attack",
        ),
        FINDS,
    ),
}
"""Functions that are no part of a model, with the reason."""
