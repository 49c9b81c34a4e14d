"""Network namespaces for a fleet: a centre with the broker, and machines of sites that reach only the centre."""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

CENTRE = "10.99.0.1"
CLONE_NEWNET = 0x40000000
HOLD = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec sleep infinity"]


@dataclass(slots=True)
class FleetNetwork:
    """Namespaces by name, each as the process that holds it."""

    holders: dict[str, int] = field(default_factory=dict)

    def inside(self, name: str) -> list[str]:
        """Return what a command begins with to run in a namespace."""
        return ["nsenter", f"--net=/proc/{self.holders[name]}/ns/net"]

    def run(self, name: str, *words: str) -> int:
        return subprocess.run([*self.inside(name), *words], capture_output=True, check=False, timeout=30).returncode

    def cut(self, name: str) -> None:
        assert self.run(name, "ip", "link", "set", "up0", "down") == 0

    def mend(self, name: str) -> None:
        assert self.run(name, "ip", "link", "set", "up0", "up") == 0
        self._route(name)

    def attach(self, name: str, number: int) -> None:
        """Connect a namespace to the centre."""
        peer = f"site{number}"
        centre = [["link", "add", peer, "type", "veth", "peer", "name", "up0", "netns", str(self.holders[name])]]
        centre += [["addr", "add", f"10.99.{number}.1/30", "dev", peer], ["link", "set", peer, "up"]]
        for words in centre:
            assert self.run("centre", "ip", *words) == 0, words
        for words in (["addr", "add", f"10.99.{number}.2/30", "dev", "up0"], ["link", "set", "up0", "up"]):
            assert self.run(name, "ip", *words) == 0, words
        self._route(name)

    def _route(self, name: str) -> None:
        number = [*self.holders].index(name)
        assert self.run(name, "ip", "route", "replace", CENTRE, "via", f"10.99.{number}.1") == 0


@contextmanager
def network(names: Sequence[str]) -> Iterator[FleetNetwork]:
    """Make the namespaces, and enter the centre for the length of a block."""
    with ExitStack() as stack:
        found = FleetNetwork()
        for name in ("centre", *names):
            holder = subprocess.Popen(HOLD, stdout=subprocess.PIPE)
            stack.callback(holder.wait, 20)
            stack.callback(holder.kill)
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"ready\n"
            found.holders[name] = holder.pid
        assert found.run("centre", "ip", "addr", "add", f"{CENTRE}/32", "dev", "lo") == 0
        for number, name in enumerate(names, 1):
            found.attach(name, number)
        with _entered(found.holders["centre"]):
            yield found


@contextmanager
def _entered(pid: int) -> Iterator[None]:
    """Have this thread and what it starts use another network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    own, other = (os.open(f"/proc/{one}/ns/net", os.O_RDONLY) for one in ("self", pid))
    try:
        assert libc.setns(other, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        assert libc.setns(own, CLONE_NEWNET) == 0
        os.close(own)
        os.close(other)
