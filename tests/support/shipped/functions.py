"""Functions and layers of packages whose users give a size and a filter."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.shipped.made import Made


def _pillow() -> Iterator[Made]:
    from PIL import Image, ImageOps

    for name in ("NEAREST", "BILINEAR", "BICUBIC", "LANCZOS"):
        how = getattr(Image.Resampling, name)
        for code in ("fit", "pad", "contain", "cover"):
            function = getattr(ImageOps, code)
            yield Made(
                f"ImageOps.{code}(image, (128, 128), {name})",
                "pil",
                lambda image, f=function, h=how: f(image, (128, 128), h),
            )
        yield Made(
            f"ImageOps.scale(image, 0.5, {name})",
            "pil",
            lambda image, h=how: ImageOps.scale(image, 0.5, h),
        )


def _opencv() -> Iterator[Made]:
    from cv2 import dnn

    for crop in (False, True):
        for swap in (False, True):
            for scale, mean in (
                (1 / 255, (0, 0, 0)),
                (1 / 127.5, (127.5,) * 3),
                (1, (104, 117, 123)),
            ):
                yield Made(
                    f"dnn.blobFromImage(x, {scale:.4g}, (224, 224), {mean}, {swap}, {crop})",
                    "array",
                    lambda x, s=scale, m=mean, w=swap, c=crop: dnn.blobFromImage(
                        x, s, (224, 224), m, w, c
                    ),
                )


def _albumentations() -> Iterator[Made]:
    import albumentations as A

    chains = {
        "Resize(224, 224), Normalize()": [A.Resize(224, 224), A.Normalize()],
        "Resize(224, 224, interpolation=3)": [A.Resize(224, 224, interpolation=3)],
        "SmallestMaxSize(256), CenterCrop(224, 224), Normalize()": [
            A.SmallestMaxSize(256),
            A.CenterCrop(224, 224),
            A.Normalize(),
        ],
        "LongestMaxSize(256), PadIfNeeded(256, 256), ToFloat()": [
            A.LongestMaxSize(256),
            A.PadIfNeeded(256, 256, border_mode=0),
            A.ToFloat(max_value=255),
        ],
        "LetterBox((256, 256))": [A.LetterBox((256, 256))] if hasattr(A, "LetterBox") else [],
        "CenterCrop(96, 96), ToFloat()": [A.CenterCrop(96, 96), A.ToFloat(max_value=255)],
    }
    for words, steps in chains.items():
        if steps:
            chain = A.Compose(steps)
            yield Made(words, "array", lambda x, c=chain: c(image=x)["image"])


def _skimage() -> Iterator[Made]:
    from skimage.color import rgb2gray
    from skimage.transform import rescale, resize
    from skimage.util import img_as_float32

    for antialias in (True, False):
        for size in ((128, 128), (96, 160)):
            yield Made(
                f"resize(x, {size}, anti_aliasing={antialias})",
                "array",
                lambda x, s=size, a=antialias: resize(x, s, anti_aliasing=a),
            )
    yield Made(
        "rescale(x, 0.5, anti_aliasing=True, channel_axis=-1)",
        "array",
        lambda x: rescale(x, 0.5, anti_aliasing=True, channel_axis=-1),
    )
    yield Made("rgb2gray(x)", "array", rgb2gray)
    yield Made("img_as_float32(x)", "array", img_as_float32)


def _kornia() -> Iterator[Made]:
    import torch
    from kornia.augmentation import CenterCrop, LongestMaxSize, Resize, SmallestMaxSize
    from kornia.enhance import normalize
    from kornia.geometry.transform import resize

    for corners in (False, True):
        yield Made(
            f"resize(x / 255, (128, 128), align_corners={corners})",
            "tensor",
            lambda x, c=corners: resize(x.float() / 255, (128, 128), align_corners=c),
        )
    layers = {
        "Resize((128, 96))": Resize((128, 96)),
        "LongestMaxSize(128)": LongestMaxSize(128),
        "SmallestMaxSize(128)": SmallestMaxSize(128),
        "CenterCrop((96, 96))": CenterCrop((96, 96)),
    }
    for words, layer in layers.items():
        yield Made(f"{words}(x / 255)", "tensor", lambda x, f=layer: f(x.float()[None] / 255))
    mean, std = torch.full((3,), 0.5), torch.full((3,), 0.25)
    yield Made(
        "normalize(x / 255, [0.5] * 3, [0.25] * 3)",
        "tensor",
        lambda x: normalize(x.float()[None] / 255, mean, std),
    )


def _monai() -> Iterator[Made]:
    from monai.transforms import (
        CenterSpatialCrop,
        Compose,
        Resize,
        ResizeWithPadOrCrop,
        ScaleIntensityRange,
        SpatialPad,
    )

    chains = {
        "Resize((96, 96))": Resize((96, 96)),
        'Resize((96, 128), mode="bilinear")': Resize((96, 128), mode="bilinear"),
        'Resize((96, 96), mode="bicubic")': Resize((96, 96), mode="bicubic"),
        'Resize((96, 96), mode="nearest")': Resize((96, 96), mode="nearest"),
        'Resize(128, size_mode="longest", mode="bilinear")': Resize(
            128, size_mode="longest", mode="bilinear"
        ),
        "CenterSpatialCrop((96, 96))": CenterSpatialCrop((96, 96)),
        "ResizeWithPadOrCrop((256, 256))": ResizeWithPadOrCrop((256, 256)),
        "SpatialPad((700, 700))": SpatialPad((700, 700)),
        "Resize((96, 96)), ScaleIntensityRange(0, 255, 0, 1)": Compose(
            [Resize((96, 96), mode="bilinear"), ScaleIntensityRange(0, 255, 0, 1)]
        ),
    }
    for words, chain in chains.items():
        yield Made(words, "tensor", lambda x, f=chain: f(x.float()).as_tensor())


def _tensorflow() -> Iterator[Made]:
    import tensorflow as tf

    for method in ("bilinear", "bicubic", "nearest", "area"):
        for antialias in (False, True) if method.startswith("bi") else (False,):
            yield Made(
                f'image.resize(x, (128, 128), "{method}", antialias={antialias})',
                "array",
                lambda x, m=method, a=antialias: tf.image.resize(
                    x, (128, 128), m, antialias=a
                ).numpy(),
            )
    yield Made(
        "image.resize(x, (128, 128), preserve_aspect_ratio=True)",
        "array",
        lambda x: tf.image.resize(x, (128, 128), preserve_aspect_ratio=True).numpy(),
    )
    yield Made(
        "image.resize_with_pad(x, 128, 128)",
        "array",
        lambda x: tf.image.resize_with_pad(x, 128, 128).numpy(),
    )
    yield Made(
        "image.resize_with_crop_or_pad(x, 224, 224)",
        "array",
        lambda x: tf.image.resize_with_crop_or_pad(x, 224, 224).numpy(),
    )
    yield Made(
        "compat.v1.image.resize_bilinear([x], (128, 128))",
        "array",
        lambda x: tf.compat.v1.image.resize_bilinear([x], (128, 128)).numpy(),
    )
    yield Made(
        "image.convert_image_dtype(x, tf.float32)",
        "array",
        lambda x: tf.image.convert_image_dtype(x, tf.float32).numpy(),
    )


def _keras() -> Iterator[Made]:
    import keras
    from keras import applications, layers

    made = {
        "Resizing(128, 128)": layers.Resizing(128, 128),
        'Resizing(96, 160, interpolation="bicubic")': layers.Resizing(
            96, 160, interpolation="bicubic"
        ),
        'Resizing(128, 128, interpolation="nearest")': layers.Resizing(
            128, 128, interpolation="nearest"
        ),
        "Resizing(128, 128, crop_to_aspect_ratio=True)": layers.Resizing(
            128, 128, crop_to_aspect_ratio=True
        ),
        "Resizing(128, 128, pad_to_aspect_ratio=True)": layers.Resizing(
            128, 128, pad_to_aspect_ratio=True
        ),
        "Rescaling(1 / 127.5, -1)": layers.Rescaling(1 / 127.5, offset=-1),
        "CenterCrop(128, 128)": layers.CenterCrop(128, 128),
        "Normalization([124, 116, 104], [3400, 3250, 3380])": layers.Normalization(
            mean=[124.0, 116.0, 104.0], variance=[3400.0, 3250.0, 3380.0]
        ),
    }
    for words, layer in made.items():
        yield Made(
            words,
            "array",
            lambda x, f=layer: keras.ops.convert_to_numpy(f(x.astype("float32"))),
        )
    yield Made("utils.img_to_array(image)", "pil", lambda image: keras.utils.img_to_array(image))
    for name in ("resnet50", "mobilenet_v2", "densenet", "efficientnet", "xception", "vgg16"):
        function = getattr(applications, name).preprocess_input
        yield Made(
            f"applications.{name}.preprocess_input(x)",
            "array",
            lambda x, f=function: f(x.astype("float32")),
        )


def _supervision() -> Iterator[Made]:
    import supervision as sv

    yield Made(
        "letterbox_image(x, (256, 256))",
        "array",
        lambda x: sv.letterbox_image(x, resolution_wh=(256, 256)),
    )
    yield Made(
        "resize_image(x, (256, 192))",
        "array",
        lambda x: sv.resize_image(x, resolution_wh=(256, 192)),
    )
    yield Made(
        "resize_image(x, (256, 192), keep_aspect_ratio=True)",
        "array",
        lambda x: sv.resize_image(x, resolution_wh=(256, 192), keep_aspect_ratio=True),
    )
    yield Made("scale_image(x, 0.5)", "array", lambda x: sv.scale_image(x, 0.5))


SOURCES = {
    "Pillow": _pillow,
    "OpenCV": _opencv,
    "albumentations": _albumentations,
    "skimage": _skimage,
    "kornia": _kornia,
    "monai": _monai,
    "tensorflow": _tensorflow,
    "keras": _keras,
    "supervision": _supervision,
}
