"""A device in scratch namespaces, and switch ports with values, for the tests of the lab's agents."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from netkit.design.fabric import Host, Switch
from netkit.lab.node import ProgramResult
from netkit.lab.reading import (
    BufferReading,
    FecReading,
    LaneReading,
    ModuleThresholds,
    NicReading,
    PriorityReading,
    QueueReading,
    SwitchPortReading,
    TrafficReading,
    TransceiverReading,
    WatchdogReading,
)
from netkit.lab.state import SwitchState

PATIENCE_S = 120
BLANK = ("/run", "/etc/lldpd.d", "/var/lib/snmp")
needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare for namespaces"
)


def port(name: str, seed: int = 1, *, kind: str = "optic", first_lane: int = 1) -> SwitchPortReading:
    """A port whose values depend on a seed; without a kind its cage is empty."""
    return SwitchPortReading(
        name=name,
        is_enabled=True,
        is_up=bool(seed % 2),
        speed_gbps=400,
        mtu_bytes=9216,
        carrier_changes=3,
        link_up_s=2.0,
        traffic=TrafficReading(2**33 + seed, 2 * seed, 3 * seed, 4 * seed, 2**40 + seed, 6 * seed, 7 * seed, 8 * seed),
        priorities=tuple(PriorityReading(100 * seed + at, 200 * seed + at) for at in range(8)),
        queues=tuple(QueueReading(1000 + at, 2000 + at, 3000 + at, 4000 + at) for at in range(8)),
        buffers=tuple(BufferReading(dropped_packets=at) for at in range(8)),
        watchdogs=tuple(WatchdogReading(False, 5 + at, 4 + at) for at in range(8)),
        fec=FecReading(),
        module=module(kind, first_lane) if kind else None,
        adaptive_routing=False,
        mac=f"02:00:00:00:00:{seed:02x}",
    )


def module(kind: str, first_lane: int = 1) -> TransceiverReading:
    """A transceiver of four lanes, or copper."""
    is_optic = kind == "optic"
    limits = ModuleThresholds(-10.0, -8.0, 4.0, 5.0) if is_optic else None
    return TransceiverReading(
        kind="optic" if is_optic else "copper",
        identifier="OSFP",
        vendor="Lightworks",
        part="LW-800",
        serial="S0001",
        firmware="1.2.3",
        revision="A1",
        media="DR4",
        length_m=0,
        temperature_c=45.5,
        voltage_v=3.3,
        lanes=tuple(LaneReading(-2.0 - lane, 0.0, 75.25) for lane in range(4)) if is_optic else (),
        temperature_limits=ModuleThresholds(-5.0, 0.0, 70.0, 75.0) if is_optic else None,
        voltage_limits=None,
        rx_limits=limits,
        tx_limits=None,
        bias_limits=None,
        first_lane=first_lane,
    )


class ScratchNode:
    """A node in namespaces of its own, like the keeper's nodes but without the keeper."""

    def __init__(self, device: Switch | Host, kernel_names: Mapping[str, str], folder: Path, pid: int) -> None:
        self.name = device.name
        self.device = device
        self.kernel_names = kernel_names
        self.saved = folder
        self.readings: tuple[SwitchPortReading, ...] = ()
        self.failure = ""
        self.lines: list[str] = []
        self._pid = pid
        self._programs: dict[str, subprocess.Popen[bytes]] = {}

    def file(self, path: str) -> Path:
        return Path(f"/proc/{self._pid}/root") / path.lstrip("/")

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult:
        done = subprocess.run(
            [*self._enter(), *command], input=stdin, capture_output=True, text=True, check=False, timeout=timeout_s
        )
        return ProgramResult(done.returncode, done.stdout, done.stderr)

    def spawn(self, name: str, *command: str, fds: Sequence[int] = ()) -> None:
        self.end(name)
        moves = " ".join(f"{3 + index}<&{fd}" for index, fd in enumerate(fds))
        words = ["/bin/bash", "-c", f'exec "$@" {moves}', "spawn", *self._enter(), *command]
        with (self.saved / f"{name}.log").open("ab") as log:
            self._programs[name] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=fds, start_new_session=True
            )

    def end(self, name: str) -> None:
        program = self._programs.pop(name, None)
        if program is not None:
            program.terminate()
            program.wait(timeout=PATIENCE_S)

    def is_running(self, name: str) -> bool:
        program = self._programs.get(name)
        return program is not None and program.poll() is None

    def ip(self, commands: Iterable[str]) -> str:
        done = self.run("ip", "-j", "-batch", "-", stdin="".join(f"{command}\n" for command in commands))
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def vty(self, command: str, daemon: str = "bgpd") -> str:
        raise NotImplementedError(command + daemon)

    def realise(self, state: SwitchState) -> None:
        raise NotImplementedError(state.hostname)

    def ports(self) -> tuple[SwitchPortReading, ...]:
        if self.failure:
            raise RuntimeError(self.failure)
        return self.readings

    def port(self, name: str) -> SwitchPortReading | None:
        return next((port for port in self.readings if port.name == name), None)

    def nics(self, only: str = "") -> tuple[NicReading, ...]:
        raise NotImplementedError(only)

    def clear_counters(self, port: str = "") -> None:
        raise NotImplementedError(port)

    def log(self, line: str) -> None:
        self.lines.append(line)

    def end_all(self) -> None:
        for name in tuple(self._programs):
            self.end(name)

    @property
    def pid(self) -> int:
        return self._pid

    def _enter(self) -> list[str]:
        return ["nsenter", "-t", str(self._pid), "-m", "-u", "-n", "--"]


@contextmanager
def scratch_node(device: Switch | Host, kernel_names: Mapping[str, str], folder: Path) -> Iterator[ScratchNode]:
    """Open a node with its own /run and lldpd files for the length of a block."""
    folder.mkdir(exist_ok=True)
    mounts = " && ".join(f"mount -t tmpfs none {path}" for path in BLANK if Path(path).is_dir())
    script = f"hostname {device.name} && {mounts} && ip link set lo up && echo ready && exec sleep infinity"
    holder = subprocess.Popen(
        ["unshare", "--net", "--mount", "--uts", "--propagation", "private", "sh", "-c", script],
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        node = ScratchNode(device, kernel_names, folder, holder.pid)
        try:
            yield node
        finally:
            node.end_all()
    finally:
        holder.kill()
        holder.wait()
        if holder.stdout is not None:
            holder.stdout.close()
