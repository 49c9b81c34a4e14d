"""`netkit adopt`: saved configurations → a folder with the intent of the fabric that runs them."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from netkit.adopt import document, remainder
from netkit.adopt.fit import fitted, numbers_of, rendered, without_effect
from netkit.adopt.links import End
from netkit.adopt.object_names import with_names
from netkit.adopt.proposal import Adoption, FoundIntent, propose
from netkit.adopt.survey import NothingRead, Survey, SurveyedSwitch, read_device, survey_of
from netkit.design.fabric import Host
from netkit.errors import ConfigError, OutputError, Problem, UsageError
from netkit.hardware import Catalog
from netkit.intent import csv_table, scaffold
from netkit.intent.load import FABRIC_FILE
from netkit.intent.model import CableEntry, Tables
from netkit.plan import Running
from netkit.platforms import compare
from netkit.platforms.config import Files
from netkit.platforms.config import Path as ConfigPath
from netkit.platforms.ownership import leaving
from netkit.project.comparing import COMPARING
from netkit.project.planning import saved
from netkit.project.processes import Names, ProcessPool, divided
from netkit.project.project import MODELS, SILENT, TEMPLATES, Feedback, beside
from netkit.project.rendering import bounded
from netkit.render import Engine
from netkit.truth.difference import DeviceRecord, TruthRecords

BACKUP_SUFFIX = ".conf"
NEIGHBORS = "neighbors.csv"
"""File of LLDP neighbours beside the saved configurations, with the columns of a list of cables."""
COLUMNS = ("device", "port", "peer", "peer_port")
PARTS = 16
"""More than there are processes, so that all end at about the same time, though devices of a role stand together."""
T = TypeVar("T")


@dataclass(frozen=True)
class Adopted:
    """The intent of a running fabric, and what it does not cover."""

    proposal: FoundIntent
    unread: Mapping[str, str]
    """Device → why it is not in the intent."""
    leave: tuple[remainder.Rule, ...]
    remaining: Mapping[str, int]
    """Device → number of its differences that `leave` cannot keep either."""
    conflicts: tuple[str, ...] = ()
    """Differences of the source of truth."""
    without_effect: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Number of the intent whose lines are all in `leave` → the roles of the devices."""
    added: Mapping[str, str] = field(default_factory=dict)
    """Device of the intent that a deploy would configure by the design → why it was not read."""
    damaged: tuple[str, ...] = ()
    """Those of them whose files cannot be parsed, at which a plan against these files stops."""

    @property
    def contradicted(self) -> tuple[tuple[End, End, End], ...]:
        """(end, other end in the list of cables, other end by LLDP) of cables between adopted devices."""
        placed = self.proposal.placement.places.keys()
        return tuple(one for one in self.proposal.links.contradicted if {one[0][0], one[1][0]} <= placed)

    @property
    def strangers(self) -> tuple[str, ...]:
        """Devices in the list of cables that are neither read nor in the intent."""
        return tuple(name for name in self.proposal.links.strangers if name not in self.proposal.fabric.names)


def devices_in(folder: Path) -> list[str]:
    """The devices with files in a folder, as `netkit render` or `netkit backup` writes them."""
    if not folder.is_dir():
        raise UsageError(Problem(f"{folder} is not a folder", "name one with a folder or a backup for each device"))
    folders = {entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")}
    backups = {entry.stem for entry in folder.iterdir() if entry.is_file() and entry.suffix == BACKUP_SUFFIX}
    return sorted(folders | backups)


def files_in(folder: Path, names: Iterable[str]) -> tuple[dict[str, Files], dict[str, str]]:
    """The files of devices in a folder, and for devices with one that is not text, the reason."""
    files, damaged = dict[str, Files](), dict[str, str]()
    for name in names:
        if (folder / name).is_dir() and (folder / f"{name}{BACKUP_SUFFIX}").is_file():
            message = f"{name} is there twice, as a folder and as {name}{BACKUP_SUFFIX}"
            raise UsageError(Problem(message, "delete the older one of the two", file=str(folder)))
        try:
            found = saved(folder, (name,))[name]
        except ConfigError as error:
            damaged[name] = str(error.problems[0])
            continue
        if isinstance(found, Running):
            files[name] = {file: text for file, text in found.files.items() if text is not None}
    return files, damaged


def save_neighbors(file: Path, devices: Container[str], cables: Iterable[Mapping[str, str]]) -> None:
    """Write the neighbours of devices that were read; those of others stay."""
    earlier = csv_table.read(file, CableEntry).rows if file.is_file() else []
    kept = ({column: row.get(column) for column in COLUMNS} for row in earlier if row.get("device") not in devices)
    csv_table.write(file, CableEntry, [*kept, *cables], COLUMNS)


def adopted(
    name: str,
    files: Mapping[str, Files],
    neighbors: Mapping[End, End],
    folder: Path,
    records: TruthRecords | None = None,
    listed: Mapping[End, End] | None = None,
    damaged: Mapping[str, str] | None = None,
) -> Adopted:
    """Find the intent of devices; `folder` is where it will be written, for models and templates beside it.

    `neighbors` are by LLDP, and `listed` is a list of cables, which takes precedence. A source of truth adds what
    configurations, LLDP and the list lack. `damaged` are devices whose files are not text, with the reason.
    """
    truth = records or TruthRecords({}, {})
    known = {device.name: _of_truth(device) for device in truth.devices.values()}
    catalog = Catalog(beside(folder, MODELS))
    source = Adoption(name, _survey(files, damaged or {}), catalog, neighbors, known, listed or {}, truth.peers)
    files = {name: own for name, own in files.items() if name not in source.survey.damaged}
    engine = Engine(beside(folder, TEMPLATES))
    with bounded():
        named = with_names(source, propose(source), files, engine)
        # A release is chosen by what differs, and profiles differ as a whole until they have their names.
        proposal = fitted(source, named, files, engine)
        if (proposal.values, proposal.tables) != (named.values, named.tables):
            proposal = with_names(source, proposal, files, engine)
    names = [name for name in proposal.fabric.names if name in files]
    switches = source.survey.switches
    different = _shared(divided(names, PARTS), lambda part: _different(part, switches, proposal, files, engine))
    found = {one.device: one for one in different}
    rules = remainder.rules(proposal.fabric, {name: one.paths for name, one in found.items()})
    idle: dict[str, list[str]] = {}
    if found:
        numbers = divided([*numbers_of(proposal.values)], len(divided(names, 0)), least=1)
        idle |= _shared(numbers, lambda part: without_effect(source, proposal, rules, files, engine, part))
    conflicts = tuple(_conflicts(proposal, truth)) if records else ()
    remaining = {name: one.remaining for name, one in found.items() if one.remaining}
    unread = source.survey.unread
    unknown = [name for name in proposal.fabric.names if name in unread or name not in files]
    added = {name: unread.get(name, "no file of it was read") for name in unknown}
    broken = tuple(name for name in added if name in source.survey.damaged)
    return Adopted(proposal, proposal.placement.left_out, tuple(rules), remaining, conflicts, idle, added, broken)


def _shared(parts: Sequence[Names], work: Callable[[Names], Iterable[T]]) -> Iterator[T]:
    """Do the work on each part, on all cores if there are several."""

    def part(names: Names, feedback: Feedback) -> list[T]:
        del feedback
        with bounded():
            return list(work(names))

    with ProcessPool(parts, part, 0, COMPARING) as pool:
        for found in pool.results(SILENT):
            yield from found


def _survey(files: Mapping[str, Files], damaged: Mapping[str, str]) -> Survey:
    """Read the files of all devices."""
    read = _shared(divided([*files], PARTS), lambda names: ((name, read_device(name, files[name])) for name in names))
    return survey_of((*read, *((name, NothingRead(why, is_damaged=True)) for name, why in damaged.items())))


def _of_truth(device: DeviceRecord) -> dict[str, str]:
    """The columns of a device that no configuration has."""
    place = {"rack": device.rack, "rack_unit": device.rack_unit} if device.rack else {}
    return {key: value for key, value in {"serial": device.serial, **place}.items() if value}


def _conflicts(proposal: FoundIntent, truth: TruthRecords) -> Iterator[str]:
    """Yield where a source of truth and what runs differ: what runs is in the intent."""
    placed = proposal.placement.places
    yield from (f"{name} is not in it" for name in sorted(placed.keys() - truth.devices.keys()))
    for link in (*proposal.links.hosts, *proposal.links.switches):
        for near, far in ((link.near, link.far), (link.far, link.near)):
            recorded = truth.peers.get(near)
            if recorded and recorded != far:
                yield f"{' '.join(near)} leads to {' '.join(recorded)} in it, and to {' '.join(far)} by {link.origin}"


@dataclass(frozen=True, slots=True)
class AdoptedDifference:
    """What a device runs differently from the intent."""

    device: str
    paths: Sequence[ConfigPath]
    remaining: int
    """Number of changes once these paths are left."""


def _different(
    names: Names,
    switches: Mapping[str, SurveyedSwitch],
    proposal: FoundIntent,
    files: Mapping[str, Files],
    engine: Engine,
) -> Iterator[AdoptedDifference]:
    for device, intended in rendered(proposal.fabric, names, files, engine):
        model, running = compare.MODELS[device.platform], files[device.name]
        comparison = compare.compare(model, running, intended)
        paths = remainder.tops(comparison) if comparison.changes else []
        if switch := switches.get(device.name):
            made = switch.existing.generated
            paths = [*made, *(path for path in paths if not any(path[: len(one)] == one for one in made))]
        if isinstance(device, Host):
            # A deploy would add netkit's files beside those that now do the same.
            paths += [(file,) for file in comparison.not_read]
        if paths:
            # Compared again at once, while both configurations are still parsed.
            left = leaving(intended, filter(None, map(remainder.written_path, paths)))
            yield AdoptedDifference(device.name, paths, len(compare.compare(model, running, left).changes))


def write(found: Adopted, folder: Path) -> dict[Path, int]:
    """Write the intent and its tables into a folder without such files; return them, with the rows of tables."""
    for name in (FABRIC_FILE, *(f"{table}.csv" for table in found.proposal.tables)):
        if (folder / name).exists():
            problem = Problem("exists already", "choose another folder; nothing was changed", file=str(folder / name))
            raise OutputError(problem)
    written: dict[Path, int] = {}
    for table, rows in found.proposal.tables.items():
        file = folder / f"{table}.csv"
        kind = Tables.columns()[table]
        columns = [column for column in kind.model_fields if any(row.get(column) not in {None, ""} for row in rows)]
        written[file] = csv_table.write(
            file, kind, ({one: row.get(one, "") for one in columns} for row in rows), columns
        )
    return {scaffold.write(folder, document.fabric_yaml(found.proposal, found.leave)): 0} | written
