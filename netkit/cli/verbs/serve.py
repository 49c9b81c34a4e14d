"""`netkit serve`: checks on a schedule, and their reports on the web."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.verbs import complete
from netkit.cli.verbs.options import Fabric, Facts, FleetFolder, Lab, Profile, Site, Window
from netkit.cli.verbs.options import run as _run
from netkit.serve.request import ServeRequest

SNAPSHOT = typer.Option("--from", help="Judge this snapshot instead of devices.", metavar="FILE")


def serve(
    fabric: Annotated[
        list[Path] | None,
        typer.Option("--fabric", help="Folder with fabric.yaml; repeatable.", show_default=False, metavar="PATH"),
    ] = None,
    lab: Lab = "",
    every: Annotated[str, typer.Option("--every", help="How often to check.", metavar="TIME")] = "15m",
    backup: Annotated[
        Path | None, typer.Option("--backup", help="Also save running configurations here, every night.", metavar="DIR")
    ] = None,
    store: Annotated[
        str, typer.Option("--store", help="Store the runs here, not in the default file.", metavar="[=URL|FILE]")
    ] = "",
    listen: Annotated[
        str, typer.Option("--listen", help="Where to listen.", metavar="ADDRESS:PORT")
    ] = "127.0.0.1:8400",
    names: Annotated[
        list[str] | None, typer.Option("--name", help="A host name that it answers to; repeatable.", metavar="HOST")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="The token is in here; by default one is made.", metavar="FILE")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Certificate for TLS, in PEM.", metavar="FILE")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Its key, if it is in another file.", metavar="FILE")
    ] = None,
    window: Window = 10.0,
    profile: Profile = "full",
    source: Facts = "",
    notify: Annotated[bool, typer.Option("--notify", help="Notify the receivers in notify.yaml of changes.")] = False,
    allow_silences: Annotated[
        bool, typer.Option("--allow-silences", help="Let anyone with the token add and end silences.")
    ] = False,
    has_mcp: Annotated[
        bool, typer.Option("--mcp", help="Serve the tools of netkit mcp at /mcp too, with the token.")
    ] = False,
    proposer_token_file: Annotated[
        Path | None,
        typer.Option(
            "--proposer-token-file", help="A token with which /mcp takes proposals is in here.", metavar="FILE"
        ),
    ] = None,
    has_openapi: Annotated[
        bool, typer.Option("--openapi", help="Print the OpenAPI description; serve nothing.")
    ] = False,
    snapshot: Annotated[Path | None, SNAPSHOT] = None,
    fleet: FleetFolder = None,
) -> None:
    """Check fabrics regularly in one process, and serve reports and history to anyone with the token."""
    first, *more = fabric or [Path()]
    asked = ServeRequest(
        first,
        more=tuple(more),
        lab=lab,
        every=every,
        backup=backup,
        store=store,
        listen=listen,
        names=tuple(names or ()),
        token_file=token_file,
        certificate=certificate,
        key=key,
        window_s=window,
        profile=profile,
        source=source,
        is_notifying=notify,
        allows_silences=allow_silences,
        snapshot=snapshot,
        fleet=fleet,
        has_mcp=has_mcp,
        proposer_token_file=proposer_token_file,
    )
    _run("serve", asked, has_openapi=has_openapi)


def mcp(
    fabric: Fabric,
    store: Annotated[str, typer.Option("--store", help="The store of checks.", metavar="[=URL|FILE]")] = "",
    lab: Annotated[
        str,
        typer.Option(
            "--lab", help="Findings and history are of this lab.", metavar="[LAB]", autocompletion=complete.labs
        ),
    ] = "",
    site: Site = "",
) -> None:
    """Serve the fabric to a program over the Model Context Protocol, on standard input and output; reach no device."""
    _run("serve", fabric, store, verb="mcp", lab=lab, site=site)
