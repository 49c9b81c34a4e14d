"""The routing table: FRR's, in EOS's shape and with EOS's names of interfaces."""

from collections.abc import Iterator, Mapping
from typing import Any

from netkit.lab.personalities.eos.patterns import Captured
from netkit.lab.personalities.eos.reply import Reply
from netkit.lab.personalities.eos.views.lens import Lens
from netkit.lab.personalities.eos.views.table import table

KINDS = {"bgp": "eBGP", "connected": "connected", "static": "static", "local": "connected"}
LOOPBACKS = {"lo": "Loopback0"}


def routes(lens: Lens, _: Captured) -> Reply:
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
    return Reply({"vrfs": {"default": vrf}}, table(("Prefix", "Source", "Via", "Interface"), rows))


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


VIEWS = (("show ip route", routes), ("show ip route vrf default", routes))
