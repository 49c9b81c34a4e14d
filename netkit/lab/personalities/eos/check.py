"""What EOS looks at only when a whole configuration is to be committed: references and contradictions."""

import ipaddress
from collections.abc import Iterator

from netkit.lab.personalities.eos.tree import Section

VIRTUAL = ("peer", "group")


def complaints(config: Section) -> tuple[str, ...]:
    """Return why a configuration cannot be committed; empty when it can."""
    return (*_peer_groups(config), *_overlaps(config), *_thresholds(config))


def _peer_groups(config: Section) -> Iterator[str]:
    for _, bgp in config.sections("router", "bgp"):
        known = {rest[0] for rest in bgp.find("neighbor") if rest[1:] == VIRTUAL}
        used = {rest[0] for rest in bgp.find("neighbor") if rest[0] != "interface"}
        used |= {rest[2] for rest in bgp.find("neighbor", "interface")}
        for _, family in bgp.sections("address-family"):
            used |= {rest[0] for rest in family.find("neighbor")}
        for name in sorted(used - known):
            yield f"Peer group {name} is not defined"


def _overlaps(config: Section) -> Iterator[str]:
    """Yield interfaces whose subnets overlap within a VRF."""
    taken: list[tuple[str, str, ipaddress.IPv4Network]] = []
    for (name,), section in config.sections("interface"):
        vrf = section.word("vrf")
        for (address,) in section.find("ip", "address"):
            network = ipaddress.IPv4Interface(address).network
            for other, other_vrf, known in taken:
                if other_vrf == vrf and known.overlaps(network):
                    yield f"Address {address} of {name} overlaps with a subnet of {other}"
            taken.append((name, vrf, network))


def _thresholds(config: Section) -> Iterator[str]:
    for (name,), profile in config.sections("qos", "profile"):
        for keyword in ("tx-queue", "uc-tx-queue"):
            for (number,), queue in profile.sections(keyword):
                found = queue.one("random-detect", "ecn", "minimum-threshold")
                if found and found[1] == found[4] and int(found[0]) > int(found[3]):
                    yield f"qos profile {name}, {keyword} {number}: minimum-threshold is above maximum-threshold"
