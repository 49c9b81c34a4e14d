"""Warnings and notes about a valid design."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from netkit.design import clusters, lossless
from netkit.design.fabric import Fabric, Link, Role, Switch
from netkit.design.plugs import CableAssembly, End, Socket, module_at, runs, sockets
from netkit.design.verify import ROCE_PACKET_BYTES, headroom_limit, headroom_total, profiles
from netkit.errors import Path, Problem
from netkit.hardware import Media
from netkit.intent.model import Intent, Thresholds
from netkit.platforms import PLATFORMS, Ignored, version_key

CONTROL_DSCP = 48
THRESHOLD_PAIRS = tuple(
    (name, name.replace("_warn", "_fail"))
    for name in Thresholds.model_fields
    if "_warn" in name and name.replace("_warn", "_fail") in Thresholds.model_fields
)
FALLING = {"busbw_fail_percent", "scaling_fail_percent", "line_rate_fail_percent"}
"""Thresholds of values where more is better."""
ROLES: tuple[Role, ...] = ("leaf", "spine", "core")


def notes(fabric: Fabric, intent: Intent, media: Mapping[str, Media]) -> Iterator[Problem]:
    """Yield the warnings and notes of a valid design."""
    yield from _secrets(intent)
    yield from _access(fabric)
    yield from _headroom(fabric)
    yield from _numbers(fabric, intent)
    yield from _plugs(fabric, media)
    yield from _platforms(fabric, intent)
    yield from _idle(fabric, intent)
    yield from clusters.notes(intent)
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


def _access(fabric: Fabric) -> Iterator[Problem]:
    """Warn where the gateway of the management network may not reach the switches: a jump host or NAT may be there."""
    found: dict[str, list[str]] = defaultdict(list)
    for switch in fabric.switches:
        if switch.management and not switch.management.admits(switch.management.gateway):
            found[switch.management.gateway].append(switch.name)
    for gateway, names in found.items():
        what = f"{gateway}, the gateway of {names[0]}, is not in it: access through NAT or a jump host there is cut off"
        yield _warning(what, "add it, if netkit or a collector comes from there", ("management", "allow"))


def _headroom(fabric: Fabric) -> Iterator[Problem]:
    first = {(switch.role, switch.model.name): switch for switch in reversed(fabric.switches)}
    for switch in reversed(first.values()):
        pool = switch.model.headroom_pool_bytes
        if pool and (total := headroom_total(switch)) > pool:
            yield Problem(
                f"the headroom of {switch.name} adds up to {total:,} bytes, its shared pool holds {pool:,}",
                f"this suffices while at most {pool / total:.0%} of the ports are paused at once",
                ("switches", switch.role, "model"),
                severity="note",
            )


def _numbers(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield numbers of the intent that work, but not as they read."""
    if intent.lossless.headroom:
        yield from _little_headroom(fabric)
    for speed, ecn in intent.lossless.ecn.items():
        if ecn.min_bytes < ROCE_PACKET_BYTES <= ecn.max_bytes:
            path: Path = ("lossless", "ecn", speed, "min_bytes")
            message = f"ECN marking starts below one RoCE packet of {ROCE_PACKET_BYTES} bytes: in an empty queue"
            yield _warning(message, "3 µs at line rate are usual: speed in Gb/s × 375", path)
        for role in ROLES:
            switch = next(iter(fabric.tier(role)), None)
            limit = headroom_limit(switch, intent.lossless.pool_percent) if switch else None
            if switch and limit is not None and ecn.min_bytes <= limit < ecn.max_bytes:
                path = ("lossless", "ecn", speed, "max_bytes")
                message = f"marking is never certain: {switch.model.name} has {limit:,} bytes for the lossless class"
                yield _warning(message, "lower it", path)
    ways = max(sum(port.profile.role == "up" for port in switch.ports) for switch in fabric.switches)
    if ways > intent.routing.max_paths:
        message = f"a switch has {ways} upward paths, of which {intent.routing.max_paths} carry traffic"
        yield _warning(message, f"use {ways} or more", ("routing", "max_paths"))
    for warns, fails in THRESHOLD_PAIRS:
        worse, better = (fails, warns) if fails not in FALLING else (warns, fails)
        low, high = getattr(intent.thresholds, better), getattr(intent.thresholds, worse)
        if low > high:
            message = (
                f"{warns} {getattr(intent.thresholds, warns):g} is beyond {fails} {getattr(intent.thresholds, fails):g}"
            )
            yield _warning(message, "the warning limit must be milder than the failure limit", ("thresholds", warns))


def _little_headroom(fabric: Fabric) -> Iterator[Problem]:
    """Yield, for each speed, the port whose usual headroom exceeds the intent's by most."""
    worst: dict[int, tuple[int, str]] = {}
    for switch, profile in profiles(fabric):
        room, cable, speed = profile.headroom, profile.cable, profile.speed_gbps
        usual = lossless.choose(switch.model, profile.split, cable, profile.mtu_bytes, None)
        if room and room.origin == "intent" and usual and room.xoff_bytes < usual.xoff_bytes:
            origin = "the vendor's table" if usual.origin == "vendor" else "the formula"
            message = f"{room.xoff_bytes:,} bytes are less than {origin} has for {cable.length_m:g} m,"
            if usual.xoff_bytes > worst.get(speed, (0, ""))[0]:
                worst[speed] = usual.xoff_bytes, f"{switch.model.name}: {message} {usual.xoff_bytes:,}"
    for speed, (_, message) in sorted(worst.items()):
        path: Path = ("lossless", "headroom", speed, "xoff_bytes")
        yield _warning(message, "packets may be lost in a pause", path)


def _plugs(fabric: Fabric, media: Mapping[str, Media]) -> Iterator[Problem]:
    """Yield the media that cannot be plugged in at both ends."""
    at = sockets(fabric)
    links: dict[tuple[str, str], list[Link]] = defaultdict(list)
    alike: dict[tuple[str, str, int, str], Socket] = {}
    for link in fabric.links():
        name = link.cable.media
        links[(link.kind, name)].append(link)
        for end in (at[(link.device, link.port)], at[(link.peer, link.peer_port)]):
            alike.setdefault((link.kind, name, end.ports, end.form), end)
    for (kind, name, ports, form), end in alike.items():
        if module_at(end, name, media) is None:
            message = f"no known module works with {name} and fits {end.device}: {form}, {ports} a cage"
            remedy = "choose other media, or describe one in models/media.yaml"
            yield _warning(message, remedy, ("cables", kind, "media"))
    for (kind, name), group in links.items():
        if media[name].kind != "optical":
            stuck = [run for run in runs(group, at, media[name].ports_per_module) if run.trunk is None]
            if stuck:
                yield _unpluggable(kind, name, stuck, at)


def _unpluggable(kind: str, name: str, stuck: list[CableAssembly], at: Mapping[End, Socket]) -> Problem:
    first = stuck[0].links[0]
    ends = (at[(first.device, first.port)], at[(first.peer, first.peer_port)])
    cages = " and ".join(f"{end.device} cage {end.cage}" for end in ends)
    count = sum(len(run.links) for run in stuck)
    message = (
        f"{name} connects one cage with one other, or with single-port cages; {count} links do not, such as at {cages}"
    )
    return _warning(message, "choose optical modules and fibre, or other breakouts", ("cables", kind, "media"))


def _platforms(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    for role in ROLES:
        tier = getattr(intent.switches, role)
        if tier is None:
            continue
        systems = sorted({switch.platform for switch in fabric.tier(role)})
        if systems and tier.platform not in systems:
            message = (
                f"no {role} runs {PLATFORMS[tier.platform].title}: the table of devices gives all of them another NOS"
            )
            remedy = f"set what they run as switches.{role}, and clear the cells"
            yield _warning(message, remedy, ("switches", role, "platform"))
        for platform in (PLATFORMS[one] for one in systems):
            if fabric.lossless.cnp.shape_percent and platform.lacks("cnp_shaping") and not platform.lacks("cnp_strict"):
                yield Problem(
                    f"{platform.title} cannot shape the strict CNP queue",
                    platform.capabilities["cnp_shaping"].note,
                    ("switches", role, "platform"),
                    severity="note",
                )
        own = PLATFORMS[tier.platform]
        if tier.routing_mode not in {mode.name for mode in own.routing_modes}:
            path: Path = ("switches", role, "routing_mode")
            yield _warning(f"{own.title} has only one routing mode", "remove it", path)
    yield from _unknown_versions(fabric)
    if fabric.purpose == "production":
        yield from _ignored(fabric, intent)


def _unknown_versions(fabric: Fabric) -> Iterator[Problem]:
    """Yield the releases newer than any whose syntax was checked."""
    seen: dict[tuple[str, str], Switch] = {}
    for switch in fabric.switches:
        seen.setdefault((switch.platform, switch.version), switch)
    for (name, version), switch in seen.items():
        title, last = PLATFORMS[name].title, PLATFORMS[name].newest_version
        newest = version_key(last)
        if newest and version_key(version)[: len(newest)] > newest:
            yield _warning(
                f"{title} {version} is newer than all verified releases, and rendered as {last}",
                "read its release notes, and try the configuration on one switch first",
                ("switches", switch.role, "version"),
            )


def _ignored(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield the settings of the intent that have no effect on its switches."""
    kinds = {(switch.role, switch.platform, switch.model.name, switch.version): switch for switch in fabric.switches}
    found: dict[tuple[Path, Ignored], list[str]] = {}
    for switch in kinds.values():
        for ignored in PLATFORMS[switch.platform].ignored:
            if ignored.when(switch.model, switch.version):
                for path in _given(intent, tuple(ignored.key.split("."))):
                    found.setdefault((path, ignored), []).append(switch.role)
    for (path, ignored), roles in found.items():
        who = f"{' and '.join(dict.fromkeys(roles))} switches"
        yield Problem(f"has no effect on {who}", ignored.note, path, severity=ignored.severity)


def _given(part: BaseModel, key: Path) -> Iterator[Path]:
    """Yield the paths at which a key is set to something other than its default."""
    name, *rest = key
    if str(name) not in part.model_fields_set:
        return
    value, default = getattr(part, str(name)), type(part).model_fields[str(name)].default
    if not rest:
        if value and value != default:
            yield (name,)
    elif isinstance(value, BaseModel):
        yield from ((name, *path) for path in _given(value, tuple(rest)))
    elif isinstance(value, Mapping):
        for entry, inner in value.items():
            yield from ((name, entry, *path) for path in _given(inner, tuple(rest)))


def _idle(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    given_by_key: dict[str, Mapping[int, object]] = {"ecn": intent.lossless.ecn, "headroom": intent.lossless.headroom}
    is_given = any(given_by_key.values())
    speeds = {port.speed_gbps for switch in fabric.switches for port in switch.ports} if is_given else set()
    for key, given in given_by_key.items():
        for speed in sorted(set(given) - speeds):
            shown = ", ".join(f"{known}G" for known in sorted(speeds))
            yield _warning(f"no port runs at {speed}G", f"remove it; ports run at {shown}", ("lossless", key, speed))
    for switch in fabric.switches:
        if not switch.ports and switch.access is None:
            yield _warning(
                f"nothing is cabled to {switch.name}", "check slots, planes and rails", ("switches", switch.role)
            )


def _warning(message: str, remedy: str, path: Path) -> Problem:
    return Problem(message, remedy, path, severity="warning")
