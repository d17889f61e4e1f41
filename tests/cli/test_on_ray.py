"""`--ray`: many files on a Ray that the command starts, and addresses that have no Ray."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from tests.cli.test_many import files, pictures
from warpkit.cli import addresses
from warpkit.cli.app import main
from warpkit.cli.warp import on_ray

SMALL = ["--size", "9", "13"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ray_is_here() -> None:
    pytest.importorskip("ray", reason="Ray is not installed; scripts/test ray installs it")
    pytest.importorskip("pyarrow")


@pytest.mark.usefixtures("ray_is_here")
@pytest.mark.filterwarnings("ignore")  # warnings of Ray itself
def test_ray_gives_the_same_bytes_order_and_messages(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    names, told = pictures(12), []
    ways = {"here": ["--workers", "1"], "rays": ["--ray", "local"]}
    for out, words in ways.items():
        words = [*words, "--out", out, "--report", f"{out}.jsonl"]
        assert main(["resize", *names, *words, *SMALL]) == 1
        told.append(capsys.readouterr())
    assert told[0].err.replace("are in here\n", "are in rays\n") == told[1].err
    assert files("here") == files("rays")
    for name in files("here"):
        assert (Path("here") / name).read_bytes() == (Path("rays") / name).read_bytes()
    rows = [json.loads(line) for line in Path("rays.jsonl").read_text().splitlines()]
    assert [row["file"] for row in rows] == names
    # a folder, an address, and the rest of a stopped run
    os.remove("rays/two.gif")
    os.mkdir("in")
    for name in names[:6]:
        os.link(name, f"in/{name}")
    words = ["--ray", "local", "--out", f"file://{folder}/rays", "--resume", "--workers", "1"]
    assert main(["resize", f"file://{folder}/in", *words, *SMALL]) == 0
    assert f"5 of 6 were in {folder}/rays before" in capsys.readouterr().err
    assert Path("rays/two.gif").read_bytes() == Path("here/two.gif").read_bytes()


@pytest.mark.usefixtures("ray_is_here")
@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_is_replaced(folder: Path):
    import ray

    struck = folder / "struck"

    def deadly(job: on_ray.Job) -> on_ray.Outcome:
        if job.source == "3":
            if not struck.exists():
                struck.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0)
        return on_ray.Outcome(0.0, [job.source])

    jobs = [on_ray.Job(str(k), "", "PNG") for k in range(8)]
    with on_ray.working_on_ray(deadly, jobs, "local", 2) as outcomes:
        assert [outcome.lines for outcome in outcomes] == [[str(k)] for k in range(8)]
        assert struck.exists()
    assert not ray.is_initialized()


def serving(answer: bytes) -> int:
    """The port of a server that answers once and is not Ray."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, server.accept()[0] as connection:
            connection.recv(100)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:{free}", "no Ray is reached: Connection refused"),
        ("ray://127.0.0.1:{free}", "no Ray is reached: Connection refused"),
        ("127.0.0.1:{web}", "no Ray is reached: something else answers there"),
        ("127.0.0.1:99999999", "no Ray is reached: "),
        ("no.such.host.invalid:6379", "no Ray is reached: "),
    ],
)
def test_a_ray_that_cannot_be_reached_is_one_line(address: str, said: str):
    address = address.format(free=free_port(), web=serving(b"HTTP/1.1 400 Bad Request\r\n"))
    began = time.monotonic()
    with pytest.raises(on_ray.CommandError, match=f"--ray {address}: {said}"):
        on_ray.check_answer(address)
    assert time.monotonic() - began < 60


def test_a_server_that_answers_as_grpc_is_accepted():
    on_ray.check_answer(f"127.0.0.1:{serving(bytes(3) + bytes([4]) + bytes(5))}")


@pytest.mark.usefixtures("ray_is_here")
@pytest.mark.filterwarnings("ignore")
def test_the_command_reports_an_unreachable_ray_in_one_line(capsys: pytest.CaptureFixture[str]):
    names = pictures(1)[:1]
    for address in ("auto", "nonsense", f"127.0.0.1:{free_port()}"):
        assert main(["resize", *names, "--out", "o", *SMALL, "--ray", address]) == 2
        out, err = capsys.readouterr()
        assert (out, len(err.splitlines())) == ("", 1)
        assert err.startswith("warpkit: --ray ")
    assert not Path("o").exists() or files("o") == []


@pytest.mark.parametrize("error", [SystemExit(15), ConnectionError("no\ncluster")])
def test_any_error_of_ray_is_one_line(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    def init(**options: object) -> None:
        os.write(2, b"[2026 W 1 1] gcs_client.cc:2: no token\n")  # as Ray's C++ code writes
        raise error

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    assert main(["resize", *pictures(1)[:1], "--out", "o", *SMALL, "--ray", "auto"]) == 2
    said = "it does not answer" if isinstance(error, SystemExit) else "no cluster"
    said = f"warpkit: --ray auto: no Ray is reached: {said} (gcs_client.cc:2: no token)\n"
    assert capfd.readouterr() == ("", said)


def test_a_missing_ray_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "ray", None)
    words = [*pictures(1)[:1], "--out", "o", *SMALL]
    assert main(["resize", *words, "--ray", "auto"]) == 2
    said = "warpkit: --ray needs Ray: pip install '.[ray]' in a checkout\n"
    assert capsys.readouterr() == ("", said)


BAD = {
    "s3://bucket/a.png --out o": "s3://bucket/a.png is an address, which --ray reads and writes",
    "a.png --out s3://bucket": "s3://bucket is an address, which --ray reads and writes",
    "a.png b.png --ray auto": "--ray is for --out DIR",
    "s3://b/a.png --out s3://b --ray auto": (
        "s3://b/a.png would be overwritten: --out takes another folder"
    ),
}


@pytest.mark.parametrize("line", BAD)
def test_invalid_addresses_are_rejected(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(addresses, "_list", lambda name: None)
    assert main(["resize", *line.split(), *SMALL]) == 2
    assert capsys.readouterr() == ("", f"warpkit: {BAD[line]}\n")


def test_a_folder_stands_for_the_images_in_it(folder: Path):
    os.mkdir("in")
    Image.fromarray(np.zeros((4, 4), np.uint8)).save("in/b.png")
    Image.fromarray(np.zeros((4, 4), np.uint8)).save("in/a.JPG")
    Path("in/notes.txt").write_text("hello")
    os.mkdir("in/folder.png")
    found = ["in/a.JPG", "in/b.png"]
    assert addresses.images_of(["in", "c.png"]) == [*found, "c.png"]
    assert addresses.images_of([f"file://{folder}/in"]) == [f"{folder}/{name}" for name in found]


@pytest.mark.usefixtures("ray_is_here")
def test_files_in_remote_storage(monkeypatch: pytest.MonkeyPatch):
    from pyarrow import fs

    memory = fs._MockFileSystem()
    memory.create_dir("bucket/in")
    monkeypatch.setattr(addresses, "_system", lambda name: (memory, name.partition("://")[2]))
    for name in ("b.png", "a.jpg", "notes.txt"):
        addresses.write(f"mock://bucket/in/{name}", name.encode())
    found = ["mock://bucket/in/a.jpg", "mock://bucket/in/b.png"]
    assert addresses.images_of(["mock://bucket/in/"]) == found
    assert addresses.images_of(found) == found
    assert addresses.read(found[0]) == b"a.jpg"
    assert addresses.exists(found[1])
    assert not addresses.exists("mock://bucket/in/c.png")
    assert addresses.inside("mock://bucket/out/", "a.png") == "mock://bucket/out/a.png"
    assert len(memory.get_file_info(fs.FileSelector("bucket/in"))) == 3  # no temporary file is left
