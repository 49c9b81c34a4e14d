"""The fabrics of the benchmarks, as the fabric.yaml a user would write."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RAILS = 8

HARDWARE = {
    "eos": ("DCS-7060X6-64PE", "4.35.1F"),
    "nvue": ("SN5600", "5.16.1"),
    "sonic": ("SN5600", "202411"),
}
"""Model and version by platform; all of them split 64 cages of 800G into 128 ports of 400G."""
LAB_HARDWARE = {"frr": ("SN5600", "8.4.4")}
"""Platforms for labs only, which lack lossless Ethernet."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a fabric. Without cores it has two tiers, and one pod."""

    units: int
    hosts: int
    spines: int
    pods: int = 1
    cores: int = 0
    planes: int = 0
    larger: int = 0
    """How many units, the last ones, have one host more."""
    addresses_per_nic: int = 1
    """The host's own, and one for each pod that shares a NIC."""

    @property
    def leaves(self) -> int:
        return self.pods * self.units * RAILS

    @property
    def switches(self) -> int:
        """The number of switches of all tiers."""
        return self.leaves + self.pods * self.spines + self.planes * self.cores

    @property
    def gpu_hosts(self) -> int:
        return self.pods * (self.units * self.hosts + self.larger)

    @property
    def ports(self) -> int:
        """The number of switch ports in use."""
        host_ports, up = RAILS * self.gpu_hosts, self.leaves * self.spines
        return host_ports + 2 * up + 2 * self.pods * self.spines * self.cores


def growing(planes: int, *, units: int, hosts: int, spines: int, cores: int, core_ports: int) -> Shape:
    """A three-tier fabric whose switches have the same number of ports for any number of core planes."""
    pods = planes * core_ports // spines
    return Shape(units=units, hosts=hosts, spines=spines, pods=pods, cores=cores, planes=planes)


SPEED = Shape(units=16, hosts=32, spines=32)
"""128 leaves of 32 lossless host ports and 32 uplinks, 32 spines of 128 ports."""

# A leaf has 64 ports, a spine 108, a core switch 128, at every size: 77.8 on average. SPEED has 76.8.
GROWTH = (
    SPEED,
    *(growing(planes, units=11, hosts=32, spines=32, cores=20, core_ports=128) for planes in (1, 2, 4, 8, 16)),
)

CLUSTERED = Shape(units=15, hosts=34, spines=32, larger=2, addresses_per_nic=9)
"""512 hosts, with room for the addresses of eight pods on each NIC."""
QUICK_CLUSTERED = Shape(units=2, hosts=4, spines=2, larger=1, addresses_per_nic=9)
CLUSTERS = {"kubernetes": "{vfs: 8}", "slurm": "{cpus: 224}"}
"""Clusters on all hosts, as `clusters` in the intent has them."""

SMALLEST = Shape(units=1, hosts=4, spines=1)
"""Measures start-up: the cost of a render before the first device of a real fabric."""

QUICK = Shape(units=1, hosts=4, spines=4)
QUICK_GROWTH = (QUICK, *(growing(planes, units=1, hosts=4, spines=2, cores=2, core_ports=4) for planes in (1, 2)))


def write(folder: Path, shape: Shape, platform: str, host_routes: str = "supernet", cluster: str = "") -> Path:
    """Write the fabric.yaml of a shape, with a cluster if one is named, and return its folder."""
    folder.mkdir(parents=True)
    lines = [*_lines(shape, platform, host_routes)]
    if cluster:
        lines.append(f"clusters: {{{cluster}: {CLUSTERS[cluster]}}}")
    (folder / "fabric.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _lines(shape: Shape, platform: str, host_routes: str) -> Iterator[str]:
    model, version = {**HARDWARE, **LAB_HARDWARE}[platform]
    box = f"model: {model}, platform: {platform}, version: {version}"
    core_up = ", uplink_breakout: 2x400G" if shape.planes else ""
    core_ceiling = f", pods: {shape.pods}, cores: {shape.cores}" if shape.planes else ""
    switch_bits, host_bits = _pool_bits(shape)
    yield "name: bench"
    if platform in LAB_HARDWARE:
        yield "purpose: lab"
    yield f"topology: {'three-tier' if shape.planes else 'two-tier'}"
    yield f"rails: {RAILS}"
    yield "attachment: p2p"
    yield f"host_routes: {host_routes}"
    yield "switches:"
    yield f"  leaf: {{{box}, host_breakout: 2x400G, uplink_breakout: 2x400G}}"
    yield f"  spine: {{{box}, breakout: 2x400G{core_up}, slots: {shape.spines}}}"
    if shape.planes:
        yield f"  core: {{{box}, breakout: 2x400G, slots: {shape.cores}, planes: {shape.planes}}}"
    yield "hosts: {model: dgx-h100}"
    most = shape.hosts + bool(shape.larger)
    own_room = f", addresses_per_nic: {shape.addresses_per_nic}" if shape.addresses_per_nic > 1 else ""
    yield f"ceilings: {{units: {shape.units}, hosts_per_unit: {most}, spines: {shape.spines}{core_ceiling}{own_room}}}"
    yield "units:"
    usual = shape.units - shape.larger
    yield f"  - {{pod: 1-{shape.pods}, unit: 1-{usual}, hosts: {shape.hosts}}}"
    if shape.larger:
        yield f"  - {{pod: 1-{shape.pods}, unit: {usual + 1}-{shape.units}, hosts: {shape.hosts + 1}}}"
    yield "cables:"
    yield "  host: {media: 800G-2xDR4, length_m: 30}"
    yield "  spine: {media: 800G-2xDR4, length_m: 50}"
    if shape.planes:
        yield "  core: {media: 800G-2xDR4, length_m: 100}"
    yield f"pools: {{loopbacks: 10.255.0.0/{32 - switch_bits}, hosts: 10.128.0.0/{32 - host_bits}}}"
    yield f"management: {{pool: 198.18.0.0/{32 - switch_bits}, gateway: 198.18.0.1}}"
    yield "services:"
    yield "  ntp: [198.18.0.2, 198.18.0.3]"
    yield "  syslog: [{address: 198.18.0.4}]"


def _pool_bits(shape: Shape) -> tuple[int, int]:
    """How many address bits the switch pools and the host pool need."""
    # Leaves take half of a pool, spines a quarter, cores a quarter; 16 more each leave room for the gateway and others.
    cores = shape.planes * shape.cores
    most = max(2 * (shape.leaves + 16), 4 * (shape.pods * shape.spines + 16), 4 * (cores + 16))
    # Between two, a link has no other address; else it has that of the network too.
    link_bits = _bits(shape.addresses_per_nic + 2) if shape.addresses_per_nic > 1 else 1
    bits = (
        _bits(RAILS),
        _bits(shape.hosts + bool(shape.larger)),
        link_bits,
        _bits(shape.pods * shape.units),
    )
    return _bits(most), sum(bits)


def _bits(count: int) -> int:
    return max(count - 1, 0).bit_length()
