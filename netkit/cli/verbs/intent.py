"""The verbs about the intent and the hardware catalogue. Of them only adopt reads devices."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.verbs import complete
from netkit.cli.verbs.options import (
    Fabric,
    Format,
    Limit,
)
from netkit.cli.verbs.options import run as _run


def init(
    folder: Annotated[Path, typer.Argument(help="Folder to create.", metavar="DIR")],
    leaves: Annotated[int, typer.Option(help="Leaves in each unit: one per rail.", min=1, max=8)] = 8,
    spines: Annotated[int, typer.Option(help="Spines; 0 makes a rail-only fabric.", min=0, max=1024)] = 4,
    planes: Annotated[
        int, typer.Option(help="Separate planes of that many spines, or core switches, each.", min=1, max=1024)
    ] = 1,
    pods: Annotated[int, typer.Option(help="Pods of that many units and spines each.", min=1, max=4096)] = 1,
    cores: Annotated[
        int, typer.Option(help="Core switches in each plane; with them the fabric has three tiers.", min=0, max=1024)
    ] = 0,
    hosts_per_unit: Annotated[int, typer.Option(help="Hosts in each unit.", min=1, max=1024)] = 8,
    units: Annotated[int, typer.Option(help="Scalable units.", min=1, max=4096)] = 1,
    platform: Annotated[str, typer.Option(help="nvue, sonic, eos or frr.", metavar="P")] = "nvue",
    model: Annotated[
        str,
        typer.Option(
            help="Switch model; default: one that runs the platform.", metavar="MODEL", autocompletion=complete.models
        ),
    ] = "",
    cluster: Annotated[
        str, typer.Option("--cluster", help="Cluster on the hosts: kubernetes or slurm; default: none.", metavar="KIND")
    ] = "",
) -> None:
    """Write a small, valid fabric to start from."""
    _run(
        "intent",
        folder,
        verb="init",
        leaves=leaves,
        spines=spines,
        planes=planes,
        pods=pods,
        cores=cores,
        hosts=hosts_per_unit,
        units=units,
        platform=platform,
        model=model,
        cluster=cluster,
    )


def adopt(
    folder: Annotated[
        Path,
        typer.Argument(help="Saved configurations: a folder or a backup for each device.", metavar="DIR"),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the fabric to create.", show_default=False)],
    name: Annotated[str, typer.Option("--name", help="Name of the fabric; default: that of its folder.")] = "",
    devices: Annotated[
        Path | None,
        typer.Option(
            "--devices",
            help="CSV with device, platform and address: read them first, and save them in DIR.",
            show_default=False,
        ),
    ] = None,
    lab: Annotated[
        str,
        typer.Option("--lab", help="Read the devices of this lab first.", metavar="LAB", autocompletion=complete.labs),
    ] = "",
    cables: Annotated[
        Path | None,
        typer.Option(
            "--cables",
            help="CSV with device, port, peer and peer_port, if descriptions do not name it.",
            show_default=False,
        ),
    ] = None,
    truth: Annotated[
        bool,
        typer.Option("--truth", help="Take cables, racks and serial numbers from Nautobot or NetBox too."),
    ] = False,
    limit: Annotated[str, typer.Option("--limit", help="Only these devices: names and globs.", metavar="NAMES")] = "",
    output: Format = "text",
) -> None:
    """Write the intent of a running fabric from its configurations; the rest is left as it runs."""
    sources = (devices, lab, cables)
    _run("adopt", folder, out, *sources, name=name, truth=truth, limit=limit, output=output)


def validate(fabric: Fabric, output: Format = "text") -> None:
    """Check the intent, its design, the files it renders, and settings and silences beside it; write nothing."""
    _run("intent", fabric, output, verb="validate")


def schema(
    name: Annotated[
        str, typer.Argument(help="fabric, access, deploy, fleet, notify or silences.", metavar="NAME")
    ] = "fabric",
) -> None:
    """Print the JSON Schema of fabric.yaml or of another file beside it, for editors."""
    _run("intent", name, verb="print_schema")


def design(
    fabric: Fabric,
    cabling: Annotated[bool, typer.Option("--cabling", help="Every cable, as CSV.")] = False,
    addresses: Annotated[bool, typer.Option("--addresses", help="Every address and AS number.")] = False,
    explain: Annotated[
        str,
        typer.Option("--explain", help="Every number of a port or NIC, such as leaf01:swp1s0.", metavar="PORT"),
    ] = "",
    view: Annotated[
        str,
        typer.Option(
            "--view",
            help="The templates of one device, and all their variables.",
            metavar="DEVICE",
            autocompletion=complete.devices,
        ),
    ] = "",
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables", help="Folder to write the names and numbers to, as tables of an intent.", show_default=False
        ),
    ] = None,
    diagram: Annotated[
        str,
        typer.Option(
            "--diagram", help="Draw it: a .svg, .dot or .mmd file, or svg, dot or mermaid to print it.", metavar="FILE"
        ),
    ] = "",
    racks: Annotated[
        str,
        typer.Option(
            "--racks",
            help="Rack elevations: an .svg or .txt file, or svg or text to print them.",
            metavar="FILE",
        ),
    ] = "",
    labels: Annotated[
        str, typer.Option("--labels", help="Labels of cables to print: an .html file, or html.", metavar="FILE")
    ] = "",
    phase: Annotated[
        list[str] | None,
        typer.Option(
            "--phase",
            help="What to order now, and for a step such as units=4,hosts=16; repeatable.",
            metavar="STEP",
        ),
    ] = None,
    by: Annotated[str, typer.Option("--by", help="Boxes of the diagram: unit or rack.", metavar="BOX")] = "unit",
    output: Format = "text",
    limit: Limit = "",
) -> None:
    """Show the design: size, cables, addresses, a diagram, the source of a number, template variables."""
    _run(
        "design",
        fabric,
        cabling=cabling,
        addresses=addresses,
        explain=explain,
        view=view,
        tables=tables,
        diagram=diagram,
        racks=racks,
        labels=labels,
        steps=phase or [],
        by=by,
        output=output,
        limit=limit,
    )


def plan_capacity(
    gpus: Annotated[int, typer.Option(help="Number of GPUs in the fabric.", min=1, max=262144)],
    oversubscription: Annotated[
        str, typer.Option(help="At most this bandwidth below a leaf to that above.", metavar="N:1")
    ] = "1:1",
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this switch model; repeatable. Default: all.", metavar="MODEL", autocompletion=complete.models
        ),
    ] = None,
    output: Format = "text",
) -> None:
    """Compare designs for a number of GPUs; each with the `netkit init` command that creates it."""
    _run("design", gpus, verb="plan_capacity", oversubscription=oversubscription, models=model or [], output=output)


def render(
    fabric: Fabric,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.", show_default=False)],
    limit: Limit = "",
    platform: Annotated[str, typer.Option(help="Only devices of this platform (linux: the hosts).", metavar="P")] = "",
    ztp: Annotated[
        bool, typer.Option("--ztp", help="Also write the first-boot files of factory-fresh switches.")
    ] = False,
) -> None:
    """Write every configuration file, and a manifest of them."""
    _run("render", fabric, out, limit=limit, platform=platform, ztp=ztp)


def platforms(
    name: Annotated[str, typer.Argument(help="All about one: nvue, sonic, eos, frr or linux.", metavar="NAME")] = "",
    output: Format = "text",
) -> None:
    """List the platforms, their capabilities, and how each applies changes."""
    _run("intent", name, output, verb="platforms")


Devices = Annotated[str, typer.Option("--devices", help="Which devices, as --limit names them.", metavar="EXPR")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the edit of fabric.yaml; write nothing.")]


def leave(
    fabric: Fabric,
    path: Annotated[
        str, typer.Argument(help="Part of the configuration, such as 'VLAN / Vlan3000'.", metavar="[PATH]")
    ] = "",
    devices: Devices = "",
    from_plan: Annotated[
        Path | None,
        typer.Option("--from-plan", help="Everything that this plan lists as not explained.", metavar="FILE"),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Leave a part of the configuration unchanged: add it to fabric.yaml."""
    _run("intent", fabric, path, verb="leave", devices=devices, from_plan=from_plan, is_dry=dry_run)


def own(
    path: Annotated[str, typer.Argument(help="Part of the configuration, such as 'ACL_TABLE'.", metavar="PATH")],
    fabric: Fabric,
    devices: Devices = "",
    dry_run: DryRun = False,
) -> None:
    """Let netkit own a part of the configuration: add it to fabric.yaml, or take it out of leave."""
    _run("intent", fabric, path, verb="own", devices=devices, is_dry=dry_run)


models = typer.Typer(
    help="Models of switches for the hardware catalogue.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@models.command("import")
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
    _run("model", folder, name, hwsku, out, verb="import_folder")
