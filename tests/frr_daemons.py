"""Switches as real FRR in network namespaces, made from nothing but the files netkit rendered.

Each switch gets a namespace, its links as veths, its addresses from netplan.yaml, its kernel settings from sysctl.conf,
the daemons listed in its daemons file, and its frr.conf through vtysh. All of it ends with the `with` block.
"""

import itertools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from types import TracebackType
from typing import Any, Self

import pytest
import yaml

from netkit.design.fabric import Fabric, Host

DAEMON_FOLDER = Path("/usr/lib/frr")
RUN_FOLDER = Path("/var/run/frr")
DEADLINE_S = 30.0


def _lacks() -> str:
    """What prevents FRR from running here."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [tool for tool in ("ip", "sysctl", "vtysh", "unshare") if not shutil.which(tool)]
    missing += [name for name in ("zebra", "bgpd", "bfdd") if not (DAEMON_FOLDER / name).exists()]
    if missing:
        return f"not installed: {', '.join(missing)}"
    allowed = subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True, timeout=60).returncode == 0
    return "" if allowed else "network namespaces are not allowed here"


LACKS = _lacks()
needs_frr = pytest.mark.skipif(bool(LACKS), reason=LACKS or "FRR runs here")


def run(*command: str | Path, text: str = "") -> str:
    """Run a command, which must succeed, and return its output."""
    done = subprocess.run(list(command), input=text, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def until(
    done: Callable[[], bool], what: Callable[[], str], seconds: float = DEADLINE_S, pause_s: float = 0.05
) -> float:
    """Poll until it is done, and return how long that took; past the deadline, fail with the problem."""
    started = time.monotonic()
    while not done():
        if time.monotonic() - started > seconds:
            raise AssertionError(f"not within {seconds:g} s: {what()}")
        time.sleep(pause_s)
    return time.monotonic() - started


class Vty:
    """A vtysh connection to one daemon: a command ends with a zero byte, an answer with three and a status."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(DEADLINE_S)
        until(lambda: self._connects(path), lambda: f"{path} takes no connection")
        self.ask("enable")

    def _connects(self, path: Path) -> bool:
        """Whether the daemon accepts a connection; between creating its socket and listening on it, it does not."""
        try:
            self._socket.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True

    def ask(self, command: str) -> str:
        self._socket.sendall(command.encode() + b"\0")
        answer = bytearray()
        while answer[-4:-1] != b"\0\0\0":
            received = self._socket.recv(1 << 16)
            assert received, f"{command!r}: the daemon is gone"
            answer += received
        assert answer[-1] in {0, 1}, f"{command!r}: {answer[:-4].decode()}"
        return answer[:-4].decode()

    def close(self) -> None:
        self._socket.close()


@dataclass
class Box:
    """One running switch."""

    name: str
    namespace: str
    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    vty: dict[str, Vty] = field(default_factory=dict)

    @property
    def run_folder(self) -> Path:
        """The folder of the daemons' sockets."""
        return RUN_FOLDER / self.namespace

    def start(self, names: Iterable[str]) -> None:
        """Start daemons without any configuration."""
        self.run_folder.mkdir(parents=True, exist_ok=True)
        shutil.chown(self.run_folder, "frr", "frr")
        (self.folder / "vtysh.conf").touch()
        for name in names:
            with (self.folder / f"{name}.out").open("wb") as out:
                command = ["ip", "netns", "exec", self.namespace, str(DAEMON_FOLDER / name), "-N", self.namespace]
                command += ["-f", str(self.folder / "vtysh.conf"), "--log", "stdout"]
                self.daemons[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            socket_file = self.run_folder / f"{name}.vty"
            until(socket_file.exists, lambda name=name: f"{name} on {self.name} did not start: {self.log(name)}")  # type: ignore[misc]
            self.vty[name] = Vty(socket_file)

    def vtysh(self, *arguments: str | Path) -> str:
        """Run vtysh on the daemons of this switch; it must print no error."""
        output = run("vtysh", "-N", self.namespace, "--config_dir", self.folder, *arguments)
        assert not any(line.startswith(("%", "line ")) for line in output.splitlines()), output
        return output

    def load(self, configuration: str) -> None:
        """Load a configuration; not one line may be refused."""
        file = self.folder / "frr.conf"
        file.write_text(configuration, encoding="utf-8")
        self.vtysh("-f", file)

    def json(self, daemon: str, command: str) -> Any:
        """The JSON answer of a daemon."""
        return json.loads(self.vty[daemon].ask(command) or "{}")

    def log(self, daemon: str) -> str:
        """The output of a daemon."""
        return (self.folder / f"{daemon}.out").read_text(encoding="utf-8", errors="replace")

    def freeze(self) -> None:
        """Stop the daemons (SIGSTOP): links stay up, and no daemon answers."""
        for process in self.daemons.values():
            process.send_signal(SIGSTOP)

    def thaw(self) -> None:
        for process in self.daemons.values():
            process.send_signal(SIGCONT)

    def stop(self) -> None:
        """End the daemons this switch started."""
        for line in self.vty.values():
            line.close()
        for process in self.daemons.values():
            process.kill()
        for process in self.daemons.values():
            process.wait()
        shutil.rmtree(self.run_folder, ignore_errors=True)


@contextmanager
def lone_switch(files: Mapping[str, str]) -> Iterator[Box]:
    """Run the daemons of one switch that has kernel settings but no links, and no configuration yet."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nk")))
        folder.chmod(0o755)
        namespace = f"{folder.name}-{os.getpid()}"
        stack.callback(run, "ip", "netns", "del", namespace)
        run("ip", "netns", "add", namespace)
        (folder / "sysctl.conf").write_text(files["sysctl.conf"], encoding="utf-8")
        run("ip", "netns", "exec", namespace, "sysctl", "-q", "-e", "-p", folder / "sysctl.conf")
        box = Box("lone", namespace, folder)
        stack.callback(box.stop)
        box.start(wanted_daemons(files["daemons"]))
        yield box


COUNTER = itertools.count(1)
"""Numbers the fabrics of a process, so that no two ever share a namespace name."""


class RunningFabric:
    """A fabric whose switches run; its hosts are namespaces with addresses."""

    def __init__(self, fabric: Fabric, files: Mapping[str, Mapping[str, str]]) -> None:
        self.fabric = fabric
        self.files = files
        self.boxes: dict[str, Box] = {}
        self._prefix = f"nk{os.getpid()}x{next(COUNTER)}-"
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=self._prefix)))
            self.folder.chmod(0o755)
            self._build(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def namespace(self, device: str) -> str:
        """The namespace of a device."""
        return self._prefix + device

    def _build(self, stack: ExitStack) -> None:
        for name in [switch.name for switch in self.fabric.switches] + [host.name for host in self.fabric.hosts]:
            stack.callback(run, "ip", "netns", "del", self.namespace(name))
            run("ip", "netns", "add", self.namespace(name))
        for name, files in self.files.items():
            sysctl = self.folder / f"{name}.sysctl"
            sysctl.write_text(files["sysctl.conf"], encoding="utf-8")
            run("ip", "netns", "exec", self.namespace(name), "sysctl", "-q", "-e", "-p", sysctl)
        self.batch(
            f"link add {one} netns {left} type veth peer name {other} netns {right}"
            for one, left, other, right in self._cables()
        )
        for name, files in self.files.items():
            self.batch(_netplan(files["netplan.yaml"]), name)
        for host in self.fabric.hosts:
            self.batch(self._host(host), host.name)
        for name, files in self.files.items():
            folder = self.folder / name
            folder.mkdir()
            box = self.boxes[name] = Box(name, self.namespace(name), folder)
            stack.callback(box.stop)
            box.start(wanted_daemons(files["daemons"]))
        for name, files in self.files.items():
            self.boxes[name].load(files["frr.conf"])

    def _cables(self) -> Iterator[tuple[str, str, str, str]]:
        for link in self.fabric.links():
            yield link.port, self.namespace(link.device), link.peer_port, self.namespace(link.peer)

    def _host(self, host: Host) -> Iterator[str]:
        prefixes = {rail.number: rail.prefix for rail in self.fabric.rails}
        for nic in host.nics:
            yield f"addr add {nic.address}/{nic.prefix_length} dev {nic.interface}"
            yield f"link set {nic.interface} mtu {host.mtu_bytes} up"
            yield f"route add {prefixes[nic.rail]} via {nic.gateway} dev {nic.interface}"

    def batch(self, commands: Iterable[str], device: str = "") -> None:
        """Run ip commands at once, in the namespace of a device if one is named."""
        inside = ("-n", self.namespace(device)) if device else ()
        run("ip", *inside, "-batch", "-", text="".join(f"{command}\n" for command in commands))

    def set_links(self, device: str, ports: Sequence[str], state: str) -> None:
        """Set ports of a device up or down; the other ends lose their carrier."""
        self.batch((f"link set {port} {state}" for port in ports), device)


def wanted_daemons(text: str) -> list[str]:
    """The daemons that a daemons file enables, in the order FRR starts them."""
    enabled = [line.removesuffix("=yes") for line in text.splitlines() if line.endswith("=yes")]
    return ["zebra", *(name for name in ("bfdd", "bgpd") if name in enabled)]


def _netplan(text: str) -> Iterator[str]:
    """Yield the ip commands that configure what networkd would; the management port has no cable here."""
    network = yaml.safe_load(text)["network"]
    yield "link set lo up"
    for name, bridge in network.get("bridges", {}).items():
        centiseconds = 100 * bridge["parameters"]["ageing-time"]
        yield f"link add {name} type bridge stp_state 0 forward_delay 0 ageing_time {centiseconds}"
        yield from (f"link set {member} master {name}" for member in bridge["interfaces"])
    interfaces = {**network["ethernets"], **network.get("bridges", {})}
    for name, interface in interfaces.items():
        if name == "eth0":
            continue
        yield from (f"addr add {address} dev {name}" for address in interface.get("addresses", ()))
        if name != "lo":
            generation = "eui64" if "ipv6" in interface["link-local"] else "none"
            yield f"link set {name} addrgenmode {generation}"
            yield f"link set {name} mtu {interface['mtu']} up"
