"""How NVUE's object model differs between releases, as data. The big break is at 5.15."""

from dataclasses import dataclass, replace

from netkit.platforms.platform import newest


@dataclass(frozen=True, slots=True)
class NvueDialect:
    """Keywords and paths of a range of releases."""

    since: str
    state: str = "enable"
    on: str = "on"
    off: str = "off"
    ipv4: str = "ip"
    ipv6: str = "ip"
    vrf_is_under_ip: bool = True
    bfd_on_peer_group: bool = True
    service_ntp: bool = True
    service_syslog: bool = True
    service_snmp: bool = True
    ecn_on: str = "enable"
    ecn_off: str = "disable"
    has_date_time: bool = False
    """The time zone is `system date-time timezone`; before, `system timezone`."""


_5_9 = NvueDialect(since="5.9")
_5_11 = replace(_5_9, since="5.11", service_snmp=False)
_5_13 = replace(_5_11, since="5.13", service_syslog=False)
_5_15 = NvueDialect(
    since="5.15",
    state="state",
    on="enabled",
    off="disabled",
    ipv4="ipv4",
    ipv6="ipv6",
    vrf_is_under_ip=False,
    bfd_on_peer_group=False,
    service_ntp=False,
    service_syslog=False,
    service_snmp=False,
    has_date_time=True,
)
# The 5.17 command reference prints enabled/disabled here, the guides up to 5.16 enable/disable. Unverified on a switch.
_5_17 = replace(_5_15, since="5.17", ecn_on="enabled", ecn_off="disabled")

DIALECTS = (_5_9, _5_11, _5_13, _5_15, _5_17)


def dialect(version: str) -> NvueDialect:
    return newest(DIALECTS, version)


# What `qos roce` sets up by itself (Cumulus Linux user guide, RDMA over Converged Ethernet). The mode keeps its traffic
# classes for any priorities: RoCE is class 3, CNP 6, everything else 0.
ROCE_CLASS, CNP_CLASS, REST_CLASS = 3, 6, 0
ROCE_PRIORITY = 3
CLASSES = {ROCE_PRIORITY: ROCE_CLASS, 6: CNP_CLASS}
"""Priority → class; all others have the class of the rest."""
WEIGHTS = {REST_CLASS: 50, ROCE_CLASS: 50}
ECN_MIN_BYTES, ECN_MAX_BYTES, ECN_PERCENT = 150_000, 1_500_000, 100
POOL_PERCENT = 50
CABLE_M = 100
