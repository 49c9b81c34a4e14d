"""How EOS's command line differs between releases, as data."""

from dataclasses import dataclass, replace

from netkit.platforms.platform import version_key


@dataclass(frozen=True, slots=True)
class EosDialect:
    """The words one range of releases uses."""

    since: str
    syslog_source: str = "source-interface"
    syslog_source_takes_tcp: bool = False
    portfast: str = "spanning-tree portfast"
    # 4.35 prints the PFC lines as one section with the QoS maps; before, they are one of their own.
    pfc_is_own_section: bool = True


_4_32 = EosDialect(since="4.32")
# 4.33 takes both words and stores the new one; 4.35.1 deprecates the old one; 4.32 refuses the new one.
_4_33 = replace(_4_32, since="4.33", syslog_source="local-interface", syslog_source_takes_tcp=True)
_4_33_2 = replace(_4_33, since="4.33.2", portfast="spanning-tree portfast edge")
_4_35 = replace(_4_33_2, since="4.35", pfc_is_own_section=False)

DIALECTS = (_4_32, _4_33, _4_33_2, _4_35)


def dialect(version: str) -> EosDialect:
    """Return the dialect of a release."""
    key = version_key(version)
    return next(found for found in reversed(DIALECTS) if key >= version_key(found.since))
