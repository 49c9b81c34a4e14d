"""The verbs of a fleet: several sites, one coordinator."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.verbs.options import Format, Lab, run

verbs = typer.Typer(
    help="Several sites: set up their workers and the broker between them, and show their state.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
FOLDER = Path("/etc/netkit/fleet")
Folder = Annotated[Path, typer.Option("--fleet", help="Folder with fleet.yaml and the keys.", metavar="DIR")]


@verbs.command()
def init(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write to; a known fleet gets the new sites.", metavar="DIR")
    ],
    sites: Annotated[
        list[str],
        typer.Option(
            "--site",
            help="A site and a fabric there, as a path in the repository; repeatable.",
            metavar="NAME=PATH[:UNITS]",
        ),
    ],
    broker: Annotated[
        str, typer.Option("--broker", help="Name or address of the broker, for a new fleet.", metavar="HOST")
    ] = "",
    port: Annotated[int, typer.Option("--port", help="Its port for TLS.", min=1, max=65535)] = 5671,
    repository: Annotated[
        str, typer.Option("--repository", help="What sites fetch the fabrics from, for a new fleet.", metavar="URL")
    ] = "",
    branches: Annotated[
        list[str] | None,
        typer.Option("--branch", help="Branch whose commits workers accept; repeatable.", metavar="NAME"),
    ] = None,
) -> None:
    """Write keys, certificates, users of RabbitMQ and systemd units; overwrite nothing."""
    run("fleet", out, tuple(sites), verb="init", host=broker, port=port, url=repository, branches=tuple(branches or ()))


@verbs.command()
def status(
    folder: Folder = FOLDER,
    output: Format = "text",
    metrics: Annotated[
        Path | None, typer.Option("--metrics", help="Also write metrics for Prometheus here.", metavar="FILE")
    ] = None,
) -> None:
    """Show sites, their workers, and running and waiting jobs."""
    run("fleet", folder, output, verb="show_status", file=metrics)


def worker(
    site: Annotated[str, typer.Option("--site", help="The site of this machine.", metavar="NAME")],
    folder: Folder = FOLDER,
    access: Annotated[
        Path | None,
        typer.Option(
            "--access", help="Folder with access files of each fabric; default: access in --fleet.", metavar="DIR"
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Folder for the checkout and the journal; one for each worker.", metavar="DIR"),
    ] = None,
    lab: Lab = "",
) -> None:
    """Run the signed jobs of one site until stopped; see netkit fleet."""
    run("fleet", site, folder, verb="work", access=access, state=state, lab=lab)
