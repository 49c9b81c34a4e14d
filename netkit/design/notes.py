"""What a design is allowed to be, but its owner should know: warnings and notes."""

from collections.abc import Iterator, Mapping

from netkit.design.fabric import Fabric
from netkit.design.verify import headroom_total
from netkit.errors import Path, Problem
from netkit.intent.model import Intent
from netkit.platforms import PLATFORMS

CONTROL_DSCP = 48
ROLES = ("leaf", "spine", "core")


def notes(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield the warnings and notes of a design that stands."""
    yield from _secrets(intent)
    yield from _headroom(fabric)
    yield from _platforms(fabric, intent)
    yield from _idle(fabric, intent)
    if fabric.lossless.dscp_to_priority[CONTROL_DSCP] == fabric.lossless.cnp.priority:
        yield Problem(
            f"DSCP {CONTROL_DSCP} is CS6 too: BGP and BFD share the strict CNP queue",
            "no control-plane policer may drop it, or CNPs are lost with it",
            ("lossless", "cnp", "dscp"),
            severity="note",
        )


def _secrets(intent: Intent) -> Iterator[Problem]:
    snmp, login = intent.services.snmp, intent.services.login
    if snmp and not (snmp.auth_secret and snmp.priv_secret):
        yield _warning(
            "SNMPv3 is left out: its secrets are not named", "name auth_secret and priv_secret", ("services", "snmp")
        )
    if login and not login.password_hash_secret:
        yield _warning(
            "the login is left out: its secret is not named", "name password_hash_secret", ("services", "login")
        )


def _headroom(fabric: Fabric) -> Iterator[Problem]:
    for role in ROLES:
        switch = next(iter(fabric.tier(role)), None)  # type: ignore[arg-type]  # the names of ROLES are roles
        pool = switch.model.headroom_pool_bytes if switch else None
        if switch and pool and (total := headroom_total(switch)) > pool:
            yield Problem(
                f"the headroom of {switch.name} adds up to {total:,} bytes, its shared pool holds {pool:,}",
                f"it lasts while at most {pool / total:.0%} of the ports are paused at once",
                ("switches", role, "model"),
                severity="note",
            )


def _platforms(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    for role in ROLES:
        tier = getattr(intent.switches, role)
        if tier is None:
            continue
        platform, path = PLATFORMS[tier.platform], ("switches", role, "platform")
        if tier.platform == "nvue" and intent.lossless.headroom:
            yield _warning("lossless.headroom is not pushed: NVUE computes headroom from the cable length", "", path)
        if fabric.lossless.cnp.shape_percent and platform.lacks("cnp_shaping") and not platform.lacks("cnp_strict"):
            yield Problem(
                f"{platform.title} cannot shape the strict CNP queue",
                platform.capabilities["cnp_shaping"].note,
                path,
                severity="note",
            )


def _idle(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    given_by_key: dict[str, Mapping[int, object]] = {"ecn": intent.lossless.ecn, "headroom": intent.lossless.headroom}
    is_given = any(given_by_key.values())
    speeds = {port.speed_gbps for switch in fabric.switches for port in switch.ports} if is_given else set()
    for key, given in given_by_key.items():
        for speed in sorted(set(given) - speeds):
            shown = ", ".join(f"{known}G" for known in sorted(speeds))
            yield _warning(f"no port runs at {speed}G", f"remove it; ports run at {shown}", ("lossless", key, speed))
    for switch in fabric.switches:
        if not switch.ports:
            yield _warning(
                f"nothing is cabled to {switch.name}", "check slots, planes and rails", ("switches", switch.role)
            )


def _warning(message: str, remedy: str, path: Path) -> Problem:
    return Problem(message, remedy, path, severity="warning")
