"""Plain Linux with FRR: routing only. Without a switch chip it has no lossless features; suitable for a lab."""

from netkit.hardware import Split, SwitchModel
from netkit.platforms.platform import Ignored, ManagementAccess, Platform, capabilities


def port_name(_model: SwitchModel, split: Split, cage: int, port: int) -> str:
    """swp1 or swp1s0, within Linux's 15 characters."""
    return f"swp{cage}" if split.ports == 1 else f"swp{cage}s{port}"


ACCESS = ManagementAccess("root", {"ssh": 22})
PLATFORM = Platform(
    name="frr",
    title="Linux and FRR",
    tested_versions=("8.4.4", "10.2"),
    newest_version="10.6",
    starting_point=("SN5600", "8.4.4"),
    oldest_version="8.4",
    runs_on_any_model=True,
    max_mtu_bytes=9216,
    port_name=port_name,
    ignored=(
        Ignored("lossless", "no switch chip"),
        Ignored("external.filter", "configure the firewall of a Linux switch yourself, such as in /etc/nftables.conf"),
        Ignored("management.allow", "configure the firewall of a Linux switch yourself, such as in /etc/nftables.conf"),
        Ignored("services.login", "cloud-init creates it at the first boot (netkit render --ztp)"),
        Ignored("services.timezone", "cloud-init sets it at the first boot (netkit render --ztp)"),
        Ignored("overrides.system_mac", "Linux uses that of the NIC"),
    ),
    capabilities=capabilities(
        breakout=("", "Linux has no cages; only the port names follow it"),
        bgp_unnumbered="native",
        bfd="native",
        drain_device="native",
        drain_neighbor=("native", "a route map below 10.6: 8.4 has no command, later ones drain one direction only"),
        dscp_map=("", "no switch chip"),
        pfc=("", "no switch chip"),
        pfc_headroom=("", "no switch chip"),
        pfc_watchdog=("", "no switch chip"),
        ecn=("", "no switch chip"),
        ets=("", "no switch chip"),
        cnp_strict=("", "no switch chip"),
        cnp_shaping=("", "no switch chip"),
        buffer_pools=("", "no switch chip"),
        adaptive_routing=("", "no switch chip"),
        lldp="native",
        ntp="native",
        dns="native",
        syslog="native",
        snmpv3="native",
        management_vrf="native",
        change_in_place=("native", "file by file; frr-reload.py changes only the lines that differ"),
        replace_whole=("native", "every file is written completely"),
        timed_revert=("on device", "a timer that restores the earlier files"),
        drain_in_place=("native", "BGP graceful shutdown in FRR, not saved"),
    ),
)
