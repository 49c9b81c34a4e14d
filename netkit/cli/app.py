"""Commands and their options. Each runs in a module of its own, imported only then, so that `--help` stays quick."""

import gc
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from netkit import __version__
from netkit.cli import INTERRUPTED
from netkit.cli.acceptance_verbs import acceptance_verbs
from netkit.cli.annotation import annotate
from netkit.cli.lab_verbs import lab_verbs
from netkit.cli.options import (
    Busy,
    ConfirmWithin,
    Disruptive,
    Fabric,
    Facts,
    Format,
    Keep,
    Lab,
    Limit,
    MaxFail,
    NoCanary,
    NoDrain,
    Parallel,
    PlanFormat,
    Results,
    Since,
    Store,
    Together,
    Window,
    Yes,
)
from netkit.cli.running import run as _run
from netkit.errors import NetkitError

app = typer.Typer(
    name="netkit",
    help="Network fabric automation for GPU clusters: one intent file to every switch and host configuration.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

USAGE_ERROR = 3
ALONE = ("--resume", "--store")
"""Options that may be given without a value."""
USAGE_FAULTS: type[Exception] = typer.BadParameter.__mro__[2]
"""Every usage error of the command line library; where the class lives depends on its version."""


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Folder to create.", metavar="DIR")],
    leaves: Annotated[int, typer.Option(help="Leaves in each unit: one per rail.", min=1, max=8)] = 8,
    spines: Annotated[int, typer.Option(help="Spines; 0 makes a rail-only fabric.", min=0, max=1024)] = 4,
    hosts_per_unit: Annotated[int, typer.Option(help="Hosts in each unit.", min=1, max=1024)] = 8,
    units: Annotated[int, typer.Option(help="Scalable units.", min=1, max=4096)] = 1,
    platform: Annotated[str, typer.Option(help="nvue, sonic, eos or frr.", metavar="P")] = "nvue",
    model: Annotated[
        str, typer.Option(help="Switch model; default: one that runs the platform.", metavar="MODEL")
    ] = "",
) -> None:
    """Write a small, valid fabric to start from."""
    _run(
        "init", folder, leaves=leaves, spines=spines, hosts=hosts_per_unit, units=units, platform=platform, model=model
    )


@app.command()
def validate(fabric: Fabric, output: Format = "text") -> None:
    """Check the intent and the design behind it; write nothing."""
    _run("validate", fabric, output)


@app.command()
def schema() -> None:
    """Print the JSON Schema of fabric.yaml, for editors."""
    _run("schema")


@app.command()
def design(
    fabric: Fabric,
    cabling: Annotated[bool, typer.Option("--cabling", help="Every cable, as CSV.")] = False,
    addresses: Annotated[bool, typer.Option("--addresses", help="Every address and AS number.")] = False,
    explain: Annotated[
        str, typer.Option("--explain", help="Every number of one port, such as leaf01:swp1s0.", metavar="PORT")
    ] = "",
    output: Format = "text",
    limit: Limit = "",
) -> None:
    """Show the design: its size, its cables, its addresses, or where a number comes from."""
    _run("design", fabric, cabling=cabling, addresses=addresses, explain=explain, output=output, limit=limit)


@app.command()
def render(
    fabric: Fabric,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.", show_default=False)],
    limit: Limit = "",
    platform: Annotated[str, typer.Option(help="Only devices of this platform (linux: the hosts).", metavar="P")] = "",
    ztp: Annotated[
        bool, typer.Option("--ztp", help="Also write what a factory-fresh switch needs to become reachable.")
    ] = False,
) -> None:
    """Write every configuration file, and a manifest of them."""
    _run("render", fabric, out, limit=limit, platform=platform, ztp=ztp)


@app.command()
def plan(
    fabric: Fabric,
    limit: Limit = "",
    lab: Lab = "",
    running: Annotated[
        Path | None,
        typer.Option("--running", help="Saved configurations, DIR/<device>/<file>; no device is asked.", metavar="DIR"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the plan here too.", metavar="FILE")] = None,
    output: PlanFormat = "text",
    detailed: Annotated[bool, typer.Option("--detailed-exitcode", help="End with 2 when there are changes.")] = False,
    against: Annotated[
        str,
        typer.Option(
            "--against", help="For a pull request: git:REVISION (no device is asked), or running.", metavar="X"
        ),
    ] = "",
) -> None:
    """Show what would change on the devices, what it risks and what it touches; change nothing."""
    where: dict[str, Any] = {"limit": limit, "lab": lab, "running": running, "against": against}
    _run("plan", fabric, out=out, output=output, detailed=detailed, **where)


@app.command()
def deploy(
    fabric: Fabric,
    file: Annotated[Path | None, typer.Argument(help="A plan of netkit plan -o.", metavar="[PLAN]")] = None,
    lab: Lab = "",
    limit: Limit = "",
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look at every device; write to none.")] = False,
    resume: Annotated[
        str, typer.Option("--resume", help="Finish an interrupted run: the newest, or =RUN.", metavar="[=RUN]")
    ] = "",
    approved: Annotated[
        str, typer.Option("--approved", help="Refuse any plan but the one of this digest.", metavar="DIGEST")
    ] = "",
    max_fail: MaxFail = 0,
    disruptive: Disruptive = False,
    busy: Busy = False,
    no_canary: NoCanary = False,
    no_drain: NoDrain = False,
    confirm_within: ConfirmWithin = 120,
    parallel: Parallel = 20,
    together: Together = False,
    output: Format = "text",
) -> None:
    """Bring devices to what is intended: a canary, then waves; what is not confirmed goes back by itself."""
    how: dict[str, Any] = {"lab": lab, "limit": limit, "yes": yes, "output": output, "revert_s": confirm_within}
    how |= {"max_fail": max_fail, "parallel": parallel, "together": together, "canary": not no_canary}
    how |= {"disruptive": disruptive, "busy": busy, "drain": not no_drain}
    _run("deploy", fabric, file=file, resume=resume, dry=dry_run, approved=approved, **how)


@app.command()
def rollback(
    run: Annotated[str, typer.Argument(help="The run, the beginning of its name, or last.", metavar="RUN")],
    fabric: Fabric,
    lab: Lab = "",
    limit: Limit = "",
    yes: Yes = False,
    max_fail: MaxFail = 0,
    disruptive: Disruptive = False,
    busy: Busy = False,
    no_canary: NoCanary = False,
    no_drain: NoDrain = False,
    confirm_within: ConfirmWithin = 120,
    parallel: Parallel = 20,
    together: Together = False,
    output: Format = "text",
) -> None:
    """Take back what a run changed, with the same care."""
    how: dict[str, Any] = {"lab": lab, "limit": limit, "yes": yes, "output": output, "revert_s": confirm_within}
    how |= {"max_fail": max_fail, "parallel": parallel, "together": together, "canary": not no_canary}
    how |= {"disruptive": disruptive, "busy": busy, "drain": not no_drain}
    _run("rollback", fabric, run, **how)


@app.command()
def history(
    fabric: Fabric,
    run: Annotated[str, typer.Argument(help="All about one run, or last.", metavar="[RUN]")] = "",
    lab: Lab = "",
    checks: Annotated[bool, typer.Option("--checks", help="Runs of checks instead of deploys.")] = False,
    store: Annotated[str, typer.Option("--store", help="Where they are: a file or a URL.", metavar="[=URL|FILE]")] = "",
    output: Annotated[
        str, typer.Option("--format", help="text or json; of one run of checks as in netkit check.", metavar="FORMAT")
    ] = "text",
) -> None:
    """List the runs on a fabric, newest first: deploys, or checks that were stored."""
    if checks or store:
        _run("check_history", fabric, run, lab=lab, store=store, output=output)
        return
    _run("history", fabric, run, lab=lab, output=output)


@app.command()
def check(
    fabric: Fabric,
    names: Annotated[
        list[str] | None, typer.Argument(help="Checks: a file, file.check or a glob; all.", metavar="[NAMES]")
    ] = None,
    limit: Limit = "",
    lab: Lab = "",
    window: Window = 10.0,
    source: Facts = "",
    profile: Annotated[
        str, typer.Option("--profile", help="full, or light: nothing that takes a device long.", metavar="P")
    ] = "full",
    snapshot: Annotated[
        Path | None, typer.Option("--from", help="Judge a snapshot; no device is asked.", metavar="FILE")
    ] = None,
    results: Results = None,
    output: Annotated[str, typer.Option("--format", help="text, json, junit or markdown.", metavar="FORMAT")] = "text",
    store: Store = "",
    since: Since = "",
    keep: Keep = "90d",
    changes: Annotated[
        bool, typer.Option("--changes", help="Say what changed since the last stored run; else nothing.")
    ] = False,
    metrics: Annotated[
        Path | None, typer.Option("--metrics", help="Also write metrics for Prometheus here.", metavar="FILE")
    ] = None,
    lists: Annotated[bool, typer.Option("--list", help="List the checks; judge nothing.")] = False,
    new: Annotated[str, typer.Option("--new", help="Write a check of your own to start from.", metavar="NAME")] = "",
) -> None:
    """Judge the fabric as it is: links, optics, BGP, lossless traffic, hosts; the worst first."""
    if new:
        _run("new_check", fabric, new)
        return
    how: dict[str, Any] = {"limit": limit, "lab": lab, "window_s": window, "profile": profile, "lists": lists}
    how |= {"results": tuple(results or ())}
    how |= {"storing": (store, since, keep), "metrics_file": metrics, "has_changes_only": changes}
    _run("check", fabric, names=tuple(names or ()), snapshot=snapshot, source=source, output=output, **how)


@app.command()
def report(
    fabric: Fabric,
    run: Annotated[str, typer.Argument(help="A stored run, or last; default: look now.", metavar="[RUN]")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write.", metavar="FILE")] = None,
    checks: Annotated[list[str] | None, typer.Option("--check", help="Only these checks.", metavar="NAME")] = None,
    limit: Limit = "",
    lab: Lab = "",
    window: Window = 10.0,
    source: Facts = "",
    snapshot: Annotated[Path | None, typer.Option("--from", help="Report on a snapshot.", metavar="FILE")] = None,
    store: Annotated[str, typer.Option("--store", help="Stored runs: trends, and RUN.", metavar="[=URL|FILE]")] = "",
    output: Annotated[
        str, typer.Option("--format", help="html, json, or schema: what the JSON holds.", metavar="FORMAT")
    ] = "html",
) -> None:
    """Judge the fabric and write one HTML file about it that needs nothing else; the same data as JSON."""
    where: dict[str, Any] = {"limit": limit, "lab": lab, "window_s": window, "snapshot": snapshot, "source": source}
    _run("report", fabric, run, names=tuple(checks or ()), store=store, out=out, output=output, **where)


@app.command()
def snapshot(
    fabric: Fabric,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write; .gz compresses.", metavar="FILE")],
    limit: Limit = "",
    lab: Lab = "",
    window: Window = 10.0,
    light: Annotated[bool, typer.Option("--light", help="Nothing that takes a device long.")] = False,
    results: Results = None,
    source: Facts = "",
) -> None:
    """Save what all devices are like, for netkit check --from."""
    files = tuple(results or ())
    _run("snapshot", fabric, out, files, limit=limit, lab=lab, window_s=window, light=light, source=source)


@app.command()
def backup(
    fabric: Fabric,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.", metavar="DIR")],
    limit: Limit = "",
    lab: Lab = "",
) -> None:
    """Save what devices run without secrets, one file each, made to live in git."""
    _run("backup", fabric, out, limit=limit, lab=lab)


@app.command()
def schedule(
    fabric: Fabric,
    action: Annotated[
        str, typer.Argument(help="show prints systemd units, install writes them.", metavar="ACTION")
    ] = "show",
    every: Annotated[str, typer.Option("--every", help="How often to check.", metavar="TIME")] = "15m",
    backup: Annotated[
        Path | None, typer.Option("--backup", help="Also save what devices run, every night, here.", metavar="DIR")
    ] = None,
    units: Annotated[Path, typer.Option("--units", help="Folder of the units.", metavar="DIR")] = Path(
        "/etc/systemd/system"
    ),
) -> None:
    """Have systemd check the fabric regularly, and say what changed."""
    _run("schedule", fabric, action, every=every, backup=backup, units=units)


@app.command()
def trust(
    fabric: Fabric,
    limit: Limit = "",
    lab: Lab = "",
    yes: Yes = False,
    replace: Annotated[bool, typer.Option("--replace", help="Also trust what differs from what was trusted.")] = False,
) -> None:
    """Collect SSH host keys and HTTPS certificates, show them, and trust them when you say so."""
    _run("trust", fabric, limit=limit, lab=lab, yes=yes, replace=replace)


@app.command()
def inventory(fabric: Fabric, limit: Limit = "", lab: Lab = "") -> None:
    """Print the GPU hosts as an Ansible inventory, for the playbooks or your own."""
    _run("inventory", fabric, limit=limit, lab=lab)


@app.command()
def platforms(
    name: Annotated[str, typer.Argument(help="All about one: nvue, sonic, eos, frr or linux.", metavar="NAME")] = "",
    output: Format = "text",
) -> None:
    """List the platforms, what each can express, and how each takes changes."""
    _run("platforms", name, output)


app.add_typer(acceptance_verbs, name="acceptance")
app.add_typer(lab_verbs, name="lab")


@app.command()
def version() -> None:
    """Print netkit's version."""
    sys.stdout.write(f"netkit {__version__}\n")


def main() -> None:
    """Run the command line; every failure is a few plain lines and an exit code."""
    gc.disable()  # a fabric is built once and kept: collecting it in between only costs time
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no arrow shows a question mark
    sys.exit(_guarded(sys.argv[1:]))


def _guarded(arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        result = command.main(_spelled_out(arguments) or ["--help"], prog_name="netkit", standalone_mode=False)
        sys.stdout.flush()  # here, where a closed pipe or a full disk can still be told
    except NetkitError as error:
        for problem in error.problems:
            _say(f"error: {problem}")
        annotate(error.problems)
        return error.exit_code
    except USAGE_FAULTS as error:
        _say(f"error: {_plain(error)}; see netkit --help")
        return USAGE_ERROR
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        _say(f"error: {error.filename or 'the output'}: {reason}; make room or check permissions")
        return USAGE_ERROR
    if result == INTERRUPTED:  # the command line library may catch an interrupt first, and ends without a word
        _say("interrupted")
    return result if isinstance(result, int) else 0


def _spelled_out(arguments: list[str]) -> list[str]:
    """Return arguments in which `--lab`, `--resume` and `--store` have a value; alone they stand for the usual one."""
    if not arguments or arguments[0] == "lab":
        return arguments
    following = [*arguments[1:], "-"]
    return [
        f"{argument}=." if argument == "--lab" or (argument in ALONE and after.startswith("-")) else argument
        for argument, after in zip(arguments, following, strict=True)
    ]


def _plain(error: Exception) -> str:
    """Return a usage error in one line."""
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    text = text.partition(", unable to parse")[0].replace("Input should be", "it must be")
    return " ".join(text.split()).rstrip(".")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
