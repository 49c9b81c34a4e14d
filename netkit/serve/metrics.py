"""Metrics for Prometheus: those of the newest check, and of the schedule; an unknown value has no sample."""

from collections.abc import Iterator

from netkit import __version__
from netkit.serve.now import Site

OWN = {
    "netkit_serve_info": ("gauge", "Which netkit serves"),
    "netkit_serve_start_time_seconds": ("gauge", "When the server was started"),
    "netkit_serve_interval_seconds": ("gauge", "Time from one check to the next"),
    "netkit_serve_next_round_timestamp_seconds": ("gauge", "When the next check is due"),
    "netkit_serve_rounds_total": ("counter", "Checks begun"),
    "netkit_serve_rounds_missed_total": ("counter", "Checks that were due and did not run"),
    "netkit_serve_rounds_failed_total": ("counter", "Checks that could not do their work"),
    "netkit_serve_round_timestamp_seconds": ("gauge", "When the last check that ended had begun"),
    "netkit_serve_round_duration_seconds": ("gauge", "How long the last check took"),
    "netkit_serve_round_exit_code": ("gauge", "What it ended with: 0 well, 1 fails, 4 not reached, 3 could not run"),
    "netkit_serve_round_success_timestamp_seconds": ("gauge", "When the last check that did its work had ended"),
    "netkit_serve_backup_timestamp_seconds": ("gauge", "When the last backup that did its work had ended"),
}
"""Family → type and meaning."""


def metrics_text(site: Site) -> str:
    text = site.metrics()
    for family, value in _values(site):
        kind, meaning = OWN[family]
        version = f',version="{__version__}"' if family.endswith("_info") else ""
        text += f"# HELP {family} {meaning}\n# TYPE {family} {kind}\n"
        text += f'{family}{{fabric="{site.fabric}"{version}}} {value:.15g}\n'
    return text


def _values(site: Site) -> Iterator[tuple[str, float]]:
    diary = site.diary()
    yield "netkit_serve_info", 1
    yield "netkit_serve_start_time_seconds", site.started_s
    yield "netkit_serve_interval_seconds", site.agenda.every_s
    yield "netkit_serve_next_round_timestamp_seconds", site.next_s()
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
