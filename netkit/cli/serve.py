"""`netkit serve`: the schedule and the web server in one process, which does no work itself but has children do it."""

import asyncio
import gc
import json
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from netkit import intent
from netkit.access import settings as access
from netkit.access.secrets import SecretStore
from netkit.cli.serve_request import ServeRequest
from netkit.deploy import RecentRuns
from netkit.errors import NetkitError, OutputError, Problem, UsageError
from netkit.notify import settings
from netkit.notify.delivery import senders
from netkit.private import keep_private, make_folder
from netkit.project.fleet import chosen_source
from netkit.project.past import VARIABLE as STORE
from netkit.project.past import place_of, usual_file
from netkit.project.project import OF_THE_FABRIC
from netkit.project.runs import UNSAFE, runs_folder, state_folder
from netkit.serve import child
from netkit.serve.app import app
from netkit.serve.child import take_lock
from netkit.serve.diary import DiaryFile, ScheduledRound
from netkit.serve.guard import Door
from netkit.serve.listening import ListenAddress, Server, server
from netkit.serve.now import Site
from netkit.serve.openapi import openapi
from netkit.serve.record import Records
from netkit.serve.schedule import Agenda, Schedule
from netkit.serve.silencing import LONGEST_S, Silencer
from netkit.serve.token import VARIABLE as TOKEN
from netkit.serve.token import Token, token_of
from netkit.store import CheckRun, Source
from netkit.store.store import open_store
from netkit.terminal.text import say

SHORTEST_ROUND_S = 600.0
REPORT_S = 300.0
PATIENCE_S = 40.0
"""How long a request waits for its report: less than its connection has."""
MOST_ASKED = 16
"""So many reports wait to be made at most."""
LINKS = (("Open now", "/"), ("Runs", "/#runs"), ("Schedule", "/#schedule"))


@dataclass(slots=True)
class Children:
    """The commands of rounds, and what to do with what they leave."""

    asked: ServeRequest
    records: Records
    folder: Path
    """Where checks leave what they saw."""
    environment: dict[str, str]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    _before: str = ""
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    _asked: dict[str, asyncio.Future[None]] = field(default_factory=dict)

    @property
    def metrics(self) -> Path:
        """Return where the metrics of the newest check are."""
        return self.folder / "metrics.prom"

    @property
    def draft(self) -> Path:
        """Return where a check leaves its report."""
        return self.folder / "report.json"

    def check(self) -> child.Command:
        """Return the command of a check."""
        newest = self._newest()
        self._before = "" if newest is None else newest.name
        longest_s = max(2.0 * self.asked.every_s, SHORTEST_ROUND_S)
        if newest is None or not self.records.adopt(newest, self.draft):  # of a check that outlived its server
            self.draft.unlink(missing_ok=True)
        return child.Command(self.asked.check(self.metrics, self.draft), self.environment, longest_s)

    def backup(self) -> child.Command:
        """Return the command of a backup."""
        return child.Command(self.asked.saving(), self.environment, 3600.0)

    async def finish(self, one: ScheduledRound, held: tuple[int, ...], stop: asyncio.Event) -> ScheduledRound:
        """Keep the report on the run that a check has stored; return the check with its name."""
        try:
            newest = next(iter(await asyncio.to_thread(self.records.runs)), None)
            if newest is None or newest.name == self._before or not one.is_work_done:
                return one
            if not await asyncio.to_thread(self.records.adopt, newest, self.draft):
                await self._report(newest, held, stop)
            await asyncio.to_thread(self.records.prune)
        except (NetkitError, OSError) as error:
            return replace(one, text=f"{one.text}\nno report: {error}".strip())
        return replace(one, run=newest.name)

    async def make(self, run: CheckRun) -> None:
        """Make a report that somebody asks for; one that takes long is said to, and made all the same."""
        if run.name not in self._asked and len(self._asked) < MOST_ASKED:
            made = self._asked[run.name] = asyncio.ensure_future(self._make(run))
            made.add_done_callback(lambda _: self._asked.pop(run.name, None))
        if run.name in self._asked:
            done, _ = await asyncio.wait({self._asked[run.name]}, timeout=PATIENCE_S)
            if done:
                return done.pop().result()
        raise OutputError(Problem(f"the report on {run.name} takes long to make", "ask again in a minute"))

    async def ended(self) -> None:
        """Wait for reports that are being made; when everything is to stop, they do."""
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    async def _make(self, run: CheckRun) -> None:
        """Make a report, one after the other."""
        async with self._making:
            if not self.stop.is_set() and not self.records.file(run).exists():
                await self._report(run, (), self.stop)
                await asyncio.to_thread(self.records.prune)

    async def _report(self, run: CheckRun, held: tuple[int, ...], stop: asyncio.Event) -> None:
        words = self.asked.report(run.name, self.records.file(run))
        try:
            ended = await child.run(child.Command(words, self.environment, REPORT_S, held), stop, lambda _: None)
        except OSError as error:  # no memory, no processes
            ended = child.Ended(None, error.strerror or str(error))
        if not self.records.file(run).exists():
            raise OutputError(Problem(f"the report on {run.name} could not be made: {ended.said or 'no word why'}"))

    def _newest(self) -> CheckRun | None:
        try:
            return self.records.newest()
        except NetkitError:
            return None


def run(asked: ServeRequest, *, has_openapi: bool = False) -> int:
    """Serve until stopped."""
    if has_openapi:
        sys.stdout.write(json.dumps(openapi(), indent=1) + "\n")
        return 0
    gc.enable()  # this process is to last
    every_s = asked.every_s
    asked.refuse()
    chosen_source(asked.source)
    place = ListenAddress.of(asked.listen, asked.certificate, asked.key)
    place.check_certificate()
    loaded = intent.load(asked.folder)  # not designed: that is the rounds' work, and takes memory for good
    fabric = loaded.intent.name
    source = Source(fabric, fabric if asked.lab == OF_THE_FABRIC else asked.lab)
    if asked.is_notifying:
        _check_receivers(loaded.folder, source)
    folder = _folder(fabric, source)
    token, where = token_of(asked.token_file, folder)
    lock = take_lock(folder / "server.lock")
    if lock is None:
        raise UsageError(Problem(f"another netkit serve already serves {fabric}", "end that one first"))
    records = _records(asked, source, folder)
    with place.opened() as listening:
        _greet(place, where, fabric)
        return asyncio.run(_serve(asked, every_s, place, listening, records, token, folder))


def _check_receivers(folder: Path, source: Source) -> None:
    """Refuse receivers that cannot be notified at the start, not in a round."""
    senders(settings.load(folder), source, SecretStore(access.load(folder).secrets))


def _folder(fabric: str, source: Source) -> Path:
    """Return where the server keeps what a restart must not lose, readable by its owner only."""
    above = state_folder() / UNSAFE.sub("_", fabric)
    found = above / "labs" / UNSAFE.sub("_", source.lab) / "serve" if source.lab else above / "serve"
    try:
        keep_private(above)
        make_folder(found)
        make_folder(found / "reports")
    except OSError as error:
        raise OutputError(Problem(f"{found} cannot be made: {error.strerror}", "set NETKIT_STATE_DIR")) from None
    return found


def _records(asked: ServeRequest, source: Source, folder: Path) -> Records:
    """Return the records, of a store that is there and readable from now on."""
    where = place_of(asked.store or ".")
    if where == usual_file():
        make_folder(Path(where).parent)
    with open_store(where):
        pass
    return Records(where, source, folder / "reports", LINKS)


def _greet(place: ListenAddress, where: str, fabric: str) -> None:
    scheme = "https" if place.certificate else "http"
    host = f"[{place.host}]" if ":" in place.host else place.host
    say(sys.stdout, f"{fabric}: {scheme}://{host}:{place.port}/, the token is in {where}\n")
    if not place.is_loopback and place.certificate is None:
        warning = (
            "everybody on the way can read the token: give --certificate and --key, or put a proxy with TLS before"
        )
        say(sys.stderr, f"warning: {warning}\n")


async def _serve(
    asked: ServeRequest,
    every_s: int,
    place: ListenAddress,
    listening: socket.socket,
    records: Records,
    token: Token,
    folder: Path,
) -> int:
    children = Children(asked, records, folder, _environment(records.where))
    schedule = _schedule(asked, every_s, children, folder)
    site = _site(asked, children, schedule)
    names = {"localhost", socket.gethostname().lower(), socket.getfqdn().lower(), *map(str.lower, asked.names)}
    door = Door(token, site.fabric, names, f"netkit_{place.port}", is_tls=place.certificate is not None)
    web = server(app(site, door), place)
    _end_on_signals(children.stop)
    await _until_stopped(web, schedule, listening)
    await children.ended()
    return 0


def _environment(store: str) -> dict[str, str]:
    """Return what children find their store by, which may hold a password; what they say is kept, without progress."""
    return {
        **{name: value for name, value in os.environ.items() if name != TOKEN},
        STORE: store,
        "NETKIT_PROGRESS": "off",
    }


def _schedule(asked: ServeRequest, every_s: int, children: Children, folder: Path) -> Schedule:
    book = DiaryFile(folder / "diary.json")
    if problem := book.read():
        say(sys.stderr, f"warning: {problem}\n")
    has_backup = asked.backup is not None
    agenda = Agenda(float(every_s))
    return Schedule(agenda, book, children, folder / "round.lock", children.stop, _pass_on, has_backup)


def _site(asked: ServeRequest, children: Children, schedule: Schedule) -> Site:
    source = children.records.source
    return Site(
        source.fabric,
        source.lab,
        children.records,
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
            lambda words: child.Command(asked.silencing(words), children.environment, LONGEST_S),
            children.folder / "silences.log",
            children.stop,
            _pass_on,
            is_allowed=asked.allows_silences,
        ),
        has_backup=asked.backup is not None,
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:  # no check has ended yet
        return ""


def _pass_on(said: bytes) -> None:
    say(sys.stdout, said.decode("utf-8", "replace"))


def _end_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)


async def _until_stopped(web: Server, schedule: Schedule, listening: socket.socket) -> None:
    """Run server and schedule until one is stopped; then end the other."""
    rounds = asyncio.ensure_future(schedule.run())
    pages = asyncio.ensure_future(web.serve(sockets=[listening]))
    stops = asyncio.ensure_future(schedule.stop.wait())
    await asyncio.wait((rounds, pages, stops), return_when=asyncio.FIRST_COMPLETED)
    schedule.stop.set()
    web.should_exit = True
    await asyncio.gather(rounds, pages, stops)
