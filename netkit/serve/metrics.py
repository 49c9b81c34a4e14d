"""Metrics for Prometheus: those of the newest check, and of the schedule; an unknown value has no sample."""

import time
from collections.abc import Iterator, Sequence

from netkit import __version__
from netkit.serve.fleet_state import FleetState
from netkit.serve.now import CurrentState, OwnChecks, ServedFabric

OWN = {
    "netkit_serve_info": ("gauge", "Which netkit serves"),
    "netkit_serve_start_time_seconds": ("gauge", "When the server was started"),
    "netkit_serve_interval_seconds": ("gauge", "Time from one check to the next"),
    "netkit_serve_next_round_timestamp_seconds": ("gauge", "When the next check is due"),
    "netkit_serve_rounds_total": ("counter", "Checks begun"),
    "netkit_serve_rounds_missed_total": ("counter", "Checks that were due and did not run"),
    "netkit_serve_rounds_failed_total": ("counter", "Checks that could not run"),
    "netkit_serve_round_timestamp_seconds": ("gauge", "When the last finished check began"),
    "netkit_serve_round_duration_seconds": ("gauge", "How long the last check took"),
    "netkit_serve_round_exit_code": ("gauge", "Its exit code: 0 success, 1 failures, 4 not reached, 3 could not run"),
    "netkit_serve_round_success_timestamp_seconds": ("gauge", "When the last successful check ended"),
    "netkit_serve_backup_timestamp_seconds": ("gauge", "When the last successful backup ended"),
}
"""Family → type and meaning."""


OF_FABRICS = {
    "netkit_fabric_checked_timestamp_seconds": ("gauge", "When the last check of the whole fabric was"),
    "netkit_fabric_overdue": ("gauge", "Whether the last check is too old to rely on"),
    "netkit_fabric_open_causes": ("gauge", "Open causes by verdict"),
    "netkit_fabric_unreached_devices": ("gauge", "Devices that the last check did not reach"),
}
"""The same of the families about each fabric that the server or its store knows."""

ASKED = "netkit_serve_fleet_asked_timestamp_seconds"


def metrics_text(fabrics: Sequence[ServedFabric], fleet: FleetState | None = None) -> str:
    """The metrics of the fabrics that this server checks, and a summary of every fabric it knows."""
    found: dict[str, list[str]] = {}
    for served in fabrics:
        for family, value in _values(served.own) if served.own is not None and not served.own.is_part else ():
            version = {"version": __version__} if family.endswith("_info") else {}
            _add(found, family, served, value, **version)
        for family, value, labels in _summary(served):
            _add(found, family, served, value, **labels)
    about = {**OWN, **OF_FABRICS}
    heads = {family: f"# HELP {family} {about[family][1]}\n# TYPE {family} {about[family][0]}\n" for family in found}
    of_checks = joined([one.own.metrics() for one in fabrics if one.own is not None])
    own = "".join(heads[family] + "".join(lines) for family, lines in found.items())
    return of_checks + own + ("" if fleet is None else _of_fleet(fleet))


def _of_fleet(fleet: FleetState) -> str:
    """The metrics of the sites, unless they are no longer current, and how old they are."""
    if not fleet.asked_s:
        return ""
    head = f"# HELP {ASKED} When the sites of the fleet were asked last\n# TYPE {ASKED} gauge\n"
    return head + f"{ASKED} {fleet.asked_s:.15g}\n" + ("" if fleet.is_old(time.time()) else fleet.metrics)


def _add(found: dict[str, list[str]], family: str, served: ServedFabric, value: float, **more: str) -> None:
    labels = {"fabric": served.fabric, "lab": served.lab, "site": served.site, **more}
    shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items() if text)
    found.setdefault(family, []).append(f"{family}{{{shown}}} {value:.15g}\n")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def joined(texts: Sequence[str]) -> str:
    """Join metrics of several fabrics: each family comes once, with the samples of all."""
    if len(texts) < 2:
        return "".join(texts)
    heads: dict[str, str] = {}
    samples: dict[str, list[str]] = {}
    for text in texts:
        family = ""
        for line in text.splitlines(keepends=True):
            if line.startswith("# HELP "):
                family = line.split(maxsplit=3)[2]
                heads.setdefault(family, line)
            elif line.startswith("# TYPE "):
                heads[family] = f"{heads[family].splitlines(keepends=True)[0]}{line}"
            else:
                samples.setdefault(family, []).append(line)
    return "".join(heads[family] + "".join(samples.get(family, ())) for family in heads)


def _summary(served: ServedFabric) -> Iterator[tuple[str, float, dict[str, str]]]:
    look = CurrentState.of(served, time.time())
    if look.whole is None:
        return
    yield "netkit_fabric_checked_timestamp_seconds", look.whole.taken_s, {}
    yield "netkit_fabric_overdue", look.is_stale, {}
    if look.store_error is None:
        counts = look.status.open_now.counts
        for word in ("error", "fail", "warn"):
            yield "netkit_fabric_open_causes", counts[word], {"verdict": word}
        yield "netkit_fabric_unreached_devices", counts["unreached"], {}


def _values(own: OwnChecks) -> Iterator[tuple[str, float]]:
    diary = own.diary()
    yield "netkit_serve_info", 1
    yield "netkit_serve_start_time_seconds", own.started_s
    yield "netkit_serve_interval_seconds", own.agenda.every_s
    yield "netkit_serve_next_round_timestamp_seconds", own.next_s()
    yield "netkit_serve_rounds_total", diary.rounds_total
    yield "netkit_serve_rounds_missed_total", diary.missed_total
    yield "netkit_serve_rounds_failed_total", diary.failed_total
    last = diary.last("check", is_ended=True)
    if last is not None and last.ended_s is not None:
        yield "netkit_serve_round_timestamp_seconds", last.begun_s
        yield "netkit_serve_round_duration_seconds", max(0.0, last.ended_s - last.begun_s)
        if last.exit_code is not None:
            yield "netkit_serve_round_exit_code", last.exit_code
    for kind, family in (("check", "round_success"), ("backup", "backup")):
        ended = [one.ended_s for one in diary.rounds if one.kind == kind and one.is_work_done and one.ended_s]
        if ended:
            yield f"netkit_serve_{family}_timestamp_seconds", ended[-1]
