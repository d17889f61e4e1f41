"""`warpkit warp` of many files into a folder, and of pipes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.cli.test_files import nobody, room
from tests.support import ROOT
from tests.support.forks import python
from warpkit.cli.app import main
from warpkit.cli.warp import many as warp_many

PIXELS = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
TURN = ["--angle", "180"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a.png and b.jpg in it, and with sub/a.png."""
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("a.png", "b.jpg", "sub/a.png"):
        Image.fromarray(PIXELS).save(name)
    return tmp_path


def result(name: str | Path) -> np.ndarray:
    with Image.open(name) as image:
        return np.array(image)


def files(path: str) -> list[str]:
    return sorted(p.name for p in Path(path).iterdir())


def process(*words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run the command in its own process."""
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        [*python(), "-m", "warpkit", "warp", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **{"capture_output": "stdout" not in options, **options},  # pyright: ignore
    )
    return done


def test_files_keep_their_names_in_a_new_folder(capsys: pytest.CaptureFixture[str]):
    assert main(["warp", "a.png", "b.jpg", "--out", "new/warped", *TURN]) == 0
    assert capsys.readouterr() == ("", "")  # no progress bar unless stderr is a terminal
    assert files("new/warped") == ["a.png", "b.jpg"]
    np.testing.assert_array_equal(result("new/warped/a.png"), PIXELS[::-1, ::-1])
    with Image.open("new/warped/b.jpg") as image:
        assert image.format == "JPEG"


def test_one_file_into_an_existing_folder():
    (Path("old")).mkdir()
    (Path("old") / "a.png").write_bytes(b"is replaced")
    assert main(["warp", "a.png", "--out", "old", *TURN]) == 0
    np.testing.assert_array_equal(result("old/a.png"), PIXELS[::-1, ::-1])


def test_failures_are_listed_and_the_other_files_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "no.png").write_text("hello")
    (folder / "cut.png").write_bytes((folder / "a.png").read_bytes()[:900])
    (folder / "x").write_text("hello")
    Image.fromarray(PIXELS[..., 0]).save("grey.png")
    names = ["no.png", "a.png", "none.png", "cut.png", "sub", "x", "grey.png", "b.jpg"]
    words = ["--border-value", "1", "2", "3"]
    assert main(["warp", *names, "--out", "out", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert sorted(err.splitlines()) == sorted(
        [
            "warpkit: no.png: not an image that Pillow can read",
            "warpkit: none.png: No such file or directory",
            "warpkit: cut.png: image file is truncated",
            "warpkit: sub: Is a directory",
            "warpkit: out/x: no ending, which names no image format to write (try .png)",
            "warpkit: grey.png: --border-value takes 1 or 1 numbers for this image, got 3",
            "warpkit: 6 of 8 failed; 2 are in out",
        ]
    )
    assert err.splitlines()[-1] == "warpkit: 6 of 8 failed; 2 are in out"
    assert files("out") == ["a.png", "b.jpg"]


def test_another_format_changes_the_extensions():
    assert main(["warp", "a.png", "b.jpg", "--out", "out", "--format", ".tif"]) == 0
    assert files("out") == ["a.tif", "b.tif"]
    np.testing.assert_array_equal(result("out/a.tif"), PIXELS)


def test_quality_applies_to_the_files_that_have_one():
    assert main(["warp", "a.png", "b.jpg", "--out", "out", "--quality", "10"]) == 0
    assert main(["warp", "b.jpg", "--out", "out2", "--quality", "90"]) == 0
    assert Path("out/b.jpg").stat().st_size < Path("out2/b.jpg").stat().st_size


BAD = {
    "--out out": "Missing argument 'IN'.",
    "a.png sub/a.png --out out": "a.png and sub/a.png would both be written to out/a.png",
    "a.png a.png --out out": "a.png and a.png would both be written to out/a.png",
    "b.jpg b.png --out out --format jpg": "b.jpg and b.png would both be written to out/b.jpg",
    "a.png b.jpg --out .": "a.png would be overwritten: --out takes another folder",
    "a.png - --out out": "- has no name for a file in out: give OUT",
    "a.png b.jpg --out -": "--out takes a folder, got -",
    "a.png --out out --quality 9": "--quality is for AVIF, JPEG, WEBP, not PNG",
}


@pytest.mark.parametrize("line", BAD)
def test_invalid_options_are_rejected_before_anything_is_written(
    line: str, capsys: pytest.CaptureFixture[str], folder: Path
):
    assert main(["warp", *line.split()]) == 2
    assert capsys.readouterr() == ("", f"warpkit: {BAD[line]}\n")
    assert files(".") == ["a.png", "b.jpg", "sub"]
    np.testing.assert_array_equal(result("a.png"), PIXELS)


def test_an_input_is_not_overwritten_through_a_link(capsys: pytest.CaptureFixture[str]):
    os.symlink("../a.png", "sub/b.jpg")
    os.remove("sub/a.png")
    assert main(["warp", "a.png", "b.jpg", "--out", "sub"]) == 2
    assert capsys.readouterr().err.startswith("warpkit: a.png would be overwritten")


@pytest.mark.parametrize("out", ["a.png", "a.png/new"])
def test_a_file_in_the_place_of_the_folder_is_rejected(
    out: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["warp", "b.jpg", "--out", out]) == 1
    assert capsys.readouterr() == ("", f"warpkit: {out}: Not a directory\n")
    assert main(["warp", "b.jpg", "sub"]) == 1
    assert capsys.readouterr().err == "warpkit: sub: Is a directory (--out takes one)\n"


def test_a_folder_without_write_permission_is_one_line(capsys: pytest.CaptureFixture[str]):
    path = Path(tempfile.mkdtemp())  # every user may enter it, unlike pytest's
    path.chmod(0o555)
    Image.fromarray(PIXELS).save(path / "a.png")
    try:
        for out in (path, path / "new"):
            with nobody():
                assert main(["warp", str(path / "a.png"), "--out", str(out / "x")]) == 1
            assert capsys.readouterr() == ("", f"warpkit: {out / 'x'}: Permission denied\n")
    finally:
        path.chmod(0o755)
        shutil.rmtree(path)


def test_a_full_disk_lists_every_file(capsys: pytest.CaptureFixture[str]):
    assert main(["warp", "a.png", "b.jpg", "--out", "out", *TURN]) == 0  # compiles the kernels
    (Path("out") / "a.png").write_bytes(b"old")
    with room(100):
        assert main(["warp", "a.png", "b.jpg", "--out", "out", *TURN]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "warpkit: out/a.png: File too large",
        "warpkit: out/b.jpg: File too large",
        "warpkit: 2 of 2 failed; 0 are in out",
    ]
    assert (Path("out") / "a.png").read_bytes() == b"old"
    assert files("out") == ["a.png", "b.jpg"]


NAMES = ["with space.png", "ünïcode 图.png", "two\nlines.png", "[red]x.png", "x" * 240 + ".png"]
NAMES += [b"no utf8 \xff.png".decode("utf8", "surrogateescape")]


def test_file_names_with_any_characters(folder: Path, capsys: pytest.CaptureFixture[str]):
    for name in NAMES:
        Image.fromarray(PIXELS).save(name)
    assert main(["warp", *NAMES, "--out", "out", *TURN]) == 0
    assert files("out") == sorted(NAMES)
    for name in NAMES:
        (folder / name).write_text("hello")
    assert main(["warp", *NAMES, "--out", "out"]) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == len(NAMES) + 1
    assert "warpkit: two\\nlines.png: not an image that Pillow can read\n" in err
    assert "\\udcff" in err


def test_hundreds_of_files():
    names = [f"{k}.png" for k in range(300)]
    for k, name in enumerate(names):
        Image.fromarray(PIXELS[: 2 + k % 3]).save(name)
    assert main(["warp", *names, "--out", "out", *TURN]) == 0
    assert files("out") == sorted(names)
    np.testing.assert_array_equal(result("out/299.png"), PIXELS[:4][::-1, ::-1])


def test_an_interrupted_run_leaves_only_complete_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    real, calls = Path.replace, []

    def replace(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt  # while a file is being replaced
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    assert main(["warp", "a.png", "b.jpg", "--out", "out"]) == 130
    assert capsys.readouterr().err.strip() == "warpkit: interrupted"
    assert files("out") in (["a.png"], ["b.jpg"])  # whichever was written first


def test_a_signal_during_a_run_leaves_only_complete_files():
    names = [f"{k}.png" for k in range(400)]
    Image.fromarray(np.tile(PIXELS, (12, 12, 1))).save(names[0])
    for name in names[1:]:
        os.link(names[0], name)
    running = subprocess.Popen(
        [*python(), "-m", "warpkit", "warp", *names, "--out", "out", *TURN],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 120
    while not (Path("out").is_dir() and len(files("out")) > 3) and time.monotonic() < until:
        time.sleep(0.005)
    err = b""
    # Python ignores a signal that arrives while it frees memory; a second signal kills it while
    # it exits, which takes more than a second on a busy machine
    for _ in range(4):
        running.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            _, err = running.communicate(timeout=10)
            break
    assert running.returncode == 130
    # Python may first report an interrupt that it ignored while it freed memory
    assert err.decode().strip().endswith("warpkit: interrupted")
    assert 0 < len(files("out")) < 400  # the fourth may still have its temporary name
    for name in files("out"):
        assert name in names
        assert result(f"out/{name}").shape == (360, 480, 3)


def test_the_progress_bar_appears_only_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(warp_many.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["warp", "a.png", "b.jpg", "--out", "out"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "images" in err
    assert "2/2" in err


def test_from_pipe_to_pipe():
    data = Path("a.png").read_bytes()
    done = process("-", "-", *TURN, input=data)
    assert (done.returncode, done.stderr) == (0, b"")
    with Image.open(io.BytesIO(done.stdout)) as image:
        assert image.format == "PNG"
        np.testing.assert_array_equal(np.array(image), PIXELS[::-1, ::-1])
    done = process("/dev/stdin", "/dev/stdout", *TURN, "--format", "tif", input=data)
    assert (done.returncode, done.stderr) == (0, b"")
    with Image.open(io.BytesIO(done.stdout)) as image:
        assert image.format == "TIFF"
        np.testing.assert_array_equal(np.array(image), PIXELS[::-1, ::-1])


def test_stdout_holds_only_the_image():
    Image.fromarray(PIXELS).quantize(16).save("p.png")
    done = process("p.png", "-", "--format", "jpg")
    assert done.stderr == b"warpkit: p.png: palette converted to RGB\n"
    with Image.open(io.BytesIO(done.stdout)) as image:
        assert (image.format, image.size) == ("JPEG", (40, 30))


def test_a_named_pipe_is_read(folder: Path):
    os.mkfifo("pipe")
    data = Path("a.png").read_bytes()
    writer = threading.Thread(target=lambda: (folder / "pipe").write_bytes(data))
    writer.start()
    assert main(["warp", "pipe", "out.png", *TURN]) == 0
    writer.join(10)
    np.testing.assert_array_equal(result("out.png"), PIXELS[::-1, ::-1])


def test_a_file_named_dash_in_a_folder_is_a_file():
    Image.fromarray(PIXELS).save("-", "PNG")
    assert main(["warp", "./-", "out.png", *TURN]) == 0
    np.testing.assert_array_equal(result("out.png"), PIXELS[::-1, ::-1])


def test_streams_that_fail_are_one_line():
    done = process("-", "out.png", input=b"no image")
    message = b"warpkit: standard input: not an image that Pillow can read\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", message)
    reading, writing = os.pipe()
    os.close(reading)
    done = process("a.png", "-", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"warpkit: standard output: Broken pipe\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is full")
def test_a_full_output_device_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["warp", "a.png", "/dev/full"]) == 1
    assert capsys.readouterr().err == "warpkit: /dev/full: No space left on device\n"
    with open("/dev/full", "wb") as full:
        done = process("a.png", "-", stdout=full, stderr=subprocess.PIPE)
    message = b"warpkit: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, message)


@pytest.mark.skipif(sys.platform == "win32", reason="closes a stream in a POSIX shell")
@pytest.mark.parametrize(("words", "said"), [("a.png - >&-", "output"), ("- o.png <&-", "input")])
def test_closed_standard_streams_are_one_line(words: str, said: str):
    done = subprocess.run(
        f"{shlex.join(python())} -m warpkit warp {words}",
        shell=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"warpkit: standard {said}: closed")
    assert len(done.stderr.splitlines()) == 1


def pictures(count: int) -> list[str]:
    """Files whose names share a prefix, one with two frames, and one that is broken."""
    names = [f"{'x' * 60}{i}.png" for i in range(count)]
    for i, name in enumerate(names):
        Image.fromarray(np.roll(PIXELS, i, 1)).save(name)
    first = Image.fromarray(PIXELS)
    first.save("two.gif", save_all=True, append_images=[Image.fromarray(PIXELS[::-1])])
    Path("broken.png").write_text("hello")
    return [*names[:5], "two.gif", "broken.png", *names[5:]]


def test_workers_give_the_same_bytes_order_and_messages(capsys: pytest.CaptureFixture[str]):
    names, told = pictures(12), []
    for workers in ("1", "3"):
        words = ["--out", workers, "--workers", workers, "--report", f"{workers}.jsonl"]
        assert main(["resize", *names, *words, "--size", "9", "13"]) == 1
        told.append(capsys.readouterr())
    assert told[0].err.replace("are in 1\n", "are in 3\n") == told[1].err
    assert "two.gif: has 2 images" in told[0].err.splitlines()[0]
    assert files("1") == files("3")
    for name in files("1"):
        assert (Path("1") / name).read_bytes() == (Path("3") / name).read_bytes()
    for workers in ("1", "3"):
        rows = [json.loads(line) for line in Path(f"{workers}.jsonl").read_text().splitlines()]
        assert [row["file"] for row in rows] == names
        assert [row["file"] for row in rows if "error" in row] == ["broken.png"]
        assert rows[0]["result"] == str(Path(workers) / names[0])
        assert all(row["seconds"] > 0 for row in rows if "error" not in row)


def test_resuming_skips_finished_files(capsys: pytest.CaptureFixture[str]):
    names = pictures(4)
    words = ["--out", "out", "--size", "9", "13", "--resume", "--report", "report.jsonl"]
    assert main(["resize", *names[:2], *words]) == 0
    before = {name: os.stat(Path("out") / name).st_mtime_ns for name in names[:2]}
    capsys.readouterr()
    assert main(["resize", *names, *words]) == 1
    assert capsys.readouterr().err.splitlines()[-2] == "warpkit: 2 of 6 were in out before"
    assert {name: os.stat(Path("out") / name).st_mtime_ns for name in names[:2]} == before
    rows = [json.loads(line) for line in Path("report.jsonl").read_text().splitlines()]
    assert [row["file"] for row in rows] == [*names[:2], *names]
    assert [row["file"] for row in rows if row.get("skipped")] == names[:2]
    assert not [name for name in files("out") if name.endswith(".part")]


def test_workers_leave_the_number_of_threads_unchanged():
    before = torch.get_num_threads()
    assert main(["resize", *pictures(3)[:3], "--out", "o", "--workers", "2", "--scale", "2"]) == 0
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("words", ["--workers 2", "--report r.jsonl", "--resume"])
def test_options_for_many_files_require_a_folder(words: str, capsys: pytest.CaptureFixture[str]):
    assert main(["warp", "a.png", "c.png", *words.split()]) == 2
    assert capsys.readouterr().err == f"warpkit: {words.split()[0]} is for --out DIR\n"


@pytest.mark.parametrize("report", ["a.png", "out/b.jpg"])
def test_a_report_must_not_have_an_images_name(report: str, capsys: pytest.CaptureFixture[str]):
    assert main(["warp", "a.png", "b.jpg", "--out", "out", "--report", report]) == 2
    assert capsys.readouterr().err.startswith(f"warpkit: --report is {report}, and so is {report}")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is full")
@pytest.mark.parametrize("resumes", [False, True])
def test_a_full_report_is_one_line_that_names_it(resumes: bool, capsys: pytest.CaptureFixture[str]):
    words = ["warp", "a.png", "--out", "turned", *TURN, "--report", "/dev/full"]
    assert main(words + ["--resume"] * resumes) == 1
    assert capsys.readouterr() == ("", "warpkit: /dev/full: No space left on device\n")


def test_a_system_error_names_its_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Only an error without a file is one of standard output."""
    monkeypatch.setattr("warpkit.cli.warp.run.do", lambda *_: os.listdir("gone"))
    assert main(["warp", "a.png", "out.png", *TURN]) == 1
    assert capsys.readouterr() == ("", "warpkit: gone: No such file or directory\n")
