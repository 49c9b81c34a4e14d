"""`netkit check --compare BEFORE AFTER`."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields

from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import CheckRequest
from netkit.errors import Problem, UsageError
from netkit.project.comparison import compared
from netkit.report.comparison_text import Comparison, comparison_json, comparison_markdown, comparison_text

FORMATS: Mapping[str, Callable[[Comparison], str]] = {
    "text": comparison_text,
    "json": comparison_json,
    "markdown": comparison_markdown,
}
TAKEN = frozenset({"folder", "compared", "names", "limit", "lab", "output", "store", "site"})
WORSE = 1


def run(request: CheckRequest) -> int:
    """Compare two states of a fabric; return 1 if the later one is worse anywhere."""
    _refuse(request)
    project = open_project(request.folder, request.lab, site=request.site)
    warn(project)
    first, second = request.compared or ("", "")
    result = compared(project, first, second, names=request.names, limit=request.limit, store=request.store)
    sys.stdout.write(FORMATS[request.output](result))
    return WORSE if result.is_worse else 0


def _refuse(request: CheckRequest) -> None:
    """Refuse options that read a device, or write the result of a single run."""
    if request.output not in FORMATS:
        raise UsageError(Problem(f"unknown format {request.output!r} of a comparison", f"use {', '.join(FORMATS)}"))
    usual = CheckRequest(request.folder)
    other = [one.name for one in fields(request) if one.name not in TAKEN]
    if any(getattr(request, name) != getattr(usual, name) for name in other):
        what = "--compare reads two snapshots or stored runs, and no device"
        raise UsageError(Problem(what, "combine it with NAMES, --limit, --format, --store and --lab only"))
