"""The verbs of `netkit acceptance`."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.options import Fabric, Limit
from netkit.cli.running import run as _run

acceptance_verbs = typer.Typer(
    help="Measure what a new fabric carries; netkit check acceptance --results judges it.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@acceptance_verbs.command()
def emit(
    kind: Annotated[str, typer.Argument(help="slurm or mpijob.", metavar="KIND")],
    fabric: Fabric,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; default: the terminal.", metavar="FILE")
    ] = None,
    limit: Limit = "",
    image: Annotated[
        str, typer.Option("--image", help="mpijob: container image that holds nccl-tests.", metavar="IMAGE")
    ] = "nccl-tests:latest",
) -> None:
    """Write a job that runs collectives: a Slurm batch script, or an MPIJob of Kubeflow."""
    _run("acceptance", kind, fabric, verb="emit", out=out, limit=limit, image=image)
