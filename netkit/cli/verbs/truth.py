"""The verbs of `netkit truth`."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.verbs.options import Fabric, Format, Lab, run

verbs = typer.Typer(
    help="A source of truth, Nautobot or NetBox: compare the intent with it, and export the intent to it.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@verbs.command()
def diff(fabric: Fabric, output: Format = "text") -> None:
    """List devices, serial numbers, racks and cables that differ between the source of truth and the intent."""
    run("truth", fabric, verb="diff", output=output)


@verbs.command("import")
def read_into(
    out: Annotated[Path, typer.Argument(help="Folder for the tables, such as that of fabric.yaml.", metavar="DIR")],
    fabric: Fabric,
) -> None:
    """Write the tables of the intent from the source of truth: names, racks, cables, addresses, AS numbers."""
    run("truth", fabric, out, verb="read_into")


@verbs.command()
def export(
    fabric: Fabric,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write; without it, print what would be written.")] = False,
    output: Format = "text",
) -> None:
    """Create and update the objects of the intent in the source of truth. Nothing is deleted."""
    run("truth", fabric, verb="export", yes=yes, output=output)


@verbs.command()
def drift(
    fabric: Fabric,
    lab: Lab = "",
    snapshot: Annotated[
        Path | None, typer.Option("--from", help="Compare with a snapshot; no device is read.", metavar="FILE")
    ] = None,
    write_cables: Annotated[
        bool, typer.Option("--write-cables", help="Show cables found by LLDP that it lacks; with --yes, write them.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --write-cables: write.")] = False,
    output: Format = "text",
) -> None:
    """List differences between the source of truth, the intent and the running fabric, by device and cable."""
    options = {"lab": lab, "snapshot": snapshot, "write_cables": write_cables, "yes": yes, "output": output}
    run("truth", fabric, verb="drift", **options)
