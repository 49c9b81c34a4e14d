"""`netkit adopt`."""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from netkit.cli.fabric import TerminalFeedback
from netkit.errors import AccessError, OutputError, Problem, UsageError
from netkit.intent import csv_table
from netkit.intent.model import CableEntry
from netkit.project import adopting
from netkit.project.adopting import Adopted
from netkit.report.plan_view import counted
from netkit.terminal.output import check_format, write_json, write_whole
from netkit.truth.difference import TruthRecords

UNREACHED = 4
SHOWN = 10
"""Lines of one kind that are printed."""
ROLES = {
    "leaf": ("leaf", "leaves"),
    "spine": ("spine", "spines"),
    "core": ("core switch", "core switches"),
    **{role: (f"{role} switch", f"{role} switches") for role in ("storage", "frontend", "border", "oob")},
    "host": ("host", "hosts"),
}


def run(
    folder: Path,
    out: Path,
    devices: Path | None,
    lab: str,
    cables: Path | None,
    *,
    name: str,
    truth: bool,
    limit: str,
    output: str,
) -> int:
    """Write the intent; return 4 if a device could not be read."""
    check_format(output)
    missed = _read(folder, out, devices, lab, limit) if devices or lab else {}
    files, damaged = adopting.files_in(folder, _limited(adopting.devices_in(folder), limit, folder))
    if not files and not damaged:
        raise UsageError(Problem(f"{folder} has no files of devices", "save them as DIR/<device>/<file>"))
    neighbors_file = folder / adopting.NEIGHBORS
    listed = _cables(cables) if cables else {}
    heard = _cables(neighbors_file) if neighbors_file.is_file() else {}
    records = _records(out) if truth else None
    found = adopting.adopted(name or _name(out), files, heard, out, records, listed, damaged)
    written = adopting.write(found, out)
    if output == "json":
        write_json(_as_json(found, written))
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(found, written, out, folder))
    return UNREACHED if missed else 0


def _records(out: Path) -> TruthRecords:
    from netkit.cli.truth import connected  # noqa: PLC0415 (what connects is slow to import)
    from netkit.truth.reading import read  # noqa: PLC0415 (see above)

    return read(connected(out))


def _read(folder: Path, out: Path, devices: Path | None, lab: str, limit: str) -> Mapping[str, str]:
    """Read devices, and save what they run and which neighbours they hear; return why others are not read."""
    from netkit.project import unadopted  # noqa: PLC0415 (what connects is slow to import)

    reached = unadopted.connections(unadopted.listed(devices) if devices else (), out, lab)
    names = _limited(list(reached.endpoints), limit, devices or Path(lab))
    found = unadopted.read(reached, names, TerminalFeedback())
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(Problem(f"{folder} cannot be created: {error.strerror}", "name another folder")) from None
    for device, text in found.texts.items():
        write_whole(folder / f"{device}{adopting.BACKUP_SUFFIX}", text)
    adopting.save_neighbors(folder / adopting.NEIGHBORS, found.texts, found.cables)
    for device, reason in found.missed.items():
        sys.stderr.write(f"not read: {device}: {reason}\n")
    if not found.texts:
        raise AccessError(Problem("no device could be read", f"check the list of devices, and access.yaml in {out}"))
    return found.missed


def _name(folder: Path) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", folder.resolve().name)[:63].strip("-") or "fabric"


def _limited(names: list[str], limit: str, folder: Path) -> list[str]:
    patterns = limit.replace(",", " ").split()
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(Problem(f"--limit {pattern!r} matches no device in {folder}", "use names and globs"))
    return [name for name in names if not patterns or any(fnmatchcase(name, glob) for glob in patterns)]


def _cables(file: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """Read which ports are joined, from a table with the columns of an intent's cables."""
    table = csv_table.read(file, CableEntry)
    found = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        ends = [str(row.get(key, "")) for key in ("device", "port", "peer", "peer_port")]
        if not all(ends):
            table.refuse("has no port at one end", "give device, port, peer and peer_port", line)
        found[(ends[0], ends[1])] = (ends[2], ends[3])
    if table.problems:
        raise UsageError(table.problems)
    return found


def _lines(found: Adopted, written: Mapping[Path, int], out: Path, folder: Path) -> Iterable[str]:
    proposal = found.proposal
    roles = Counter(_roles(found).values())
    yield ", ".join(f"{roles[role]} {ROLES[role][roles[role] != 1]}" for role in ROLES if roles[role]) + (
        f": {proposal.placement.topology}, {counted(proposal.placement.rails, 'rail')}, "
        f"{proposal.intent.attachment} attachment"
    )
    for file, rows in written.items():
        yield f"{file}: {counted(rows, 'row')}" if rows else f"{file}"
    yield from _section("guessed; check these:", [f"{section}: {text}" for section, text in proposal.guesses])
    guessed = [
        f"{' '.join(link.near)}: the next free port, {' '.join(link.far)}"
        for link in proposal.links.hosts
        if link.origin == "guess"
    ]
    yield from _section("guessed; check these cables:", guessed)
    dangling = [f"{device} {port}: its other end is unknown" for device, port in proposal.links.dangling]
    left_out = [f"{name}: {why}" for name, why in found.unread.items() if name not in found.added]
    yield from _section("not in the intent:", [*left_out, *dangling])
    added = [f"{name}: {why}" for name, why in found.added.items()]
    yield from _section("in the intent, but not read; check them before you deploy to them:", added)
    differing = [
        " ".join((*near, "leads to", *far, "and by LLDP to", *by_lldp)) for near, far, by_lldp in found.contradicted
    ]
    yield from _section("LLDP differs from the list of cables, which is in the intent:", differing)
    yield from _section("in the list of cables, but no device of that name was read:", list(found.strangers))
    yield from _section("the source of truth differs:", list(found.conflicts))
    rules = [f"{rule['path']} on {rule.get('devices', 'all devices')}" for rule in found.leave]
    yield from _section("left as it runs, in `leave` of fabric.yaml:", rules)
    idle = [f"{number} on {', '.join(roles)}" for number, roles in found.without_effect.items()]
    yield from _section("not deployed when changed, as its lines are in `leave`:", idle)
    yield from _section(
        "differs, but `leave` cannot express it:",
        [f"{name}: {counted(count, 'change')}" for name, count in found.remaining.items()],
    )
    if found.damaged:
        yield f"no plan against these configurations until these can be read: {', '.join(found.damaged)}"
    elif not found.remaining:
        yield "a plan against these configurations is empty"
    yield f"next: netkit plan --fabric {os.path.relpath(out)} --running {os.path.relpath(folder)}"


def _roles(found: Adopted) -> dict[str, str]:
    """Device of the intent → its role."""
    places = {name: place.role for name, place in found.proposal.placement.places.items()}
    return places | {switch.name: switch.role for switch in found.proposal.fabric.switches if switch.access}


def _section(title: str, lines: list[str]) -> Iterable[str]:
    if lines:
        yield title
        yield from (f"  {line}" for line in lines[:SHOWN])
        if len(lines) > SHOWN:
            yield f"  and {len(lines) - SHOWN} more; --format json lists all"


def _as_json(found: Adopted, written: Mapping[Path, int]) -> dict[str, object]:
    proposal = found.proposal
    return {
        "topology": proposal.placement.topology,
        "rails": proposal.placement.rails,
        "devices": _roles(found),
        "files": [str(file) for file in written],
        "guesses": [{"section": section, "text": text} for section, text in proposal.guesses],
        "guessed_cables": [[*link.near, *link.far] for link in proposal.links.hosts if link.origin == "guess"],
        "not_adopted": {name: why for name, why in found.unread.items() if name not in found.added},
        "not_read": dict(found.added),
        "unknown_ends": [list(end) for end in proposal.links.dangling],
        "unknown_devices": list(found.strangers),
        "other_cables_by_lldp": [[*near, *far, *by_lldp] for near, far, by_lldp in found.contradicted],
        "conflicts": list(found.conflicts),
        "leave": list(found.leave),
        "without_effect": {number: list(roles) for number, roles in found.without_effect.items()},
        "remaining_changes": dict(found.remaining),
    }
