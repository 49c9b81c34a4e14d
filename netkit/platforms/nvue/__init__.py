"""NVIDIA Cumulus Linux 5.x, configured through NVUE."""

from netkit.hardware import Split, SwitchModel
from netkit.platforms.platform import Ignored, ManagementAccess, Platform, capabilities


def port_name(_model: SwitchModel, split: Split, cage: int, port: int) -> str:
    """Name a whole cage swp1, a port of a split cage swp1s0."""
    return f"swp{cage}" if split.ports == 1 else f"swp{cage}s{port}"


ACCESS = ManagementAccess(
    "cumulus",
    {"ssh": 22, "nvue-rest": 8765},
    gnmi_port=9339,
    is_gnmi_login_basic=True,
    ansible_network_os="nvidia.nvue.httpapi",
)
PLATFORM = Platform(
    name="nvue",
    title="NVIDIA Cumulus Linux (NVUE)",
    tested_versions=("5.14.0", "5.16.1"),
    newest_version="5.17",
    starting_point=("SN5600", "5.16.1"),
    oldest_version="5.9",
    version_family="5",
    max_mtu_bytes=9216,
    port_name=port_name,
    # Cumulus Linux user guide, VLAN-aware bridge mode, Reserved VLAN Range: changing it restarts switchd.
    reserved_vlans=range(3725, 4000),
    # Cumulus Linux user guide, quick start: no underscores in the host name. Not tried on a switch.
    refused_mark="_",
    renders_access=True,
    ignored=(
        Ignored("lossless.headroom", "NVUE computes headroom from the cable length"),
        Ignored("lossless.best_effort.priority", "all traffic except RoCE and CNP is traffic class 0 of the RoCE mode"),
        Ignored("lossless.watchdog.action", "the watchdog can only drop, not forward"),
        Ignored("lossless.watchdog.restoration_polls", "a queue is lossless again after one poll without pauses"),
        Ignored("overrides.system_mac", "NVUE uses that of the switch"),
        *(
            Ignored(f"lossless.ecn.{key}", "its thresholds are in bytes", severity="note")
            for key in ("min_unit", "max_unit")
        ),
    ),
    capabilities=capabilities(
        breakout="native",
        bgp_unnumbered="native",
        bfd=("native", "≤ 5.14 on the peer group; ≥ 5.15 as a BFD profile"),
        drain_device="native",
        drain_neighbor="native",
        dscp_map="native",
        pfc=("native", "set by the RoCE mode"),
        pfc_headroom=("native", "computed by the NOS from the cable length; netkit checks the sum"),
        pfc_watchdog="native",
        ecn=("native", "set by the RoCE mode; other thresholds as a profile"),
        ets="native",
        cnp_strict="native",
        cnp_shaping=("", "no documented egress shaper for a strict traffic class"),
        buffer_pools=("native", "traffic-pool memory percentages"),
        adaptive_routing=("native", "Spectrum-4 at 200G and 400G"),
        lldp="native",
        ntp="native",
        dns="native",
        syslog="native",
        snmpv3=("native", "the syntax of users follows the command reference; unverified on a switch"),
        management_vrf="native",
        change_in_place=(
            "native",
            "nv config patch, one transaction; ports are removed before the breakout of their cage",
        ),
        replace_whole=(
            "native",
            "deletes everything else: refused unless accounts, API, SSH and management are intended",
        ),
        timed_revert=("native", "nv config apply with commit confirmation"),
        drain_in_place=("native", "BGP graceful shutdown, in the running configuration only"),
    ),
)
