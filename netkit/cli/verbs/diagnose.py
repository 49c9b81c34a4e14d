"""The verb about netkit itself."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.running import run as _run
from netkit.cli.verbs.options import Format


def diagnose(
    fabric: Annotated[
        Path | None,
        typer.Option("--fabric", help="Also count what a fabric has.", show_default=False, metavar="DIR"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write.", metavar="FILE")] = None,
    output: Format = "text",
) -> None:
    """Print what a bug report needs: versions, programs, settings by name; no secrets, addresses or device names."""
    _run("diagnose", fabric, out=out, output=output)
