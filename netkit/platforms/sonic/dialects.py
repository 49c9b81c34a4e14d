"""How CONFIG_DB and the BGP container differ between community SONiC branches, as data."""

from dataclasses import dataclass, replace

from netkit.platforms.platform import newest

FPM_LINES = ("no fpm use-next-hop-groups", "fpm address 127.0.0.1")
KERNEL_NEXTHOP_LINES = ("no zebra nexthop kernel enable",)


@dataclass(frozen=True, slots=True)
class SonicDialect:
    """What a branch adds or changes."""

    since: str
    frr_version: str
    """FRR in the BGP container."""
    has_router_id: bool = False
    """DEVICE_METADATA.bgp_router_id."""
    has_wcmp: bool = False
    """BGP_DEVICE_GLOBAL.wcmp_enabled."""
    has_hash_algorithm: bool = False
    """SWITCH_HASH.ecmp_hash_algorithm."""
    has_ntp_options: bool = False
    """Fields of an NTP_SERVER row, and NTP.admin_state; before, the row is empty."""
    has_snmp_address: bool = False
    """SNMP_AGENT_ADDRESS_CONFIG is part of the YANG models."""
    has_pool_percentage: bool = False
    """BUFFER_POOL.percentage, in the dynamic buffer model."""
    has_ecn_counters: bool = False
    """Orchagent acts on FLEX_COUNTER_TABLE|WRED_ECN_*; the rows are in YANG earlier, but nothing reads them."""
    zebra_lines: tuple[str, ...] = FPM_LINES + KERNEL_NEXTHOP_LINES
    """What the container appends to frr.conf in split mode when it is missing."""


_202305 = SonicDialect(since="202305", frr_version="8.5.1")
_202311 = replace(_202305, since="202311", has_hash_algorithm=True, has_ntp_options=True, has_snmp_address=True)
_202405 = replace(_202311, since="202405", frr_version="8.5.4", has_router_id=True, has_pool_percentage=True)
_202411 = replace(_202405, since="202411", frr_version="10.0.1", has_wcmp=True)
_202505 = replace(_202411, since="202505", frr_version="10.3", has_ecn_counters=True)
_202511 = replace(_202505, since="202511", frr_version="10.4.1", zebra_lines=FPM_LINES)

DIALECTS = (_202305, _202311, _202405, _202411, _202505, _202511)


def dialect(version: str) -> SonicDialect:
    """The dialect of the newest branch that is not newer than a release."""
    return newest(DIALECTS, version)
