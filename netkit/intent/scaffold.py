"""A first fabric.yaml of a given size, for `netkit init`."""

import re
from dataclasses import dataclass
from pathlib import Path

from netkit.errors import IntentError, OutputError, Problem, UsageError
from netkit.hardware import Catalog
from netkit.intent.load import FABRIC_FILE

# The model a platform is scaffolded with, and the version its templates are checked for.
STARTING_POINTS = {
    "nvue": ("SN5600", "5.16.1"),
    "sonic": ("SN5600", "202411"),
    "eos": ("DCS-7060X6-64PE", "4.35.1F"),
    "frr": ("SN5600", "8.4.4"),
}
HOSTS_PER_CAGE = 2


@dataclass(frozen=True, slots=True)
class Size:
    """How large the fabric is to be."""

    leaves: int
    spines: int
    hosts_per_unit: int
    units: int
    platform: str
    model: str


def write(folder: Path, size: Size, catalog: Catalog) -> Path:
    """Write fabric.yaml into a new or empty folder."""
    file = folder / FABRIC_FILE
    if size.platform not in STARTING_POINTS:
        raise UsageError(Problem(f"no platform {size.platform!r}", f"use one of {', '.join(STARTING_POINTS)}"))
    text = _text(folder.resolve().name, size, catalog)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        place = file if file.exists() else folder
        raise OutputError(Problem("exists already", "choose another folder; nothing was changed", file=str(place))) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(Problem(f"cannot write: {reason}", "choose a folder you can write to", file=str(folder))) from None
    return file


def _text(name: str, size: Size, catalog: Catalog) -> str:
    model, version = STARTING_POINTS[size.platform]
    model = size.model or model
    cages = catalog.switch(model).cages
    name = re.sub(r"[^A-Za-z0-9-]+", "-", name).strip("-")[:63] or "fabric"
    units, hosts = _power_of_two(size.units), _power_of_two(size.hosts_per_unit)
    uplinks = max(1, -(-size.hosts_per_unit // size.spines)) if size.spines else 0
    if -(-hosts // HOSTS_PER_CAGE) > cages:
        raise IntentError(Problem(f"{hosts} hosts a unit do not fit on {model}", "use more, smaller units"))
    return "\n".join(line for line in _lines(name, size, model, version, units, hosts, uplinks) if line is not None) + "\n"


def _lines(name: str, size: Size, model: str, version: str, units: int, hosts: int, uplinks: int) -> list[str | None]:
    has_spines = size.spines > 0
    chosen = f"model: {model}, platform: {size.platform}, version: {version}"
    up = f", uplink_breakout: 2x400G, uplinks_per_spine: {uplinks}" if has_spines else ""
    spines = _power_of_two(size.spines) if has_spines else 0
    return [
        f"name: {name}",
        "site: dc1",
        "purpose: lab               # this platform has no lossless Ethernet" if size.platform == "frr" else None,
        f"topology: {'two-tier' if has_spines else 'rail-only'}",
        f"rails: {size.leaves}                  # one leaf per rail in each unit",
        "attachment: p2p            # or vlan: one VLAN and SVI per leaf",
        "host_routes: supernet      # or per-leaf: one static route per leaf",
        f"cross_rail: {'routed' if has_spines else 'blocked'}",
        "",
        "switches:",
        f"  leaf:  {{{chosen}, host_breakout: 2x400G{up}}}",
        f"  spine: {{{chosen}, breakout: 2x400G, slots: {size.spines}}}" if has_spines else None,
        "",
        "hosts:",
        "  model: dgx-h100",
        "  # Every rail needs its NIC; list them when the host model does not: pci: [\"0000:18:00.0\", …]",
        "",
        "# How far the fabric may grow without renumbering anything.",
        f"ceilings: {{units: {units}, hosts_per_unit: {hosts}{f', spines: {spines}' if has_spines else ''}}}",
        "units:",
        f"  - {{unit: {'1' if size.units == 1 else f'1-{size.units}'}, hosts: {size.hosts_per_unit}}}",
        "",
        "cables:",
        "  host:  {media: 800G-2xDR4, length_m: 30}",
        "  spine: {media: 800G-2xDR4, length_m: 50}" if has_spines else None,
        "",
        "pools:",
        "  loopbacks: 10.255.0.0/16",
        "  hosts: 10.128.0.0/9",
        "management:",
        "  pool: 192.0.2.0/24       # documentation addresses: put your own here",
        "  gateway: 192.0.2.1",
        "",
        "services:",
        "  ntp: [192.0.2.2]",
        "  syslog: [{address: 192.0.2.3}]",
    ]


def _power_of_two(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()
