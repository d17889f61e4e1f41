"""One patch for all crops of a data set, optimised by several processes.

    torchrun --standalone --nproc-per-node 2 -m examples.attack_distributed

Pasted anywhere on a crop of any photograph, rotated and scaled, it makes a small network assign the
crop to another photograph. Every process holds its part of each batch; the patch gets the gradient
of the whole batch. An interrupted run continues from its last checkpoint.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.utils.data import DataLoader, Sampler

import warpkit as wk
import warpkit.distributed
from examples.photographs import NAMES, SIZE, Crops, learn, network
from warpkit.cli.image_files import replacing
from warpkit.core.progress import progress_bar

TARGET = NAMES.index("astronaut")
"""The target class."""


class Patch(nn.Module):
    """A square patch with values in (0, 1); grey at first."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(3, size, size))

    def forward(self) -> Tensor:
        return torch.sigmoid(self.logits)


class ShardedBatches(Sampler[list[int]]):
    """This process's rows of each batch, from a given step; the batches depend only on the seed.

    Batches are reshuffled in each epoch, and split like `Shard(0)`.
    """

    def __init__(self, rows: int, batch: int, steps: range, seed: int, mesh: DeviceMesh) -> None:
        self.rows, self.batch, self.steps, self.seed, self.mesh = rows, batch, steps, seed, mesh

    def __iter__(self) -> Iterator[list[int]]:
        for step in self.steps:
            yield shard(self.batch_at(step), self.mesh).to_local().tolist()

    def batch_at(self, step: int) -> Tensor:
        """The rows of a whole batch."""
        epoch, number = divmod(step, self.rows // self.batch)
        generator = torch.Generator().manual_seed(self.seed + epoch)
        order = torch.randperm(self.rows, generator=generator)
        return order[number * self.batch : (number + 1) * self.batch]


def shard(whole: Tensor, mesh: DeviceMesh) -> DTensor:
    """Shard a tensor that every process has, without communication."""
    return DTensor.from_local(whole, mesh, [Replicate()]).redistribute(mesh, [Shard(0)])


def sharded(part: Tensor, count: int, mesh: DeviceMesh) -> DTensor:
    """A DTensor of `count` rows from the parts of all processes."""
    shape = torch.Size((count, *part.shape[1:]))
    stride = torch.empty(shape, device="meta").stride()
    return DTensor.from_local(part, mesh, [Shard(0)], shape=shape, stride=stride)


def places(count: int, size: int, seed: int) -> Tensor:
    """The patch's matrices on the crops, (count, 2, 3), the same in every process."""
    angle, scale, x, y = torch.rand(4, count, generator=torch.Generator().manual_seed(seed))
    side = size * (0.8 + 0.4 * scale)
    corner = torch.stack((x, y), dim=1) * (SIZE - side[:, None])
    boxes = torch.cat((corner, corner + side[:, None]), dim=1)
    return wk.box_to_matrix(boxes, (size, size), angle=60 * angle - 30)


def with_patch(images: Tensor, patch: Tensor, seed: int) -> Tensor:
    """Crops (B, 3, SIZE, SIZE), or this process's part, with the patch somewhere on each."""
    count, device = len(images), patch.device
    matrices = places(count, patch.shape[-1], seed).to(device)
    shown = wk.paste_patches(images, patch, matrices, torch.arange(count, device=device))
    return shown.to_local() if isinstance(shown, DTensor) else shown


def own_loss(model: nn.Module, images: Tensor, patch: Tensor, seed: int) -> Tensor:
    """This process's share of the batch's mean loss; the shares sum to the mean."""
    answers = model(with_patch(images, patch, seed))
    targets = torch.full((len(answers),), TARGET, device=answers.device)
    return F.cross_entropy(answers, targets, reduction="sum") / len(images)


class Attack(Stateful):
    """The patch, its optimizer and the step: the contents of a checkpoint."""

    def __init__(self, size: int, steps: int, lr: float, device: torch.device) -> None:
        self.patch = Patch(size).to(device)
        self.optimizer = torch.optim.Adam(self.patch.parameters(), lr=lr)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)
        self.history: list[float] = []

    def state_dict(self) -> dict[str, Any]:
        patch, optimizer = get_state_dict(self.patch, self.optimizer)
        schedule, history = self.schedule.state_dict(), self.history
        return {"patch": patch, "optimizer": optimizer, "schedule": schedule, "history": history}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = state_dict
        set_state_dict(
            self.patch,
            self.optimizer,
            model_state_dict=state["patch"],
            optim_state_dict=state["optimizer"],
        )
        self.schedule.load_state_dict(state["schedule"])
        self.history = list(state["history"])

    def step(self, model: nn.Module, images: Tensor, seed: int) -> float:
        """One step on a batch; returns the mean loss before the step."""
        self.optimizer.zero_grad()
        loss = own_loss(model, images, self.patch(), seed)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        self.history.append(mean.item())
        return mean.item()


def checkpoints(folder: Path) -> list[Path]:
    """The complete checkpoints, oldest first: torch writes `.metadata` last."""
    return sorted(path.parent for path in folder.glob("step-*/.metadata"))


def save_checkpoint(folder: Path, attack: Attack) -> None:
    """Write a checkpoint and, once it is complete, remove those before it."""
    old = checkpoints(folder)
    new = folder / f"step-{len(attack.history):06d}"
    dcp.save({"attack": attack}, checkpoint_id=new)
    if dist.get_rank() == 0:
        for path in old:
            if path != new:
                shutil.rmtree(path)
    dist.barrier()


def trained(path: Path, device: torch.device) -> nn.Module:
    """The attacked network, which the first process trains unless a run has saved it."""
    if dist.get_rank() == 0 and not path.exists():
        with replacing(path) as file:
            torch.save(learn(Crops(400, seed=0)).state_dict(), file)
    dist.barrier()
    model = network()
    model.load_state_dict(torch.load(path, weights_only=True))
    return model.to(device).eval().requires_grad_(False)


@torch.no_grad()
def fooled(model: nn.Module, crops: Crops, patch: Tensor | None, mesh: DeviceMesh) -> float:
    """How often crops of other photographs are classified as the target, over all processes."""
    images = shard(crops.images[crops.labels != TARGET].to(mesh.device_type), mesh)
    own = images.to_local() if patch is None else with_patch(images, patch, seed=-1)
    hits = (model(own).argmax(1) == TARGET).double().sum()
    dist.all_reduce(hits)
    return hits.item() / len(images)


def draw(path: Path, crops: Crops, patch: Tensor) -> None:
    """Draw the patch, and crops with it."""
    from examples.figures import new_figure, save  # matplotlib takes a second to load

    shown = with_patch(crops.images[: len(NAMES)], patch, seed=-1)
    figure = new_figure(1.6 * (1 + len(shown)), 1.7)
    for axes, picture in zip(figure.subplots(1, 1 + len(shown)), (patch, *shown), strict=True):
        axes.imshow(picture.permute(1, 2, 0).numpy())
        axes.set_axis_off()
    save(path, figure)


def settle(out: Path, options: dict[str, float]) -> None:
    """Make the folder of a run; exit if it belongs to another run."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "options.json"
    if dist.get_rank() == 0 and not path.exists():
        with replacing(path) as file:
            file.write(json.dumps(options).encode())
    dist.barrier()
    if (found := json.loads(path.read_text())) != options:
        if dist.get_rank() == 0:
            print(f"{path} is of another run, {found}: choose another --out", file=sys.stderr)
        raise SystemExit(2)


def run(out: Path, steps: int, batch: int, size: int, every: int, lr: float, seed: int) -> None:
    """Optimise from the last checkpoint, and report the result."""
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    settle(out, {"steps": steps, "batch": batch, "size": size, "lr": lr, "seed": seed})
    model = trained(out / "model.pt", device)
    attack = Attack(size, steps, lr, device)
    if found := checkpoints(out):
        dcp.load({"attack": attack}, checkpoint_id=found[-1])
    crops, todo = Crops(400, seed=1), range(len(attack.history), steps)
    loader = DataLoader(crops, batch_sampler=ShardedBatches(len(crops), batch, todo, seed, mesh))
    main = dist.get_rank() == 0
    with progress_bar("attacking", total=steps, completed=todo.start, visible=main) as advance:
        for step, (images, _) in zip(todo, loader, strict=True):
            images = sharded(images.to(device), batch, mesh)
            loss = attack.step(model, images, seed * 1_000_000 + step)
            if (step + 1) % every == 0 or step + 1 == steps:
                save_checkpoint(out, attack)
            advance(f"loss {loss:.3f}")
    report(out, model, attack.patch().detach(), mesh)


def report(out: Path, model: nn.Module, patch: Tensor, mesh: DeviceMesh) -> None:
    """Print the rates over unseen crops and placements; save the patch and its picture."""
    unseen = Crops(200, seed=2)
    shown = {"no": None, "a grey": torch.full_like(patch, 0.5), "the optimised": patch}
    rates = {name: fooled(model, unseen, value, mesh) for name, value in shown.items()}
    if dist.get_rank() != 0:
        return
    table = Table(title=f"unseen crops taken for {NAMES[TARGET]}.png")
    for name in rates:
        table.add_column(f"{name} patch", justify="right")
    table.add_row(*(f"{rate:.1%}" for rate in rates.values()))
    Console().print(table)
    torch.save(patch.cpu(), out / "patch.pt")
    draw(out / "patch.png", unseen, patch.cpu())


def main(
    out: Annotated[Path, typer.Option(help="folder of checkpoints and results")] = Path(
        "attack_distributed"
    ),
    steps: Annotated[int, typer.Option(min=1)] = 200,
    batch: Annotated[int, typer.Option(min=1, max=400, help="all processes together")] = 50,
    size: Annotated[int, typer.Option(min=1, max=SIZE // 2, help="patch side in pixels")] = 20,
    every: Annotated[int, typer.Option(min=1, help="steps between checkpoints")] = 20,
    lr: Annotated[float, typer.Option(min=1e-6, help="Adam's step size at the beginning")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="seed of batches and placements")] = 0,
) -> None:
    """Optimise one patch over a data set that is split among processes.

    An interrupted run continues from the last checkpoint in the folder with the same result: bit
    for bit with the same number of processes, up to rounding with another number.
    """
    torch.set_num_threads(1)  # threads slow down small layers
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        run(out, steps, batch, size, every, lr, seed)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(main)
    app()
