"""A switch that serves gNMI without a lab: its real server and personality, on a node with settable counters."""

import hashlib
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from netkit.lab.agents.gnmi import GnmiAgent, GnmiListener
from netkit.lab.personality import Personality
from netkit.lab.state import GnmiState, SwitchState
from netkit.platforms.gnmi.driver import GnmiViewer
from netkit.platforms.gnmi.message import GnmiLogin, GnmiServer
from netkit.platforms.view import ViewSubject
from tests.lab.personalities.eos_node import switch_on
from tests.lab.personalities.nvue.bench import desk
from tests.lab.personalities.sonic.bench import Bench, fabric

ADDRESS, PASSWORD = "127.93.12.1", "of the lab"
needs_gnmi = pytest.mark.skipif(find_spec("pygnmi") is None, reason="pygnmi is not installed")


class Gate:
    """The management faults of the node, of which one at a time is active."""

    def __init__(self) -> None:
        self.fault = ""

    def __call__(self, _: str) -> float:
        if self.fault:
            raise ConnectionError(self.fault)
        return 0.0


@dataclass
class Served:
    """A server and how to reach it."""

    agent: GnmiAgent
    personality: Personality
    node: Any
    gate: Gate
    fingerprint: str
    subject: ViewSubject

    def place(self, **changes: Any) -> GnmiServer:
        """The server's address and certificate, as in access.yaml."""
        return replace(GnmiServer(ADDRESS, self.agent.port, certificate=self.fingerprint, patience_s=20), **changes)

    def viewer(self, user: str = "admin", password: str = PASSWORD, **changes: Any) -> GnmiViewer:
        login = GnmiLogin(user, password, is_basic=self.subject.platform == "nvue")
        return GnmiViewer(self.subject.device, self.place(**changes), login)


@contextmanager
def served(platform: str, folder: Path, state: GnmiState | None = None) -> Iterator[Served]:
    """Serve gNMI as a switch of a platform, on any free port."""
    mind, node = _switch(platform, folder)
    gate = Gate()
    files = certificate(folder)
    agent = GnmiAgent(node, GnmiListener(ADDRESS, PASSWORD, gate, lambda: files), mind.gnmi)
    agent.apply(SwitchState("leaf01", gnmi=state or GnmiState(0, is_cumulus=platform == "nvue")))
    shown = hashlib.sha256(ssl.PEM_cert_to_DER_cert(files[0].read_text(encoding="ascii"))).hexdigest()
    subject = ViewSubject("leaf01", platform=platform, ports=tuple(node.kernel_names))
    try:
        yield Served(agent, mind, node, gate, shown, subject)
    finally:
        agent.end()


def _switch(platform: str, folder: Path) -> tuple[Personality, Any]:
    if platform == "eos":
        return switch_on(folder)
    if platform == "nvue":
        made = desk(folder)
        return made.switch, made.node
    bench = Bench(folder, fabric())
    return bench.sonic, bench.node


def certificate(folder: Path, name: str = "server") -> tuple[Path, Path]:
    """Create a certificate like that of a switch; return it and its key."""
    made, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(made), "-days", "2", "-subj", "/CN=leaf01"]
    subprocess.run(command, check=True, capture_output=True)
    return made, key
