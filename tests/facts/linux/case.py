"""Output of hosts as files, each beside its expected result."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from netkit.platforms import disk
from netkit.platforms.linux.facts import hardware, interface, optic, probe
from netkit.platforms.linux.facts.reading import LAST, Card, Tree, parse

FOLDER = Path(__file__).parent / "cases"
ASKED = tuple(("10.128.0.1", "rail0", f"10.0.0.{number}") for number in range(1, 7))
SENT = tuple((*ASKED[0][:2], f"10.0.0.{number}", size) for number in (3, 5) for size in (64, 9000))
DEVICES = "/sys/bus/pci/devices"
PCIS = {"rail0": "0000:18:00.0", "rail1": "0000:40:00.0", "rail2": "0000:4f:00.0"}
CARDS = tuple(Card(name, pci, f"mlx5_{pci[5:7]}", f"{DEVICES}/{pci}") for name, pci in PCIS.items())


def tree(files: Mapping[str, str]) -> Tree:
    """A file tree as the command would have printed it."""
    return parse(
        "".join(f"{path}\0{line}\n" for path, text in {**files, LAST: ""}.items() for line in text.split("\n"))
    )


def _statistics(text: str) -> object:
    kernel = {f"{card.net}/statistics/rx_bytes": "55" for card in CARDS}
    return interface.counters(tree(kernel), CARDS, text, "")


READERS: Mapping[str, Callable[[str], object]] = {
    "disk": lambda text: disk.parse(text).file_systems,
    "modules": optic.modules,
    "link_up": interface.times_s,
    "mlxlink": optic.shown,
    "mlnx_qos": hardware.parse_mlnx_qos,
    "dcb": hardware.parse_dcb,
    "lags": lambda text: interface.lags(
        tree(dict(line.replace("\0", "").partition(" ")[::2] for line in text.splitlines()))
    ),
    "lldp": interface.neighbors,
    "probes": lambda text: probe.probes(text, SENT),
    "lookups": lambda text: interface.lookups(text, ASKED),
    "default_routes": interface.default_routes,
    "statistics": _statistics,
    "lspci": hardware.devices,
    "mlxconfig": hardware.firmware,
}
CASES = tuple(sorted(FOLDER.glob("*/*.txt")))


def read(folder: str, text: str) -> Any:
    """The result of a parser as JSON, without unreported values."""
    found = READERS[folder](text)
    return TypeAdapter(type(found)).dump_python(found, mode="json", exclude_defaults=True)
