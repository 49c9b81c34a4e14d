"""The verbs about the state of devices, and of this installation."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.requests import CheckRequest, ReportRequest, WatchRequest
from netkit.cli.verbs import complete
from netkit.cli.verbs.options import (
    Cluster,
    Fabric,
    Facts,
    FleetFolder,
    Format,
    Keep,
    Lab,
    Limit,
    Processes,
    Profile,
    Results,
    Since,
    Site,
    Store,
    Window,
)
from netkit.cli.verbs.options import run as _run


def check(
    fabric: Fabric,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Checks: a file, file.check or a glob; all.", metavar="[NAMES]", autocompletion=complete.checks
        ),
    ] = None,
    limit: Limit = "",
    lab: Lab = "",
    window: Window = 10.0,
    source: Facts = "",
    profile: Profile = "full",
    snapshot: Annotated[
        Path | None, typer.Option("--from", help="Judge a snapshot; no device is read.", metavar="FILE")
    ] = None,
    results: Results = None,
    rdma: Annotated[
        bool, typer.Option("--rdma", help="Also have hosts that have ib_read_lat measure RDMA latency.")
    ] = False,
    output: Annotated[str, typer.Option("--format", help="text, json, junit or markdown.", metavar="FORMAT")] = "text",
    store: Store = "",
    since: Since = "",
    keep: Keep = "90d",
    changes: Annotated[
        bool, typer.Option("--changes", help="Print only causes new, worse, better or gone since the last run.")
    ] = False,
    notify: Annotated[
        bool, typer.Option("--notify", help="Notify the receivers in notify.yaml of changes; with --store.")
    ] = False,
    deadline: Annotated[
        str, typer.Option("--deadline", help="Stop after this time, with what was read by then.", metavar="TIME")
    ] = "",
    metrics: Annotated[
        Path | None, typer.Option("--metrics", help="Also write metrics for Prometheus here.", metavar="FILE")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write the report here: .html, or .json.", metavar="FILE")
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare", help="What changed between two snapshots, or two stored runs.", metavar="BEFORE AFTER"
        ),
    ] = None,
    cluster: Cluster = "",
    routes: Annotated[
        bool, typer.Option("--pod-routes", help="With --cluster KUBECONFIG: run ip route in each pod, by kubectl exec.")
    ] = False,
    steer: Annotated[
        str, typer.Option("--steer", help="kubernetes or slurm: keep new jobs off bad nodes.", metavar="CLUSTER")
    ] = "",
    apply: Annotated[bool, typer.Option("--apply", help="Run the commands of --steer; default: print them.")] = False,
    processes: Processes = 0,
    fleet: FleetFolder = None,
    site: Site = "",
    lists: Annotated[bool, typer.Option("--list", help="List the checks; judge nothing.")] = False,
    new: Annotated[
        str | None, typer.Option("--new", help="Write a custom check to start from.", metavar="NAME")
    ] = None,
) -> None:
    """Judge the running fabric: links, optics, BGP, lossless traffic, hosts; the worst first."""
    if new is not None:
        _run("new_check", fabric, new)
        return
    asked = CheckRequest(
        fabric,
        names=tuple(names or ()),
        limit=limit,
        lab=lab,
        window_s=window,
        source=source,
        profile=profile,
        snapshot=snapshot,
        results=tuple(results or ()),
        has_rdma=rdma,
        output=output,
        store=store,
        since=since,
        keep=keep,
        metrics_file=metrics,
        report_file=report,
        has_changes_only=changes,
        is_notifying=notify,
        deadline=deadline,
        lists=lists,
        cluster=cluster,
        has_pod_routes=routes,
        steered=steer,
        is_applied=apply,
        compared=compare,
        processes=processes,
        fleet=fleet,
        site=site,
    )
    _run("check" if compare is None else "compare", asked)


def report(
    fabric: Fabric,
    run: Annotated[
        str,
        typer.Argument(
            help="A stored run, or last; default: read the devices now.", metavar="[RUN]", autocompletion=complete.runs
        ),
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write.", metavar="FILE")] = None,
    checks: Annotated[
        list[str] | None,
        typer.Option("--check", help="Only these checks.", metavar="NAME", autocompletion=complete.checks),
    ] = None,
    limit: Limit = "",
    lab: Lab = "",
    window: Window = 10.0,
    source: Facts = "",
    profile: Profile = "full",
    snapshot: Annotated[Path | None, typer.Option("--from", help="Report on a snapshot.", metavar="FILE")] = None,
    results: Results = None,
    store: Annotated[str, typer.Option("--store", help="Stored runs: trends, and RUN.", metavar="[=URL|FILE]")] = "",
    since: Since = "",
    site: Site = "",
    output: Annotated[
        str, typer.Option("--format", help="html, json, or schema: what the JSON holds.", metavar="FORMAT")
    ] = "html",
) -> None:
    """Judge the fabric and write the result as one self-contained HTML file, or as JSON."""
    asked = ReportRequest(
        fabric,
        run,
        names=tuple(checks or ()),
        limit=limit,
        lab=lab,
        window_s=window,
        snapshot=snapshot,
        source=source,
        results=tuple(results or ()),
        store=store,
        since=since,
        profile=profile,
        out=out,
        output=output,
        site=site,
    )
    _run("report", asked)


def snapshot(
    fabric: Fabric,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write; .gz compresses.", metavar="FILE")],
    limit: Limit = "",
    lab: Lab = "",
    window: Window = 10.0,
    light: Annotated[bool, typer.Option("--light", help="Skip slow commands.")] = False,
    results: Results = None,
    source: Facts = "",
    processes: Processes = 0,
    fleet: FleetFolder = None,
) -> None:
    """Save the facts of all devices, for netkit check --from."""
    files = tuple(results or ())
    _run(
        "snapshot",
        fabric,
        out,
        files,
        limit=limit,
        lab=lab,
        window_s=window,
        light=light,
        source=source,
        processes=processes,
        fleet=fleet,
    )


def backup(
    fabric: Fabric,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.", metavar="DIR")],
    limit: Limit = "",
    lab: Lab = "",
    processes: Processes = 0,
    fleet: FleetFolder = None,
) -> None:
    """Save running configurations without secrets, one file per device, for git."""
    _run("snapshot", fabric, out, verb="backup", limit=limit, lab=lab, processes=processes, fleet=fleet)


def schedule(
    fabric: Fabric,
    action: Annotated[
        str, typer.Argument(help="show prints systemd units, install writes them.", metavar="ACTION")
    ] = "show",
    every: Annotated[str, typer.Option("--every", help="How often to check.", metavar="TIME")] = "15m",
    backup: Annotated[
        Path | None, typer.Option("--backup", help="Also save running configurations here, every night.", metavar="DIR")
    ] = None,
    notifies: Annotated[bool, typer.Option("--notify", help="Also notify the receivers in notify.yaml.")] = False,
    units: Annotated[Path, typer.Option("--units", help="Folder of the units.", metavar="DIR")] = Path(
        "/etc/systemd/system"
    ),
    fleet: FleetFolder = None,
) -> None:
    """Have systemd check the fabric regularly, and report changes."""
    _run("schedule", fabric, action, every=every, backup=backup, units=units, is_notifying=notifies, fleet=fleet)


def notify(
    fabric: Fabric,
    action: Annotated[
        str, typer.Argument(help="show lists the receivers, test sends each a sample.", metavar="ACTION")
    ] = "show",
    lab: Lab = "",
    store: Annotated[str, typer.Option("--store", help="Also show queued messages.", metavar="[=URL|FILE]")] = "",
    site: Site = "",
) -> None:
    """Notify people and systems of changes: list the receivers, and test them."""
    _run("notify", fabric, action, lab=lab, store=store, site=site)


def watch(
    fabric: Annotated[Path | None, typer.Option("--fabric", help="Folder with fabric.yaml.")] = None,
    limit: Limit = "",
    lab: Lab = "",
    source: Facts = "",
    interval: Annotated[
        float, typer.Option("--interval", help="Seconds from one sample to the next.", min=0.1, max=3600, metavar="S")
    ] = 1.0,
    record: Annotated[
        Path | None, typer.Option("--record", help="Also write every sample here; .gz compresses.", metavar="FILE")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", help="Show a record; no device is read.", metavar="FILE")
    ] = None,
    speed: Annotated[
        float, typer.Option("--speed", help="Replay speed, as a factor.", min=0.1, max=1000, metavar="N")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one screen as text, and end.")] = False,
    length: Annotated[str, typer.Option("--for", help="Watch for this long: 10s, 5m or 1h.", metavar="TIME")] = "",
    output: Annotated[str, typer.Option("--format", help="text, or json of what was seen.", metavar="FORMAT")] = "text",
    fleet: FleetFolder = None,
) -> None:
    """Show traffic, pauses, ECN marks and losses of every port live, the worst first."""
    asked = WatchRequest(
        fabric,
        limit=limit,
        lab=lab,
        source=source,
        interval_s=interval,
        record=record,
        replay=replay,
        speed=speed,
        is_once=once,
        length=length,
        output=output,
        fleet=fleet,
    )
    _run("watch", asked)


def diagnose(
    fabric: Annotated[
        Path | None,
        typer.Option("--fabric", help="Also count what a fabric has.", show_default=False, metavar="DIR"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write.", metavar="FILE")] = None,
    output: Format = "text",
) -> None:
    """Print the data for a bug report: versions, programs, settings by name; no secrets, addresses or device names."""
    _run("diagnose", fabric, out=out, output=output)
