"""Lists of images and `Pipeline.outputs`, without transformers: recorded outputs, forms, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.support import whole_processors as whole
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import Pipeline, jpeg, to_uint8
from warpkit.attacks.processors.kinds import KINDS
from warpkit.types import Library

RECORDED = whole.recorded()
LIBRARIES = ("torchvision", "pillow")
CALLS = [
    pytest.param(kind, row, library, id=f"{kind} {number} {library}")
    for kind, rows in RECORDED.items()
    for number, row in enumerate(rows)
    for library in LIBRARIES
    if library in row
]
QWEN = {"image_processor_type": "Qwen2VLImageProcessor", **whole.SMALL_QWEN}
ONEVISION = {
    "image_processor_type": "LlavaOnevisionImageProcessor",
    **whole.CHANGED["LlavaOnevision"][0],
}
LIMITED = """Apertus1p5 CohereCompass Cosmos3Edge Emu3 Ernie4_5_VLMoe Ernie4_5_VL_Moe Glm46V Glm4v
    Glmga HYV4VL HunYuanVL MiniMaxM3VL PaddleOCRVL Qwen2VL VideoLlama3"""
SLOW = ("Aria", "DeepseekVLHybrid", "DepthPro", "Donut", "SmolVLM")
CLIP = {"image_processor_type": "CLIPImageProcessor", "size": 20, "crop_size": 20}
"""Half of the processors of this file are tiny, so that a call takes a millisecond."""


def config(kind: str, **options: Any) -> dict[str, Any]:
    return {"image_processor_type": f"{kind}ImageProcessor", **options}


def images(*sizes: tuple[int, int]) -> list[torch.Tensor]:
    return [whole.image(size) for size in sizes]


def check_summary(got: Any, wanted: Any, name: str) -> None:
    """Whole numbers and shapes are equal, and floats near."""
    if isinstance(wanted, list) and wanted and wanted[0] == "floats":
        assert got[:2] == wanted[:2], name
        assert got[2:] == pytest.approx(wanted[2:], abs=TOLERANCE["processors"]), name
    elif isinstance(wanted, list) and wanted and isinstance(wanted[0], list):
        assert len(got) == len(wanted), name
        for pair in zip(got, wanted, strict=True):
            check_summary(*pair, name)
    else:
        assert got == wanted, name


@pytest.mark.parametrize(("kind", "row", "library"), CALLS)
def test_outputs_are_the_processors_recorded_ones(kind: str, row: dict[str, Any], library: Library):
    pipeline = Pipeline.from_processor(config(kind, **row["options"]), library=library)
    for sizes, wanted in zip(whole.recorded_calls(kind), row[library], strict=True):
        given = whole.mapped(whole.image, sizes)
        with torch.no_grad():
            if wanted is None:  # the processor fails
                continue
            made = pipeline.outputs(given)
        assert set(made) == set(wanted)
        for key, value in wanted.items():
            check_summary(whole.summary(made[key]), value, key)


def test_every_kind_is_recorded():
    assert set(RECORDED) == set(KINDS)
    assert len(KINDS) >= 125


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", ["CLIP", "Detr", "Qwen2VL", "GotOcr2", "LlavaNext", "Idefics2"])
def test_each_image_of_a_list_is_its_own(kind: str, library: Library):
    """As in a call of one image, and twice the same."""
    options = whole.configurations(kind)[0]
    pipeline = Pipeline.from_processor(config(kind, **options), library=library)
    given = images((61, 84), (37, 50), (61, 84), (90, 90))
    made = pipeline(given)
    assert isinstance(made, list)
    for image, part in zip(given, made, strict=True):
        assert torch.equal(part, pipeline(image[None])[0])
        assert torch.equal(part, pipeline([image])[0])
    for first, second in zip(made, pipeline(given), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("Mllama", (4, 3, 40, 40)),
        ("Llama4", (7, 3, 40, 40)),
        ("LlavaOnevision", (5, 3, 40, 40)),
        ("GotOcr2", (10, 3, 40, 40)),
        ("Phi4Multimodal", (5, 3, 56, 56)),
        ("Gemma3", (1, 3, 40, 40)),
        ("DeepseekOcr2", (3, 80, 80)),
        ("MiniCPMV4_6", (3, 14, 896)),
        ("Inkling", (9, 2, 40, 40, 3)),
        ("Siglip2", (49, 768)),
    ],
)
def test_an_image_alone_has_no_batch_axis(kind: str, shape: tuple[int, ...]):
    pipeline = Pipeline.from_processor(config(kind, **whole.configurations(kind)[0]))
    (image,) = images((100, 90))
    assert pipeline([image])[0].shape == shape
    assert pipeline(image[None]).shape == (1, *shape)


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("GotOcr2", "crop_to_patches"),
        ("Ovis2", "crop_to_patches"),
        ("Idefics2", "do_image_splitting"),
    ],
)
def test_tiles_have_an_axis_if_their_option_is_on(kind: str, option: str):
    options = whole.configurations(kind)[0]
    (image,) = images((40, 40))
    for value, axes in ((True, 4), (False, 3)):
        pipeline = Pipeline.from_processor(config(kind, **{**options, option: value}))
        assert pipeline([image])[0].ndim == axes


def test_a_batch_and_a_list_have_equal_outputs():
    batch = torch.stack([whole.image((61, 84)), whole.image((61, 84)).flip(-1)])
    for source in (QWEN, ONEVISION, CLIP):
        pipeline = Pipeline.from_processor(source)
        first, second = pipeline.outputs(batch), pipeline.outputs(list(batch))
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first)


def test_a_prompt_of_several_images_gets_one_view_of_each():
    pipeline = Pipeline.from_processor(ONEVISION)
    flat = images((80, 40), (61, 84), (40, 80))
    made = pipeline.outputs([flat[:1], flat[1:]])
    assert made["batch_num_images"].tolist() == [1, 2]
    assert (made["pixel_values"][1:, 1:] == 0).all()
    alone = pipeline.outputs(flat)
    assert torch.equal(made["pixel_values"][0], alone["pixel_values"][0, :3])
    assert not torch.equal(made["pixel_values"][1, 0], alone["pixel_values"][1, 0])
    parts = pipeline([flat[:1], flat[1:]])
    assert [len(group) for group in parts] == [1, 2]
    assert torch.equal(parts[1][0], pipeline(flat)[1])  # of each image alone


def test_the_widest_image_decides_the_width_of_all():
    pipeline = Pipeline.from_processor(config("PPOCRV5ServerRec"))
    long, short = images((20, 300), (40, 90))
    made = pipeline.outputs([short, long])["pixel_values"]
    assert made.shape[-1] == 48 * 300 / 20
    assert pipeline([short])[0].shape[-1] == 320
    assert torch.equal(made[1], pipeline([long])[0])


def test_the_budget_depends_on_the_number_of_images():
    options = {"min_num_patches": 16, "max_num_patches": 0, "max_model_len": 20}
    pipeline = Pipeline.from_processor(config("NemotronH_Omni_Reasoning_V3", **options))
    image = whole.image((200, 220))
    counts = [
        pipeline.outputs([image] * count)["image_grid_hw"][0].prod().item() for count in (1, 8)
    ]
    assert counts[0] <= 64 < counts[1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_pixels_have_the_type_of_the_images(dtype: torch.dtype):
    given = [image.to(dtype) / 255 for image in images((61, 84), (40, 40))]
    for kind in ("Llama4", "Qwen2VL", "DeepseekVLHybrid"):
        pipeline = Pipeline.from_processor(config(kind, **whole.configurations(kind)[0]))
        made = pipeline.outputs(given)
        for key, value in made.items():
            assert value.dtype == (dtype if "pixel" in key else torch.int64), key
    values = Pipeline.from_processor(config("Llama4"))(images((40, 40)))[0]
    assert values.dtype == torch.float32
    assert torch.equal(values, values.bfloat16().float())


def test_steps_before_a_processor_run_on_each_image():
    inner = Pipeline.from_processor(QWEN)
    given = images((61, 84), (90, 50))
    whole_pipeline, stepped = Pipeline(jpeg(60), inner), Pipeline(jpeg(60), to_uint8)
    files = [(stepped(image[None])[0] * 255).round().to(torch.uint8) for image in given]
    wanted, made = inner.outputs(files), whole_pipeline.outputs(given)
    assert all(torch.equal(made[key], wanted[key]) for key in wanted)
    nested = Pipeline(lambda x: x, whole_pipeline).outputs(given)
    assert all(torch.equal(nested[key], wanted[key]) for key in wanted)
    halved = Pipeline(lambda x: x[..., ::2, ::2], inner).outputs(images((120, 168)))
    assert torch.equal(halved["image_grid_thw"], inner.outputs(images((60, 84)))["image_grid_thw"])


def test_lists_pass_through_any_pipeline():
    double = Pipeline(lambda x: x.flip(-1), {"a": lambda x: x, "b": lambda x: x[..., :1]})
    made = double([image / 255 for image in images((5, 7), (4, 6), (5, 7))])
    assert [part["a"].shape for part in made] == [(3, 5, 7), (3, 4, 6), (3, 5, 7)]
    assert [part["b"].shape for part in made] == [(3, 5, 1), (3, 4, 1), (3, 5, 1)]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ([], ValueError, "`images` must be a list of at least one image, got an empty list"),
        (torch.zeros(3, 9, 9), ValueError, r"`images` must be of shape \(N, C, H, W\)"),
        (torch.zeros(0, 3, 9, 9), ValueError, "at least one image"),
        ([[torch.zeros(3, 9, 9)]], ValueError, "`images` must be a flat list of images"),
        ([torch.zeros(1, 3, 9, 9)], ValueError, r"`images\[0\]` must be an image \(C, H, W\)"),
        ([torch.zeros(3, 9, 9), None], TypeError, r"images\[1\]"),
        (
            [torch.zeros(3, 9, 9), torch.zeros(3, 9, 9).byte()],
            TypeError,
            r"`images\[1\]` must be of the first image's type",
        ),
        (
            [torch.zeros(3, 9, 9), torch.zeros(1, 9, 9)],
            ValueError,
            "of the first image's 3 channels",
        ),
        (None, TypeError, "`images` must be a tensor"),
    ],
)
def test_other_images_are_named(given: Any, error: type[Exception], said: str):
    with pytest.raises(error, match=said):
        Pipeline.from_processor(CLIP).outputs(given)


def test_lists_of_lists_must_hold_lists_of_images():
    pipeline = Pipeline.from_processor(ONEVISION)
    image = torch.zeros(3, 9, 9)
    with pytest.raises(ValueError, match=r"`images\[1\]` must be a list of images, as the other"):
        pipeline.outputs([[image], image])
    with pytest.raises(ValueError, match=r"`images\[1\]` must be a list of at least one image"):
        pipeline.outputs([[image], []])


def test_outputs_need_a_processor_at_the_end():
    for pipeline in (
        Pipeline(),
        Pipeline(to_uint8),
        Pipeline(Pipeline.from_processor(CLIP), to_uint8),
    ):
        with pytest.raises(ValueError, match="`the last step` must be that of an image processor"):
            pipeline.outputs(images((9, 9)))


@pytest.mark.parametrize(
    "kind",
    LIMITED.split(),
)
def test_aspects_above_200_are_refused(kind: str):
    pipeline = Pipeline.from_processor(config(kind))
    for size in ((4, 804), (804, 4)):
        with pytest.raises(ValueError, match=f"of an aspect of at most 200, as {kind} demands"):
            pipeline.outputs(images(size))


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("Llama4", {"do_resize": False}, "Llama4 fails without do_resize, which is off"),
        ("Mllama", {"do_resize": None}, "Mllama fails without do_resize"),
        ("Mllama", {"do_pad": False}, "Mllama fails without do_pad"),
        ("Mllama", {"size": [40, 50]}, "Mllama needs a square `size`"),
        ("MiniCPMV4_6", {"do_resize": False}, "MiniCPMV4_6 fails without do_resize"),
        ("MiniCPMOcr", {"small_image_upsize": "adaptive"}, "'adaptive' is not served"),
    ],
)
def test_options_with_which_a_processor_fails_are_refused(
    kind: str, options: dict[str, Any], said: str
):
    with pytest.raises(ValueError, match=said):
        Pipeline.from_processor(config(kind, **options))


@pytest.mark.parametrize(
    ("kind", "size", "said"),
    [
        ("Phi4Multimodal", (4, 700), "an aspect that leaves 10 pixels a side"),
        ("DeepseekOcr2", (1, 1000), "such that no side becomes 0"),
        ("GlmImage", (40, 300), "an aspect of at most 4"),
        ("GlmImage", (9, 9), "at least 28 pixels high and wide"),
        ("Idefics2", (1, 40), "at least 2 pixels high and wide"),
    ],
)
def test_sizes_that_a_processor_refuses_are_refused(kind: str, size: tuple[int, int], said: str):
    pipeline = Pipeline.from_processor(config(kind, **whole.configurations(kind)[0]))
    with pytest.raises(ValueError, match=said):
        pipeline.outputs(images(size))


@pytest.mark.parametrize("kind", [kind for kind in whole.CHANGED if kind not in SLOW])
def test_torchs_defaults_change_no_output(kind: str):
    """Another default device, and another default type of floats."""
    pipeline = Pipeline.from_processor(config(kind, **whole.configurations(kind)[0]))
    given = [image / 255 for image in images((61, 84), (120, 60))]
    wanted = pipeline.outputs(given)
    with torch.device("meta"):
        here = pipeline.outputs(given)
    torch.set_default_dtype(torch.float64)
    try:
        there = pipeline.outputs(given)
    finally:
        torch.set_default_dtype(torch.float32)
    for made in (here, there):
        assert all(whole.difference(wanted[key], made[key], key) == 0 for key in wanted)
