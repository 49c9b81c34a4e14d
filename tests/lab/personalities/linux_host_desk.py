"""A host without namespaces: its tools answer, and its files are in a folder."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from netkit.design.fabric import Fabric, Host, Switch
from netkit.lab.node import ProgramResult
from netkit.lab.personalities.linux_host import TOOLS
from netkit.lab.personalities.linux_host.machine import HostMachine
from netkit.lab.reading import (
    FecReading,
    LaneReading,
    ModuleThresholds,
    NicReading,
    SwitchPortReading,
    TrafficReading,
    TransceiverReading,
)
from netkit.lab.state import SwitchState
from netkit.platforms.linux.view import views as host_views
from netkit.render import Engine
from tests.intents import fabric, values

LANES = tuple(LaneReading(rx_dbm=0.5 + lane, tx_dbm=1.25, bias_ma=80.0) for lane in range(4))
OPTIC = TransceiverReading(
    kind="optic",
    identifier="OSFP",
    vendor="NVIDIA",
    part="MMS4X00-NS",
    serial="MT2445JF9A2U4B",
    firmware="46.120.12",
    revision="A3",
    media="800G-2xDR4",
    length_m=30,
    temperature_c=54.0,
    voltage_v=3.3,
    lanes=LANES,
    temperature_limits=ModuleThresholds(-10, 0, 70, 80),
    voltage_limits=ModuleThresholds(2.97, 3.135, 3.465, 3.63),
    rx_limits=ModuleThresholds(-8.9, -5.9, 4.0, 5.0),
    tx_limits=ModuleThresholds(-5.9, -2.9, 4.0, 5.0),
    bias_limits=ModuleThresholds(10, 15, 125, 130),
)
COPPER = replace(
    OPTIC,
    kind="copper",
    part="MCP7Y00-N003",
    firmware="",
    media="800G-DAC-2x400",
    lanes=(),
    temperature_limits=None,
    voltage_limits=None,
    rx_limits=None,
    tx_limits=None,
    bias_limits=None,
)
HISTOGRAM = (1000, 7, *[0] * 14)


def small(changes: Mapping[str, Any] | None = None) -> Fabric:
    return fabric(values(dict(changes or {})))


def rendered(built: Fabric, host: Host) -> dict[str, str]:
    engine = Engine()
    return {
        artifact.file: engine.render(artifact.template, artifact.context, host.name)
        for artifact in host_views(built)(host)
    }


class Desk:
    """A node without namespaces: its files are in a folder."""

    def __init__(self, host: Host, folder: Path, module: TransceiverReading | None = OPTIC) -> None:
        self.name = host.name
        self.device: Switch | Host = host
        self.kernel_names: Mapping[str, str] = {nic.interface: nic.interface for nic in host.nics}
        self.saved = folder
        self.spawned: dict[str, tuple[str, ...]] = {}
        self._host = host
        self._module = module

    def file(self, path: str) -> Path:
        return self.saved / "root" / path.lstrip("/")

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult:
        raise AssertionError(f"nothing runs on a desk: {command} {stdin} {timeout_s}")

    def spawn(self, name: str, *command: str) -> None:
        self.spawned[name] = command

    def end(self, name: str) -> None:
        self.spawned.pop(name, None)

    def is_running(self, name: str) -> bool:
        return name in self.spawned

    def ip(self, commands: Iterable[str]) -> str:
        raise AssertionError(list(commands))

    def vty(self, command: str, daemon: str = "bgpd") -> str:
        raise AssertionError((command, daemon))

    def realise(self, state: SwitchState) -> None:
        raise AssertionError(state)

    def ports(self) -> tuple[SwitchPortReading, ...]:
        return ()

    def port(self, name: str) -> SwitchPortReading | None:
        raise AssertionError(name)

    def clear_counters(self, port: str = "") -> None:
        raise AssertionError(port)

    def log(self, line: str) -> None:
        assert line

    def nics(self, only: str = "") -> tuple[NicReading, ...]:
        return tuple(
            NicReading(
                interface=nic.interface,
                rdma=nic.rdma,
                pci=nic.pci,
                mac=f"02:00:00:00:00:{nic.rail:02x}",
                is_up=True,
                speed_gbps=400,
                mtu_bytes=9000,
                carrier_changes=1,
                link_up_s=4.2,
                firmware="28.43.1014",
                driver="mlx5_core",
                part="MCX75310AAS-NEA",
                traffic=TrafficReading(),
                hw_counters={"np_cnp_sent": 5, "rp_cnp_handled": 7},
                port_counters={"port_rcv_data": 11},
                ethtool={"rx_prio3_pause": 3, "rx_bits_phy": 4_000_000_000, "rx_err_lane_0_phy": 1},
                fec=FecReading("rs", 8, 0, 5e-10, 0.0, HISTOGRAM),
                module=self._module,
            )
            for nic in self._host.nics
            if only in {"", nic.interface}
        )


@dataclass
class Typed:
    """A command line and its output."""

    program: str
    arguments: tuple[str, ...]
    folder: str = "/root"
    user: str = "root"
    answer: str = ""
    printed: str = ""
    complained: str = ""
    root: Path = Path()

    def out(self, text: str) -> None:
        self.printed += text

    def err(self, text: str) -> None:
        self.complained += text

    def ask(self, prompt: str) -> str:
        self.printed += prompt
        return self.answer

    def stdin(self) -> str:
        return ""

    def file(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def type_at(machine: HostMachine, line: str, answer: str = "") -> tuple[int, Typed]:
    """Run a NIC tool; return its exit code and output."""
    program, *words = line.split()
    call = Typed(program, tuple(words), answer=answer, root=machine.node.file("/"))
    return TOOLS[program](machine, call), call
