"""NAPALM getters of a lab's Linux switch, compared with the design."""

from typing import Any

from netkit.design import Fabric
from tests.lab.running import until


def assert_answered(device: Any, fabric: Fabric, name: str, other: str) -> None:
    """Compare addresses, routes and neighbors of a switch with the design, and ping another switch."""
    switch, far = fabric.switch(name), fabric.switch(other)
    by_interface = device.get_interfaces_ip()
    assert any(str(switch.loopback) in families.get("ipv4", {}) for families in by_interface.values())
    prefix = f"{far.loopback}/32"
    until(lambda: device.get_route_to(prefix), "the route is learnt")
    hops = device.get_route_to(prefix)[prefix]
    assert {hop["protocol"] for hop in hops} == {"bgp"}
    ports = {port.name for port in switch.ports}
    assert {hop["outgoing_interface"] for hop in hops if hop["selected_next_hop"]} <= ports
    pinged = device.ping(str(far.loopback), source=str(switch.loopback), count=2)["success"]
    assert (pinged["probes_sent"], pinged["packet_loss"]) == (2, 0)
    assert {probe["ip_address"] for probe in pinged["results"]} == {str(far.loopback)}
    assert "error" in device.ping("no such host")
    assert {one["interface"] for one in device.get_arp_table()} <= {*by_interface, *ports}
    assert isinstance(device.get_mac_address_table(), list)
    found = device.get_environment()
    assert found["memory"]["available_ram"] > found["memory"]["used_ram"] > 0
    assert 0 <= found["cpu"][0]["%usage"] <= 100
