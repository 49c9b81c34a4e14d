"""`show` of BGP, BFD, routes and LLDP neighbours."""

from collections.abc import Iterator, Mapping
from typing import Any

from netkit.lab.agents.lldp_neighbor import LldpNeighbor as Heard
from netkit.lab.personalities.eos import routing
from netkit.lab.personalities.eos.grammar import port_list
from netkit.lab.personalities.eos.reply import Data, EosCommandError, EosReply, InvalidCommandError
from netkit.lab.personalities.eos.show_context import Captured, Lens, table

DETAIL, SUMMARY = "show bgp neighbors json", "show bgp ipv4 unicast summary json"
NOT_FOUND = "none"
NO_ROUTER = "0.0.0.0"  # noqa: S104 - an identifier nobody has yet, not an address to listen on


class Neighbors:
    """The BGP neighbours of one look."""

    def __init__(self, lens: Lens) -> None:
        self.lens = lens
        found = routing.running_bgp(lens.config)
        if found is None:
            raise EosCommandError("BGP inactive")
        self.asn, self.section = found
        self.summary = lens.bgp(SUMMARY)
        self.detail = lens.bgp(DETAIL)

    @property
    def router_id(self) -> str:
        """Return the router's identifier."""
        return str(self.summary.get("routerId", self.section.word("router-id") or NO_ROUTER))

    def each(self) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
        """Yield each neighbour's port, its summary and its details."""
        peers = self.summary.get("peers", {})
        for name, detail in self.detail.items():
            if isinstance(detail, dict):
                yield self.lens.port_of(name), peers.get(name, {}), detail

    def address(self, port: str, detail: Mapping[str, Any]) -> str:
        """Return a neighbour's address as EOS writes it, with the short name of the port; empty before it is known."""
        address = str(detail.get("bgpNeighborAddr", NOT_FOUND))
        return "" if address == NOT_FOUND else f"{address}%{port.replace('Ethernet', 'Et')}"


def _vrf(neighbors: Neighbors, peers: Mapping[str, Any]) -> Data:
    return {
        "vrfs": {"default": {"vrf": "default", "routerId": neighbors.router_id, "asn": neighbors.asn, "peers": peers}}
    }


def _text(peers: Mapping[str, Mapping[str, Any]], asn_key: str) -> str:
    rows = [(name, one[asn_key], one["peerState"], one.get("description", "")) for name, one in peers.items()]
    return table(("Neighbor", "AS", "State", "Description"), rows)


def ip_summary(lens: Lens, _: Captured) -> EosReply:
    """Show the neighbours that carry IPv4, those reached over IPv6 among them."""
    neighbors = Neighbors(lens)
    drained = routing.drained_ports(lens.config, lens.machine.ports)
    peers = {}
    for port, short, detail in neighbors.each():
        received = int(short.get("pfxRcd", 0))
        peers[neighbors.address(port, detail) or port] = {
            "version": 4,
            "msgReceived": int(short.get("msgRcvd", 0)),
            "msgSent": int(short.get("msgSent", 0)),
            "inMsgQueue": int(short.get("inq", 0)),
            "outMsgQueue": int(short.get("outq", 0)),
            "asn": str(detail.get("remoteAs", "")),
            "prefixReceived": received,
            "prefixAccepted": received,
            "upDownTime": _since(lens, detail),
            "underMaintenance": port in drained,
            "peerState": detail.get("bgpState", "Idle"),
            "description": _description(neighbors, detail),
        }
    return EosReply(_vrf(neighbors, peers), _text(peers, "asn"))


def ipv6_summary(lens: Lens, _: Captured) -> EosReply:
    """Show the neighbours that carry IPv6: none."""
    neighbors = Neighbors(lens)
    return EosReply(_vrf(neighbors, {}), _text({}, "asn"))


def all_neighbors(lens: Lens, _: Captured) -> EosReply:
    """Show the neighbours one by one. Before a neighbour is found it has a port and no address."""
    neighbors = Neighbors(lens)
    peers = [_peer(neighbors, *one) for one in neighbors.each()]
    rows = [(one["ifName"], one.get("peerAddress", ""), one["asn"], one["state"]) for one in peers]
    text = table(("Interface", "Neighbor", "AS", "State"), rows)
    return EosReply({"vrfs": {"default": {"peerList": peers}}}, text)


def found_neighbors(lens: Lens, captured: Captured) -> EosReply:
    """Show the neighbours that have an address, as the commands of one address family do."""
    shown = all_neighbors(lens, captured)
    peers = (shown.data or {})["vrfs"]["default"]["peerList"]
    return EosReply({"vrfs": {"default": {"peerList": [one for one in peers if "peerAddress" in one]}}}, shown.text)


def no_neighbors(lens: Lens, _: Captured) -> EosReply:
    """Show the neighbours with an IPv4 address: none."""
    Neighbors(lens)
    return EosReply({"vrfs": {"default": {"peerList": []}}})


def _peer(neighbors: Neighbors, port: str, short: Mapping[str, Any], detail: Mapping[str, Any]) -> dict[str, Any]:
    address = neighbors.address(port, detail)
    family = detail.get("addressFamilyInfo", {}).get("ipv4Unicast", {})
    state = str(detail.get("bgpState", "Idle"))
    peer: dict[str, Any] = {
        **({"peerAddress": address} if address else {}),
        "ifName": port,
        "state": state,
        "asn": str(detail.get("remoteAs", "")),
        "localAsn": str(detail.get("localAs", neighbors.asn)),
        "routerId": str(detail.get("remoteRouterId", NO_ROUTER)),
        "localRouterId": neighbors.router_id,
        "peerGroupName": str(detail.get("peerGroup", "")),
        "description": _description(neighbors, detail),
        "vrf": "default",
        "bfdState": str(detail.get("peerBfdInfo", {}).get("status", "")).lower(),
        "holdTime": int(detail.get("bgpTimerHoldTimeMsecs", 0)) // 1000,
        "keepaliveTime": int(detail.get("bgpTimerKeepAliveIntervalMsecs", 0)) // 1000,
        "prefixesReceived": int(short.get("pfxRcd", 0)),
        "prefixesSent": int(short.get("pfxSnt", 0)),
        "v6PrefixesReceived": 0,
        "v6PrefixesSent": 0,
        "routeMapInbound": str(family.get("routeMapForIncomingAdvertisements", "")),
        "routeMapOutbound": str(family.get("routeMapForOutgoingAdvertisements", "")),
        "lastResetReason": str(detail.get("lastResetDueTo", "")),
    }
    if state == "Established":
        peer["establishedTime"] = int(neighbors.lens.now_s - _since(neighbors.lens, detail))
    elif state == "Idle":
        is_shut = neighbors.section.has("neighbor", peer["peerGroupName"], "shutdown")
        peer["idleReason"] = "Administratively shut down" if is_shut else "No reachable route"
    return peer


def _since(lens: Lens, detail: Mapping[str, Any]) -> float:
    return float(detail.get("bgpTimerUpEstablishedEpoch", lens.now_s))


def _description(neighbors: Neighbors, detail: Mapping[str, Any]) -> str:
    return neighbors.section.word("neighbor", str(detail.get("peerGroup", "")), "description")


def bfd(lens: Lens, _: Captured) -> EosReply:
    """Show BFD sessions, by the neighbour's address without its port."""
    shown: dict[str, Any] = {}
    for one in lens.bfd():
        port = lens.port_of(str(one.get("interface", "")))
        is_up = one.get("status") == "up"
        since = float(one.get("uptime", one.get("downtime", 0)) or 0)
        shown.setdefault(str(one.get("peer", "")), {"peerStats": {}})["peerStats"][port] = {
            "status": "up" if is_up else "down",
            "remoteDisc": int(one.get("remote-id", 0)),
            "localDisc": int(one.get("id", 0)),
            "lastUp": lens.now_s - since if is_up else 0.0,
            "lastDown": 0.0 if is_up else lens.now_s - since,
            "l3intf": port,
        }
    rows = [(peer, port, at["status"]) for peer, one in shown.items() for port, at in one["peerStats"].items()]
    data = {"vrfs": {"default": {"ipv4Neighbors": {}, "ipv6Neighbors": shown}}}
    return EosReply(data, table(("DstAddr", "Interface", "State"), rows))


BGP_VIEWS = (
    ("show ip bgp summary vrf all", ip_summary),
    ("show ipv6 bgp summary vrf all", ipv6_summary),
    ("show bgp neighbors vrf all", all_neighbors),
    ("show ip bgp neighbors vrf all", no_neighbors),
    ("show ipv6 bgp peers vrf all", found_neighbors),
    ("show bfd peers", bfd),
)


KINDS = {"bgp": "eBGP", "connected": "connected", "static": "static", "local": "connected"}
LOOPBACKS = {"lo": "Loopback0"}


def routes(lens: Lens, _: Captured) -> EosReply:
    """Show the routes that are chosen; one that only keeps packets from going in circles leads nowhere."""
    shown = {
        prefix: _route(lens, one)
        for prefix, found in lens.routes().items()
        for one in found
        if one.get("selected") and prefix != "0.0.0.0/0"
    }
    vrf = {
        "routingDisabled": False,
        "allRoutesProgrammedHardware": all(one["hardwareProgrammed"] for one in shown.values()),
        "allRoutesProgrammedKernel": True,
        "defaultRouteState": "notSet",
        "routes": shown,
    }
    rows = [
        (prefix, one["routeType"], via.get("nexthopAddr", "directly connected"), via["interface"])
        for prefix, one in shown.items()
        for via in one["vias"]
    ]
    return EosReply({"vrfs": {"default": vrf}}, table(("Prefix", "Source", "Via", "Interface"), rows))


def _route(lens: Lens, found: Mapping[str, Any]) -> dict[str, Any]:
    vias = list(_vias(lens, found.get("nexthops", [])))
    kind = KINDS.get(str(found.get("protocol")), str(found.get("protocol")))
    return {
        "hardwareProgrammed": bool(found.get("installed")),
        "routeType": kind,
        "routeLeaked": False,
        "kernelProgrammed": bool(found.get("installed")),
        "routeAction": "forward" if vias else "drop",
        "directlyConnected": kind == "connected",
        "preference": int(found.get("distance", 0)),
        "metric": int(found.get("metric", 0)),
        "vias": vias,
    }


def _vias(lens: Lens, hops: list[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    for hop in hops:
        name = str(hop.get("interfaceName", ""))
        if name and hop.get("fib"):
            address = {"nexthopAddr": str(hop["ip"])} if "ip" in hop else {}
            yield {**address, "interface": LOOPBACKS.get(name, lens.port_of(name))}


ROUTE_VIEWS = (("show ip route", routes),)


TTL_S = 120
ID_TYPES = {"mac": "macAddress", "local": "locallyAssigned"}
PORT_TYPES = {"mac": "macAddress", "ifname": "interfaceName", "local": "local"}


def _heard(lens: Lens, captured: Captured) -> Iterator[tuple[str, Heard]]:
    word = captured.get("ports", "")
    only = port_list(word, lens.machine.ports) if word else lens.machine.ports
    if not only:
        raise InvalidCommandError(f"Invalid input (at token 3: '{word}')")
    return ((port, one) for port, one in lens.lldp() if port in only)


def neighbors(lens: Lens, captured: Captured) -> EosReply:
    """Show who is at the other end; a NIC without a name shows its MAC address."""
    shown = [
        {"port": port, "neighborDevice": one.chassis.name, "neighborPort": _port_text(one), "ttl": TTL_S}
        for port, one in _heard(lens, captured)
    ]
    data: dict[str, Any] = {
        "tablesLastChangeTime": lens.now_s,
        "tablesAgeOuts": 0,
        "tablesInserts": len(shown),
        "tablesDeletes": 0,
        "tablesDrops": 0,
        "lldpNeighbors": shown,
    }
    rows = [tuple(one.values()) for one in shown]
    return EosReply(data, table(("Port", "Neighbor Device ID", "Neighbor Port ID", "TTL"), rows))


def detail(lens: Lens, captured: Captured) -> EosReply:
    """Show everything neighbours say of themselves."""
    shown: dict[str, Any] = {port: {"lldpNeighborInfo": []} for port in lens.machine.ports}
    for port, one in _heard(lens, captured):
        shown[port]["lldpNeighborInfo"].append(
            {
                "chassisId": (_dotted(one.chassis.identifier) if one.chassis.kind == "mac" else one.chassis.identifier),
                "chassisIdType": ID_TYPES.get(one.chassis.kind, one.chassis.kind),
                "systemName": one.chassis.name,
                "systemDescription": one.chassis.description,
                "systemCapabilities": {},
                "neighborInterfaceInfo": {
                    "interfaceId": f'"{one.port}"' if one.port_kind != "mac" else _dotted(one.port),
                    "interfaceId_v2": _port_text(one),
                    "interfaceIdType": PORT_TYPES.get(one.port_kind, one.port_kind),
                    "interfaceDescription": one.port_description,
                },
            }
        )
    text = "".join(
        f"Interface {port} detected {len(one['lldpNeighborInfo'])} LLDP neighbors\n" for port, one in shown.items()
    )
    return EosReply({"lldpNeighbors": shown}, text)


def _port_text(one: Heard) -> str:
    return _dotted(one.port) if one.port_kind == "mac" else one.port


def _dotted(mac: str) -> str:
    """Return a MAC address as EOS writes it: 001c.73a0.fc18."""
    digits = mac.replace(":", "").lower()
    return ".".join(digits[index : index + 4] for index in range(0, len(digits), 4))


NEIGHBOR_VIEWS = (
    ("show lldp neighbors", neighbors),
    ("show lldp neighbors detail", detail),
    ("show lldp neighbors <ports> detail", detail),
    ("show lldp neighbors <ports>", neighbors),
)
