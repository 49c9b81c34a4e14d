"""Hardware data files → typed models. Every value has a source; without one it is None, never guessed."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from netkit.errors import HardwareError, Problem

PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
HIGHEST_U = 100
SHIPPED = Path(__file__).parent / "data"
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Split:
    """One way to split a cage into ports."""

    ports: int
    speed_gbps: int
    lanes_per_port: int
    cages: tuple[int, ...]
    blocks_next_cage: bool
    source: str

    @property
    def mode(self) -> str:
        """Notation such as 2x400G."""
        return f"{self.ports}x{self.speed_gbps}G"


@dataclass(frozen=True, slots=True)
class HeadroomRow:
    """A vendor's own headroom figures for one speed and cable length."""

    speed_gbps: int
    cable_m: float
    size_bytes: int
    xon_bytes: int
    xoff_bytes: int
    xon_offset_bytes: int | None
    source: str


@dataclass(frozen=True)
class SwitchModel:
    """A switch model."""

    name: str
    vendor: str
    asic: str
    cages: int
    lanes_per_cage: int
    cage_form: str
    height_u: int | None
    """Rack units it fills; None without a source."""
    power_w: int | None
    """Of the switch without its modules; None without a source."""
    max_ports: int | None
    splits: tuple[Split, ...]
    adaptive_routing: bool
    adaptive_routing_speeds: tuple[int, ...]
    buffer_bytes: int | None
    cell_bytes: int | None
    headroom_pool_bytes: int | None
    delays: Mapping[str, int | None]
    headroom_rows: tuple[HeadroomRow, ...]
    platforms: Mapping[str, Mapping[str, Any]]
    sources: Mapping[str, str] = field(repr=False)

    def split(self, mode: str) -> Split | None:
        """Find a split by its notation; None if the model lacks it."""
        return next((split for split in self.splits if split.mode == mode), None)

    def source(self, key: str) -> str:
        return self.sources.get(key, "no source")


@dataclass(frozen=True, slots=True)
class RailNic:
    """A host NIC that serves a rail."""

    pci: str
    netdev: str
    rdma: str
    cage: str
    cage_port: int | None
    gpu: int | None


@dataclass(frozen=True, slots=True)
class HostGpu:
    """A GPU: its PCI address, and the NUMA node that its PCIe switch is at."""

    pci: str
    numa: int


@dataclass(frozen=True)
class HostModel:
    """A GPU host model. `rails` is empty without a source for the PCI map."""

    name: str
    vendor: str
    gpus: int
    nic: str
    nic_pci_id: str
    """Vendor and device, such as 15b3:1021; empty without a source."""
    speed_gbps: int
    rails: tuple[RailNic, ...]
    rail_gpus: tuple[int | None, ...]
    """The GPU next to the NIC of each rail, also where the intent gives the PCI map. Two-port NICs have two rails."""
    ports_per_cage: int | None
    cage_form: str
    height_u: int | None
    """Rack units it fills; None without a source."""
    untouched: tuple[str, ...]
    gpu_map: tuple[HostGpu, ...]
    """By number; empty without a source."""
    pcie_generation: int | None
    """Of GPUs and rail NICs."""
    sources: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Media:
    """A cable or optic type."""

    name: str
    kind: str
    speed_gbps: int
    ports_per_module: int
    reach_m: float | None
    lanes: int | None
    optics: str
    forms: tuple[str, ...]
    source: str
    power_w: float | None = None
    """Of one module; None without a source."""
    power_forms: tuple[str, ...] = ()
    """The cages whose modules have this power; empty: all."""

    def power_in(self, form: str) -> float | None:
        """The power of a module for a cage; None if no source states it."""
        return self.power_w if not self.power_forms or form in self.power_forms else None


def module_for(media: Mapping[str, Media], name: str, ports: int, form: str = "") -> Media | None:
    """Find the media that is compatible with `name` and fits a cage with `ports` ports; an unknown form fits any."""
    named = media[name]
    alike = (each for each in media.values() if named.optics and each.optics == named.optics)
    return next(
        (
            each
            for each in (named, *alike)
            if (each.ports_per_module, each.speed_gbps) == (ports, named.speed_gbps)
            and (not form or not each.forms or form in each.forms)
        ),
        None,
    )


class Catalog:
    """The shipped hardware models; those in a user's `models/` folders take precedence."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.folders = (*folders, SHIPPED)

    def switch(self, name: str) -> SwitchModel:
        return read_switch(self._find("switches", name))

    def host(self, name: str) -> HostModel:
        file = self._find("hosts", name)
        with _naming(file):
            return _host(file)

    def names(self, kind: str) -> list[str]:
        """List the models of a kind (`switches` or `hosts`)."""
        *users, _shipped = self.folders
        return sorted(_shipped_names(kind).union(*(_names(folder / kind) for folder in users)))

    def media(self) -> Mapping[str, Media]:
        return _media(tuple(folder / "media.yaml" for folder in reversed(self.folders)))

    def _find(self, kind: str, name: str) -> Path:
        names = self.names(kind)
        if name not in names:
            close = difflib.get_close_matches(name, names, 1, 0.4)
            remedy = f"did you mean {close[0]}?" if close else ""
            known = f"known: {', '.join(names)}; or describe it in models/{kind}/{name}.yaml"
            raise HardwareError(
                Problem(f"no {kind.removesuffix('es').removesuffix('s')} model {name!r}", f"{remedy} {known}".strip())
            )
        return next(
            folder / kind / f"{name}.yaml" for folder in self.folders if (folder / kind / f"{name}.yaml").exists()
        )


def _names(folder: Path) -> frozenset[str]:
    return frozenset(path.stem for path in folder.glob("*.yaml"))


@cache
def _shipped_names(kind: str) -> frozenset[str]:
    return _names(SHIPPED / kind)


def read_switch(file: Path) -> SwitchModel:
    """Read a model file of a switch."""
    with _naming(file):
        return _switch(file)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Convert errors from a malformed model file to a HardwareError that names the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        message = f"does not describe a model as netkit expects it: {what}"
        raise HardwareError(Problem(message, "compare it with a shipped model file", file=str(file))) from None


@cache
def _read(file: Path) -> Any:
    try:
        return yaml.load(file.read_bytes(), Loader)  # noqa: S506 (a safe loader, in C where there is one)
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        message = f"is not a readable model file: {str(error).splitlines()[0]}"
        raise HardwareError(Problem(message, "check its YAML against a shipped model file", file=str(file))) from None


@cache
def _switch(file: Path) -> SwitchModel:
    data = _Data(file)
    cages = data.number("cages")
    return SwitchModel(
        name=data.text("name"),
        vendor=data.text("vendor"),
        asic=str(data.value("asic") or ""),
        cages=cages,
        lanes_per_cage=data.number("lanes_per_cage"),
        cage_form=str(data.value("cage_form") or ""),
        height_u=data.height(),
        power_w=data.value("power_w"),
        max_ports=data.value("max_ports"),
        splits=tuple(_split(row, cages, data) for row in data.rows("breakouts")),
        adaptive_routing=bool(data.value("adaptive_routing")),
        adaptive_routing_speeds=tuple(data.value("adaptive_routing_speeds_gbps") or ()),
        buffer_bytes=data.value("buffer", "total_bytes"),
        cell_bytes=data.value("buffer", "cell_bytes"),
        headroom_pool_bytes=data.value("buffer", "headroom_pool_bytes"),
        delays={key: data.value("delay", key) for key in data.content.get("delay", {})},
        headroom_rows=tuple(_row(row, data) for row in data.rows("headroom_table")),
        platforms=data.content.get("platforms", {}),
        sources=data.sources(),
    )


def _split(row: Mapping[str, Any], cages: int, data: "_Data") -> Split:
    named = str(row["cages"])
    if named in {"odd", "even"}:
        numbers = tuple(range(1 if named == "odd" else 2, cages + 1, 2))
    else:
        runs = (run.partition("-") for run in named.split(","))
        numbers = tuple(number for first, _, last in runs for number in range(int(first), int(last or first) + 1))
    blocks = row.get("disables") == "next-cage"
    return Split(row["ports"], row["speed_gbps"], row["lanes_per_port"], numbers, blocks, data.citation(row["source"]))


def _row(row: Mapping[str, Any], data: "_Data") -> HeadroomRow:
    return HeadroomRow(
        speed_gbps=row["speed_gbps"],
        cable_m=row["cable_m"],
        size_bytes=row["size_bytes"],
        xon_bytes=row["xon_bytes"],
        xoff_bytes=row["xoff_bytes"],
        xon_offset_bytes=row.get("xon_offset_bytes"),
        source=data.citation(row["source"]),
    )


@cache
def _host(file: Path) -> HostModel:
    data = _Data(file)
    rails = [row for row in data.rows("rails") if row["pci"]]
    return HostModel(
        name=data.text("name"),
        vendor=data.text("vendor"),
        gpus=data.number("gpus"),
        nic=str(data.value("nic")),
        nic_pci_id=str(data.value("nic_pci_id") or ""),
        speed_gbps=data.number("speed_gbps"),
        rails=tuple(
            RailNic(row["pci"], row["netdev"], row["rdma"], row.get("cage") or "", row.get("cage_port"), row.get("gpu"))
            for row in rails
        ),
        rail_gpus=tuple(row.get("gpu") for row in data.rows("rails")),
        ports_per_cage=data.value("ports_per_cage"),
        cage_form=str(data.value("cage_form") or ""),
        height_u=data.height(),
        untouched=tuple(data.content.get("untouched") or ()),
        gpu_map=tuple(_gpu_map(data)),
        pcie_generation=data.value("pcie_generation"),
        sources=data.sources(),
    )


def _gpu_map(data: "_Data") -> Iterator[HostGpu]:
    rows, gpus = data.rows("gpu_map"), data.number("gpus")
    if rows and len(rows) != gpus:
        raise ValueError(f"gpu_map has {len(rows)} rows for {gpus} GPUs")
    for row in rows:
        pci, numa = str(row["pci"]), row["numa"]
        if not PCI.fullmatch(pci) or not isinstance(numa, int):
            raise ValueError(
                f"gpu_map has {pci!r} at NUMA node {numa!r}, not an address such as 0000:1b:00.0 and a number"
            )
        if not row.get("source"):
            raise ValueError(f"gpu_map has {pci} without a source")
        yield HostGpu(pci, numa)


@cache
def _media(files: tuple[Path, ...]) -> Mapping[str, Media]:
    found: dict[str, Media] = {}
    for file in files:
        if not file.exists():
            continue
        content = _read(file)
        with _naming(file):
            for name, row in content["media"].items():
                found[name] = Media(
                    name=name,
                    kind=row["kind"]["value"],
                    speed_gbps=row["speed_gbps"]["value"],
                    ports_per_module=row["ports_per_module"]["value"],
                    reach_m=row["reach_m"]["value"],
                    lanes=row["lanes"]["value"],
                    optics=row.get("optics", {}).get("value") or "",
                    forms=tuple(row.get("forms", {}).get("value") or ()),
                    source=str(content["sources"].get(row["speed_gbps"]["source"], "")),
                    power_w=row.get("power_w", {}).get("value"),
                    power_forms=tuple(row.get("power_w", {}).get("forms") or ()),
                )
    return found


class _Data:
    """A model file with its citations resolved."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.content: dict[str, Any] = _read(file)
        if not isinstance(self.content, dict) or "name" not in self.content:
            raise HardwareError(
                Problem("describes no model", "copy a shipped model file and change it", file=str(file))
            )

    def value(self, *path: str) -> Any:
        part: Any = self.content
        for key in path:
            part = part.get(key) if isinstance(part, dict) else None
        if not isinstance(part, dict):
            return None
        if part.get("value") is not None and not part.get("source"):
            raise HardwareError(
                Problem(f"{'.'.join(path)} has a value but no source", "cite where it was read", file=str(self.file))
            )
        return part.get("value")

    def number(self, *path: str) -> int:
        value = self.value(*path)
        if not isinstance(value, int):
            raise HardwareError(Problem(f"{'.'.join(path)} is missing", "give {value, source}", file=str(self.file)))
        return value

    def height(self) -> int | None:
        value = self.value("height_u")
        if value is None or (isinstance(value, int) and 1 <= value <= HIGHEST_U):
            return value
        raise ValueError(f"height_u is {value!r}, not a number of rack units")

    def text(self, key: str) -> str:
        return str(self.content[key])

    def rows(self, key: str) -> list[dict[str, Any]]:
        return list(self.content.get(key) or [])

    def citation(self, key: str) -> str:
        return str(self.content.get("sources", {}).get(key, key))

    def sources(self) -> dict[str, str]:
        found: dict[str, str] = {}

        def walk(part: Any, path: str) -> None:
            if isinstance(part, dict):
                if part.get("source"):
                    found[path] = self.citation(part["source"])
                for key, inner in part.items():
                    walk(inner, f"{path}.{key}" if path else str(key))

        walk(self.content, "")
        return found


FILE = Path(__file__).parent / "data" / "pfc.yaml"
GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Method:
    """How to compute the headroom of one kind of chip; see the comments in pfc.yaml."""

    name: str
    frame_in_cells: int
    is_whole_cells: bool
    uses_quanta: bool
    ns_per_m: float
    mac_phy_bytes: float | None
    pipeline_bytes: int | None
    on_tile_bytes_per_gbps: float
    own_frames: int
    response_ns: int | None
    has_eight_lane_extra: bool
    source: str


@dataclass(frozen=True, slots=True)
class PauseResponse:
    """How long a peer may take to honour a pause, in quanta of 512 bit times."""

    quanta: int
    source: str


WORST_CASES = {"ceil(cell/64)": (64, True), "cell/64": (64, False), "cell/84": (84, False)}


@cache
def _data() -> dict[str, Any]:
    content: dict[str, Any] = yaml.load(FILE.read_bytes(), Loader)  # noqa: S506 (a safe loader, in C where there is one)
    return content


def pause_response(speed_gbps: int) -> PauseResponse | None:
    """Look up the pause response of a speed; None without a source."""
    for row in _data()["pause_quanta"]:
        if row["speed_gbps"] == speed_gbps:
            return PauseResponse(row["quanta"], _data()["sources"][row["source"]])
    return None


def lossless_frame_bytes() -> int:
    """The frame size that vendors' formulas assume for the lossless class."""
    return int(_data()["defaults"]["lossless_mtu"]["value"])


@cache
def method(asic: str) -> Method:
    """Look up the method of a chip; the default is the generic one."""
    data = _data()
    name = next((name for name, entry in data["methods"].items() if asic in entry["asics"]), GENERIC)
    entry = data["methods"][name]
    value: dict[str, Any] = {key: part.get("value") for key, part in entry.items() if isinstance(part, dict)}
    frame, is_whole = WORST_CASES[value["worst_case"]]
    return Method(
        name=name,
        frame_in_cells=frame,
        is_whole_cells=is_whole,
        uses_quanta=value["peer_response"] == "pause_quanta",
        ns_per_m=value["ns_per_m"],
        mac_phy_bytes=value["mac_phy_bytes"],
        pipeline_bytes=value["pipeline_bytes"],
        on_tile_bytes_per_gbps=value["on_tile_bytes_per_gbps"] or 0,
        own_frames=value["own_frames"],
        response_ns=value["response_ns"],
        has_eight_lane_extra=value["eight_lane_extra"],
        source=data["sources"].get(entry["reproduces"] or "", "IEEE 802.3 Annex 31B.3.7"),
    )
