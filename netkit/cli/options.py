"""Options that many commands share."""

from pathlib import Path
from typing import Annotated

import typer

Fabric = Annotated[Path, typer.Option("--fabric", "-f", help="Folder with fabric.yaml.", show_default=False)]
Format = Annotated[str, typer.Option("--format", help="text or json.", metavar="FORMAT")]
Limit = Annotated[
    str, typer.Option("--limit", help="Devices: names, globs, role=spine, rail=3, !name.", metavar="EXPR")
]
PlanFormat = Annotated[str, typer.Option("--format", help="text, markdown or json.", metavar="FORMAT")]
Lab = Annotated[
    str, typer.Option("--lab", help="The lab of this fabric, or =NAME; nothing else is reached.", metavar="[=LAB]")
]
