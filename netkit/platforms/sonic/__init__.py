"""Community SONiC: config_db.json plus FRR."""

from netkit.hardware import Split, SwitchModel
from netkit.platforms.platform import Ignored, ManagementAccess, Platform, RoutingMode, capabilities, version_key
from netkit.platforms.sonic.hardware import missing


def port_name(model: SwitchModel, split: Split, cage: int, port: int) -> str:
    """Name a port EthernetN, where N counts lanes: the model's first index, the cage's first lane, the port's own."""
    data = model.platforms.get("sonic", {})
    step = data.get("lanes_per_index") or model.lanes_per_cage
    return f"Ethernet{(data.get('first_index') or 0) + (cage - 1) * step + port * split.lanes_per_port}"


ACCESS = ManagementAccess("admin", {"ssh": 22}, gnmi_port=8080)
PLATFORM = Platform(
    name="sonic",
    title="SONiC (community)",
    tested_versions=("202411", "202505", "202511"),
    newest_version="202511",
    starting_point=("SN5600", "202411"),
    oldest_version="202305",
    largest_version="209912",
    routing_modes=(
        RoutingMode("split"),
        RoutingMode("unified", "202511", "cannot apply a route policy to eBGP unnumbered neighbours"),
    ),
    max_mtu_bytes=9216,
    port_name=port_name,
    loopback_port="Loopback0",
    vlan_port="Vlan{number}",
    missing_data=missing,
    longest_detection_ms=5_000,
    longest_restoration_ms=60_000,
    ignored=(
        Ignored(
            "lossless.pool_percent",
            "the pools of the traditional buffer model have the sizes of the image",
            lambda model, _: model.platforms["sonic"]["buffer_model"] == "traditional",
        ),
        Ignored(
            "lossless.pool_percent",
            "before 202405 the dynamic buffer model divides the pools itself",
            lambda model, version: (
                model.platforms["sonic"]["buffer_model"] == "dynamic" and version_key(version) < (202405,)
            ),
        ),
        Ignored(
            "services.login",
            "CONFIG_DB has none; the first boot creates it (netkit render --ztp)",
            severity="note",
        ),
        *(
            Ignored(f"lossless.ecn.{key}", "its thresholds are in bytes", severity="note")
            for key in ("min_unit", "max_unit")
        ),
    ),
    capabilities=capabilities(
        breakout="native",
        bgp_unnumbered=("native", "split: netkit's own frr.conf; unified: frrcfgd, from 202511 for eBGP with policy"),
        bfd=("native", "in software, by bfdd; in unified mode with FRR's own timers only"),
        drain_device="native",
        drain_neighbor=("route-map", "FRR community on the neighbour"),
        dscp_map="native",
        pfc="native",
        pfc_headroom="native",
        pfc_watchdog="native",
        ecn="native",
        ets="native",
        cnp_strict="native",
        cnp_shaping=("native", "scheduler with a peak rate; unverified on a switch"),
        buffer_pools="native",
        adaptive_routing=("", "no adaptive routing in community SONiC up to 202505"),
        lldp=("native", "a feature container; no per-port switch in the community image"),
        ntp="native",
        dns="native",
        syslog="native",
        snmpv3="native",
        management_vrf="native",
        change_in_place=(
            "patch or reload",
            "changes that the generic updater refuses need config reload: minutes of outage",
        ),
        replace_whole=("reload", "config reload of the written files"),
        timed_revert=("on device", "a timer that rolls back to a checkpoint, or reloads the previous files"),
        drain_in_place=("native", "BGP graceful shutdown in FRR, not saved"),
    ),
)
