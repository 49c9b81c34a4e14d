"""`netkit report`, and the report of `netkit check --report`."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from netkit.cli.check import checking_of
from netkit.cli.fabric import open_project
from netkit.cli.requests import ReportRequest, check_profile
from netkit.errors import Problem, UsageError
from netkit.project.past import place_of
from netkit.project.reporting import report_now, report_of_run
from netkit.project.runs import LAST
from netkit.report.judgement_view import headline
from netkit.report.page import Reported, page, page_json
from netkit.report.page.frame import asset
from netkit.terminal.output import write_named

if TYPE_CHECKING:
    from netkit.store.store import Store


FORMATS: Mapping[str, Callable[[Reported], str]] = {"html": page, "json": page_json}
SCHEMA = "schema"


def run(request: ReportRequest) -> int:
    """Write a report; the exit code is that of `netkit check`."""
    if request.output == SCHEMA:
        sys.stdout.write(asset("report.schema.json"))
        return 0
    if request.output not in FORMATS:
        raise UsageError(Problem(f"unknown format {request.output!r}", f"use one of {', '.join((*FORMATS, SCHEMA))}"))
    where = place_of(request.store or ("." if request.run else ""))
    _refuse(request, where)
    with _opened(where) as opened:
        reported = _reported(request, opened)
    text = FORMATS[request.output](reported)
    if request.out is None:
        sys.stdout.write(text)
    else:
        write_named(request.out, text)
        sys.stdout.write(f"{request.out}: {headline(reported.judged)}\n")
    return reported.judged.exit_code


def _reported(request: ReportRequest, store: "Store | None") -> Reported:
    project = open_project(request.folder, request.lab, site=request.site)
    if request.run and store is not None:
        return report_of_run(project, request.run, store)
    checking = checking_of(project, request)
    return report_now(checking, request.names, request.results, store, has_since=bool(request.since))


def _refuse(request: ReportRequest, store: str) -> None:
    """Refuse options that contradict each other."""
    check_profile(request.profile)
    if request.since not in {"", LAST}:
        raise UsageError(Problem(f"--since {request.since!r} is not supported", f"use --since {LAST}"))
    if request.since and not store:
        raise UsageError(Problem("--since last needs a store", "give --store too"))
    given: dict[str, object] = {"--from": request.snapshot, "--limit": request.limit, "--check": request.names}
    given |= {"--source": request.source, "--results": request.results, "--since": request.since}
    if wrong := [name for name, value in given.items() if request.run and value]:
        what = f"{wrong[0]} does not apply to a stored run"
        raise UsageError(Problem(what, "drop it, or drop the run to read the devices now"))


@contextmanager
def _opened(where: str) -> Iterator["Store | None"]:
    """Open the store for reading, if one is set."""
    if not where:
        yield None
        return
    from netkit.store.store import open_store  # noqa: PLC0415 (it loads the database library)

    with open_store(where, is_new_allowed=False) as store:
        yield store
