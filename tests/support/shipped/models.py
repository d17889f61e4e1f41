"""The images that packages pass to a network without offering the step by itself."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.support.shipped.made import Made


class Session:
    """A stand-in for a network of onnxruntime, which returns its input."""

    def run(self, names: Any, feed: dict[str, Any]) -> list[Any]:
        """Return the first input."""
        return list(feed.values())


def _insightface() -> Iterator[Made]:
    from insightface.model_zoo.arcface_onnx import ArcFaceONNX

    for mean, std in ((127.5, 127.5), (0.0, 1.0)):
        network = SimpleNamespace(
            input_size=(112, 112),
            input_mean=mean,
            input_std=std,
            input_name="data",
            output_names=["data"],
            session=Session(),
            _coerce_input_blob=np.ascontiguousarray,
        )
        yield Made(
            f"ArcFaceONNX.get_feat, mean {mean}, std {std}",
            "array",
            lambda x, n=network: ArcFaceONNX.get_feat(n, x),
        )


def _facenet() -> Iterator[Made]:
    import torch
    from facenet_pytorch import extract_face, fixed_image_standardization
    from facenet_pytorch.models.utils.detect_face import imresample

    yield Made(
        "fixed_image_standardization(x)",
        "tensor",
        lambda x: fixed_image_standardization(x.float()),
    )
    yield Made(
        "imresample(x, (96, 128))", "tensor", lambda x: imresample(x[None].float(), (96, 128))
    )
    yield Made(
        "extract_face(image, [0, 0, *image.size], 160)",
        "pil",
        lambda image: extract_face(image, torch.tensor([0, 0, *image.size]).numpy(), 160),
    )


def _easyocr() -> Iterator[Made]:
    import cv2
    from easyocr.imgproc import normalizeMeanVariance, resize_aspect_ratio

    for side in (256, 640):
        yield Made(
            f"normalizeMeanVariance(resize_aspect_ratio(x, {side}, INTER_LINEAR)[0])",
            "array",
            lambda x, s=side: normalizeMeanVariance(resize_aspect_ratio(x, s, cv2.INTER_LINEAR)[0]),
        )


def _lpips() -> Iterator[Made]:
    import lpips

    yield Made("im2tensor(x)", "array", lpips.im2tensor)


def _torch_fidelity() -> Iterator[Made]:
    from torch_fidelity.interpolate_compat_tensorflow import (
        interpolate_bilinear_2d_like_tensorflow1x,
    )

    yield Made(
        "interpolate_bilinear_2d_like_tensorflow1x(x, (299, 299))",
        "tensor",
        lambda x: interpolate_bilinear_2d_like_tensorflow1x(
            x[None].float(), size=(299, 299), align_corners=False
        ),
    )


SOURCES = {
    "insightface": _insightface,
    "facenet_pytorch": _facenet,
    "easyocr": _easyocr,
    "lpips": _lpips,
    "torch_fidelity": _torch_fidelity,
}
