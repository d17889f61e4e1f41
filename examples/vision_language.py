"""Attack a vision-language model through its patches: python -m examples.vision_language

The model is small, made from a configuration of transformers with random weights, so nothing is
downloaded. The example is about its preprocessing. The model takes rows of patches: its processor
resizes a picture to a number of pixels and cuts it, as Qwen2-VL's family does.
`Pipeline.from_processor` makes the same rows with a gradient. So a perturbation of the photograph
by 4 levels of 255 chooses the model's next word, also after the photograph is saved and the real
processor reads the file.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch import Tensor

from warpkit.attacks import Pipeline, optimize_perturbation
from warpkit.core.environment import how_to_install

try:
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
except ImportError as error:
    raise ImportError(f"the example needs transformers: {how_to_install('processors')}") from error

PHOTOGRAPH = Path(__file__).parents[1] / "data" / "images" / "coffee.png"
WORDS = ("coffee", "tea", "rocket", "brick", "letter", "person", "nothing", "everything")
START, IMAGE, END, ASK, FIRST_WORD = range(5)
"""The vocabulary: a picture's first and last mark and its place, the question, and the words."""
PIXELS = {"shortest_edge": 28 * 28 * 4, "longest_edge": 28 * 28 * 30}
EPSILON = 4 / 255


class Reader(NamedTuple):
    """A model and its preprocessing."""

    model: Any
    processor: Any
    grid: Tensor
    """Rows and columns of patches of the photograph: (1, 3)."""

    def words(self, rows: Tensor) -> Tensor:
        """Logits of the next word: rows (N, patches, D) -> (N, words)."""
        count, tokens = len(rows), int(self.grid.prod()) // 4
        prompt = [START, *[IMAGE] * tokens, END, ASK]
        made = self.model(
            input_ids=torch.tensor([prompt] * count),
            mm_token_type_ids=torch.tensor([[int(t == IMAGE) for t in prompt]] * count),
            pixel_values=rows.flatten(0, 1),
            image_grid_thw=self.grid.repeat(count, 1),
        )
        return made.logits[:, -1, FIRST_WORD:]

    def read(self, picture: Image.Image) -> Tensor:
        """Logits of the next word for a picture, by the real processor: (words,)."""
        made = self.processor(picture, return_tensors="pt")
        with torch.no_grad():
            return self.words(made["pixel_values"][None])[0]


def reader(picture: Image.Image) -> Reader:
    """A model of 0.1 million parameters, and its family's processor."""
    processor = Qwen2VLImageProcessor(size=PIXELS)
    grid = torch.as_tensor(np.asarray(processor(picture)["image_grid_thw"]))
    config = Qwen2VLConfig(
        text_config={
            "vocab_size": FIRST_WORD + len(WORDS),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2]},
            "bos_token_id": None,
            "eos_token_id": None,
            "initializer_range": 0.3,
        },
        vision_config={
            "depth": 1,
            "embed_dim": 32,
            "hidden_size": 32,
            "num_heads": 4,
            "initializer_range": 0.1,
        },
        image_token_id=IMAGE,
        vision_start_token_id=START,
        vision_end_token_id=END,
    )
    model = Qwen2VLForConditionalGeneration(config).eval().requires_grad_(False)
    return Reader(model, processor, grid)


def run(steps: int = 60) -> dict[str, Any]:
    """Attack the photograph, and run the real processor and the model on the file."""
    torch.manual_seed(0)
    picture = Image.open(PHOTOGRAPH).convert("RGB")
    made = reader(picture)
    pipeline = Pipeline.from_processor(made.processor)
    image = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None]
    before = made.read(picture).softmax(-1)
    target = before.argsort()[len(WORDS) // 2]  # neither the likeliest nor the least likely

    def objective(rows: Tensor) -> Tensor:
        return F.cross_entropy(made.words(rows), target.expand(len(rows)))

    found = optimize_perturbation(
        objective, image / 255, epsilon=EPSILON, steps=steps, pipeline=pipeline
    )
    levels = (found.image * 255).round().to(torch.uint8)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "photograph.png"
        Image.fromarray(levels[0].permute(1, 2, 0).numpy()).save(file)
        with Image.open(file) as saved:
            after = made.read(saved)
    with torch.no_grad():
        apart = float((made.words(pipeline(levels))[0] - after).abs().max())
    after = after.softmax(-1)
    return {
        "the word before": WORDS[int(before.argmax())],
        "the word aimed at": WORDS[int(target)],
        "the word after": WORDS[int(after.argmax())],
        "probability of it before": float(before[target]),
        "probability of it after": float(after[target]),
        "levels changed at most": int((levels.int() - image.int()).abs().max()),
        "logits apart, by the pipeline and by the processor": apart,
    }


def table(results: dict[str, Any]) -> Table:
    """The results, one per line."""
    made = Table(title="the next word, of the photograph's file")
    made.add_column("")
    made.add_column("")
    for name, value in results.items():
        made.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="of the attack")
    Console().print(table(run(parser.parse_args().steps)))


if __name__ == "__main__":
    main()
