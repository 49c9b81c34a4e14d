"""The verbs of `netkit acceptance`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from netkit.cli.verbs.options import Fabric, Lab, Limit, Yes
from netkit.cli.verbs.options import run as _run

verbs = typer.Typer(
    help="Measure the throughput of a new fabric; netkit check acceptance --results judges it.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@verbs.command()
def emit(
    kind: Annotated[str, typer.Argument(help="slurm, mpijob, jobset, trainjob, gke or vertex.", metavar="KIND")],
    fabric: Fabric,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; default: the terminal.", metavar="FILE")
    ] = None,
    limit: Limit = "",
    image: Annotated[
        str,
        typer.Option(
            "--image", help="Image with nccl-tests; default: that of the cluster in the intent.", metavar="IMAGE"
        ),
    ] = "",
) -> None:
    """Write a job that runs collectives: a Slurm batch script, or a manifest of Kubernetes."""
    _run("acceptance", kind, fabric, verb="emit", out=out, limit=limit, image=image)


@verbs.command()
def run(
    fabric: Fabric,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write results to.", metavar="FILE")],
    limit: Limit = "",
    lab: Lab = "",
    tools: Annotated[
        list[str] | None,
        typer.Option("--tool", help="perftest, iperf3 or nccl-tests; repeatable; default: all.", metavar="TOOL"),
    ] = None,
    seconds: Annotated[int, typer.Option(help="Duration for each pair.", min=1, max=120)] = 5,
    cuda: Annotated[
        bool, typer.Option("--cuda/--host", help="RDMA between memory of GPUs, with perftest's use_cuda, or of hosts.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run; run nothing.")] = False,
    yes: Yes = False,
) -> None:
    """Run the tools on the hosts over SSH: pairs along each rail, then collectives; shows the plan first."""
    how: dict[str, Any] = {"tools": tuple(tools or ()), "seconds": seconds, "cuda": cuda, "dry": dry_run, "yes": yes}
    _run("acceptance", fabric, out=out, limit=limit, lab=lab, **how)
