"""What `netkit serve` runs for each fabric: its records, its rounds in child processes, and its schedule."""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netkit import intent
from netkit.access import settings as access
from netkit.access.secrets import SecretStore
from netkit.deploy import RecentRuns
from netkit.errors import OutputError, Problem
from netkit.notify import settings
from netkit.notify.delivery import senders
from netkit.private import keep_private, make_folder
from netkit.project.past import VARIABLE as STORE
from netkit.project.project import OF_THE_FABRIC, Feedback
from netkit.project.runs import UNSAFE, runs_folder, state_folder
from netkit.serve.fabrics import base_of
from netkit.serve.fleet_state import FleetPoll
from netkit.serve.forking import ForkServer
from netkit.serve.guard import VARIABLE as TOKEN
from netkit.serve.listening import Server
from netkit.serve.now import OwnChecks
from netkit.serve.record import Records, StoreReader
from netkit.serve.request import ServeRequest
from netkit.serve.rounds import Children
from netkit.serve.schedule import Agenda, DiaryFile, Schedule
from netkit.serve.silencing import LONGEST_S, Silencer
from netkit.store import Source

OnOutput = Callable[[bytes], None]
"""Gets what child processes print."""


@dataclass(frozen=True, slots=True)
class PreparedFabric:
    """A fabric to serve."""

    request: ServeRequest
    records: Records
    base: str
    sites: "tuple[PreparedFabric, ...]" = ()
    """Its part at each of several sites."""

    @property
    def folder(self) -> Path:
        """Where its state is."""
        return self.records.folder.parent


def prepared_fabric(
    request: ServeRequest, reader: StoreReader, sites: Sequence[str], *, has_others: bool
) -> PreparedFabric:
    """Load a fabric, and make the folder of its state; `sites` are those of a fleet that it is at."""
    loaded = intent.load(request.folder)  # not designed: the rounds do that, and this process would keep the memory
    fabric = loaded.intent.name
    lab = fabric if request.lab == OF_THE_FABRIC else request.lab
    has_parts = len(sites) > 1

    def prepared(site: str, place: Path, *parts: PreparedFabric) -> PreparedFabric:
        source = Source(fabric, lab, site)
        base = base_of(source) if has_others or has_parts else ""
        links = (("Open now", base or "/"), ("Runs", f"{base or '/'}#runs"), ("Schedule", f"{base or '/'}#schedule"))
        records = Records(reader, source, _folder(fabric, place) / "reports", links)
        return PreparedFabric(replace(request, site=site), records, base, parts)

    parts = (prepared(site, Path("sites", site)) for site in sites) if has_parts else ()
    place = Path("labs", UNSAFE.sub("_", lab)) if lab else Path()
    found = prepared("" if has_parts else "".join(sites), place, *parts)
    if request.is_notifying:
        # Bad receivers are refused here, not in a round.
        senders(settings.load(loaded.folder), found.records.source, SecretStore(access.load(loaded.folder).secrets))
    return found


def _folder(fabric: str, place: Path) -> Path:
    """The server's private folder for state that a restart must keep."""
    above = state_folder() / UNSAFE.sub("_", fabric)
    found = above / place / "serve"
    try:
        keep_private(above)
        make_folder(found)
        make_folder(found / "reports")
    except OSError as error:
        raise OutputError(Problem(f"{found} cannot be created: {error.strerror}", "set NETKIT_STATE_DIR")) from None
    return found


def children_of(one: PreparedFabric, stop: asyncio.Event, forks: ForkServer | None) -> Children:
    # The URL of the store may hold a password, so children get it by the environment; their output is kept.
    environment = {name: value for name, value in os.environ.items() if name != TOKEN}
    environment |= {STORE: one.records.store.where, "NETKIT_PROGRESS": "off"}
    return Children(one.request, one.records, one.folder, environment, stop, forks)


def schedule_of(
    one: PreparedFabric, children: Children, agenda: Agenda, on_output: OnOutput, feedback: Feedback
) -> Schedule:
    diary = DiaryFile(one.folder / "diary.json")
    if problem := diary.read():
        feedback.note(f"warning: {problem}")
    lock = one.folder / "round.lock"
    return Schedule(agenda, diary, children, lock, children.stop, on_output, one.request.backup is not None)


def own_checks(
    one: PreparedFabric,
    children: Children,
    schedule: Schedule,
    fleet: FleetPoll | None,
    on_output: OnOutput,
    *,
    is_part: bool = False,
) -> OwnChecks:
    asked = one.request
    source = children.records.source
    return OwnChecks(
        schedule.agenda,
        lambda: schedule.diary,
        lambda: schedule.next_s,
        lambda: _text(children.metrics),
        children.make,
        time.time(),
        RecentRuns(runs_folder(source.fabric, source.lab), source.fabric),
        Silencer(
            asked.folder,
            children.records,
            lambda words: children.command(asked.silencing(words), LONGEST_S),
            children.folder / "silences.log",
            children.stop,
            on_output,
            is_allowed=asked.allows_silences,
        ),
        has_backup=asked.backup is not None,
        fleet=fleet,
        is_part=is_part,
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:  # no check has ended yet
        return ""


async def until_stopped(
    web: Server, schedules: Sequence[Schedule], listening: socket.socket, stop: asyncio.Event
) -> None:
    """Run server and schedules until one of them stops; then stop the others."""
    rounds = [asyncio.ensure_future(one.run()) for one in schedules]
    pages = asyncio.ensure_future(web.serve(sockets=[listening]))
    stops = asyncio.ensure_future(stop.wait())
    await asyncio.wait((*rounds, pages, stops), return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    web.should_exit = True
    await asyncio.gather(*rounds, pages, stops)
