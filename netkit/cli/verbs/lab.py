"""The verbs of `netkit lab`."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.verbs import complete
from netkit.cli.verbs.options import Fabric, run

verbs = typer.Typer(
    help="Boot a fabric on this machine: real FRR and sshd, nodes that speak their NOS.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Name = Annotated[
    str,
    typer.Option(
        "--lab", help="The lab; default: the name of its fabric.", metavar="LAB", autocompletion=complete.labs
    ),
]
AnyFabric = Annotated[
    Path | None, typer.Option("--fabric", help="The fabric of the lab.", show_default=False, metavar="DIR")
]
Device = Annotated[str, typer.Argument(help="A switch or host.", metavar="DEVICE", autocompletion=complete.devices)]
Command = Annotated[list[str] | None, typer.Argument(help="What to run there.", metavar="COMMAND")]


@verbs.command()
def up(
    fabric: Fabric,
    name: Name = "",
    bare: Annotated[bool, typer.Option("--bare", help="Boot every device factory-fresh.")] = False,
    configs: Annotated[
        Path | None,
        typer.Option("--configs", help="Boot these files, as netkit render wrote them.", metavar="DIR"),
    ] = None,
    patience: Annotated[float, typer.Option(help="Seconds to wait for convergence.", min=1, max=3600)] = 90,
) -> None:
    """Boot a fabric and wait until it has converged."""
    run("lab_up", fabric, name, bare=bare, configs=configs, patience_s=patience, verb="up")


@verbs.command()
def down(
    fabric: AnyFabric = None,
    name: Name = "",
    everything: Annotated[bool, typer.Option("--all", help="End every lab of yours.")] = False,
) -> None:
    """Stop a lab, with all its processes, namespaces, mounts and files."""
    run("lab", name, fabric, everything=everything, verb="down")


@verbs.command()
def status(fabric: AnyFabric = None, name: Name = "") -> None:
    """List the labs, or the devices of one and their state."""
    run("lab", name, fabric, verb="status")


@verbs.command()
def check(fabric: AnyFabric = None, name: Name = "") -> None:
    """Verify sessions and routes, and ping between every two NICs that the design connects."""
    run("lab", name, fabric, verb="check")


@verbs.command("exec")
def execute(device: Device, command: Command = None, fabric: AnyFabric = None, name: Name = "") -> None:
    """Run a command on a node, without its management plane."""
    run("lab", name, fabric, device, command or ["/bin/sh"], verb="execute")


@verbs.command()
def ssh(device: Device, command: Command = None, fabric: AnyFabric = None, name: Name = "") -> None:
    """Log in to a node over SSH."""
    run("lab", name, fabric, device, command or [], verb="ssh")


@verbs.command()
def logs(
    device: Annotated[
        str,
        typer.Argument(
            help="A device; without one, the lab itself.", metavar="DEVICE", autocompletion=complete.devices
        ),
    ] = "",
    fabric: AnyFabric = None,
    name: Name = "",
) -> None:
    """Print the logs of a node's programs."""
    run("lab", name, fabric, device, verb="logs")


@verbs.command("break")
def break_(
    fault: Annotated[str, typer.Argument(help="The fault.", metavar="FAULT", autocompletion=complete.faults)] = "",
    place: Annotated[str, typer.Argument(help="Where.", metavar="DEVICE[:PORT]", autocompletion=complete.devices)] = "",
    options: Annotated[list[str] | None, typer.Argument(help="Details.", metavar="NAME=VALUE")] = None,
    fabric: AnyFabric = None,
    name: Name = "",
    explain: Annotated[bool, typer.Option("--list", help="Explain every fault.")] = False,
) -> None:
    """Inject a fault, as realistic as namespaces allow."""
    if explain:
        run("lab", name, fabric, verb="list_faults")
    else:
        run("lab", name, fabric, fault, place, options or [], verb="break_")


@verbs.command()
def heal(
    place: Annotated[str, typer.Argument(help="Where.", metavar="DEVICE[:PORT]", autocompletion=complete.devices)] = "",
    fault: Annotated[
        str, typer.Argument(help="What; default: everything there.", metavar="FAULT", autocompletion=complete.faults)
    ] = "",
    fabric: AnyFabric = None,
    name: Name = "",
    everything: Annotated[bool, typer.Option("--all", help="Heal every fault of the lab.")] = False,
) -> None:
    """End faults."""
    run("lab", name, fabric, fault, place, everything=everything, verb="heal")


@verbs.command()
def incast(
    place: Annotated[
        str, typer.Argument(help="The NIC that receives.", metavar="HOST:NIC", autocompletion=complete.devices)
    ],
    senders: Annotated[int, typer.Option(help="NICs of its rail that send.", min=1, max=64)] = 3,
    seconds: Annotated[float, typer.Option(help="For how long.", min=1, max=3600)] = 60,
    fabric: AnyFabric = None,
    name: Name = "",
) -> None:
    """Make several NICs send RoCEv2 packets to one at line rate: real CE marks, real CNPs."""
    run("lab", name, fabric, place, senders, seconds, verb="incast")


@verbs.command()
def calm(fabric: AnyFabric = None, name: Name = "") -> None:
    """End every incast."""
    run("lab", name, fabric, verb="calm")


@verbs.command()
def load(
    state: Annotated[str, typer.Argument(help="on or off.", metavar="on|off")],
    fabric: AnyFabric = None,
    name: Name = "",
) -> None:
    """Start or stop the job that loads every link; in a new lab it runs."""
    run("lab", name, fabric, state, verb="load")


@verbs.command()
def restart(device: Device, fabric: AnyFabric = None, name: Name = "") -> None:
    """Power-cycle a node; it boots from its saved configuration."""
    run("lab", name, fabric, device, verb="restart")
