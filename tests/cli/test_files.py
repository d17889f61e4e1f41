"""Files that the commands cannot read or write: one line, and no partial file is left."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.validation.test_suite import FEW, FEW_RESIZES
from warpkit.cli import parity
from warpkit.cli.app import main
from warpkit.cli.attack import models
from warpkit.cli.attack import run as attack_run
from warpkit.cli.bench import run as bench_run
from warpkit.cli.bench.noise import Noise
from warpkit.cli.demo import work as demo
from warpkit.cli.image_files import replacing
from warpkit.validation import report

resource = pytest.importorskip("resource")

PIXELS = np.random.default_rng(0).integers(0, 256, (65, 130, 3), dtype=np.uint8)
COMMANDS = {
    "warp in.png out.png --angle 0": "out.png",
    "resize in.png out.png --size 90 130": "out.png",
    "undistort in.png out.png --camera 99 99 65 45 --distortion 0.1 0 0 0": "out.png",
    "view in.png out.png --size 90 130": "out.png",
    "align in.png in.png out.png": "out.png",
    "demo in.png --out out.png": "out.png",
    "attack in.png --out out.png --steps 1": "out.png",
    "parity in.png --html out.html": "out.html",
    "bench --quick --loud --only 32x32 --threads 1 --out out.csv": "out.csv",
}


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder that every user may enter, and commands that take little time."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    monkeypatch.chdir(path)
    monkeypatch.setattr(report, "settings", lambda: FEW)
    monkeypatch.setattr(report, "resize_settings", lambda _: FEW_RESIZES)
    monkeypatch.setattr(models, "UNSEEN", 2)
    monkeypatch.setattr(bench_run, "measure", rows)
    Image.fromarray(PIXELS).save("in.png")
    threads = torch.get_num_threads()
    yield path
    torch.set_num_threads(threads)
    path.chmod(0o755)
    shutil.rmtree(path)


def rows(work: object, turns: int, heard: Noise) -> list[dict[str, str]]:
    """The rows that `warpkit bench` writes, without measuring."""
    heard.walls, heard.missing = [1.0], [0.0]
    row = {"workload": "w", "interpolation": "i", "does": "d", "way": "warpkit", "ms": "1"}
    return [row] * 9


@contextmanager
def nobody() -> Iterator[None]:
    """Run as a user who may not write anywhere: the superuser becomes `nobody`."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def room(size: int) -> Iterator[None]:
    """Limit the size of files, so that a write fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that works only in its first call, and then returns the same result."""
    found: list[Any] = []

    def work(*args: Any, **options: Any) -> Any:
        if not found:
            found.append(function(*args, **options))
        return found[0]

    return work


@pytest.mark.parametrize("line", COMMANDS)
def test_a_full_disk_is_one_line_and_leaves_nothing(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for module, work in ((demo, "recover"), (attack_run, "attack_model"), (parity, "parity_suite")):
        monkeypatch.setattr(module, work, once(getattr(module, work)))
    assert main(line.split()) == 0  # first loads and compiles whatever writes its own files
    name = COMMANDS[line]
    (folder / name).write_bytes(b"old")
    capsys.readouterr()
    with room(700):
        assert main(line.split()) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"warpkit: {name}: File too large"
    assert (folder / name).read_bytes() == b"old"
    assert sorted(path.name for path in folder.iterdir()) == ["in.png", name]


@pytest.mark.parametrize("line", COMMANDS)
def test_an_unwritable_folder_is_one_line_before_any_work(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    name = COMMANDS[line]
    if line.startswith("warp"):
        assert main(line.split()) == 0
        (folder / name).unlink()
    folder.chmod(0o555)
    if os.geteuid() == 0 and os.access not in os.supports_effective_ids:
        pytest.skip("the superuser cannot ask for another user")
    monkeypatch.setattr(demo, "compare", None)  # a call would raise a traceback
    monkeypatch.setattr(attack_run, "attack_model", None)
    with nobody():
        assert main(line.split()) == 1
    assert capsys.readouterr() == ("", f"warpkit: {name}: Permission denied\n")
    assert [path.name for path in folder.iterdir()] == ["in.png"]


def test_a_folder_that_becomes_read_only_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    assert main(["warp", "in.png", "out.png", "--angle", "0"]) == 0
    (folder / "out.png").unlink()
    folder.chmod(0o555)
    with nobody():
        assert main(["warp", "in.png", "out.png", "--angle", "0"]) == 1
        assert main(["warp", "in.png", "open/out.png", "--angle", "0"]) == 0
    assert capsys.readouterr().err == "warpkit: out.png: Permission denied\n"
    assert sorted(path.name for path in folder.iterdir()) == ["in.png", "open"]


@pytest.mark.parametrize("line", COMMANDS)
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_replaced_file_keeps_its_permissions(
    line: str, mode: int, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    for module, work in ((demo, "recover"), (attack_run, "attack_model"), (parity, "parity_suite")):
        monkeypatch.setattr(module, work, once(getattr(module, work)))
    name = COMMANDS[line]
    for there in (False, True):
        umask = os.umask(0o027)
        try:
            assert main(line.split()) == 0
        finally:
            os.umask(umask)
        assert stat.S_IMODE((folder / name).stat().st_mode) == (mode if there else 0o640)
        (folder / name).chmod(mode)


def test_a_replaced_file_is_closed_to_others_while_it_is_written(folder: Path):
    target = folder / "secret.png"
    target.write_bytes(b"old")
    target.chmod(0o600)
    with replacing(target) as file:
        assert stat.S_IMODE(os.stat(file.name).st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the superuser")
def test_a_replaced_file_keeps_its_owner(folder: Path):
    os.chown("in.png", 65534, 65534)
    with replacing(folder / "in.png") as file:
        file.write(b"new")
    assert (folder / "in.png").read_bytes() == b"new"
    assert ((folder / "in.png").stat().st_uid, (folder / "in.png").stat().st_gid) == (65534, 65534)


def test_output_to_a_named_pipe_does_not_replace_it(folder: Path):
    os.mkfifo("pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((folder / "pipe").read_bytes()))
    reader.start()
    with replacing(folder / "pipe") as file:
        file.write(b"rows")
    reader.join(10)
    assert found == [b"rows"]
    assert (folder / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["in.png", "in.gif", "in.webp", "in.tif"])
def test_the_first_of_several_images_is_warped(name: str):
    frames = [Image.fromarray(PIXELS[..., k]) for k in range(3)]
    options: dict[str, Any] = {"lossless": True} if name == "in.webp" else {}
    frames[0].save(name, save_all=True, append_images=frames[1:], **options)
    assert main(["warp", name, "out.png", "--angle", "180"]) == 0
    with Image.open(name) as file, Image.open("out.png") as out:
        assert getattr(out, "n_frames", 1) == 1
        first = np.array(file.convert("L"))
        np.testing.assert_array_equal(np.array(out.convert("L")), first[::-1, ::-1])


@pytest.mark.parametrize("name", ["in.png", "in.jpg", "in.gif", "in.webp", "in.tif", "in.bmp"])
@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.9])
def test_a_truncated_file_is_one_line(
    name: str, part: float, folder: Path, capsys: pytest.CaptureFixture[str]
):
    Image.fromarray(PIXELS).save(name)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(part * len(whole))])
    assert main(["warp", name, "out.png"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"warpkit: {name}: ")
    assert len(err.splitlines()) == 1
    assert not (folder / "out.png").exists()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_is_applied(orientation: int):
    exif = Image.Exif()
    exif[274] = orientation
    Image.fromarray(PIXELS).save("in.png", exif=exif)
    assert main(["warp", "in.png", "out.png", "--angle", "0"]) == 0
    upright = {
        1: PIXELS,
        2: PIXELS[:, ::-1],
        3: PIXELS[::-1, ::-1],
        4: PIXELS[::-1],
        5: PIXELS.swapaxes(0, 1),
        6: np.rot90(PIXELS, -1),
        7: np.rot90(PIXELS.swapaxes(0, 1), 2),
        8: np.rot90(PIXELS),
    }
    with Image.open("out.png") as out:
        np.testing.assert_array_equal(np.array(out), upright[orientation])


@pytest.mark.parametrize("command", ["warp", "resize --size 3 3"])
def test_a_file_name_that_is_too_long_is_reported(command: str, capsys: pytest.CaptureFixture[str]):
    name = f"{'x' * 300}.png"
    assert main([*command.split(), "in.png", name]) == 1
    assert capsys.readouterr().err == f"warpkit: {name}: File name too long\n"


@pytest.mark.parametrize(
    "line",
    [
        "align in.png in.png out.png --overlay link.png",
        "demo in.png --out link.png",
        "attack in.png --out link.png",
        "parity in.png --html link.png",
        "parity in.png in.png --json in.png",
        "warp in.png link.png --angle 3",
        "resize in.png in.png --size 4 4",
        "undistort link.png in.png --camera 99 99 65 45 --distortion 0.1 0",
        "view in.png in.png --size 4 4",
        "align in.png link.png in.png",
    ],
)
def test_an_input_is_not_overwritten(line: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "link.png").symlink_to("in.png")
    before = (folder / "in.png").read_bytes()
    assert main(line.split()) == 2
    said = capsys.readouterr()
    assert said.err.endswith(": give another name\n")
    assert said.err.count("\n") == 1
    assert (folder / "in.png").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["in.png", "link.png"]
