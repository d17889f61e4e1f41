"""Processes many files on a Ray cluster: one task per file, reported in the files' order."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from warpkit.cli.errors import CommandError
from warpkit.cli.warp.jobs import Job, Outcome
from warpkit.core.environment import how_to_install

AHEAD = 2
"""Tasks per worker: the next one's file is sent while one is processed."""

SECONDS = 5.0
"""The time within which an address must answer."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""The first bytes of a gRPC client (RFC 9113, 3.4). A gRPC server answers with the same frame,
SETTINGS, whose fourth byte is 4. Ray itself would wait for two minutes, log this three times, and
end the process."""


@contextmanager
def working_on_ray(
    work: Callable[[Job], Outcome], jobs: Sequence[Job], address: str, workers: int | None
) -> Iterator[Iterator[Outcome]]:
    """The outcomes of jobs in order; if a worker is lost, another one repeats its file.

    workers: the number of files at once; None is the number of the cluster's cores.
    """
    ray = connect(address)
    waiting: deque[tuple[Job, Any]] = deque()
    try:
        task = ray.remote(num_cpus=1)(on_one_thread)
        function, folder = ray.put(work), os.getcwd()
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        ahead = workers or AHEAD * count

        def next_outcome() -> Outcome:
            job, future = waiting.popleft()
            try:
                return ray.get(future)
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
                lost = f"{job.source}: its worker was lost again and again ({type(error).__name__})"
                return Outcome(0.0, [], lost)

        def outcomes() -> Iterator[Outcome]:
            for job in jobs:
                waiting.append((job, task.remote(function, job, folder)))
                if len(waiting) == ahead:
                    yield next_outcome()
            while waiting:
                yield next_outcome()

        yield outcomes()
    finally:
        for _, future in waiting:
            ray.cancel(future)
        ray.shutdown()


def on_one_thread(work: Callable[[Job], Outcome], job: Job, folder: str) -> Outcome:
    """A worker's task, run in the folder to which names are relative."""
    torch.set_num_threads(1)  # there are as many workers as cores
    with suppress(OSError):  # another machine may not have this folder
        os.chdir(folder)
    return work(job)


def connect(address: str) -> Any:
    """Ray, connected to a cluster, or an error that says why it cannot connect."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise CommandError(f"--ray needs Ray: {how_to_install('ray')}") from None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        options["include_dashboard"] = False
    else:
        check_answer(address)
    with stderr_taken() as lines:
        try:
            ray.init(address=address, **options)
        except (OSError, ImportError, RuntimeError, ValueError, SystemExit) as error:
            ended = isinstance(error, SystemExit)  # Ray raises this if a cluster has died: "15"
            cause = "it does not answer" if ended else " ".join(str(error).split())[:200]
            reason = lines()[-1:]  # for example that the cluster requires a token
            cause += "".join(f" ({line.rpartition('] ')[2]})" for line in reason)
            raise CommandError(f"--ray {address}: no Ray is reached: {cause}") from None
    return ray


@contextmanager
def stderr_taken() -> Iterator[Callable[[], list[str]]]:
    """The lines written to stderr meanwhile; Ray's C++ code writes one per second."""
    if sys.stderr is None:
        yield list
        return
    original = os.dup(2)
    with tempfile.TemporaryFile() as file:

        def lines() -> list[str]:
            file.seek(0)
            return file.read().decode(errors="replace").splitlines()

        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(original, 2)
            os.close(original)


def check_answer(address: str) -> None:
    """Raise an error within seconds if no Ray cluster answers at an address."""
    server = address.removeprefix("ray://")
    host, colon, port = server.rpartition(":")
    if not colon or not port.isdecimal():
        if address != "auto":
            wanted = "auto, local, HOST:PORT or ray://HOST:PORT"
            raise CommandError(f"--ray takes {wanted}, got {address}")
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), SECONDS) as connection:
            connection.sendall(PREFACE)
            answer = connection.recv(9)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CommandError(f"--ray {address}: no Ray is reached: {why}") from None
    if answer[3:4] != b"\x04":
        raise CommandError(f"--ray {address}: no Ray is reached: something else answers there")
