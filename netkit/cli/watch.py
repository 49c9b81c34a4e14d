"""`netkit watch`."""

import gc
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import WatchRequest
from netkit.design.select import select
from netkit.errors import Problem, UsageError
from netkit.project.connections import chosen_source
from netkit.project.watching import LONGEST_ONCE_S, feeds_of, is_settled, outline_of
from netkit.terminal import screen
from netkit.terminal.ctrl_c import interrupt_on_signals
from netkit.watch.board import Board, Outline
from netkit.watch.feed import Feed
from netkit.watch.frame import unbounded
from netkit.watch.session import Desk, Record, Replay, read, running, take
from netkit.watch.span import glyphs_for, plain
from netkit.watch.view_state import ViewState, exit_code, result

MOST_SAMPLES = 60
"""Of a device, which a site sends back at once."""
FORMATS = ("text", "json")
LENGTH = re.compile(r"(?P<number>[1-9]\d{0,5})(?P<unit>[smh]?)")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
FOR_EVER_S = float("inf")
NAP_S = 0.1
WIDTH = 120
"""Columns where there is no terminal."""


def length_of(request: WatchRequest) -> float:
    """How long to watch; infinite by default."""
    found = LENGTH.fullmatch(request.length)
    if request.length and found is None:
        raise UsageError(Problem(f"--for {request.length!r} is not a duration", "write it like 10s, 5m or 1h"))
    return int(found["number"]) * UNITS[found["unit"]] if found else FOR_EVER_S


def run(request: WatchRequest) -> int:
    """Watch counters; return 4 if no device answered."""
    _refuse(request)
    gc.enable()  # this runs for hours, and failures leave reference cycles
    if request.replay is not None:
        return _replayed(request, request.replay)
    return _live(request) if request.fleet is None else _at_sites(request, request.fleet)


def _refuse(request: WatchRequest) -> None:
    if request.output not in FORMATS:
        raise UsageError(Problem(f"unknown format {request.output!r}", f"use one of {', '.join(FORMATS)}"))
    if request.replay is not None and (request.record is not None or request.limit or request.lab or request.source):
        what = "--replay shows a whole record: --record, --limit, --lab and --source do not apply"
        raise UsageError(Problem(what, "drop them; press / to filter"))
    if request.fleet is not None and (request.lab or request.replay is not None):
        option = "--lab" if request.lab else "--replay"
        raise UsageError(Problem(f"{option} does not work with --fleet", f"drop {option}, or --fleet"))
    if request.replay is None and request.folder is None:
        raise UsageError(Problem("no fabric is given", "give --fabric, or a record with --replay"))
    is_short = request.is_once or length_of(request) < FOR_EVER_S
    if request.output == "json" and not is_short:
        raise UsageError(Problem("--format json needs a watch that ends", "give --for 10s or --once"))
    if request.fleet is not None and not is_short:
        raise UsageError(Problem("sites report a watch only after it ends", "give --for 10s or --once"))
    if not is_short and not screen.is_possible():
        raise UsageError(Problem("the output is not a terminal", "give --for 10s or --once"))


def _live(request: WatchRequest) -> int:
    outline, feeds = _of_fabric(request)
    record = Record(request.record, outline) if request.record is not None else None
    board = Board(outline)
    desk = Desk(board, record)
    try:
        with running(feeds, desk):
            _shown(request, board, time.time, lambda: _has_ended(request, board, desk))
    finally:
        if record is not None:
            record.close()
    if desk.failure is not None:
        raise desk.failure
    return exit_code(board)


def _of_fabric(request: WatchRequest) -> tuple[Outline, Sequence[Feed]]:
    """The ports to watch, and the feeds of their devices."""
    project = open_project(request.folder or Path(), request.lab)
    warn(project)
    devices = select(project.fabric, request.limit)
    feeds = feeds_of(project, devices, request.source, request.interval_s)
    return outline_of(project, devices, request.interval_s), feeds


def _at_sites(request: WatchRequest, fleet: Path) -> int:
    """Print what the sites of a fleet have watched, once all have ended."""
    from netkit.fleet.job import WatchWork  # noqa: PLC0415 (an extra)
    from netkit.fleet.reading import watched_at  # noqa: PLC0415

    length_s = LONGEST_ONCE_S if request.is_once else length_of(request)
    if length_s > MOST_SAMPLES * request.interval_s:
        what = f"{length_s:g} s are more than {MOST_SAMPLES} samples at intervals of {request.interval_s:g} s"
        raise UsageError(Problem(what, "watch shorter with --fleet, or give a longer --interval"))
    project = open_project(request.folder or Path())
    warn(project)
    devices = select(project.fabric, request.limit)
    source = chosen_source(request.source)
    work = WatchWork(interval_s=request.interval_s, length_s=length_s, is_once=request.is_once, source=source)
    outline = outline_of(project, devices, request.interval_s)
    board = Board(outline)
    interrupt_on_signals()
    with watched_at(fleet, project, devices, work) as events:
        record = Record(request.record, outline) if request.record is not None else None
        try:
            for event in events:
                take(board, event)
                if record is not None:
                    record.add(event)
        finally:
            if record is not None:
                record.close()
    _print(request, board, time.time())
    return exit_code(board)


def _has_ended(request: WatchRequest, board: Board, desk: Desk) -> bool:
    """Report whether to stop: the record cannot be written, or a single frame is complete."""
    if desk.failure is not None:
        return True
    if not request.is_once:
        return False
    return is_settled(board, time.time())


def _replayed(request: WatchRequest, path: Path) -> int:
    outline, events = read(path)
    board = Board(outline)
    is_drawn = not request.is_once and length_of(request) == FOR_EVER_S
    replay = Replay(board, events, request.speed)
    if is_drawn:

        def advance() -> float:
            now_s = replay.now_s()
            replay.advance(now_s)
            return now_s

        screen.show(board, advance, lambda: False, FOR_EVER_S)
        return exit_code(board)
    until_s = FOR_EVER_S if request.is_once else replay.began_s + length_of(request)
    replay.advance(until_s)
    _print(request, board, replay.now_s() if replay.is_over else until_s)
    return exit_code(board)


def _shown(request: WatchRequest, board: Board, now_s: Callable[[], float], has_ended: Callable[[], bool]) -> None:
    """Draw until the user quits, or wait and print the result."""
    length_s = min(length_of(request), LONGEST_ONCE_S if request.is_once else FOR_EVER_S)
    if length_s == FOR_EVER_S or (screen.is_possible() and not request.is_once and request.output == "text"):
        screen.show(board, now_s, has_ended, length_s)
        return
    ends_s = time.monotonic() + length_s
    while time.monotonic() < ends_s and not has_ended():
        time.sleep(NAP_S)
    _print(request, board, now_s())


def _print(request: WatchRequest, board: Board, now_s: float) -> None:
    if request.output == "json":
        sys.stdout.write(json.dumps(result(board, now_s), indent=1) + "\n")
        return
    has_width = sys.stdout.isatty() or os.environ.get("COLUMNS")
    width = shutil.get_terminal_size((WIDTH, 24)).columns if has_width else WIDTH
    view = board.view(now_s, screen.clock(now_s))
    sys.stdout.write(plain(unbounded(view, ViewState(), width, glyphs_for(sys.stdout.encoding))))
