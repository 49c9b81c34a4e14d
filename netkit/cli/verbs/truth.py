"""The verbs of `netkit truth`."""

import typer

from netkit.cli.running import run
from netkit.cli.verbs.options import Fabric, Format

verbs = typer.Typer(
    help="Compare the intent with a source of truth: Nautobot or NetBox.", rich_markup_mode=None, no_args_is_help=True
)


@verbs.callback()
def _group() -> None:
    """Make a group of a single verb."""


@verbs.command()
def diff(fabric: Fabric, output: Format = "text") -> None:
    """List devices, serial numbers, racks and cables that differ between the source of truth and the intent."""
    run("truth", fabric, output=output)
