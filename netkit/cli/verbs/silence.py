"""The verbs of `netkit silence`."""

from typing import Annotated

import typer

from netkit.cli.verbs import complete
from netkit.cli.verbs.options import Fabric, Format, Site, run

verbs = typer.Typer(
    help="Acknowledge findings, or silence them until a time: shown and counted separately, not failing or notifying.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Check = Annotated[
    str,
    typer.Argument(
        help="A check, a file or a glob; several with commas.", metavar="CHECK", autocompletion=complete.checks
    ),
]
Where = Annotated[
    str,
    typer.Argument(
        help="DEVICE or DEVICE:PLACE, or globs; `fabric` is the whole.",
        metavar="SUBJECT",
        autocompletion=complete.devices,
    ),
]
Why = Annotated[str, typer.Option("--reason", help="Why.", metavar="TEXT")]
Ticket = Annotated[str, typer.Option("--ticket", help="The ticket.", metavar="TEXT")]
By = Annotated[str, typer.Option("--by", help="The author; default: you.", metavar="NAME")]
OfLab = Annotated[
    str,
    typer.Option(
        "--lab", help="In the lab of this fabric, or NAME, only.", metavar="[LAB]", autocompletion=complete.labs
    ),
]
Kept = Annotated[str, typer.Option("--store", help="The store of checks.", metavar="[=URL|FILE]")]


@verbs.command()
def add(
    check: Check,
    subject: Where,
    fabric: Fabric,
    until: Annotated[str, typer.Option("--until", help="30m, 2h, 2d, 1w, or a time with its zone.", metavar="TIME")],
    reason: Why,
    ticket: Ticket = "",
    by: By = "",
    begin: Annotated[str, typer.Option("--from", help="Start later than now.", metavar="TIME")] = "",
    lab: OfLab = "",
    everything: Annotated[bool, typer.Option("--everything", help="Allow every check on every device.")] = False,
) -> None:
    """Silence all findings of checks at places, until a time; repeating it changes end and reason."""
    how = {
        "until": until,
        "begin": begin,
        "reason": reason,
        "ticket": ticket,
        "by": by,
        "lab": lab,
        "everything": everything,
    }
    run("silence", fabric, check, subject, verb="add", **how)


@verbs.command()
def ack(
    check: Check,
    subject: Where,
    fabric: Fabric,
    reason: Why,
    ticket: Ticket = "",
    by: By = "",
    until: Annotated[str, typer.Option("--until", help="The latest end.", metavar="TIME")] = "",
    verdict: Annotated[
        str,
        typer.Option("--verdict", help="warn or fail: the worst verdict covered; no stored run is read.", metavar="V"),
    ] = "",
    lab: OfLab = "",
    store: Kept = "",
    site: Site = "",
) -> None:
    """Acknowledge what the last stored run found there, until each finding passes, worsens or becomes another fault."""
    how = {"until": until, "reason": reason, "ticket": ticket, "by": by, "verdict": verdict, "lab": lab, "store": store}
    how |= {"site": site}
    run("silence", fabric, check, subject, verb="ack", **how)


@verbs.command("list")
def show(fabric: Fabric, lab: OfLab = "", store: Kept = "", site: Site = "", output: Format = "text") -> None:
    """List silences and acknowledgements with author, reason, end and state."""
    run("silence", fabric, verb="show", lab=lab, store=store, site=site, output=output)


@verbs.command()
def end(
    name: Annotated[
        str,
        typer.Argument(help="Its ID, or the beginning of it.", metavar="ID", autocompletion=complete.silences),
    ],
    fabric: Fabric,
) -> None:
    """End a silence or an acknowledgement: its findings count again."""
    run("silence", fabric, name, verb="end")
