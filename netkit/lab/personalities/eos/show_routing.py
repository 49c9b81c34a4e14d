"""`show` of BGP, BFD, routes and LLDP neighbours."""

from collections.abc import Iterator, Mapping
from typing import Any

from netkit.lab.agents.lldp_daemon import LldpNeighbor
from netkit.lab.personalities.eos import routing
from netkit.lab.personalities.eos.grammar import port_list
from netkit.lab.personalities.eos.machine import Captured, ShowContext, table
from netkit.lab.personalities.eos.reply import Data, EosCommandError, EosReply, InvalidCommandError

DETAIL, SUMMARY = "show bgp neighbors json", "show bgp ipv4 unicast summary json"
NOT_FOUND = "none"
NO_ROUTER = "0.0.0.0"  # noqa: S104 - an unknown router ID, not an address to listen on


class Neighbors:
    """The BGP neighbours at one moment."""

    def __init__(self, context: ShowContext) -> None:
        self.context = context
        found = routing.running_bgp(context.config)
        if found is None:
            raise EosCommandError("BGP inactive")
        self.asn, self.section = found
        self.summary = context.bgp(SUMMARY)
        self.detail = context.bgp(DETAIL)

    @property
    def router_id(self) -> str:
        return str(self.summary.get("routerId", self.section.word("router-id") or NO_ROUTER))

    def each(self) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
        """Yield each neighbour's port, summary and details."""
        peers = self.summary.get("peers", {})
        for name, detail in self.detail.items():
            if isinstance(detail, dict):
                yield self.context.port_of(name), peers.get(name, {}), detail

    def address(self, port: str, detail: Mapping[str, Any]) -> str:
        """The link-local address with the short port name as zone; empty until it is discovered."""
        address = str(detail.get("bgpNeighborAddr", NOT_FOUND))
        if ":" not in address:
            return "" if address == NOT_FOUND else address
        return f"{address}%{port.replace('Ethernet', 'Et')}"


def _vrf(neighbors: Neighbors, peers: Mapping[str, Any]) -> Data:
    return {
        "vrfs": {"default": {"vrf": "default", "routerId": neighbors.router_id, "asn": neighbors.asn, "peers": peers}}
    }


def _text(peers: Mapping[str, Mapping[str, Any]], asn_key: str) -> str:
    rows = [(name, one[asn_key], one["peerState"], one.get("description", "")) for name, one in peers.items()]
    return table(("Neighbor", "AS", "State", "Description"), rows)


def ip_summary(context: ShowContext, _: Captured) -> EosReply:
    """Show the IPv4 neighbours, including those with an IPv6 transport address."""
    neighbors = Neighbors(context)
    drained = routing.drained_ports(context.config, context.machine.ports)
    ports = {one.address: one.port for one in routing.numbered_on_ports(context.config, neighbors.section)}
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
            "upDownTime": _since(context, detail),
            "underMaintenance": ports.get(port, port) in drained,
            "peerState": detail.get("bgpState", "Idle"),
            "description": _description(neighbors, detail),
        }
    return EosReply(_vrf(neighbors, peers), _text(peers, "asn"))


def ipv6_summary(context: ShowContext, _: Captured) -> EosReply:
    """Show the IPv6 neighbours: there are none."""
    neighbors = Neighbors(context)
    return EosReply(_vrf(neighbors, {}), _text({}, "asn"))


def all_neighbors(context: ShowContext, _: Captured) -> EosReply:
    """Show all neighbours in detail. One that is not discovered yet has a port and no address."""
    neighbors = Neighbors(context)
    peers = [_peer(neighbors, *one) for one in neighbors.each()]
    rows = [(one["ifName"], one.get("peerAddress", ""), one["asn"], one["state"]) for one in peers]
    text = table(("Interface", "Neighbor", "AS", "State"), rows)
    return EosReply({"vrfs": {"default": {"peerList": peers}}}, text)


def found_neighbors(context: ShowContext, captured: Captured) -> EosReply:
    """Show the neighbours with an IPv6 address."""
    shown = all_neighbors(context, captured)
    peers = (shown.data or {})["vrfs"]["default"]["peerList"]
    return EosReply({"vrfs": {"default": {"peerList": [one for one in peers if "peerAddress" in one]}}}, shown.text)


def no_neighbors(context: ShowContext, _: Captured) -> EosReply:
    """Show the neighbours with an IPv4 address: there are none."""
    Neighbors(context)
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
        peer["establishedTime"] = int(neighbors.context.now_s - _since(neighbors.context, detail))
    elif state == "Idle":
        is_shut = neighbors.section.has("neighbor", peer["peerGroupName"], "shutdown")
        peer["idleReason"] = "Administratively shut down" if is_shut else "No reachable route"
    return peer


def _since(context: ShowContext, detail: Mapping[str, Any]) -> float:
    return float(detail.get("bgpTimerUpEstablishedEpoch", context.now_s))


def _description(neighbors: Neighbors, detail: Mapping[str, Any]) -> str:
    return neighbors.section.word("neighbor", str(detail.get("peerGroup", "")), "description")


def bfd(context: ShowContext, _: Captured) -> EosReply:
    """Show BFD sessions by the peer address without its zone."""
    shown: dict[str, Any] = {}
    for one in context.bfd():
        port = context.port_of(str(one.get("interface", "")))
        is_up = one.get("status") == "up"
        since = float(one.get("uptime", one.get("downtime", 0)) or 0)
        shown.setdefault(str(one.get("peer", "")), {"peerStats": {}})["peerStats"][port] = {
            "status": "up" if is_up else "down",
            "remoteDisc": int(one.get("remote-id", 0)),
            "localDisc": int(one.get("id", 0)),
            "lastUp": context.now_s - since if is_up else 0.0,
            "lastDown": 0.0 if is_up else context.now_s - since,
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


def routes(context: ShowContext, _: Captured) -> EosReply:
    """Show the selected routes, discard routes of aggregates included."""
    shown = {
        prefix: _route(context, one)
        for prefix, found in context.routes().items()
        for one in found
        if one.get("selected")
    }
    vrf = {
        "routingDisabled": False,
        "allRoutesProgrammedHardware": all(one["hardwareProgrammed"] for one in shown.values()),
        "allRoutesProgrammedKernel": True,
        "defaultRouteState": "reachable" if "0.0.0.0/0" in shown else "notSet",
        "routes": shown,
    }
    rows = [
        (prefix, one["routeType"], via.get("nexthopAddr", "directly connected"), via["interface"])
        for prefix, one in shown.items()
        for via in one["vias"]
    ]
    return EosReply({"vrfs": {"default": vrf}}, table(("Prefix", "Source", "Via", "Interface"), rows))


def _route(context: ShowContext, found: Mapping[str, Any]) -> dict[str, Any]:
    vias = []
    for hop in found.get("nexthops", []):
        name = str(hop.get("interfaceName", ""))
        if name and hop.get("fib"):
            address = {"nexthopAddr": str(hop["ip"])} if "ip" in hop else {}
            vias.append({**address, "interface": LOOPBACKS.get(name, context.port_of(name))})
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


ROUTE_VIEWS = (("show ip route", routes),)


TTL_S = 120
ID_TYPES = {"mac": "macAddress", "local": "locallyAssigned"}
PORT_TYPES = {"mac": "macAddress", "ifname": "interfaceName", "local": "local"}


def _lldp_neighbors(context: ShowContext, captured: Captured) -> Iterator[tuple[str, LldpNeighbor]]:
    word = captured.get("ports", "")
    only = port_list(word, context.machine.ports) if word else context.machine.ports
    if not only:
        raise InvalidCommandError(f"Invalid input (at token 3: '{word}')")
    return ((port, one) for port, one in context.lldp() if port in only)


def neighbors(context: ShowContext, captured: Captured) -> EosReply:
    """Show LLDP neighbours; a NIC without a system name shows its MAC address."""
    shown = [
        {"port": port, "neighborDevice": one.chassis.name, "neighborPort": _port_text(one), "ttl": TTL_S}
        for port, one in _lldp_neighbors(context, captured)
    ]
    data: dict[str, Any] = {
        "tablesLastChangeTime": context.now_s,
        "tablesAgeOuts": 0,
        "tablesInserts": len(shown),
        "tablesDeletes": 0,
        "tablesDrops": 0,
        "lldpNeighbors": shown,
    }
    rows = [tuple(one.values()) for one in shown]
    return EosReply(data, table(("Port", "Neighbor Device ID", "Neighbor Port ID", "TTL"), rows))


def detail(context: ShowContext, captured: Captured) -> EosReply:
    shown: dict[str, Any] = {port: {"lldpNeighborInfo": []} for port in context.machine.ports}
    for port, one in _lldp_neighbors(context, captured):
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


def _port_text(one: LldpNeighbor) -> str:
    return _dotted(one.port) if one.port_kind == "mac" else one.port


def _dotted(mac: str) -> str:
    """Format a MAC address as EOS does: 001c.73a0.fc18."""
    digits = mac.replace(":", "").lower()
    return ".".join(digits[index : index + 4] for index in range(0, len(digits), 4))


NEIGHBOR_VIEWS = (
    ("show lldp neighbors", neighbors),
    ("show lldp neighbors detail", detail),
    ("show lldp neighbors <ports> detail", detail),
    ("show lldp neighbors <ports>", neighbors),
)
