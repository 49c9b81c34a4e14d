"""Inventory: versions and parts, as intended and uniform."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from netkit.design import Switch
from netkit.facts import Absent
from netkit.facts.host import NicFacts
from netkit.judge import PASSED, Finding, Scene, Seen, device_check, fabric_check, fail, skip, warn

Read = Callable[[NicFacts], str]


@device_check(layer="host", needs=["system"], on="switch", follows=[])
def version(scene: Scene, seen: Seen) -> Iterator[Finding]:
    """Every switch runs the NOS release that the intent names.

    Configurations are rendered for that release; another one may refuse parts of it, or understand them differently.
    Upgrade the switch, or name its release in the intent.
    """
    del scene
    found = seen.facts.system
    if isinstance(found, Absent) or not isinstance(seen.device, Switch):
        return
    if not found.version:
        yield skip("", "it does not tell its release")
    elif not _is_release(found.version, seen.device.version):
        text = f"runs {found.version}, not {seen.device.version}"
        yield fail("", text, "update it, or change the version in the intent")
    else:
        yield PASSED


def _is_release(found: str, wanted: str) -> bool:
    return found == wanted or found.startswith((f"{wanted}.", f"{wanted}-", f"{wanted} "))


@fabric_check(layer="host", needs=["nics"], follows=[])
def nics(scene: Scene) -> Iterator[Finding]:
    """NICs of one kind run the same firmware and driver everywhere.

    One that differs behaves differently under congestion: defaults of DSCP, CNP and ECN change between releases. Bring
    it to the release of the others.
    """
    reads: Mapping[str, Read] = {"firmware": lambda nic: nic.firmware, "driver": lambda nic: nic.driver_version}
    cards = [
        (seen.name, name, nic)
        for seen in scene.hosts
        if not isinstance(seen.facts.nics, Absent)
        for name, nic in seen.facts.nics.items()
    ]
    for quantity, read in reads.items():
        yield from _uniform(quantity, cards, read)


def _uniform(quantity: str, cards: list[tuple[str, str, NicFacts]], read: Read) -> Iterator[Finding]:
    usual: dict[str, str] = {}
    for part in sorted({nic.part for _, _, nic in cards}):
        counts = Counter(read(nic) for _, _, nic in cards if nic.part == part and read(nic))
        usual[part] = counts.most_common(1)[0][0] if counts else ""
    for host, name, nic in cards:
        if not read(nic):
            yield skip(name, f"it does not tell its {quantity}", device=host)
        elif read(nic) != usual[nic.part]:
            text = f"{quantity} {read(nic)}, most of its kind have {usual[nic.part]}"
            yield warn(name, text, "bring it to the release of the others", device=host, cause=f"NIC {quantity}")
        else:
            yield PASSED
