"""Children of a fork server: they run as in a new interpreter, which takes over where it cannot fork."""

import asyncio
import errno
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from netkit import __version__, mcp
from netkit.serve.forking import ForkServer, fork_server
from netkit.serve.request import NETKIT
from netkit.serve.rounds import Command, Ended, run_command, take_lock
from tests.lab.running import until
from tests.serve.server import is_gone

LONG_S = 120.0
SHOW = """
echo out; env | sort >&2; pwd >&2; cat >&2
test "$(cut -d' ' -f6 /proc/$$/stat)" = $$ && echo leads a session >&2
exit 3
"""
HANG = "sleep 600 & echo $! $$; exec sleep 600"


@pytest.fixture
def forks() -> Iterator[ForkServer]:
    """A fork server whose forks run a program where netkit would run a verb."""
    found = fork_server()
    if found is None:
        os.execvpe(sys.argv[1], sys.argv[1:], os.environ)  # noqa: S606 (of tests)
    with found.requests:
        yield found


def ended(
    forks: ForkServer | None,
    *words: str,
    longest_s: float = LONG_S,
    held: tuple[int, ...] = (),
    more: Mapping[str, str] | None = None,
) -> tuple[Ended, str]:
    """How a command ends, and the lines it prints, sorted."""
    printed = list[bytes]()
    prefix = () if forks is None else NETKIT
    environment = {"PATH": os.environ["PATH"], "NETKIT_X": "ünïcode", **(more or {})}

    async def run() -> Ended:
        command = Command([*prefix, *words], environment, longest_s, held, forks)
        return await run_command(command, asyncio.Event(), printed.append)

    return asyncio.run(run()), "".join(sorted(b"".join(printed).decode().splitlines(keepends=True)))


def test_a_fork_has_the_streams_environment_and_exit_code_of_a_new_process(forks: ForkServer) -> None:
    (end, printed), (known, known_printed) = (ended(each, "sh", "-c", SHOW) for each in (forks, None))
    assert (end, printed) == (known, known_printed)
    assert (end.exit_code, "leads a session" in end.output, "NETKIT_X=ünïcode" in end.output) == (3, True, True)


def test_a_fork_that_hangs_is_ended_with_its_children(forks: ForkServer) -> None:
    end, printed = ended(forks, "sh", "-c", HANG, longest_s=0.5)
    assert end == Ended(None, "ended: it took more than 0.5 s")
    for pid in printed.split():
        until(lambda pid=pid: is_gone(pid), "it is gone")  # type: ignore[misc]


def test_a_call_of_a_tool_that_ignores_its_end_is_killed(
    forks: ForkServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mcp, "POLITE_S", 0.5)
    begun = tmp_path / "begun"
    words = [*NETKIT, "sh", "-c", f"trap '' TERM; echo $$ >{begun}; while :; do sleep 0.1; done"]

    async def run() -> int:
        stop = asyncio.Event()
        tools = mcp.Tools(words, os.environ, asyncio.Semaphore(), stop, forks)
        client = Client(tools.server(may_propose=False))
        async with client:
            call = asyncio.ensure_future(client.call_tool("list_devices", {}))
            while not (begun.exists() and begun.read_text(encoding="ascii")):
                await asyncio.sleep(0.05)
            stop.set()
            await call
            pid = begun.read_text(encoding="ascii").strip()
            while not is_gone(pid):
                await asyncio.sleep(0.05)
        return int(pid)

    assert asyncio.run(asyncio.wait_for(run(), LONG_S))


def test_a_fork_that_is_killed_reports_its_signal_and_others_go_on(forks: ForkServer) -> None:
    assert ended(forks, "sh", "-c", "kill -9 $$")[0] == Ended(-signal.SIGKILL, "")
    assert ended(forks, "echo", "more") == (Ended(0, "more"), "more\n")


def test_a_fork_holds_the_lock_of_its_round(forks: ForkServer, tmp_path: Path) -> None:
    file = tmp_path / "lock"
    held = take_lock(file)
    assert held is not None
    script = "sleep 600 > /dev/null 2>&1 & echo $!"
    _, pid = ended(forks, "sh", "-c", script, held=(held,))
    os.close(held)
    assert take_lock(file) is None
    os.kill(int(pid), signal.SIGKILL)
    until(lambda: take_lock(file) is not None, "the lock is free")


def test_the_end_of_a_fork_is_read_if_nobody_waits_for_it(forks: ForkServer) -> None:
    faults = list[object]()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(context["message"]))
        tasks = asyncio.all_tasks()
        with Path(os.devnull).open("r+") as null:
            child = await forks.start(["sleep", "600"], os.environ, [null.fileno()] * 3)
        assert child is not None
        pid = child.pid
        del child
        await asyncio.sleep(0)  # until it waits
        gc.collect()
        os.kill(pid, signal.SIGKILL)
        await asyncio.wait_for(asyncio.gather(*asyncio.all_tasks() - tasks), LONG_S)

    asyncio.run(run())
    assert not faults


def children(forks: ForkServer) -> Path:
    """The children of a fork server, among them those that it has not waited for."""
    pid = ended(forks, "sh", "-c", "echo $PPID")[1].strip()
    return Path(f"/proc/{pid}/task/{pid}/children")


def test_a_fork_whose_start_is_cancelled_is_killed(forks: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    there = children(forks)
    server = int(there.parts[2])
    send, sent = socket.send_fds, asyncio.Event()

    def sending(*request: Any) -> int:
        sent.set()
        return send(*request)

    monkeypatch.setattr(socket, "send_fds", sending)

    async def run() -> None:
        with Path(os.devnull).open("r+") as null:
            streams = [null.fileno()] * 3
            start = asyncio.create_task(forks.start(["sleep", "600"], os.environ, streams))
            await sent.wait()
            start.cancel()
            with pytest.raises(asyncio.CancelledError):
                await start
            os.kill(server, signal.SIGCONT)
            later = await forks.start(["true"], os.environ, streams)
        assert later is not None
        assert await later.wait() == 0  # requests are answered in order
        await asyncio.to_thread(until, lambda: not there.read_text(), "it is gone", 20)

    os.kill(server, signal.SIGSTOP)
    asyncio.run(run())


def test_a_fork_whose_caller_has_ended_is_killed(forks: ForkServer) -> None:
    there = children(forks)
    reported, report = os.pipe()
    os.close(reported)
    with Path(os.devnull).open("r+") as null:
        request = json.dumps({"arguments": ["sleep", "600"], "environment": dict(os.environ)}).encode()
        socket.send_fds(forks.requests, [request], [report, *[null.fileno()] * 3])
    os.close(report)
    assert ended(forks, "true")[0] == Ended(0, "")  # requests are answered in order
    until(lambda: not there.read_text(), "it is gone", 20)


def test_a_killed_fork_server_ends_its_forks_and_new_interpreters_take_over(forks: ForkServer) -> None:
    end, printed = ended(forks, "sh", "-c", "echo $$; kill -9 $PPID; exec sleep 600")
    assert end.exit_code == -signal.SIGKILL
    until(lambda: is_gone(printed.strip()), "it is gone")
    assert ended(forks, "version") == (Ended(0, f"netkit {__version__}"), f"netkit {__version__}\n")


def test_a_new_interpreter_runs_netkit_after_an_upgrade(forks: ForkServer) -> None:
    older = replace(forks, begun_ns=forks.begun_ns - 1)
    assert ended(older, "version") == (Ended(0, f"netkit {__version__}"), f"netkit {__version__}\n")


def test_new_interpreters_take_over_where_the_end_of_a_fork_cannot_be_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> int:
        raise OSError(errno.ENOSYS, "as before Linux 5.3")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    found = fork_server()
    if found is None:
        os.execvpe(sys.argv[1], sys.argv[1:], os.environ)  # noqa: S606 (of tests)
    monkeypatch.undo()
    with found.requests:
        assert ended(found, "version") == (Ended(0, f"netkit {__version__}"), f"netkit {__version__}\n")


def test_a_new_interpreter_gets_an_environment_that_is_too_large_to_send(forks: ForkServer) -> None:
    more = {f"LARGE_{number}": "x" * 100_000 for number in range(5)}
    assert ended(forks, "version", more=more)[0] == Ended(0, f"netkit {__version__}")


def test_a_server_ends_with_its_requests() -> None:
    found = fork_server()
    if found is None:
        os.execvpe(sys.argv[1], sys.argv[1:], os.environ)  # noqa: S606 (of tests)
    _, printed = ended(found, "sh", "-c", "echo $PPID")
    found.requests.close()
    until(lambda: is_gone(printed.strip()), "it is gone")
