"""What making a change costs on each platform beside the change itself, and what a platform refuses: for people."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.platforms.eos import way as eos
from netkit.platforms.frr import way as frr
from netkit.platforms.linux import way as linux
from netkit.platforms.nvue import way as nvue
from netkit.platforms.sonic import way as sonic
from netkit.platforms.sonic.risks import FLAPPING


@dataclass(frozen=True, slots=True)
class Limit:
    """What part of a configuration it is about, and what happens there."""

    what: str
    effect: str


def limits(platform: str) -> tuple[Limit, ...]:
    """Return the limits of a platform; `linux` are the GPU hosts."""
    return tuple(BY_PLATFORM[platform]())


def _nvue() -> Iterator[Limit]:
    for path, cost in nvue.COSTS.items():
        yield Limit(" ".join(path), cost.partition(": ")[2])
    yield Limit("interface * link breakout", "two applies when ports of the cage are configured")


def _sonic() -> Iterator[Limit]:
    for table in FLAPPING:
        yield Limit(table, "by patch: the updater shuts the port and opens it again")
    listed = ", ".join(sonic.LISTED)
    for table in sonic.BY_ASIC:
        yield Limit(table, f"config reload on a hwsku the updater does not list; it lists {listed}")
    yield Limit("WRED_PROFILE", "config reload before 202511, but for green thresholds of AZURE_LOSSLESS")
    yield Limit("BUFFER_POOL", f"config reload, but for sizes of {', '.join(sonic.POOLS)} before 202511")
    yield Limit("BUFFER_PROFILE", f"config reload, but for {' and '.join(sonic.PROFILE_FIELDS)}; rows from 202511")
    for table, key in sonic.NEVER_REMOVED:
        yield Limit(f"{table}|{key}", "config reload to remove it: the updater never does")
    for table, names in sonic.FIXED_AT_CREATION.items():
        yield Limit(f"{table}: {', '.join(names)}", "config reload: fixed when the row is made")
    yield Limit("BREAKOUT_CFG", "config reload: ports become other ports")
    yield Limit(f"DEVICE_METADATA: {', '.join(sonic.STARTS_ANEW)}", "config reload: read when the containers start")
    yield Limit(f"DEVICE_METADATA: {', '.join(sonic.INSTALLED)}", "refused: the switch is installed with it")
    longest = f"{sonic.LONGEST_PATCH_S:g} s"
    yield Limit("any patch", f"config reload when the updater would take longer than {longest}")


def _eos() -> Iterator[Limit]:
    for section, cost in eos.COSTS.items():
        yield Limit(section, cost)
    for form in ("no seq N permit", "no maintenance"):
        yield Limit(form, "a form of patches that no public source shows; try it on one switch first")


def _frr() -> Iterator[Limit]:
    for file, (step, cost) in frr.STEPS.items():
        yield Limit(file, cost.partition(": ")[2] or step)


def _linux() -> Iterator[Limit]:
    for file, cost in linux.COSTS.items():
        yield Limit(file, cost)


BY_PLATFORM = {"nvue": _nvue, "sonic": _sonic, "eos": _eos, "frr": _frr, "linux": _linux}
