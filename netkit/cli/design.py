"""`netkit design` and `netkit plan-capacity`."""

import difflib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.design import Host, capacity, listing
from netkit.design import tables as designed
from netkit.design.capacity import Summary
from netkit.design.drawing import Drawing, draw
from netkit.design.explain import explain, find
from netkit.design.listing import CableRow
from netkit.design.phases import CapacityDesign, GrowthPhase, candidates, phases
from netkit.design.racks import racks as racks_of
from netkit.design.select import select
from netkit.errors import Problem, UsageError
from netkit.hardware import Catalog
from netkit.intent import csv_table
from netkit.intent.model import Tables
from netkit.project.project import Project
from netkit.render import Engine, names, templates
from netkit.render.explain_nic import explain_nic, find_nic
from netkit.report.diagram import dot, mermaid, svg
from netkit.report.plan_view import counted
from netkit.report.rack_drawing import elevation_svg, elevation_text, labels_page
from netkit.report.table import columns
from netkit.terminal.output import check_format, write_csv, write_json, write_named


def run(
    folder: Path,
    *,
    cabling: bool,
    addresses: bool,
    explain: str,
    view: str,
    tables: Path | None,
    diagram: str,
    racks: str,
    labels: str,
    steps: Sequence[str],
    by: str,
    output: str,
    limit: str,
) -> None:
    check_format(output)
    if limit and not (cabling or addresses or diagram or racks or labels):
        message = "--limit applies to --cabling, --addresses, --diagram, --racks and --labels"
        raise UsageError(Problem(message, "add one of them, or drop --limit"))
    if by != "unit" and not diagram:
        raise UsageError(Problem("--by applies to --diagram", "add --diagram, or drop --by"))
    if cabling + addresses + sum(map(bool, (explain, view, tables, diagram, racks, labels, steps))) > 1:
        names = "--cabling, --addresses, --explain, --view, --tables, --diagram, --racks, --labels and --phase"
        message = f"{names} exclude each other"
        raise UsageError(Problem(message, "choose one"))
    project = open_project(folder)
    if cabling:
        _cabling(project, output, limit)
    elif addresses:
        _addresses(project, output, limit)
    elif explain:
        _explain(project, explain, output)
    elif view:
        _view(project, view, output)
    elif tables:
        _tables(project, tables, output)
    elif diagram:
        _diagram(project, diagram, by, limit)
    elif racks or labels:
        (_racks if racks else _labels)(project, racks or labels, limit)
    elif steps:
        _phases(list(phases(project.intent, steps, project.catalog)), output)
    else:
        warn(project)
        _summary(capacity.summarize(project.fabric, project.catalog.media()), output)


def _cabling(project: Project, output: str, limit: str) -> None:
    rows = _cables(project, limit)
    if output == "json":
        write_json(rows)
    else:
        write_csv(rows)


def _cables(project: Project, limit: str) -> list[CableRow]:
    chosen = {device.name for device in select(project.fabric, limit)}
    rows = listing.cabling(project.fabric, project.catalog.media())
    return [row for row in rows if row.from_device in chosen or row.to_device in chosen]


def _addresses(project: Project, output: str, limit: str) -> None:
    chosen = {device.name for device in select(project.fabric, limit)}
    rows = [row for row in listing.addresses(project.fabric) if row.device in chosen]
    if output == "json":
        write_json(rows)
        return
    table = ((row.device, row.role, row.what, row.value) for row in rows)
    sys.stdout.write(columns(table, ("DEVICE", "ROLE", "WHAT", "VALUE")))


def _explain(project: Project, place: str, output: str) -> None:
    name, _, interface = place.partition(":")
    host = project.fabric.device(name)
    if isinstance(host, Host):
        nic = find_nic(host, interface)
        numbers = list(explain_nic(project.fabric, host, nic))
        ends = f"{host.name} {nic.interface} → {nic.leaf} {nic.leaf_port}"
    else:
        switch, port = find(project.fabric, place)
        numbers = list(explain(project.fabric, project.intent, switch, port))
        ends = f"{switch.name} {port.name} → {port.peer} {port.peer_port}"
    if output == "json":
        write_json(numbers)
        return
    sys.stdout.write(f"{ends}\n\n")
    sys.stdout.write(columns((number.name, number.value, number.formula) for number in numbers))
    sources = dict.fromkeys(number.source for number in numbers if number.source)
    if sources:
        sys.stdout.write("\nSources\n" + "".join(f"  {source}\n" for source in sources))


def _view(project: Project, name: str, output: str) -> None:
    device = project.fabric.device(name)
    if device is None:
        close = difflib.get_close_matches(name, project.fabric.names, 1)
        raise UsageError(Problem(f"no device {name!r}", f"did you mean {close[0]}?" if close else "check the name"))
    found = tuple(templates(project.fabric, device, Engine(project.template_folders)))
    given = tuple(names(project.fabric, device))
    if output == "json":
        write_json({"templates": found, "names": given})
        return
    sys.stdout.write(columns(((one.file, one.template, one.path) for one in found), ("FILE", "TEMPLATE", "FROM")))
    sys.stdout.write("\n" + columns(((one.name, one.value) for one in given), ("NAME", "VALUE")))


def _tables(project: Project, folder: Path, output: str) -> None:
    if output == "json":
        write_json({name: list(rows(project.fabric)) for name, rows in designed.TABLES.items()})
        return
    for name, kind in Tables.columns().items():
        file = folder / f"{name}.csv"
        count = csv_table.write(file, kind, designed.TABLES[name](project.fabric))
        sys.stdout.write(f"{file}: {counted(count, 'row')}\n")
    if not project.intent.tables.model_fields_set:
        sys.stdout.write(use_hint(folder, project.folder))


def use_hint(folder: Path, beside: Path) -> str:
    """What to write into fabric.yaml so that tables in a folder are used."""
    above = os.path.relpath(folder, beside)
    place = "" if above == "." else f"{above}/"
    names = ", ".join(f"{name}: {place}{name}.csv" for name in Tables.columns())
    return f"to use them, add to fabric.yaml: tables: {{{names}}}\n"


def _phases(found: Sequence[GrowthPhase], output: str) -> None:
    """Show what each phase adds, beside the total."""
    if output == "json":
        write_json([asdict(one) for one in found])
        return
    sizes = ((one.name, one.units, one.hosts, one.gpus) for one in found)
    sys.stdout.write(columns(sizes, ("PHASE", "UNITS", "HOSTS", "GPUS")) + "\n")
    added = [{replace(item, count=0): item.count for item in one.added} for one in found]
    rows = (
        (
            *(item.what, item.media, item.form, "" if item.length_m is None else f"{item.length_m:g} m"),
            *(counts.get(item, "") for counts in added),
            sum(counts.get(item, 0) for counts in added),
        )
        for item in dict.fromkeys(item for counts in added for item in counts)
    )
    titles = ("NOW", *(f"PHASE {number}" for number in range(1, len(found))), "TOTAL")
    sys.stdout.write(columns(rows, ("WHAT", "TYPE", "FORM", "LENGTH", *titles)))


DIAGRAMS: Mapping[str, Callable[[Drawing], str]] = {"svg": svg, "dot": dot, "mermaid": mermaid}
NO_RACK = Problem("no device has a rack", "give racks in the table of devices (docs/tables.md)")
SUFFIXES = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid"}


def _diagram(project: Project, target: str, by: str, limit: str) -> None:
    """Write a drawing into a file of a known kind, or print it if only the kind is given."""
    kind = _kind(target, SUFFIXES, "diagram")
    fabric = project.fabric
    if by not in {"unit", "rack"}:
        raise UsageError(Problem(f"--by does not take {by!r}", "use unit or rack"))
    has_racks = any(one.rack for one in fabric.switches) or any(one.rack for one in fabric.hosts)
    if by == "rack" and not has_racks:
        raise UsageError(NO_RACK)
    chosen = {device.name for device in select(fabric, limit)}
    _deliver(target, kind, DIAGRAMS[kind](draw(fabric, chosen, "rack" if by == "rack" else "unit")))


def _racks(project: Project, target: str, limit: str) -> None:
    """Draw the racks of the chosen devices, with everything in them."""
    kind = _kind(target, {".svg": "svg", ".txt": "text"}, "elevation")
    found = tuple(racks_of(project.fabric, {device.name for device in select(project.fabric, limit)}))
    if not found:
        raise UsageError(NO_RACK)
    _deliver(target, kind, elevation_svg(found) if kind == "svg" else elevation_text(found))


def _labels(project: Project, target: str, limit: str) -> None:
    """Write a page with labels for both ends of each cable of the chosen devices."""
    kind = _kind(target, {".html": "html"}, "labels")
    _deliver(target, kind, labels_page(project.fabric.name, _cables(project, limit)))


def _kind(target: str, suffixes: Mapping[str, str], what: str) -> str:
    """The kind of a file to write, or the kind to print."""
    kinds = tuple(dict.fromkeys(suffixes.values()))
    kind = target if target in kinds else suffixes.get(Path(target).suffix)
    if kind is None:
        remedy = f"use {', '.join(kinds)}, or a file that ends in {', '.join(suffixes)}"
        raise UsageError(Problem(f"unknown kind of {what} {target!r}", remedy))
    return kind


def _deliver(target: str, kind: str, text: str) -> None:
    if target == kind:
        sys.stdout.write(text)
    else:
        write_named(Path(target), text)


def _summary(summary: Summary, output: str) -> None:
    if output == "json":
        with_ratio = [{**asdict(tier), "oversubscription": tier.oversubscription} for tier in summary.tiers]
        write_json({**asdict(summary), "tiers": with_ratio})
        return
    links = ", ".join(f"{count} {kind}" for kind, count in summary.links.items())
    head = (
        ("fabric", f"{summary.name}: {summary.topology}, {summary.attachment} attachment"),
        ("GPUs", f"{summary.gpus} in {summary.hosts} hosts, {summary.rails} rails, {summary.units} units"),
        ("switches", summary.switches),
        ("links", links),
    )
    sys.stdout.write(columns(head) + "\n")
    tiers = (
        (
            tier.role,
            tier.switches,
            tier.model,
            f"{tier.platform} {tier.version}",
            tier.ports_used,
            tier.ports_spare,
            f"{tier.down_gbps / 1000:g}",
            f"{tier.up_gbps / 1000:g}",
            "–" if tier.oversubscription is None else f"{tier.oversubscription:g} : 1",
        )
        for tier in summary.tiers
    )
    titles = ("TIER", "SWITCHES", "MODEL", "PLATFORM", "PORTS", "SPARE", "DOWN Tb/s", "UP Tb/s", "OVERSUBSCRIPTION")
    sys.stdout.write(columns(tiers, titles) + "\n")
    items = (
        (item.count, item.what, item.media, item.form, "" if item.length_m is None else f"{item.length_m:g} m")
        for item in summary.items
    )
    sys.stdout.write(columns(items, ("COUNT", "WHAT", "TYPE", "FORM", "LENGTH")))


TITLES = (
    *("MODEL", "TOPOLOGY", "PLANES", "GPUS", "OVERSUBSCRIPTION", "LEAVES", "SPINES", "CORES"),
    *("OPTICS", "CABLES", "SWITCHES W", "OPTICS W"),
)
UNKNOWN = "not sourced"


def plan_capacity(gpus: int, *, oversubscription: str, models: Sequence[str], output: str) -> int:
    """Compare designs; exit code 1 if none holds the GPUs."""
    check_format(output)
    ratio = _ratio(oversubscription)
    catalog = Catalog()
    found = list(candidates(gpus, ratio, models or catalog.names("switches"), catalog))
    if output == "json":
        write_json([{**asdict(one), "command": one.command, "power_w": one.power_w} for one in found])
    else:
        _table(found)
    return 0 if any(one.summary for one in found) else 1


def _ratio(text: str) -> float:
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,3})?):1", text)
    if not match or float(match[1]) < 1:
        raise UsageError(Problem(f"--oversubscription {text!r} is not a ratio", "write it as 1:1 or 2:1"))
    return float(match[1])


def _table(found: Sequence[CapacityDesign]) -> None:
    fitting = [one for one in found if one.summary]
    if fitting:
        sys.stdout.write(columns(map(_row, fitting), TITLES) + "\n")
        sys.stdout.write("".join(f"{one.command}\n" for one in fitting))
    if lacking := [one for one in found if not one.summary]:
        sys.stdout.write("\n" if fitting else "")
        sys.stdout.write(columns((one.model, one.topology, _planes(one), one.reason) for one in lacking))


def _planes(one: CapacityDesign) -> str:
    return str(one.planes or "–")


def _watts(power_w: float | None) -> str:
    return UNKNOWN if power_w is None else f"{power_w:.0f}"


def _row(one: CapacityDesign) -> tuple[object, ...]:
    summary = one.summary
    if summary is None:
        raise ValueError(f"{one.model} has no design")
    tiers = {tier.role: tier for tier in summary.tiers}
    ratio = tiers["leaf"].oversubscription
    spines, cores = (tiers[role].switches if role in tiers else 0 for role in ("spine", "core"))
    optics = sum(item.count for item in summary.items if item.what.startswith("optical module"))
    cables = sum(summary.links.values())
    shown = "–" if ratio is None else f"{ratio:g} : 1"
    size = (summary.gpus, shown, tiers["leaf"].switches, spines, cores, optics, cables)
    return one.model, one.topology, _planes(one), *size, _watts(one.switches_power_w), _watts(one.optics_power_w)
