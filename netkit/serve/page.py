"""The pages around reports: how the fabric stands, what changed, all runs, the schedule; and the one to log in."""

import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from netkit.judge import Verdict
from netkit.report.page.frame import asset, digest
from netkit.report.page.wording import cut, name
from netkit.serve import wording
from netkit.serve.diary import Diary, Missed, Round
from netkit.serve.site import Site
from netkit.store import CheckState, Run

RUNS_A_PAGE = 50
MOST_CHANGES = 100
MOST_NOTED = 20
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def overview(site: Site, before: str = "") -> str:
    """Return the page everything begins at; its list of runs goes on after one of them."""
    runs, trouble = site.records.known()
    latest = runs[0] if runs else None
    shown = _after(runs, before)
    changes = site.records.changes(latest) if latest is not None and not trouble else ()
    return _rendered(
        "overview",
        fabric=name(site.fabric),
        lab=name(site.lab),
        latest=None if latest is None else run_row(latest),
        runs=[run_row(one) for one in shown[:RUNS_A_PAGE]],
        earlier=shown[RUNS_A_PAGE - 1].name if len(shown) > RUNS_A_PAGE else "",
        number=len(runs),
        trouble="" if trouble is None else cut(str(trouble)),
        is_first=not before,
        changes=[_change(one) for one in changes[:MOST_CHANGES]],
        changes_left_out=max(0, len(changes) - MOST_CHANGES),
        **_schedule(site),
    )


def login(*, fabric: str, why: str = "") -> str:
    """Return the page that asks for the token, and why it does so again."""
    return _rendered("login", fabric=name(fabric), why=why)


def notice(title: str, text: str) -> str:
    """Return a page that says one thing."""
    return _rendered("notice", title=title, text=cut(text))


@cache
def policy() -> str:
    """Return the rule by which a browser uses these pages: our style, no script, forms to this server only."""
    return NOTHING.replace("form-action 'none'", f"form-action 'self'; img-src data:; style-src {digest(_style())}")


def _after(runs: Sequence[Run], before: str) -> Sequence[Run]:
    names = [one.name for one in runs]
    return runs[names.index(before) + 1 :] if before in names else runs


def run_row(run: Run) -> dict[str, Any]:
    """Return what is said of a run in a line."""
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


def _change(one: CheckState) -> dict[str, str]:
    is_well = one.verdict is Verdict.PASS
    return {
        "state": one.verdict.word,
        "word": "well again" if is_well else one.verdict.word,
        "check": name(one.key.check),
        "where": name(":".join(part for part in (one.key.device, one.key.place) if part)),
        "text": cut(one.text),
    }


def _schedule(site: Site) -> dict[str, Any]:
    diary = site.diary()
    last = diary.last("check", is_ended=True)
    newest = diary.rounds[-1] if diary.rounds else None
    return {
        "every": wording.length(site.agenda.every_s),
        "next": wording.moment(site.next_s()),
        "now": wording.moment(time.time()),
        "last": None if last is None else _round(last),
        "running": _round(newest) if newest is not None and newest.is_running else None,
        "backup": _backup(site, diary),
        "missed": [_missed(one) for one in reversed(diary.missed[-MOST_NOTED:])],
        "missed_total": diary.missed_total,
        "rounds_total": diary.rounds_total,
        "failed": [_round(one) for one in _failed(diary)],
        "clock": diary.clock,
    }


def _failed(diary: Diary) -> Iterator[Round]:
    """Yield the rounds that could not do their work since the last one that could, the latest first."""
    for one in reversed(diary.rounds):
        if one.is_work_done and one.kind == "check":
            return
        if not one.is_running and not one.is_cut_short and not one.is_work_done:
            yield one


def _backup(site: Site, diary: Diary) -> str:
    if not site.has_backup:
        return ""
    last = diary.last("backup", is_ended=True)
    return "not yet" if last is None else f"{wording.moment(last.begun_s)}: {wording.end_of(last)}"


def _round(one: Round) -> dict[str, str]:
    took_s = (time.time() if one.ended_s is None else one.ended_s) - one.begun_s
    return {
        "kind": one.kind,
        "begun": wording.moment(one.begun_s),
        "took": wording.length(max(took_s, 0.0)),
        "end": wording.end_of(one),
        "text": "" if one.exit_code is None else "\n".join(map(cut, one.text.splitlines()[-10:])),
    }


def _missed(one: Missed) -> dict[str, str]:
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
    names = ("frame", "overview", "login", "notice")
    frames = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    frames.loader = DictLoader({f"{one}.html.j2": _read(f"{one}.html.j2") for one in names})
    frames.globals["style"] = Markup(_style())  # noqa: S704 (ours)
    return frames
