"""The verbs of `netkit model`."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.running import run

verbs = typer.Typer(
    help="Models of switches for the hardware catalogue.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@verbs.command("import")
def import_(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Device folder of the switch, from /usr/share/sonic/device; or a folder with what it printed.",
            metavar="DIR",
        ),
    ],
    name: Annotated[
        str,
        typer.Option("--name", help="Name of the model; default: its hwsku, or the product it names.", metavar="NAME"),
    ] = "",
    hwsku: Annotated[
        str, typer.Option("--hwsku", help="Which hwsku of a SONiC image, if it has several.", metavar="HWSKU")
    ] = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.", metavar="DIR")] = Path(
        "models/switches"
    ),
) -> None:
    """Write a model file from a SONiC image, or from what NVUE or EOS prints; what is not in it stays null."""
    run("model", folder, name, hwsku, out, verb="import_folder")
