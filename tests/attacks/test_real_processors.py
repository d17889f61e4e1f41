"""`Pipeline.from_processor` compared with transformers' own processors, timm and open_clip."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support import processors as asked
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import Pipeline
from warpkit.attacks.processors.configuration import defaults
from warpkit.attacks.processors.kinds import KINDS, REFUSED

pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
EXPECTED = asked.recorded()
CALLS = [
    (kind, library)
    for kind, row in EXPECTED.items()
    for library in ("torchvision", "pillow")
    if library in row
]
SIZES = ((301, 417), (37, 53), (41, 200))


@pytest.fixture(scope="module")
def classes() -> dict[str, type]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return asked.processor_classes()


def processor_of(classes: dict[str, type], kind: str, library: str, **options: Any) -> Any:
    """A processor of a kind and library, with the small options of its recorded values."""
    found = classes.get(f"{kind}ImageProcessor" + "Pil" * (library == "pillow"))
    if found is None:  # it has neither backend
        found = classes[f"{kind}ImageProcessor"]
    return found(**{**EXPECTED[kind]["options"], **options})


def check_same(processor: Any, kind: str, pipeline: Pipeline, sizes: Any = SIZES) -> int:
    """Compare both on every size that the processor accepts; return how many there are."""
    count = 0
    for size in sizes:
        array = asked.picture(size)
        try:
            wanted = asked.made_by(processor, kind, array)
        except Exception:
            continue  # too narrow for the processor
        with torch.no_grad():
            got = pipeline(asked.tensor(array))[0].numpy()
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE["processors"])
        count += 1
    return count


@pytest.mark.parametrize(("kind", "library"), CALLS)
def test_a_kind_gives_its_processors_values(
    classes: dict[str, type], kind: str, library: str, tmp_path: Path
):
    """Made from the object, and from the folder that it saves."""
    processor = processor_of(classes, kind, library)
    assert asked.library_of(processor) == library
    assert check_same(processor, kind, Pipeline.from_processor(processor)) >= 2
    processor.save_pretrained(tmp_path)
    saved = Pipeline.from_processor(tmp_path, library=library)
    assert check_same(processor, kind, saved, [(61, 84)]) == 1


def test_every_class_is_supported_or_rejected(classes: dict[str, type]):
    kinds = {asked.kind_name(name) for name in classes}
    assert kinds <= {*KINDS, *REFUSED, "TimmWrapper"}


def test_defaults_equal_the_classes_defaults(classes: dict[str, type]):
    for name, kind_class in classes.items():
        kind = asked.kind_name(name)
        if kind in KINDS:
            options = json.loads(kind_class().to_json_string())
            kept = {k: v for k, v in defaults()[kind].items() if k != "default_to_square"}
            assert kept == {k: options.get(k) for k in kept}, name


CHANGED = [
    ("CLIP", {"size": {"shortest_edge": 50}, "crop_size": {"height": 61, "width": 40}}),
    ("CLIP", {"do_resize": False}),
    ("CLIP", {"do_resize": False, "do_center_crop": False, "do_normalize": False}),
    ("CLIP", {"resample": 1}),
    ("CLIP", {"resample": 0, "do_rescale": False}),
    ("CLIP", {"size": {"shortest_edge": 50, "longest_edge": 70}, "crop_size": 33}),
    ("ViT", {"size": {"max_height": 70, "max_width": 50}}),
    ("ViT", {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "rescale_factor": 0.01}),
    ("ViT", {"do_rescale": False, "do_normalize": False}),
    ("ViT", {"do_center_crop": True, "crop_size": {"height": 230, "width": 231}}),
    ("Beit", {"do_center_crop": True, "size": {"height": 99, "width": 45}}),
    ("ConvNext", {"size": {"shortest_edge": 400}}),
    ("ConvNext", {"crop_pct": 0.9}),
    ("PoolFormer", {"size": {"height": 90, "width": 71}, "crop_pct": 0.8}),
    ("Levit", {"size": {"height": 90, "width": 71}}),
    (
        "DPT",
        {"keep_aspect_ratio": True, "ensure_multiple_of": 14, "do_pad": True, "size_divisor": 16},
    ),
    ("Detr", {"size": {"max_height": 90, "max_width": 70}}),
    ("Detr", {"pad_size": {"height": 200, "width": 210}}),
    ("EfficientNet", {"rescale_offset": True, "include_top": False}),
    ("SuperPoint", {"do_grayscale": True}),
    ("Siglip", {"resample": 0}),
    ("Gemma4", {"resample": 2, "max_soft_tokens": 70}),
    ("Qwen2VL", {"patch_size": 16, "merge_size": 1, "temporal_patch_size": 3}),
    ("Pixtral", {"patch_size": {"height": 14, "width": 14}, "size": {"longest_edge": 90}}),
    ("Donut", {"do_align_long_axis": True}),
    ("Donut", {"do_thumbnail": False, "do_pad": False}),
    ("Nougat", {"size": {"height": 90, "width": 70}}),
    ("Tvp", {"constant_values": 0.5}),
    ("Swin2SR", {"size_divisor": 5}),
    ("MobileViT", {"do_flip_channel_order": False}),
    ("Siglip2", {"max_num_patches": 49}),
    ("Yolos", {"size": {"height": 50, "width": 61}}),
    ("Llava", {"do_pad": True}),
    ("Sapiens2", {"do_pad": True}),
    ("Fuyu", {"size": {"shortest_edge": 64}, "do_resize": False, "do_pad": False}),
    ("Eomt", {"size": {"max_height": 97, "max_width": 30}}),
    ("Idefics", {"size": {"height": 64, "width": 45}}),
    ("Idefics2", {"size": {"height": 64, "width": 130}}),
    ("ConvNext", {"do_resize": False, "size": {"height": 64, "width": 97}}),
    ("PPFormulaNet", {"do_thumbnail": False, "do_resize": False}),
    ("Perceiver", {"crop_size": {"height": 300, "width": 280}}),
]


@pytest.mark.parametrize("library", ["torchvision", "pillow"])
@pytest.mark.parametrize(("kind", "options"), CHANGED)
def test_changed_options_give_the_processors_values(
    classes: dict[str, type], kind: str, options: dict[str, Any], library: str
):
    processor = processor_of(classes, kind, library, **options)
    assert check_same(processor, kind, Pipeline.from_processor(processor)) >= 1


FILES = [
    {"image_processor_type": "CLIPImageProcessor"},
    {"image_processor_type": "CLIPImageProcessorFast", "size": 50, "crop_size": 44},
    {"feature_extractor_type": "CLIPFeatureExtractor", "size": 50, "resample": 2},
    {"image_processor_type": "ViTImageProcessor", "size": 60, "do_normalize": None},
    {"image_processor_type": "ViTImageProcessor", "size": [60, 70], "image_mean": 0.5},
    {"image_processor_type": "ViTImageProcessor", "processor_class": "ViTProcessor", "what": 1},
    {"image_processor_type": "ViTImageProcessor", "resample": "bicubic"},
    {"image_processor_type": "SiglipImageProcessor", "size": 60},
    {"feature_extractor_type": "ConvNextFeatureExtractor", "size": 60, "crop_pct": 0.875},
    {"feature_extractor_type": "PoolFormerFeatureExtractor", "size": 60, "crop_pct": None},
    {"image_processor_type": "PoolFormerImageProcessor", "crop_pct": None},
    {"feature_extractor_type": "LevitFeatureExtractor", "size": 60},
    {"feature_extractor_type": "DetrFeatureExtractor", "size": 80, "max_size": 130},
    {"feature_extractor_type": "DetrFeatureExtractor", "size": 80},
    {"feature_extractor_type": "MaskFormerFeatureExtractor", "size": 80, "max_size": 130},
    {"feature_extractor_type": "YolosFeatureExtractor", "size": 64, "max_size": 128},
    {"feature_extractor_type": "ViltFeatureExtractor", "size": 64, "size_divisor": 32},
    {"feature_extractor_type": "DonutFeatureExtractor", "size": [96, 128]},
    {"feature_extractor_type": "OwlViTFeatureExtractor", "size": 60, "rescale": True},
    {"feature_extractor_type": "PerceiverFeatureExtractor", "size": 60, "crop_size": 70},
    {"feature_extractor_type": "SegformerFeatureExtractor", "size": 60, "reduce_labels": True},
    {"feature_extractor_type": "VideoMAEFeatureExtractor", "size": 60, "crop_size": 50},
    {"feature_extractor_type": "MobileNetV1FeatureExtractor", "size": 60, "crop_size": 50},
    {"feature_extractor_type": "BeitFeatureExtractor", "size": 60, "do_center_crop": False},
    {"feature_extractor_type": "DeiTFeatureExtractor", "size": 60, "crop_size": 50},
    {"feature_extractor_type": "GLPNFeatureExtractor", "size_divisor": 16},
    {"feature_extractor_type": "FlavaFeatureExtractor", "size": 60, "crop_size": 50},
    {"image_processor_type": "CLIPImageProcessor", "use_square_size": True},
    {"image_processor_type": "IdeficsImageProcessor", "image_size": 60},
    {"image_processor_type": "EfficientNetImageProcessor", "size": 60},
    {"image_processor_type": "VivitImageProcessor", "size": 60, "crop_size": 50},
    {"image_processor_type": "BitImageProcessor", "size": 60, "crop_size": 50},
    {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 5000, "max_pixels": 20000},
    {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "size": {"shortest_edge": 5000, "longest_edge": 20000},
        "max_pixels": 30000,
    },
    {"image_processor_type": "Swin2SRImageProcessor", "pad_size": 16},
    {"image_processor_type": "ViTImageProcessor", "do_resize": None, "do_rescale": None},
]


@pytest.mark.parametrize("library", ["torchvision", "pillow"])
@pytest.mark.parametrize("said", FILES, ids=lambda said: " ".join(map(str, said.values()))[:50])
def test_a_file_is_read_as_transformers_reads_it(
    said: dict[str, Any], library: str, tmp_path: Path
):
    from transformers import AutoImageProcessor

    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    kind = asked.kind_name(str(said.get("image_processor_type") or said["feature_extractor_type"]))
    backend = "pil" if library == "pillow" else "torchvision"
    only = KINDS[kind].get("library")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if only is None:
            processor = AutoImageProcessor.from_pretrained(tmp_path, backend=backend)
        else:
            processor = AutoImageProcessor.from_pretrained(tmp_path)
        pipeline = Pipeline.from_processor(tmp_path, library=only or library)
    assert check_same(processor, kind, pipeline) >= 2


@pytest.mark.parametrize(
    "said",
    [
        {"image_processor_type": "ViTImageProcessor", "resample": None},
        {"image_processor_type": "ViTImageProcessor", "size": None},
        {"image_processor_type": "ViTImageProcessor", "image_mean": None},
        {"image_processor_type": "ViTImageProcessor", "rescale_factor": None},
        {"image_processor_type": "ConvNextImageProcessor", "crop_pct": None, "size": 60},
        {"image_processor_type": "NoSuchImageProcessor"},
        {"size": 224},
    ],
)
def test_what_transformers_rejects_is_rejected(said: dict[str, Any], tmp_path: Path):
    from transformers import AutoImageProcessor

    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    array = asked.picture((37, 53))
    with pytest.raises(Exception):  # noqa: B017, PT011, whichever the processor raises
        asked.made_by(AutoImageProcessor.from_pretrained(tmp_path), "ViT", array)
    with pytest.raises(ValueError, match="from_processor: "):
        Pipeline.from_processor(tmp_path)(asked.tensor(array))


def test_a_multimodal_processor_uses_its_image_processor(classes: dict[str, type]):
    processor = classes["CLIPImageProcessorPil"]()

    class Whole:
        image_processor = processor

    assert check_same(processor, "CLIP", Pipeline.from_processor(Whole())) == len(SIZES)


# ------------------------------------------------------------------ timm and open_clip


TIMM = [
    {},
    {"input_size": (3, 224, 224), "crop_pct": 0.9, "interpolation": "bicubic"},
    {"input_size": (3, 96, 96), "crop_pct": 1.0, "interpolation": "bilinear"},
    {"input_size": (3, 96, 128), "crop_pct": 0.95, "interpolation": "bicubic"},
    {"input_size": (3, 97, 131), "crop_pct": 0.875, "interpolation": "lanczos"},
    {"input_size": (3, 96, 96), "crop_mode": "squash", "crop_pct": 0.9},
    {"input_size": (3, 96, 71), "crop_mode": "squash", "crop_pct": 1.0},
    {"input_size": (3, 96, 96), "crop_mode": "border", "crop_pct": 1.0},
    {"input_size": (3, 97, 71), "crop_mode": "border", "crop_pct": 0.9},
    {"input_size": (3, 97, 71), "crop_mode": "border", "crop_pct": 1.1, "mean": (0.5, 0.4, 0.3)},
    {"input_size": (3, 64, 64), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)},
]


@pytest.mark.parametrize("cfg", TIMM, ids=str)
def test_timms_configuration_gives_its_transforms_values(cfg: dict[str, Any]):
    data = pytest.importorskip("timm.data", reason="timm is not installed")
    from PIL import Image

    transform = data.create_transform(**data.resolve_data_config(pretrained_cfg={"a": 0, **cfg}))
    pipeline = Pipeline.from_processor({"architecture": "resnet", "pretrained_cfg": cfg})
    tensors = None
    if cfg.get("crop_mode") == "border":
        with pytest.raises(ValueError, match="which timm has not for tensors"):
            Pipeline.from_processor({"pretrained_cfg": cfg}, library="torchvision")
    elif cfg.get("interpolation") != "lanczos":  # torchvision's v1 transforms raise
        tensors = Pipeline.from_processor({"pretrained_cfg": cfg}, library="torchvision")
    for size in SIZES:
        array = asked.picture(size)
        picture = asked.tensor(array)
        got, wanted = pipeline(picture)[0], transform(Image.fromarray(array))
        torch.testing.assert_close(got, wanted, rtol=0, atol=TOLERANCE["processors"])
        if tensors is None:
            continue
        got, wanted = tensors(picture)[0], transform(picture[0] / 255)
        torch.testing.assert_close(got, wanted, rtol=0, atol=TOLERANCE["processors"])


def test_all_published_configurations_of_timm_are_read():
    timm = pytest.importorskip("timm", reason="timm is not installed")
    from PIL import Image

    seen, array = set(), asked.picture((61, 84))
    for name in timm.list_models(pretrained=True):
        cfg = timm.get_pretrained_cfg(name).to_dict()
        config = timm.data.resolve_data_config(pretrained_cfg=cfg)
        key = str(config)
        if key in seen or max(config["input_size"]) > 256:
            continue
        seen.add(key)
        got = Pipeline.from_processor(cfg)(asked.tensor(array))[0]
        wanted = timm.data.create_transform(**config)(Image.fromarray(array))
        torch.testing.assert_close(got, wanted, rtol=0, atol=TOLERANCE["processors"])
    assert len(seen) > 40


def test_transformers_wrapper_of_timm_is_supported(classes: dict[str, type], tmp_path: Path):
    pytest.importorskip("timm", reason="timm is not installed")
    from PIL import Image

    cfg = {"input_size": [3, 97, 97], "crop_pct": 0.9, "interpolation": "bicubic"}
    processor: Any = classes["TimmWrapperImageProcessor"](pretrained_cfg=cfg)
    array = asked.picture((61, 84))
    wanted = np.asarray(processor(Image.fromarray(array), return_tensors="pt")["pixel_values"])
    for source in (processor, {"pretrained_cfg": cfg}):
        got = Pipeline.from_processor(source)(asked.tensor(array)).numpy()
        np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE["processors"])


OPEN_CLIP = [
    {},
    {"size": 96, "interpolation": "bilinear"},
    {"size": (96, 71), "interpolation": "bilinear"},
    {"size": 96, "resize_mode": "longest", "fill_color": 7},
    {"size": (71, 96), "resize_mode": "longest", "interpolation": "random"},
    {"size": (71, 96), "resize_mode": "squash"},
    {"size": 96, "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.4, 0.3)},
]


@pytest.mark.parametrize("cfg", OPEN_CLIP, ids=str)
def test_open_clips_configuration_gives_its_transforms_values(cfg: dict[str, Any]):
    transform = pytest.importorskip("open_clip.transform", reason="open_clip is not installed")
    from PIL import Image

    whole = transform.PreprocessCfg(**cfg)
    wanted = transform.image_transform_v2(whole, is_train=False)
    for source in (whole, {"preprocess_cfg": cfg}, {"model_cfg": {}, "preprocess_cfg": cfg}):
        pipeline = Pipeline.from_processor(source)
        for size in SIZES:
            array = asked.picture(size)
            got = pipeline(asked.tensor(array))[0]
            made = wanted(Image.fromarray(array))
            torch.testing.assert_close(got, made, rtol=0, atol=TOLERANCE["processors"])


def test_the_vision_language_example_makes_the_model_read_the_target_word():
    """The real processor reads the saved file."""
    from examples import vision_language

    results = vision_language.run(steps=30)
    assert results["the word before"] != results["the word aimed at"]
    assert results["the word after"] == results["the word aimed at"]
    assert results["logits apart, by the pipeline and by the processor"] < 1e-4
    assert results["levels changed at most"] <= 4
    assert vision_language.table(results).row_count == len(results)
