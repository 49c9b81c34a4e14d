"""Arista EOS."""

from netkit.hardware import Split, SwitchModel
from netkit.platforms.platform import Platform, capabilities


def port_name(_model: SwitchModel, split: Split, cage: int, port: int) -> str:
    """Return Ethernet1/5: the cage and the first lane of the port."""
    return f"Ethernet{cage}/{1 + port * split.lanes_per_port}"


EOS = Platform(
    name="eos",
    title="Arista EOS",
    tested_versions=("4.32.3F", "4.35.1F"),
    max_mtu_bytes=9214,
    port_name=port_name,
    capabilities=capabilities(
        breakout=("native", "the interface speed selects the split"),
        bgp_unnumbered="native",
        bfd="native",
        drain_device=("native", "maintenance mode, unit System"),
        drain_neighbor=("native", "maintenance mode, BGP group"),
        dscp_map="native",
        pfc="native",
        pfc_headroom=("native", "Strata chips only, one figure for the whole switch"),
        pfc_watchdog="native",
        ecn="native",
        ets="native",
        cnp_strict="native",
        cnp_shaping=("native", "queue shape rate"),
        buffer_pools=("native", "Strata chips only"),
        adaptive_routing=("native", "dynamic load balancing"),
        lldp="native",
        ntp="native",
        dns="native",
        syslog="native",
        snmpv3="native",
        management_vrf="native",
    ),
)
