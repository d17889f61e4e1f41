"""`Pipeline.from_processor` without transformers: recorded numbers, gradients, errors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from tests.support import processors as asked
from tests.support.forks import python
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import Pipeline
from warpkit.attacks.processors.configuration import defaults
from warpkit.attacks.processors.kinds import KINDS, REFUSED
from warpkit.attacks.processors.sampling import mirrored, reduced

EXPECTED = asked.recorded()
CALLS = [
    (kind, library)
    for kind, row in EXPECTED.items()
    for library in ("torchvision", "pillow")
    if library in row
]
CLIP = {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": 20},
    "crop_size": {"height": 20, "width": 20},
}


def config(kind: str, **options: Any) -> dict[str, Any]:
    return {"image_processor_type": f"{kind}ImageProcessor", **options}


def small(kind: str, **options: Any) -> dict[str, Any]:
    """A kind's configuration, with the options that its values were recorded with."""
    return config(kind, **{**EXPECTED[kind]["options"], **options})


def image(height: int, width: int) -> torch.Tensor:
    return asked.tensor(asked.picture((height, width)))


@pytest.mark.parametrize(("kind", "library"), CALLS)
def test_a_kind_gives_its_processors_recorded_values(kind: str, library: str):
    pipeline = Pipeline.from_processor(small(kind), library=library)
    for size, wanted in zip(asked.RECORDED_SIZES, EXPECTED[kind][library], strict=True):
        with torch.no_grad():
            got = asked.summary(pipeline(image(*size))[0].numpy())
        assert got[0] == wanted[0]
        np.testing.assert_allclose(got[1:], wanted[1:], rtol=0, atol=TOLERANCE["processors"])


def test_every_kind_is_recorded_and_has_defaults():
    assert {*EXPECTED, *asked.NEEDS_A_LIST.split()} == set(KINDS) == set(defaults())
    assert len(KINDS) >= 125
    assert not set(KINDS) & set(REFUSED)
    twins = sum("pillow" in row and "torchvision" in row for row in EXPECTED.values())
    assert twins >= 70


@pytest.mark.parametrize("kind", REFUSED)
def test_an_unsupported_kind_says_why(kind: str):
    with pytest.raises(ValueError, match=f"{kind}ImageProcessor is not served: it ") as error:
        Pipeline.from_processor(config(kind))
    assert REFUSED[kind] in str(error.value)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].get("off")])
def test_an_unsupported_option_says_why(kind: str):
    for option in KINDS[kind]["off"]:
        with pytest.raises(ValueError, match=f"{kind} with {option} is not served: it makes"):
            Pipeline.from_processor(small(kind, **{option: True}))


@pytest.mark.parametrize(("kind", "library"), CALLS)
def test_a_gradient_reaches_the_images(kind: str, library: str):
    """It is the gradient of the same steps on floats, by finite differences of 40 levels."""
    pipeline = Pipeline.from_processor(small(kind), library=library)
    x = (image(40, 44) / 255 * 0.6 + 0.2).requires_grad_()
    made = pipeline(x)
    weights = torch.randn(made.shape, generator=torch.Generator().manual_seed(0))
    (grad,) = torch.autograd.grad((made * weights).sum(), x)
    assert grad.isfinite().all()
    assert grad.abs().max() > 0
    direction = grad / grad.norm()
    step = 40 / 255 / float(direction.abs().max())
    with torch.no_grad():
        ends = [float((pipeline(x + sign * step * direction) * weights).sum()) for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step)
    # the resize's input and output are rounded to 8 bits; bicubic and lanczos are clamped
    assert slope == pytest.approx(float(grad.norm()), rel=TOLERANCE["processors slope"])


@pytest.mark.parametrize("filter_number", [2, 3])
def test_the_gradient_is_the_float_programs(filter_number: int):
    options = {"size": [20, 23], "resample": filter_number, "image_std": [0.5, 0.4, 0.3]}
    pipeline = Pipeline.from_processor(config("ViT", **options))
    x = (image(41, 37) / 255).requires_grad_()
    mode = {2: "bilinear", 3: "bicubic"}[filter_number]
    small = F.interpolate(x, (20, 23), mode=mode, antialias=True)
    wanted = (small - 0.5) / torch.tensor([0.5, 0.4, 0.3])[:, None, None]
    weights = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(2))
    gradients = [torch.autograd.grad((y * weights).sum(), x)[0] for y in (pipeline(x), wanted)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("row", "place"), [(0, 0), (1, 200), (2, 14 * 14 + 5), (17, 1175), (23, 600)]
)
def test_a_value_in_a_patch_has_the_gradient_of_its_pixel(row: int, place: int):
    """By hand: blocks of 2 x 2 patches of 14 pixels, each (channel, frame, y, x)."""
    std = [0.5, 0.25, 0.125]
    pipeline = Pipeline.from_processor(config("Qwen2VL", do_resize=False, image_std=std))
    x = (image(56, 84) / 255).requires_grad_()
    rows = pipeline(x)
    assert rows.shape == (1, 24, 3 * 2 * 14 * 14)
    (grad,) = torch.autograd.grad(rows[0, row, place], x)
    block, inner = divmod(row, 4)
    channel, rest = divmod(place, 2 * 14 * 14)
    down, across = divmod(rest % (14 * 14), 14)
    y = block // 3 * 28 + inner // 2 * 14 + down
    at = (0, channel, y, block % 3 * 28 + inner % 2 * 14 + across)
    assert float(grad[at]) == pytest.approx(1 / std[channel], rel=1e-6)
    assert int((grad != 0).sum()) == 1


@pytest.mark.parametrize("kind", [k for k, row in EXPECTED.items() if "pillow" not in row])
def test_a_kind_without_a_pillow_version_runs_its_steps_with_pillows_resize(kind: str):
    """The values are close to torchvision's; on noise, antialiasing makes filters differ."""
    x, pipelines = (
        image(64, 84),
        [Pipeline.from_processor(small(kind), library=name) for name in ("pillow", "torchvision")],
    )
    with torch.no_grad():
        ours, theirs = (pipeline(x) for pipeline in pipelines)
    assert ours.shape == theirs.shape
    spread = float(theirs.std())
    assert float((ours - theirs).abs().mean()) < TOLERANCE["processors libraries"] * spread


@pytest.mark.parametrize("library", ["pillow", "torchvision"])
def test_a_batch_equals_its_images_one_by_one(library: str):
    pipeline = Pipeline.from_processor(small("Qwen2VL"), library=library)
    pair = torch.cat((image(61, 84), image(61, 84).flip(-1)))
    both = pipeline(pair)
    assert both.ndim == 3
    assert torch.equal(both, torch.cat([pipeline(x[None]) for x in pair]))


def test_floats_and_8_bits_give_the_same_and_types_are_kept():
    x = image(33, 47)
    pipeline = Pipeline.from_processor(CLIP, library="pillow")
    wanted = pipeline(x)
    assert torch.equal(pipeline(x / 255), wanted)
    for dtype in (torch.float64, torch.float16):
        made = pipeline((x / 255).to(dtype).requires_grad_())
        assert made.dtype == dtype
        assert (made - wanted).abs().max() < 0.01 if dtype == torch.float16 else 1e-6
        made.sum().backward()
    channels_last = x.contiguous(memory_format=torch.channels_last)
    assert torch.equal(pipeline(channels_last), wanted)


def test_second_order_and_forward_mode():
    pipeline = Pipeline.from_processor(CLIP, library="torchvision")
    x = (image(23, 31) / 255).double()
    tangent = torch.randn(x.shape, generator=torch.Generator().manual_seed(1)).double()
    _, along = torch.func.jvp(lambda v: pipeline(v).square().sum(), (x,), (tangent,))
    y = x.clone().requires_grad_()
    (grad,) = torch.autograd.grad(pipeline(y).square().sum(), y, create_graph=True)
    assert float((grad.detach() * tangent).sum()) == pytest.approx(float(along), rel=1e-5)
    (second,) = torch.autograd.grad((grad * tangent).sum(), y)
    assert second.abs().max() > 0


# ------------------------------------------------------------------ configuration sources


def test_a_file_a_folder_and_a_dict_give_the_same_pipeline(tmp_path: Path):
    x, wanted = image(33, 47), Pipeline.from_processor(CLIP)(image(33, 47))
    file = tmp_path / "preprocessor_config.json"
    file.write_text(json.dumps(CLIP))
    for source in (file, str(file), tmp_path):
        assert torch.equal(Pipeline.from_processor(source)(x), wanted)
    within = {"processor_class": "CLIPProcessor", "image_processor": CLIP}
    file.write_text(json.dumps({**CLIP, "do_normalize": False}))
    (tmp_path / "processor_config.json").write_text(json.dumps(within))
    assert torch.equal(Pipeline.from_processor(tmp_path)(x), wanted)
    (tmp_path / "processor_config.json").write_text(
        json.dumps({"processor_class": "CLIPProcessor"})
    )
    assert not torch.equal(Pipeline.from_processor(tmp_path)(x), wanted)


@pytest.mark.parametrize("ending", ["ImageProcessor", "ImageProcessorFast", "ImageProcessorPil"])
def test_old_and_new_class_names_are_one_kind(ending: str):
    x, wanted = image(33, 47), Pipeline.from_processor(CLIP)(image(33, 47))
    named = {**CLIP, "image_processor_type": "CLIP" + ending}
    assert torch.equal(Pipeline.from_processor(named)(x), wanted)
    old = {k: v for k, v in CLIP.items() if k != "image_processor_type"}
    old["feature_extractor_type"] = "CLIPFeatureExtractor"
    assert torch.equal(Pipeline.from_processor(old)(x), wanted)


def test_an_object_is_read_by_its_configuration():
    class Processor:
        backend = "pil"

        def to_json_string(self) -> str:
            return json.dumps(CLIP)

    class Whole:
        image_processor = Processor()

    x = image(33, 47)
    wanted = Pipeline.from_processor(CLIP, library="pillow")(x)
    assert torch.equal(Pipeline.from_processor(Processor())(x), wanted)
    assert torch.equal(Pipeline.from_processor(Whole())(x), wanted)
    other = Pipeline.from_processor(Processor(), library="torchvision")(x)
    assert torch.equal(other, Pipeline.from_processor(CLIP)(x))
    assert not torch.equal(other, wanted)


def test_no_other_library_is_imported():
    code = (
        "import sys; from warpkit.attacks import Pipeline; "
        "Pipeline.from_processor({'image_processor_type': 'CLIPImageProcessor'}); "
        "print(sorted({'transformers', 'timm', 'open_clip', 'torchvision'} & set(sys.modules)))"
    )
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------ options of a configuration


@pytest.mark.parametrize(
    ("kind", "said", "meant"),
    [
        ("ViT", {"size": 30}, {"size": {"height": 30, "width": 30}}),
        ("ViT", {"size": [30, 40]}, {"size": {"height": 30, "width": 40}}),
        ("CLIP", {"size": 30, "crop_size": 28}, {"size": {"shortest_edge": 30}, "crop_size": 28}),
        ("CLIP", {"use_square_size": True}, {"size": {"height": 224, "width": 224}}),
        ("Siglip", {"size": 30}, {"size": {"shortest_edge": 30}}),
        ("Vivit", {"size": 30, "crop_size": 28}, {"size": {"shortest_edge": 30}, "crop_size": 28}),
        ("Detr", {"size": 40}, {"size": {"shortest_edge": 40, "longest_edge": 1333}}),
        (
            "Detr",
            {"size": 40, "max_size": 50},
            {"size": {"shortest_edge": 40, "longest_edge": 50}},
        ),
        ("Donut", {"size": [192, 256]}, {"size": {"height": 256, "width": 192}}),
        (
            "Qwen2VL",
            {"min_pixels": 5000, "max_pixels": 9000},
            {"size": {"shortest_edge": 5000, "longest_edge": 9000}},
        ),
        ("Swin2SR", {"pad_size": 16}, {"size_divisor": 16}),
        ("OwlViT", {"rescale": False}, {"do_rescale": False}),
        ("Idefics", {"image_size": 30}, {"size": 30}),
        ("ViT", {"do_normalize": None}, {"do_normalize": False}),
        ("ViT", {"image_mean": 0.4}, {"image_mean": [0.4, 0.4, 0.4]}),
        ("ViT", {"resample": "bicubic"}, {"resample": 3}),
        ("PoolFormer", {"crop_pct": None}, {"crop_pct": 1.0}),
        ("ViT", {"no_such_option": 1, "processor_class": "ViTProcessor"}, {}),
    ],
)
def test_old_forms_of_options_keep_their_meaning(
    kind: str, said: dict[str, Any], meant: dict[str, Any]
):
    x = image(61, 84)
    made = [Pipeline.from_processor(config(kind, **options))(x) for options in (said, meant)]
    assert torch.equal(*made)


def test_a_filters_name_in_a_file_means_bilinear_to_pillow():
    x = image(61, 84)
    with pytest.warns(UserWarning, match="Pillow's processors take bilinear"):
        named = Pipeline.from_processor(config("ViT", resample="bicubic"), library="pillow")
    bilinear = Pipeline.from_processor(config("ViT", resample=2), library="pillow")
    assert torch.equal(named(x), bilinear(x))


def test_levels_stay_levels_without_rescaling():
    off = {"do_rescale": False, "do_normalize": False}
    x = image(30, 30)
    made = Pipeline.from_processor(config("ViT", size=30, **off))(x)
    assert made.dtype == torch.float32
    assert torch.equal(made, x.float())
    unit = (x / 255).requires_grad_()
    (grad,) = torch.autograd.grad(
        Pipeline.from_processor(config("ViT", size=30, **off))(unit).sum(), unit
    )
    assert torch.equal(grad, torch.full_like(grad, 255))


def test_padding_puts_the_odd_pixel_where_its_library_does():
    options = {"do_resize": False, "crop_size": 4, "do_normalize": False, "do_rescale": False}
    x = torch.full((1, 3, 3, 3), 9, dtype=torch.uint8)
    rows = {
        library: Pipeline.from_processor(config("CLIP", **options), library=library)(x)[0, 0, :, 1]
        for library in ("pillow", "torchvision")
    }
    assert rows["pillow"].tolist() == [0, 9, 9, 9]
    assert rows["torchvision"].tolist() == [9, 9, 9, 0]


@pytest.mark.parametrize("factors", [(1, 3), (2, 1), (2, 2), (3, 2), (4, 5), (7, 6)])
def test_reduced_equals_pillows_reduce(factors: tuple[int, int]):
    array = asked.picture((23, 29))
    wanted = np.asarray(Image.fromarray(array).reduce((factors[1], factors[0])))
    got = reduced(asked.tensor(array), factors)[0].permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(got, wanted)
    floats = reduced(asked.tensor(array).double(), factors)[0].permute(1, 2, 0).numpy()
    assert np.abs(floats - wanted).max() < 0.7  # for odd counts Pillow adds less than a half


@pytest.mark.parametrize("side", [1, 2, 5])
@pytest.mark.parametrize(("twice", "mode"), [(True, "symmetric"), (False, "reflect")])
def test_mirrored_equals_numpys_pad(side: int, twice: bool, mode: str):
    x = torch.arange(float(side * 3)).reshape(1, 1, side, 3)
    wanted = np.pad(x[0, 0].numpy(), ((4, 7), (1, 2)), mode)  # pyright: ignore
    assert np.array_equal(mirrored(x, (4, 1), (7, 2), twice)[0, 0].numpy(), wanted)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("source", "library", "said"),
    [
        ({}, None, "must be a configuration that names its class"),
        ({"model_type": "clip"}, None, "preprocessor_config.json"),
        (config("NoSuch"), None, "docs/processors.md.*NoSuchImageProcessor"),
        ({**config("NoSuch"), "auto_map": {}}, None, "code of its own repository"),
        (config("ViT"), "opencv", "`library` must be one of 'pillow', 'torchvision'"),
        (config("Vivit"), "torchvision", "`library` must be None or 'pillow' for Vivit"),
        (config("ViT", resample=None), None, "ViT with do_resize needs `resample`, which is null"),
        (config("ViT", size=None), None, "needs `size`, which is null"),
        (config("ViT", image_mean=None), None, "do_normalize needs `image_mean`"),
        (config("ViT", rescale_factor=None), None, "needs `rescale_factor`"),
        (config("ViT", do_center_crop=True), None, "needs `crop_size`"),
        (config("ConvNext", crop_pct=None, size=60), None, "`crop_pct` must be a number below 384"),
        (config("ViT", size="224"), None, "`size` must be a whole number"),
        (config("ViT", size={"height": 3}), None, "`size` must be a whole number"),
        (config("ViT", resample=7), None, "`resample` must be a number from 0 to 5"),
        (config("ViT", resample=4), None, "`resample` must be one of .* with torchvision"),
        (config("Tvp", pad_mode="edge"), None, "`pad_mode` must be 'constant'"),
    ],
)
def test_unsupported_configurations_are_named(
    source: dict[str, Any], library: str | None, said: str
):
    with pytest.raises(ValueError, match=said):
        Pipeline.from_processor(source, library=library)(image(61, 84))


@pytest.mark.parametrize("source", [3, None, dict, [1]])
def test_an_invalid_source_is_a_type_error(source: Any):
    with pytest.raises(TypeError, match=r"`source` must be a preprocessor_config\.json"):
        Pipeline.from_processor(source)


def test_files_that_cannot_be_read_are_named(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.json"):
        Pipeline.from_processor(tmp_path / "nothing.json")
    with pytest.raises(FileNotFoundError, match=r"from_pretrained\('a/b'\), with the extra `proc"):
        Pipeline.from_processor("a/b")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ValueError, match=r"broken\.json"):
        Pipeline.from_processor(tmp_path / "broken.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ValueError, match="holds no object"):
        Pipeline.from_processor(tmp_path / "list.json")
    with pytest.raises(ValueError, match="a folder with none of"):
        Pipeline.from_processor(tmp_path)


def test_images_of_unsupported_shapes_are_named():
    with pytest.raises(ValueError, match="one number a channel"):
        Pipeline.from_processor(CLIP)(image(30, 40)[:, :1])
    patches = config("Qwen2VL", do_resize=False)
    with pytest.raises(ValueError, match="a multiple of 28 pixels high and wide, got 30 x 40"):
        Pipeline.from_processor(patches)(image(30, 40))
    padded = config("Detr", do_resize=False, pad_size={"height": 20, "width": 90})
    with pytest.raises(ValueError, match="`pad_size` must be at least as large"):
        Pipeline.from_processor(padded)(image(30, 40))


def test_a_pipelines_repr_lists_its_steps():
    assert repr(Pipeline.from_processor(CLIP)) == "Pipeline(resize, crop, values, pad, levels)"
