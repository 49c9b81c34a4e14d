"""Ports, and who is at their other ends."""

from collections.abc import Iterator, Mapping

from netkit.facts import Absent, Facts
from netkit.facts.system import Interface, Neighbor
from netkit.platforms.eos.facts.command import INTERFACES, LLDP
from netkit.platforms.eos.facts.log import last_outages
from netkit.platforms.eos.facts.port import is_port
from netkit.platforms.outage import told
from netkit.platforms.shown import Shown, named, number, parsed, rows, table, text, whole

FEC_WORDS = {"reedsolomon": "rs", "reedsolomon544": "rs", "firecode": "fc", "disabled": "none"}
GIGABIT = 10**9
OFF = frozenset({"disabled"})
UP = "connected"


def fec_word(shown: object) -> str:
    """Return `rs`, `fc` or `none`; another word as EOS says it."""
    word = text(shown)
    return FEC_WORDS.get(word.lower(), word)


def interfaces(shown: str, corrections: str, log: str, clock: str) -> Facts:
    """Return the ports. What EOS says of error correction is another command's, and of outages its log's."""
    codes = table(parsed(corrections), "interfaceErrCorrStatuses")
    found = {
        name: _interface(one, fec_word(table(codes, name).get("errCorrEncodingStatus")))
        for name, one in named(parsed(shown), "interfaces")
        if is_port(name)
    }
    outages = last_outages(log, clock, found)
    return Facts(interfaces=told(found, outages) if found else Absent(f"{INTERFACES} shows no ports"))


def _interface(shown: Shown, fec: str) -> Interface:
    status, protocol = text(shown.get("interfaceStatus")), text(shown.get("lineProtocolStatus"))
    bits = number(shown.get("bandwidth"))
    return Interface(
        is_up=status == UP and protocol in {"up", ""} if status else None,
        is_enabled=status not in OFF if status else None,
        speed_gbps=bits / GIGABIT if bits else None,
        mtu_bytes=whole(shown.get("mtu")),
        fec=fec,
        mac=_mac(text(shown.get("physicalAddress"))),
        description=text(shown.get("description")),
    )


def neighbors(shown: str) -> Facts:
    """Return who is there by LLDP."""
    answer = parsed(shown)
    if not isinstance(table(answer).get("lldpNeighbors"), dict):
        return Facts(neighbors=Absent(f"{LLDP} cannot be read"))
    return Facts(neighbors=dict(_neighbors(named(answer, "lldpNeighbors"))))


def _neighbors(ports: Iterator[tuple[str, Shown]]) -> Iterator[tuple[str, tuple[Neighbor, ...]]]:
    for port, one in ports:
        heard = sorted(rows(one.get("lldpNeighborInfo")), key=_contact_s, reverse=True)
        if heard and is_port(port):
            yield port, tuple(map(_neighbor, heard))


def _contact_s(shown: Shown) -> float:
    return number(shown.get("lastContactTime")) or 0.0


def _neighbor(shown: Shown) -> Neighbor:
    port = table(shown, "neighborInterfaceInfo")
    name = text(port.get("interfaceId_v2")) or text(port.get("interfaceId")).strip('"')
    is_mac = text(port.get("interfaceIdType")) == "macAddress"
    return Neighbor(
        system=text(shown.get("systemName")),
        port=_mac(name) if is_mac else name,
        description=text(port.get("interfaceDescription")).strip('"'),
    )


def _mac(shown: str) -> str:
    """Return an address as everybody else writes it: 00:1c:73:a0:fc:18."""
    digits = "".join(sign for sign in shown.lower() if sign not in ".:-")
    is_mac = len(digits) == 12 and all(sign in "0123456789abcdef" for sign in digits)
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if is_mac else shown


def flow_control(shown: str) -> Mapping[str, bool]:
    """Return port → whether pauses hold up all priorities at once."""
    return {
        port: "on" in {text(one.get("txOperState")), text(one.get("rxOperState"))}
        for port, one in named(parsed(shown), "interfaceFlowControls")
    }
