"""Arista EOS."""

from netkit.hardware import Split, SwitchModel
from netkit.platforms.eos.dialects import hardware
from netkit.platforms.platform import Ignored, ManagementAccess, Platform, capabilities

# Every routed port takes an internal VLAN. By default EOS allocates from 1006 to 4094; this range has room for every
# port of a chip, and must never change, since ports in use keep their VLAN.
INTERNAL_VLANS = range(1006, 2000)


def port_name(_model: SwitchModel, split: Split, cage: int, port: int) -> str:
    """Ethernet1/5: the cage and the first lane of the port."""
    return f"Ethernet{cage}/{1 + port * split.lanes_per_port}"


ACCESS = ManagementAccess(
    "admin", {"eapi": 443}, gnmi_port=6030, netmiko="arista_eos", ansible_network_os="arista.eos.eos"
)
PLATFORM = Platform(
    name="eos",
    title="Arista EOS",
    tested_versions=("4.32.3F", "4.35.1F"),
    newest_version="4.35",
    starting_point=("DCS-7060X6-64PE", "4.35.1F"),
    oldest_version="4.32",
    version_family="4",
    max_mtu_bytes=9214,
    port_name=port_name,
    reserved_vlans=INTERNAL_VLANS,
    management_port="Management1",
    loopback_port="Loopback0",
    vlan_port="Vlan{number}",
    lag_port="Port-Channel{number}",
    renders_access=True,
    longest_detection_ms=60_000,
    longest_restoration_ms=60_000,
    ignored=(
        Ignored("routing.connect_s", "EOS has no such timer"),
        Ignored("overrides.system_mac", "EOS uses that of the switch"),
        *(
            Ignored(
                key,
                "EOS configures the packet buffer of Strata chips only",
                lambda model, _version: not hardware(model).has_mmu_profile,
            )
            for key in ("lossless.headroom", "lossless.pool_percent")
        ),
    ),
    capabilities=capabilities(
        breakout=("native", "the interface speed selects the split"),
        bgp_unnumbered="native",
        bfd="native",
        drain_device=("native", "maintenance mode, unit System"),
        drain_neighbor=("native", "a maintenance unit with its interfaces; unverified, also for sessions by address"),
        dscp_map="native",
        pfc="native",
        pfc_headroom=("native", "Strata chips only, one figure for the whole switch"),
        pfc_watchdog=("native", "watchdog action forward becomes notify-only"),
        ecn="native",
        ets="native",
        cnp_strict="native",
        cnp_shaping=("native", "queue shape rate"),
        buffer_pools=("native", "Strata chips only; by alpha, EOS has no pool percentages"),
        adaptive_routing=("native", "dynamic load balancing"),
        lldp="native",
        ntp="native",
        dns="native",
        syslog="native",
        snmpv3="native",
        management_vrf="native",
        change_in_place=("native", "a configuration session, committed as a whole"),
        replace_whole=("native", "a session that starts empty: removes everything that is not intended"),
        timed_revert=("native", "a commit timer; one at a time"),
        drain_in_place=("native", "maintenance mode, in the running configuration only"),
    ),
)
