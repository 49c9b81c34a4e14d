"""The pages around reports: the current state, all runs, the schedule, silences and the login."""

import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from netkit.errors import NetkitError, StoreError
from netkit.judge.silence import SilenceState
from netkit.report.page.frame import asset, digest
from netkit.report.page.table import cut, name
from netkit.report.plan_view import counted
from netkit.serve import now as wording
from netkit.serve.fabrics import Fabrics
from netkit.serve.fleet_state import FleetState
from netkit.serve.now import ServedFabric, now
from netkit.serve.rounds import ScheduledRound
from netkit.serve.schedule import MissedRounds
from netkit.serve.silencing import Silencer
from netkit.store import CheckRun

RUNS_A_PAGE = 50
MOST_NOTED = 20
REFRESH_S = 60
"""How often a browser without JavaScript reloads the first page; with it, four times as often."""
FIELDS = (
    ("check", "Check", "optics.light, a file of checks, or a glob"),
    ("where", "Where", "leaf03 or leaf03:swp5, or a glob"),
    ("until", "Until", "2h, 2d, or 2026-12-01T08:00:00Z"),
    ("by", "Your name", ""),
    ("why", "Why", ""),
    ("ticket", "Ticket", ""),
)
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def overview(served: ServedFabric, before: str = "", *, has_others: bool = False) -> str:
    """Render the page of a fabric; its list of runs continues after the run `before`."""
    runs, number = _runs(served, before)
    return _rendered(
        "overview",
        now=now(served),
        now_s=time.time(),
        runs=[run_row(one) for one in runs[:RUNS_A_PAGE]],
        earlier=runs[RUNS_A_PAGE - 1].name if len(runs) > RUNS_A_PAGE else "",
        number=number,
        is_first=not before,
        refresh_s=REFRESH_S,
        script=Markup(_read("refresh.js")),  # noqa: S704 (ours)
        base=served.base,
        api=served.api,
        has_others=has_others,
        has_fleet=served.own is not None and served.own.fleet is not None,
        **_schedule(served),
    )


def _runs(served: ServedFabric, before: str) -> tuple[Sequence[CheckRun], int]:
    """The runs of a page and one more, and the number of all; without the store, those known before."""
    records = served.records
    try:
        last = records.run(before) if before else None
        return records.runs(RUNS_A_PAGE + 1, last), records.number()
    except StoreError:
        known, _ = records.known()
        return known[:RUNS_A_PAGE], len(known)


def fabrics(known: Fabrics) -> str:
    """Render the page of all fabrics."""
    now_s = time.time()
    found = known.worst_first(now_s)
    wholes = [one for one in found if not one["is_part"]]
    bad = sum(one["state"] in {"warn", "fail", "error"} for one in wholes)
    return _rendered(
        "fabrics",
        fabrics=found,
        has_fleet=known.fleet is not None,
        now_s=now_s,
        worst=found[0]["state"],
        text=f"{bad} of {counted(len(wholes), 'fabric')} with open causes",
        counts={
            "fail": sum(one["state"] in {"fail", "error"} for one in wholes),
            "warn": sum(one["state"] == "warn" for one in wholes),
            "unknown": sum(one["state"] in {"unknown", "unreached"} for one in wholes),
            "overdue": sum(one["is_overdue"] for one in wholes),
            "pass": sum(one["state"] == "pass" for one in wholes),
        },
        refresh_s=REFRESH_S,
        script=Markup(_read("refresh.js")),  # noqa: S704 (ours)
    )


def fleet(state: FleetState) -> str:
    """Render the page of the sites of a fleet."""
    now_s = time.time()
    script = Markup(_read("refresh.js"))  # noqa: S704 (ours)
    return _rendered("fleet", fleet=state.described(now_s), now_s=now_s, refresh_s=REFRESH_S, script=script)


def silences(
    served: ServedFabric, silencer: Silencer, form: str, given: Mapping[str, str], *, output: str = "", why: str = ""
) -> str:
    """Render the page of silences, with forms for a session that may change them."""
    trouble, entries = "", tuple[SilenceState, ...]()
    try:
        entries = silencer.states()
    except NetkitError as error:
        trouble = str(error)
    return _rendered(
        "silences",
        fabric=name(served.fabric),
        lab=name(served.lab),
        base=served.base,
        entries=[_silence(one) for one in entries],
        form=form if silencer.is_allowed else "",
        given={"kind": "", **dict.fromkeys((key for key, *_ in FIELDS), ""), **given},
        fields=FIELDS,
        output=cut(output),
        why=cut(why),
        trouble=cut(trouble),
    )


def _silence(state: SilenceState) -> dict[str, Any]:
    one = state.silence
    until = "until it passes" if one.until_s is None else f"until {wording.moment(one.until_s)}"
    texts = {key: cut(getattr(one, key)) for key in ("id", "kind", "about", "by", "why", "ticket")}
    return {**texts, "state": state.state, "findings": state.findings, "until": until}


def login(*, fabric: str, why: str = "") -> str:
    """Render the login page, with the reason why it is shown again."""
    return _rendered("login", fabric=name(fabric), why=why)


def notice(title: str, text: str) -> str:
    """Render a page with one message."""
    return _rendered("notice", title=title, text=cut(text))


@cache
def policy() -> str:
    """The Content-Security-Policy of these pages: our style, no script, forms to this server only."""
    return NOTHING.replace("form-action 'none'", f"form-action 'self'; img-src data:; style-src {digest(_style())}")


@cache
def refreshing_policy() -> str:
    """The policy of the first page, whose script reloads it from this server."""
    return f"{policy()}; script-src {digest(_read('refresh.js'))}; connect-src 'self'"


def run_row(run: CheckRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "state": wording.state_of(run).value,
        "verdict": wording.verdict_of(run),
        "taken": wording.moment(run.taken_s),
        "stamp": wording.stamp(run.taken_s),
        "window": wording.length(run.window_s),
        "reached": wording.reached_of(run),
        "examined": f"{run.counts.examined:,}",
        "skipped": f"{run.counts.skipped:,}",
    }


def _schedule(served: ServedFabric) -> dict[str, Any]:
    diary, every_s = served.diary, served.every_s(served.records.known()[0])
    last = diary.last("check", is_ended=True)
    backup, saved = "", diary.last("backup", is_ended=True)
    if served.own is not None and served.own.has_backup:
        backup = "not yet" if saved is None else f"{wording.moment(saved.begun_s)}: {wording.end_of(saved)}"
    return {
        "every": wording.length(every_s),
        "last": None if last is None else _round(last),
        "backup": backup,
        "missed": [_missed(one) for one in reversed(diary.missed[-MOST_NOTED:])],
        "missed_total": diary.missed_total,
        "rounds_total": diary.rounds_total,
        "clock": diary.clock,
    }


def _round(one: ScheduledRound) -> dict[str, str]:
    took_s = (time.time() if one.ended_s is None else one.ended_s) - one.begun_s
    return {
        "begun": wording.moment(one.begun_s),
        "took": wording.length(max(took_s, 0.0)),
        "end": wording.end_of(one),
    }


def _missed(one: MissedRounds) -> dict[str, str]:
    until = "" if one.count == 1 else f" to {wording.moment(one.to_s)}"
    return {"when": wording.moment(one.from_s) + until, "count": str(one.count), "reason": cut(one.reason)}


def _rendered(template: str, **values: Any) -> str:
    return _frames().get_template(f"{template}.html.j2").render(**values)


@cache
def _style() -> str:
    return asset("page.css") + _read("site.css")


def _read(file: str) -> str:
    return (files("netkit.serve") / "assets" / file).read_text(encoding="utf-8")


@cache
def _frames() -> Environment:
    names = ("frame", "fabrics", "fleet", "overview", "login", "notice", "silences")
    frames = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    frames.loader = DictLoader({f"{one}.html.j2": _read(f"{one}.html.j2") for one in names})
    frames.filters.update(moment=wording.moment, stamp=wording.stamp, ago=wording.ago, rough=wording.rough)
    frames.globals["style"] = Markup(_style())  # noqa: S704 (ours)
    return frames
