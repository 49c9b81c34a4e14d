"""The page of the hardware catalogue: switches, hosts and media, and what the user has to give."""

from collections.abc import Iterable, Iterator

from netkit.hardware import Catalog, HostModel, Media, SwitchModel
from netkit.platforms import PLATFORMS

HEAD = """# Hardware catalogue

Generated from the model files in `netkit/hardware/data` (`scripts/docs`). Each value there has its source, or
is null. **To give** lists what netkit asks for before it builds or renders with a model:
[a hardware model of your own](files.md#a-hardware-model-of-your-own) explains where.
"""


def page() -> str:
    catalog = Catalog()
    switches = [catalog.switch(name) for name in catalog.names("switches")]
    hosts = [catalog.host(name) for name in catalog.names("hosts")]
    return "\n".join(
        [
            HEAD,
            "## Switches\n",
            *_table(("model", "vendor", "chip", "cages", "breakouts", "NOS", "to give"), map(_switch, switches)),
            "\nEach model also runs `frr` in a lab. Which cages a breakout is limited to is in the model file.\n",
            "## Hosts\n",
            *_table(("model", "vendor", "GPUs", "NIC", "rails", "to give"), map(_host, hosts)),
            "\n## Media\n",
            "Speed is that of one port. A module with several ports serves a cage that is split in as many.\n",
            *_table(
                ("media", "kind", "speed", "ports", "reach", "cages"),
                map(_media, sorted(catalog.media().values(), key=_order)),
            ),
            "",
        ]
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = tuple(head)
    for row in (names, ("---",) * len(names), *rows):
        yield f"| {' | '.join(row)} |"


def _switch(model: SwitchModel) -> tuple[str, ...]:
    platforms = [name for name in PLATFORMS if name in model.platforms]
    asked = [f"{key} ({name})" for name in platforms for key in PLATFORMS[name].missing_data(model, _newest(name))]
    cage = f" {model.cage_form}" if model.cage_form else ""
    breakouts = ", ".join(split.mode for split in model.splits)
    cages = f"{model.cages}{cage}"
    return model.name, model.vendor, model.asic, cages, breakouts, ", ".join(platforms), _list(asked)


def _newest(platform: str) -> str:
    return PLATFORMS[platform].newest_version


def _host(model: HostModel) -> tuple[str, ...]:
    asked = [] if model.rails else ["`hosts.pci`"]
    rails = str(len(model.rail_gpus))
    vendor = model.vendor if model.vendor != "None" else "any"
    return model.name, vendor, str(model.gpus), f"{model.nic}, {model.speed_gbps}G", rails, _list(asked)


def _media(media: Media) -> tuple[str, ...]:
    reach = f"{media.reach_m:g} m" if media.reach_m is not None else "–"
    forms = ", ".join(media.forms) or "any"
    return media.name, media.kind, f"{media.speed_gbps}G", str(media.ports_per_module), reach, forms


def _order(media: Media) -> tuple[int, str]:
    return media.speed_gbps, media.name


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "–"
