"""Python processes that do not import torch again, which takes 2 to 4 CPU seconds each.

`python()` begins a command like `[sys.executable]`; the rest of the command is the same: -c, -m or
a file, and arguments. The command passes its folder, environment and streams to a process that has
only imported torch; a fork of that process runs the code, and the command returns its status.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

PASSED_ON = (signal.SIGINT, signal.SIGTERM)


@cache
def python() -> list[str]:
    """The first words of a command."""
    if not hasattr(os, "fork"):
        return [sys.executable]
    folder = Path(tempfile.mkdtemp())
    path = str(folder / "socket")
    # it ends when this process's pipe closes; it must ignore Ctrl-C
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert server.stdout is not None
    # a socket's path has at most 107 bytes, and a folder's may be longer
    if server.stdout.readline() != b"ready\n":
        server.communicate()
        return [sys.executable]
    atexit.register(server.communicate)
    return [sys.executable, "-I", "-S", __file__, "ask", path]


def ask(path: str, words: list[str]) -> int:
    """Run a command with this process's streams, pass signals on, and return its status."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    numbers = [number for number, stream in enumerate(streams) if stream is not None]
    message = json.dumps([words, os.getcwd(), dict(os.environ), numbers]).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        for number in PASSED_ON:
            signal.signal(number, lambda number, _: server.send(bytes([number])) and None)
        socket.send_fds(server, [len(message).to_bytes(4, "big")], numbers)
        server.sendall(message)
        answer = server.recv(4)
    return int.from_bytes(answer, "big", signed=True) if answer else 1


def serve(path: str) -> list[str]:
    """Fork for each request; return only in the forks, each with its command."""
    # torch alone: frozen objects outlive a fork, and an extension may then report leaks, as does
    # Triton 3.9, which torch's compiler imports (forks that need it import it in 1 s)
    import torch  # noqa: F401

    gc.freeze()  # a fork whose exit visits every object takes 0.3 s longer
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no fork is waited for
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([listener, 0], [], [])
        if listener not in readable:  # the tests have ended
            os.remove(path)
            os.rmdir(Path(path).parent)
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return receive(connection)
        connection.close()


def receive(connection: socket.socket) -> list[str]:
    """Fork once more: this process reports the status, the other runs the command."""
    length, files, *_ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as file:
        words, folder, environment, numbers = json.loads(file.read(int.from_bytes(length, "big")))
    alive, mine = os.pipe()
    if child := os.fork():
        for number in (mine, *files):
            os.close(number)
        while alive not in (readable := select.select([connection, alive], [], [])[0]):
            if connection in readable:  # a signal; without a byte, the command was killed
                passed = connection.recv(1)
                os.kill(child, passed[0] if passed else signal.SIGKILL)
                if not passed:
                    os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(status.to_bytes(4, "big", signed=True))
        os._exit(0)
    connection.close()
    for number in range(3):
        os.close(number)
    for number, file in zip(numbers, files, strict=True):
        os.dup2(file, number)
        os.close(file)
    streams: list[Any] = [None] * 3
    for number in numbers:
        streams[number] = open(  # noqa: SIM115
            number,
            "r" if number == 0 else "w",
            buffering=1 if number == 2 else -1,
            errors="backslashreplace" if number == 2 else None,
            closefd=False,
        )
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # pyright: ignore
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return words


def run(words: list[str]) -> None:
    """Do what Python does with such a command."""
    sys.path[:1] = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    elif words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        status = ask(sys.argv[2], sys.argv[3:])
        if status < 0:
            with suppress(OSError):  # SIGKILL's handler is fixed
                signal.signal(-status, signal.SIG_DFL)
            os.kill(os.getpid(), -status)
        sys.exit(status)
    run(serve(sys.argv[2]))
