"""The lossless profile: one set of numbers behind every switch and every host."""

from collections.abc import Iterator

from netkit.design.traffic import EcnThresholds, LosslessProfile, TrafficClass, WatchdogTimers
from netkit.errors import Problem
from netkit.intent.model import Intent, Lossless

ECN_MIN_US = 3
ECN_MAX_US = 30


def profile(intent: Intent) -> LosslessProfile:
    """Return the profile of an intent that has passed `problems`."""
    lossless = intent.lossless
    mapping = dscp_to_priority(lossless)
    priorities = {lossless.roce.priority, lossless.cnp.priority}

    def dscps(priority: int) -> tuple[int, ...]:
        if priority in priorities:
            return tuple(dscp for dscp, mapped in enumerate(mapping) if mapped == priority)
        return tuple(dscp for dscp, mapped in enumerate(mapping) if mapped not in priorities)

    roce, cnp, rest = lossless.roce, lossless.cnp, lossless.best_effort
    return LosslessProfile(
        roce=TrafficClass("roce", roce.priority, dscps(roce.priority), True, False, roce.weight, None),
        cnp=TrafficClass("cnp", cnp.priority, dscps(cnp.priority), False, True, 0, cnp.shape_percent),
        best_effort=TrafficClass("best-effort", rest.priority, dscps(rest.priority), False, False, rest.weight, None),
        data_dscp=roce.dscp[0],
        cnp_dscp=cnp.dscp,
        dscp_to_priority=mapping,
        watchdog=WatchdogTimers(
            lossless.watchdog.poll_ms,
            lossless.watchdog.detection_polls,
            lossless.watchdog.restoration_polls,
            lossless.watchdog.action,
        ),
        pool_percent=lossless.pool_percent,
    )


def dscp_to_priority(lossless: Lossless) -> tuple[int, ...]:
    """Return the priority of each DSCP: blocks of eight, then the DSCPs the intent names."""
    mapping = [dscp // 8 for dscp in range(64)]
    for dscp in lossless.roce.dscp:
        mapping[dscp] = lossless.roce.priority
    mapping[lossless.cnp.dscp] = lossless.cnp.priority
    return tuple(mapping)


def ecn(lossless: Lossless, speed_gbps: int) -> EcnThresholds:
    """Return the ECN thresholds of a port speed: from the intent, else 3 µs and 30 µs at line rate."""
    given = lossless.ecn.get(speed_gbps)
    if given:
        return EcnThresholds(given.min_bytes, given.max_bytes, given.probability_percent)
    bytes_per_us = speed_gbps * 125
    return EcnThresholds(ECN_MIN_US * bytes_per_us, ECN_MAX_US * bytes_per_us, 100)


def problems(intent: Intent) -> Iterator[Problem]:
    """Yield every number that would not be lossless, or would differ between switch and host."""
    for speed, thresholds in intent.lossless.ecn.items():
        if thresholds.min_bytes >= thresholds.max_bytes:
            yield Problem(
                f"ECN min_bytes {thresholds.min_bytes} is not below max_bytes {thresholds.max_bytes}",
                "marking must start before it is certain: lower min_bytes or raise max_bytes",
                ("lossless", "ecn", speed, "min_bytes"),
            )
    yield from _classes(intent.lossless)
    yield from _nic(intent)


def _classes(lossless: Lossless) -> Iterator[Problem]:
    roce, cnp, rest = lossless.roce, lossless.cnp, lossless.best_effort
    total = roce.weight + rest.weight
    if total != 100:
        yield Problem(
            f"ETS weights sum to {total}, not 100 (roce {roce.weight}, best_effort {rest.weight})",
            "make the two add up to 100; CNP is strict and has no weight",
            ("lossless", "roce" if "weight" in roce.model_fields_set else "best_effort", "weight"),
        )
    if cnp.priority == roce.priority:
        yield Problem(
            f"the strict CNP queue shares priority {cnp.priority} with the PFC class",
            "give CNP a priority of its own: a paused CNP cannot end the congestion it reports",
            ("lossless", "cnp", "priority"),
        )
    if rest.priority in {roce.priority, cnp.priority}:
        other = "RoCE" if rest.priority == roce.priority else "CNP"
        yield Problem(
            f"best_effort shares priority {rest.priority} with the {other} class",
            "choose a free priority",
            ("lossless", "best_effort", "priority"),
        )
    if cnp.dscp in roce.dscp:
        yield Problem(
            f"DSCP {cnp.dscp} is both RoCE data and CNP", "give CNP its own DSCP", ("lossless", "cnp", "dscp")
        )


def _nic(intent: Intent) -> Iterator[Problem]:
    nic, lossless = intent.hosts.nic, intent.lossless
    mapping = dscp_to_priority(lossless)
    pairs = (
        ("data_dscp", nic.data_dscp, lossless.roce.dscp[0], "lossless.roce.dscp"),
        ("cnp_dscp", nic.cnp_dscp, lossless.cnp.dscp, "lossless.cnp.dscp"),
        ("cnp_priority", nic.cnp_priority, lossless.cnp.priority, "lossless.cnp.priority"),
    )
    for key, host, switch, name in pairs:
        if host is not None and host != switch:
            yield Problem(
                f"the NICs use {host}, the switches {switch} ({name})",
                "make both sides agree, or drop the key",
                ("hosts", "nic", key),
            )
    for dscp, priority in nic.dscp_to_priority.items():
        if mapping[dscp] != priority:
            yield Problem(
                f"the NICs map DSCP {dscp} to priority {priority}, the switches to {mapping[dscp]}",
                "one map must hold on every hop",
                ("hosts", "nic", "dscp_to_priority", dscp),
            )
