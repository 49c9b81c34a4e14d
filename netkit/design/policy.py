"""Which routes may propagate: the same short lists on every platform. What no list permits is denied."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from netkit.design.fabric import Fabric, Switch
from netkit.design.numbering import LEAF_LENGTH_V6


@dataclass(frozen=True, slots=True)
class PrefixRule:
    """The prefixes of one length inside a prefix; often just the prefix itself."""

    number: int
    prefix: str
    length: int

    @property
    def is_exact(self) -> bool:
        """Whether the rule matches the prefix itself, and not longer ones inside."""
        return self.prefix.endswith(f"/{self.length}")

    def text(self, longer: str) -> str:
        """The rule in a NOS's syntax; `longer` is its form for prefixes of length {0} inside."""
        return self.prefix if self.is_exact else f"{self.prefix} {longer.format(self.length)}"


@dataclass(frozen=True, slots=True)
class PrefixList:
    """The prefixes that may pass at one place."""

    name: str
    rules: tuple[PrefixRule, ...]
    version: Literal[4, 6] = 4
    """Of IP."""


def announced(fabric: Fabric, switch: Switch) -> Literal["LOCAL", "FABRIC"]:
    """The list of what a switch announces: leaves their own prefixes, the tiers above everything."""
    return "LOCAL" if switch.role == "leaf" and not fabric.routing.leaf_exports_all else "FABRIC"


def prefix_lists(fabric: Fabric, switch: Switch) -> Iterator[PrefixList]:
    """Yield what enters BGP from the switch itself, what it accepts, and what it announces: leaves, and to outside."""
    own = (f"{switch.loopback}/32", 32)
    if switch.access:
        yield _list("CONNECTED", own, *(_exact(vlan.prefix) for vlan in switch.access.vlans if vlan.prefix))
    elif switch.leaf_prefix:
        length = fabric.leaf_prefix_length
        yield _list("CONNECTED", own, (switch.leaf_prefix, length if switch.vlan else fabric.link_length))
    else:
        yield _list("CONNECTED", own)
    if switch.access is None:
        outside = tuple(map(_exact, fabric.accepted_outside))
        yield _list("FABRIC", (fabric.loopback_pool, 32), (fabric.host_pool, fabric.leaf_prefix_length), *outside)
    if announced(fabric, switch) == "LOCAL":
        yield _list("LOCAL", own, (switch.leaf_prefix, fabric.leaf_prefix_length))
    for port in switch.external:
        yield _list(port.inbound, *map(_exact, port.accepted))
        yield _list(port.outbound, *map(_exact, port.announced))
    if switch.loopback_v6:
        yield from _lists_v6(fabric, switch)


def _lists_v6(fabric: Fabric, switch: Switch) -> Iterator[PrefixList]:
    """Yield the same for IPv6, which runs over the same sessions."""
    own, prefix = (f"{switch.loopback_v6}/128", 128), switch.leaf_prefix_v6
    links = [(prefix, LEAF_LENGTH_V6 if switch.vlan else switch.link_length_v6)] if prefix else []
    yield _list("CONNECTED-V6", own, *links, version=6)
    hosts = [(fabric.host_pool_v6, LEAF_LENGTH_V6)] if fabric.host_pool_v6 else []
    yield _list("FABRIC-V6", (fabric.loopback_pool_v6, 128), *hosts, version=6)
    if announced(fabric, switch) == "LOCAL":
        yield _list("LOCAL-V6", own, *([(prefix, LEAF_LENGTH_V6)] if prefix else []), version=6)


def _exact(prefix: str) -> tuple[str, int]:
    return prefix, int(prefix.partition("/")[2])


def _list(name: str, *matches: tuple[str, int], version: Literal[4, 6] = 4) -> PrefixList:
    rules = (PrefixRule(10 * number, prefix, length) for number, (prefix, length) in enumerate(matches, start=1))
    return PrefixList(name, tuple(rules), version)
