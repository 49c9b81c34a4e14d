"""A first fabric.yaml of a given size, for `netkit init`."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from netkit.errors import OutputError, Problem, UsageError
from netkit.hardware import Catalog, Split, SwitchModel
from netkit.intent.load import FABRIC_FILE
from netkit.intent.model import json_schema
from netkit.platforms import PLATFORMS

SCHEMA_FILE = "fabric.schema.json"
HOST_MODEL, HOST_GBPS = "dgx-h100", 400
MOST_UPLINKS = 16
FIRST_MANAGED = 10
CLUSTERS = {
    "kubernetes": "  kubernetes: {vfs: 8}     # pods that may share a rail NIC; each has its own address",
    "slurm": "  slurm: {gpu_type: h100}  # add cpus and memory_mb, as slurmd -C prints them",
}
PODS_PER_NIC = 8
MEDIA_BY_PORTS = {1: "400G-DR4", 2: "800G-2xDR4"}


@dataclass(frozen=True, slots=True)
class Size:
    """The wanted size of the fabric."""

    leaves: int
    spines: int
    hosts_per_unit: int
    units: int
    platform: str
    model: str
    cluster: str = ""
    """The kind of the cluster on the hosts; empty: none."""
    planes: int = 1
    """Separate planes of spines, over which the rails are dealt; spines are those of each plane.

    In a three-tier fabric, planes of core switches, over which the spines of a pod are dealt.
    """
    pods: int = 1
    """Of a three-tier fabric; units and spines are those of each."""
    cores: int = 0
    """Core switches in each plane; 0: the fabric has no third tier."""

    @property
    def leaves_in_a_plane(self) -> int:
        """The leaves of a unit that share the spines of a plane."""
        return self.leaves if self.cores else -(-self.leaves // self.planes)


@dataclass(frozen=True, slots=True)
class FabricPlan:
    """What follows from a size: breakout, ceilings, and the uplinks they leave room for."""

    model: str
    version: str
    split: Split
    units: int
    hosts: int
    spines: int
    uplinks: int
    pods: int
    cores: int
    core_uplinks: int


def write(folder: Path, text: str) -> Path:
    """Write fabric.yaml and its schema for editors into a folder that has none."""
    file = folder / FABRIC_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        place = file if file.exists() else folder
        raise OutputError(
            Problem("exists already", "choose another folder; nothing was changed", file=str(place))
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(
            Problem(f"cannot write: {reason}", "choose a folder you can write to", file=str(folder))
        ) from None
    schema = folder / SCHEMA_FILE
    schema.write_text(json.dumps(json_schema(), indent=1) + "\n", encoding="utf-8")
    return file


def text(folder: Path, size: Size, catalog: Catalog) -> str:
    """A fabric.yaml of a size, named after its folder."""
    if size.platform not in PLATFORMS:
        raise UsageError(Problem(f"unknown platform {size.platform!r}", f"use one of {', '.join(PLATFORMS)}"))
    if size.cluster not in {"", *CLUSTERS}:
        raise UsageError(Problem(f"unknown cluster {size.cluster!r}", f"use {' or '.join(CLUSTERS)}"))
    name = re.sub(r"[^A-Za-z0-9-]+", "-", folder.resolve().name)[:63].strip("-") or "fabric"
    lines = [f"# yaml-language-server: $schema={SCHEMA_FILE}", *_lines(name, size, plan(size, catalog))]
    return "\n".join(line for line in lines if line is not None) + "\n"


def plan(size: Size, catalog: Catalog) -> FabricPlan:
    if size.planes > 1 and not size.spines:
        raise UsageError(Problem("--planes needs spines", "give --spines, or drop --planes"))
    if size.pods > 1 and not size.cores:
        raise UsageError(Problem("--pods needs core switches between them", "give --cores, or drop --pods"))
    if size.cores and not size.spines:
        raise UsageError(Problem("--cores needs spines", "give --spines, or drop --cores"))
    if size.cores and size.planes > size.spines:
        message = f"{size.planes} planes of core switches need as many spines in a pod, not {size.spines}"
        raise UsageError(Problem(message, "give fewer --planes, or more --spines"))
    if size.planes > size.leaves and not size.cores:
        message = f"{size.planes} planes of spines need as many leaves in a unit, not {size.leaves}"
        raise UsageError(Problem(message, "give fewer --planes, or more --leaves"))
    name, version = PLATFORMS[size.platform].starting_point
    model = catalog.switch(size.model or name)
    split = _split(model)
    ports = ports_of(model)
    below = ports // 2 if size.spines else ports
    of_spine = ports // 2 if size.cores else ports
    hosts, units = _roomy(size.hosts_per_unit, below), _roomy(size.units, of_spine // size.leaves_in_a_plane)
    spines = _roomy(size.spines, ports - below)
    uplinks = 0
    if size.spines:
        wanted = -(-size.hosts_per_unit // size.spines)
        uplinks = max(
            1, min(wanted, MOST_UPLINKS, (ports - below) // spines, of_spine // (units * size.leaves_in_a_plane))
        )
    pods, cores, core_uplinks = 1, 0, 0
    if size.cores:
        in_a_plane = -(-spines // size.planes)
        pods, cores = _roomy(size.pods, ports // in_a_plane), _roomy(size.cores, ports - of_spine)
        wanted = -(-size.units * size.leaves * uplinks // size.cores)
        most = min(MOST_UPLINKS, (ports - of_spine) // cores, ports // (pods * in_a_plane))
        core_uplinks = max(1, min(wanted, most))
    return FabricPlan(model.name, version, split, units, hosts, spines, uplinks, pods, cores, core_uplinks)


def ports_of(model: SwitchModel) -> int:
    """The number of ports of a switch for NICs of the host model."""
    split = _split(model)
    return split.ports * len([cage for cage in split.cages if cage <= model.cages])


def _split(model: SwitchModel) -> Split:
    fitting = [split for split in model.splits if split.speed_gbps == HOST_GBPS and split.ports in MEDIA_BY_PORTS]
    if not fitting:
        message = f"{model.name} has no ports of {HOST_GBPS}G for the NICs of {HOST_MODEL}"
        raise UsageError(Problem(message, "choose another --model, or write fabric.yaml by hand"))
    return max(fitting, key=lambda split: split.ports)


def _roomy(count: int, limit: int) -> int:
    """The next power of two, so that there is room to grow, unless that exceeds a limit."""
    ceiling = 1 << max(count - 1, 0).bit_length() if count else 0
    return ceiling if ceiling <= limit else count


def _management(size: Size, plan: FabricPlan) -> tuple[str, str, str, str]:
    """A management pool large enough for the ceilings, its gateway, and two addresses for servers."""
    leaves = plan.pods * plan.units * size.leaves + FIRST_MANAGED
    spines = plan.pods * plan.spines * (1 if size.cores else size.planes) + FIRST_MANAGED
    upper = max(spines, plan.cores * size.planes + FIRST_MANAGED)
    length = min(24, 32 - max((2 * leaves - 1).bit_length(), (4 * upper - 1).bit_length()))
    net = "192.0.2" if length == 24 else "198.18.0"
    return f"{net}.0/{length}", f"{net}.1", f"{net}.2", f"{net}.3"


def _lines(name: str, size: Size, plan: FabricPlan) -> list[str | None]:
    has_spines = size.spines > 0
    chosen = f"model: {plan.model}, platform: {size.platform}, version: {plan.version}"
    mode, media = plan.split.mode, MEDIA_BY_PORTS[plan.split.ports]
    up = f", uplink_breakout: {mode}, uplinks_per_spine: {plan.uplinks}" if has_spines else ""
    spines = f", spines: {plan.spines}" if has_spines else ""
    addresses = f", addresses_per_nic: {1 + PODS_PER_NIC}" if size.cluster == "kubernetes" else ""
    planes = f", planes: {size.planes}" if size.planes > 1 else ""
    topology = "three-tier" if size.cores else "two-tier" if has_spines else "rail-only"
    is_routed = has_spines and (size.planes == 1 or size.cores > 0)
    of_spine, pods, cores, pod = planes, "", "", ""
    if size.cores:
        of_spine = f", uplink_breakout: {mode}, uplinks_per_core: {plan.core_uplinks}"
        pods, cores = f"pods: {plan.pods}, ", f", cores: {plan.cores}"
        pod = f"pod: {'1' if size.pods == 1 else f'1-{size.pods}'}, "
    pool, gateway, ntp, syslog = _management(size, plan)
    return [
        f"name: {name}",
        "site: dc1",
        "purpose: lab               # this platform has no lossless Ethernet"
        if PLATFORMS[size.platform].missing_lossless
        else None,
        f"topology: {topology}",
        f"rails: {size.leaves}                  # one leaf per rail in each unit",
        "attachment: p2p            # or vlan: one VLAN and SVI per leaf",
        "host_routes: supernet      # or per-leaf: one static route per leaf",
        f"cross_rail: {'routed' if is_routed else 'blocked'}",
        "",
        "switches:",
        f"  leaf:  {{{chosen}, host_breakout: {mode}{up}}}",
        f"  spine: {{{chosen}, breakout: {mode}, slots: {size.spines}{of_spine}}}" if has_spines else None,
        f"  core:  {{{chosen}, breakout: {mode}, slots: {size.cores}{planes}}}" if size.cores else None,
        "",
        "hosts:",
        f"  model: {HOST_MODEL}",
        '  # Every rail needs its NIC; list them when the host model does not: pci: ["0000:18:00.0", …]',
        "",
        "# How far the fabric may grow without renumbering anything.",
        f"ceilings: {{{pods}units: {plan.units}, hosts_per_unit: {plan.hosts}{spines}{cores}{addresses}}}",
        "units:",
        f"  - {{{pod}unit: {'1' if size.units == 1 else f'1-{size.units}'}, hosts: {size.hosts_per_unit}}}",
        *(["clusters:", CLUSTERS[size.cluster]] if size.cluster else []),
        "",
        "cables:",
        f"  host:  {{media: {media}, length_m: 30}}",
        f"  spine: {{media: {media}, length_m: 50}}" if has_spines else None,
        f"  core:  {{media: {media}, length_m: 100}}" if size.cores else None,
        "",
        "pools:",
        "  loopbacks: 10.255.0.0/16",
        "  hosts: 10.128.0.0/10",
        "management:                # documentation addresses: put your own here",
        f"  pool: {pool}",
        f"  gateway: {gateway}",
        "",
        "services:",
        f"  ntp: [{ntp}]",
        f"  syslog: [{{address: {syslog}}}]",
    ]
