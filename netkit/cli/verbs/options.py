"""Options that many commands share."""

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from netkit.cli.verbs import complete

Fabric = Annotated[Path, typer.Option("--fabric", help="Folder with fabric.yaml.", show_default=False)]
Format = Annotated[str, typer.Option("--format", help="text or json.", metavar="FORMAT")]
Limit = Annotated[
    str,
    typer.Option(
        "--limit",
        help="Devices: names, globs, role=spine, rail=3, !name.",
        metavar="EXPR",
        autocompletion=complete.devices,
    ),
]
PlanFormat = Annotated[str, typer.Option("--format", help="text, markdown or json.", metavar="FORMAT")]
Cluster = Annotated[
    str,
    typer.Option(
        "--cluster",
        help="A running cluster: a kubeconfig, saved output of kubectl or scontrol, or slurm.",
        metavar="FILE|slurm",
    ),
]
Lab = Annotated[
    str,
    typer.Option(
        "--lab",
        help="The lab of this fabric, or NAME; nothing else is reached.",
        metavar="[LAB]",
        autocompletion=complete.labs,
    ),
]
FleetFolder = Annotated[
    Path | None,
    typer.Option("--fleet", help="Have the sites of a fleet read devices: folder of fleet.yaml.", metavar="DIR"),
]
Site = Annotated[str, typer.Option("--site", help="The fleet site of the stored runs.", metavar="NAME")]
Fleet = Annotated[
    Path | None,
    typer.Option("--fleet", help="Have the workers of a fleet do it: folder of fleet.yaml.", metavar="DIR"),
]
OnDisconnect = Annotated[
    str,
    typer.Option(
        "--on-disconnect", help="With --fleet, when this ends: stop the run safely, or continue.", metavar="WHAT"
    ),
]
Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        help="Processes for many devices; default: one for each core.",
        metavar="N",
        min=0,
        max=256,
        show_default=False,
    ),
]
Facts = Annotated[
    str, typer.Option("--source", help="Source of facts of switches: native, snmp, napalm or gnmi.", metavar="SOURCE")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
MaxFail = Annotated[int, typer.Option("--max-fail", help="Continue while at most this many devices fail.", min=0)]
Disruptive = Annotated[bool, typer.Option("--disruptive", help="Allow changes that take down the only path of hosts.")]
Busy = Annotated[bool, typer.Option("--busy", help="Make disruptive changes although lossless traffic flows.")]
TakeOver = Annotated[bool, typer.Option("--take-over", help="On first contact, remove what netkit cannot explain.")]
NoCanary = Annotated[bool, typer.Option("--no-canary", help="Begin with a whole wave, not with one device.")]
NoDrain = Annotated[bool, typer.Option("--no-drain", help="Change spines and cores without moving traffic away first.")]
ConfirmWithin = Annotated[
    int,
    typer.Option("--confirm-within", help="Devices revert what is not confirmed in time.", metavar="S", min=5),
]
Watch = Annotated[
    int,
    typer.Option("--watch", help="Watch drained devices with traffic back before confirming.", metavar="S", min=0),
]
Parallel = Annotated[int, typer.Option("--parallel", help="Devices of a wave at the same time.", min=1, max=500)]
Together = Annotated[bool, typer.Option("--together", help="Also change redundant devices at the same time.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, or for which ticket: kept with the run.", metavar="TEXT")]
SkipHook = Annotated[
    str | None,
    typer.Option("--skip-hook", help="Skip the hook of deploy.yaml; the reason is stored.", metavar="REASON"),
]
Key = Annotated[
    Path | None, typer.Option("--key", help="Sign with this SSH key; .pub: by the SSH agent.", metavar="FILE")
]
Results = Annotated[
    list[Path] | None,
    typer.Option("--results", help="Also judge output of nccl-tests, perftest or iperf3; repeatable.", metavar="FILE"),
]
Window = Annotated[
    float, typer.Option("--window", help="Seconds between two samples of the counters.", min=0, max=86400, metavar="S")
]
Store = Annotated[
    str, typer.Option("--store", help="Store the run here: a file, a URL, or the default file.", metavar="[=URL|FILE]")
]
Since = Annotated[
    str, typer.Option("--since", help="Judge counters since the last stored run instead of a window.", metavar="last")
]
Keep = Annotated[str, typer.Option("--keep", help="Drop stored runs older than this.", metavar="TIME")]
Profile = Annotated[str, typer.Option("--profile", help="full, or light: without slow commands.", metavar="P")]


def run(command: str, *arguments: Any, verb: str = "run", **options: Any) -> None:
    """Call a function of a command's module; a return value is the exit code."""
    code = getattr(importlib.import_module(f"netkit.cli.{command}"), verb)(*arguments, **options)
    if code:
        raise typer.Exit(code)
