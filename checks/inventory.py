"""Inventory: versions and parts, as intended and uniform."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from netkit.design import Switch
from netkit.facts import Absent
from netkit.facts.host import NicFacts
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fabric_check, fail, skip, warn
from netkit.judge.firmware import FirmwarePart, approved_of, unapproved

Read = Callable[[NicFacts], str]
UPDATE = "update it to approved firmware with the host drained, or approve this one under firmware in the intent"


@device_check(layer="host", needs=["system"], on="switch", follows=[])
def version(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every switch runs the NOS release that the intent names.

    Configurations are rendered for that release; another one may refuse parts of it, or understand them differently.
    Upgrade the switch, or name its release in the intent.
    """
    del context
    found = device.facts.system
    if isinstance(found, Absent) or not isinstance(device.device, Switch):
        return
    wanted = device.device.version
    if not found.version:
        yield skip("", "it does not report its release")
    elif not (found.version == wanted or found.version.startswith((f"{wanted}.", f"{wanted}-", f"{wanted} "))):
        text = f"runs {found.version}, not {device.device.version}"
        yield fail("", text, "update it, or change the version in the intent")
    else:
        yield PASSED


@fabric_check(layer="host", needs=["nics"], follows=[], reads=[])
def nics(context: CheckContext) -> Iterator[Finding]:
    """NICs of one kind run the same firmware and driver everywhere.

    One that differs behaves differently under congestion: defaults of DSCP, CNP and ECN change between releases. Bring
    it to the release of the others. Firmware of kinds that the intent lists is compared with that list alone.
    """
    reads: Mapping[str, Read] = {"firmware": lambda nic: nic.firmware, "driver": lambda nic: nic.driver_version}
    cards = list(_cards(context))
    for quantity, read in reads.items():
        listed = context.fabric.nic_firmware if quantity == "firmware" else {}
        yield from _uniform(quantity, [card for card in cards if approved_of(_names(card[2]), listed) is None], read)


@fabric_check(layer="host", needs=["nics"], follows=[], reads=[])
def firmware(context: CheckContext) -> Iterator[Finding]:
    """Every NIC runs firmware that the intent approves for its kind.

    The list is `firmware.nics` of the intent: PSID or part number, and the versions that were qualified. What is not on
    it was never tried with this fabric's settings. Update the NIC and reset it while its host is drained, or add the
    version to the list.
    """
    if context.fabric.nic_firmware:
        parts = (FirmwarePart(host, name, _names(nic), nic.firmware) for host, name, nic in _cards(context))
        yield from unapproved("NIC", parts, context.fabric.nic_firmware, UPDATE)


def _cards(context: CheckContext) -> Iterator[tuple[str, str, NicFacts]]:
    for device in context.hosts:
        if not isinstance(device.facts.nics, Absent):
            yield from ((device.name, name, nic) for name, nic in device.facts.nics.items())


def _names(nic: NicFacts) -> tuple[str, ...]:
    return tuple(filter(None, (nic.psid, nic.part)))


def _uniform(quantity: str, cards: list[tuple[str, str, NicFacts]], read: Read) -> Iterator[Finding]:
    counted: dict[tuple[str, str], Counter[str]] = {}
    for _, _, nic in cards:  # NICs of two vendors are of two kinds, also where neither reports its part number
        counted.setdefault((nic.driver, nic.part), Counter()).update(filter(None, (read(nic),)))
    usual = {kind: counts.most_common(1)[0][0] for kind, counts in counted.items() if counts}
    for host, name, nic in cards:
        if not read(nic):
            yield skip(name, f"it does not report its {quantity}", device=host)
        elif read(nic) != usual[nic.driver, nic.part]:
            text = f"{quantity} {read(nic)}, most of its kind have {usual[nic.driver, nic.part]}"
            yield warn(name, text, "bring it to the release of the others", device=host, cause=f"NIC {quantity}")
        else:
            yield PASSED
