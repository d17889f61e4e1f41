"""`auto` asks for what Triton needs, instead of failing at the first call."""

from __future__ import annotations

import shutil

import pytest
import torch

pytest.importorskip("triton")

from warpkit.engine.triton import toolchain

DEVICE = torch.device("cuda", 0)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with all that is needed."""
    toolchain.missing.cache_clear()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(toolchain, "_include", lambda: str(pytest.__path__[0]))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(toolchain.Path, "is_file", lambda path: path.name == "Python.h")
    return monkeypatch


@pytest.fixture(autouse=True)
def no_answers_of_others():
    yield
    toolchain.missing.cache_clear()


def test_nothing_is_missing(device: pytest.MonkeyPatch):
    assert toolchain.missing(DEVICE) == []


def test_old_devices(device: pytest.MonkeyPatch):
    device.setattr(torch.cuda, "get_device_capability", lambda device: (6, 1))
    assert toolchain.missing(DEVICE) == ["needs a GPU of compute capability 7.5, got 6.1"]
    toolchain.missing.cache_clear()
    device.setattr(torch.version, "hip", "6.4")  # its numbers mean something else
    assert toolchain.missing(DEVICE) == []


def test_no_compiler(device: pytest.MonkeyPatch):
    device.setattr(shutil, "which", lambda name: None)
    assert toolchain.missing(DEVICE) == [
        "needs a C compiler for Triton: gcc, clang, or the variable CC"
    ]
    toolchain.missing.cache_clear()
    device.setenv("CC", "/opt/cc")
    assert toolchain.missing(DEVICE) == []


def test_no_headers(device: pytest.MonkeyPatch):
    device.setattr(toolchain.Path, "is_file", lambda path: False)
    assert toolchain.missing(DEVICE) == ["needs Python.h for Triton: install the headers of Python"]
