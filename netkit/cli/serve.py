"""`netkit serve`: the schedule and the web server in one process, which leaves all work to child processes."""

import asyncio
import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from starlette.routing import Route

from netkit import intent
from netkit.access import settings as access
from netkit.access.secrets import SecretStore
from netkit.cli.mcp import sdk
from netkit.cli.requests import check_profile
from netkit.deploy import RecentRuns
from netkit.errors import OutputError, Problem, UsageError
from netkit.notify import settings
from netkit.notify.delivery import senders
from netkit.private import keep_private, make_folder
from netkit.project.connections import chosen_source
from netkit.project.past import VARIABLE as STORE
from netkit.project.past import place_of, usual_file
from netkit.project.project import OF_THE_FABRIC
from netkit.project.runs import UNSAFE, runs_folder, state_folder
from netkit.serve import child
from netkit.serve.app import app
from netkit.serve.child import take_lock
from netkit.serve.diary import DiaryFile
from netkit.serve.fabrics import Fabrics, base_of, key_of
from netkit.serve.fleet_state import FleetPoll
from netkit.serve.guard import Door, is_from_here
from netkit.serve.listening import ListenAddress, Server, server
from netkit.serve.now import OwnChecks, ServedFabric
from netkit.serve.openapi import openapi
from netkit.serve.record import Records, StoreReader
from netkit.serve.request import ServeRequest
from netkit.serve.rounds import Children
from netkit.serve.schedule import Agenda, Schedule
from netkit.serve.silencing import LONGEST_S, Silencer
from netkit.serve.token import VARIABLE as TOKEN
from netkit.serve.token import Token, proposer_token, token_of
from netkit.store import Source
from netkit.store.store import open_store
from netkit.terminal.text import say


@dataclass(frozen=True, slots=True)
class Prepared:
    """A fabric that is to be served."""

    request: ServeRequest
    records: Records
    base: str

    @property
    def folder(self) -> Path:
        """Where its state is."""
        return self.records.folder.parent


def run(request: ServeRequest, *, has_openapi: bool = False) -> int:
    """Serve until stopped."""
    if has_openapi:
        sys.stdout.write(json.dumps(openapi(), indent=1) + "\n")
        return 0
    gc.enable()  # this process is to last
    every_s = request.every_s
    check_profile(request.profile)
    request.refuse()
    if request.more and (request.snapshot is not None or request.lab not in {"", OF_THE_FABRIC}):
        raise UsageError(Problem("--from and a named lab are of one fabric", "give one --fabric"))
    chosen_source(request.source)
    place = ListenAddress.of(request.listen, request.certificate, request.key)
    place.check_certificate()
    reader = StoreReader(place_of(request.store or "."))
    prepared = [_prepared(one, reader, has_others=len(request.folders) > 1) for one in request.of_each()]
    names = [one.records.source.fabric for one in prepared]
    if doubled := sorted({one for one in names if names.count(one) > 1}):
        raise UsageError(Problem(f"two folders have a fabric called {doubled[0]}", "serve each by a server of its own"))
    token, where = token_of(request.token_file, prepared[0].folder)
    file = request.proposer_token_file
    tokens = (token, None if file is None else proposer_token(file, token))
    if request.has_mcp:
        with sdk():
            import netkit.mcp.http  # noqa: F401, PLC0415 (an extra)
    for one in prepared:
        if take_lock(one.folder / "server.lock") is None:
            what = f"another netkit serve already serves {one.records.source.fabric}"
            raise UsageError(Problem(what, "end that one first"))
    if reader.where == usual_file():
        make_folder(Path(reader.where).parent)
    with open_store(reader.where):  # creates it, and fails now if it cannot be read
        pass
    fleet = _fleet(request.fleet) if request.fleet is not None else None
    with place.opened() as listening:
        _greet(place, where, ", ".join(names))
        return asyncio.run(_serve(request, every_s, place, listening, prepared, tokens, fleet))


def _fleet(folder: Path) -> FleetPoll:
    """Begin to ask for the state of a fleet; its settings and keys are refused here, not in a round."""
    from netkit.cli.fleet import state  # noqa: PLC0415 (an extra)
    from netkit.fleet.dispatch import Dispatch  # noqa: PLC0415 (see above)

    found = FleetPoll(partial(state, Dispatch.of(folder)))
    found.start()
    return found


def _prepared(request: ServeRequest, reader: StoreReader, *, has_others: bool) -> Prepared:
    """Load a fabric, and make the folder of its state."""
    loaded = intent.load(request.folder)  # not designed: the rounds do that, and this process would keep the memory
    fabric = loaded.intent.name
    request = replace(request, site=_site(request))
    source = Source(fabric, fabric if request.lab == OF_THE_FABRIC else request.lab, request.site)
    if request.is_notifying:
        # Bad receivers are refused here, not in a round.
        senders(settings.load(loaded.folder), source, SecretStore(access.load(loaded.folder).secrets))
    base = base_of(source) if has_others else ""
    links = (("Open now", base or "/"), ("Runs", f"{base or '/'}#runs"), ("Schedule", f"{base or '/'}#schedule"))
    return Prepared(request, Records(reader, source, _folder(fabric, source) / "reports", links), base)


def _site(request: ServeRequest) -> str:
    """Return where the fabric is; empty without a fleet, and at several sites."""
    if request.fleet is None:
        return ""
    from netkit.fleet.dispatch import Dispatch  # noqa: PLC0415 (an extra)

    return Dispatch.of(request.fleet).site_of(request.folder)


def _folder(fabric: str, source: Source) -> Path:
    """Return the server's private folder for state that a restart must keep."""
    above = state_folder() / UNSAFE.sub("_", fabric)
    found = above / "labs" / UNSAFE.sub("_", source.lab) / "serve" if source.lab else above / "serve"
    try:
        keep_private(above)
        make_folder(found)
        make_folder(found / "reports")
    except OSError as error:
        raise OutputError(Problem(f"{found} cannot be created: {error.strerror}", "set NETKIT_STATE_DIR")) from None
    return found


def _greet(place: ListenAddress, where: str, fabric: str) -> None:
    scheme = "https" if place.certificate else "http"
    host = f"[{place.host}]" if ":" in place.host else place.host
    say(sys.stdout, f"{fabric}: {scheme}://{host}:{place.port}/, the token is in {where}\n")
    if not place.is_loopback and place.certificate is None:
        remedy = "give --certificate and --key, or put a TLS proxy in front"
        say(sys.stderr, f"warning: without TLS the network path can read the token: {remedy}\n")


async def _serve(
    asked: ServeRequest,
    every_s: int,
    place: ListenAddress,
    listening: socket.socket,
    prepared: Sequence[Prepared],
    tokens: tuple[Token, Token | None],
    fleet: FleetPoll | None,
) -> int:
    stop = asyncio.Event()
    children, schedules, served = list[Children](), list[Schedule](), list[ServedFabric]()
    for number, one in enumerate(prepared):
        children.append(_children(one, stop))
        # The rounds of several fabrics are spread over the interval.
        agenda = Agenda(float(every_s), every_s * number / len(prepared))
        schedules.append(_schedule(one, children[-1], agenda))
        own = _own_checks(one.request, children[-1], schedules[-1], fleet)
        served.append(ServedFabric(one.records, own, one.base))
    names = {"localhost", socket.gethostname().lower(), socket.getfqdn().lower(), *map(str.lower, asked.names)}
    about = served[0].fabric if len(served) == 1 else f"{len(served)} fabrics"
    is_tls = place.certificate is not None
    door = Door(tokens[0], about, names, f"netkit_{place.port}", is_tls=is_tls, proposer=tokens[1])
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    async with _mcp(children, door) as routes:
        web = server(app(Fabrics(served, prepared[0].records.store, fleet), door, routes), place)
        await _until_stopped(web, schedules, listening, stop)
    for commands in children:
        await commands.ended()
    return 0


@asynccontextmanager
async def _mcp(children: Sequence[Children], door: Door) -> AsyncIterator[Sequence[Route]]:
    """Serve the tools of `netkit mcp` for the length of a block, where that is asked for."""
    if not children[0].asked.has_mcp:
        yield ()
        return
    from netkit.mcp.http import MOST_AT_ONCE, McpEndpoint, Tools  # noqa: PLC0415 (an extra)

    turns = asyncio.Semaphore(MOST_AT_ONCE)
    tools = {key_of(one.records.source): Tools(one.asked.mcp(), one.environment, turns, one.stop) for one in children}
    endpoint = McpEndpoint(tools, door.access, lambda request: not is_from_here(request))
    async with endpoint.running():
        yield endpoint.routes


def _children(one: Prepared, stop: asyncio.Event) -> Children:
    # The URL of the store may hold a password, so children get it by the environment; their output is kept.
    environment = {name: value for name, value in os.environ.items() if name != TOKEN}
    environment |= {STORE: one.records.store.where, "NETKIT_PROGRESS": "off"}
    return Children(one.request, one.records, one.folder, environment, stop)


def _schedule(one: Prepared, children: Children, agenda: Agenda) -> Schedule:
    diary = DiaryFile(one.folder / "diary.json")
    if problem := diary.read():
        say(sys.stderr, f"warning: {problem}\n")
    lock = one.folder / "round.lock"
    return Schedule(agenda, diary, children, lock, children.stop, _pass_on, one.request.backup is not None)


def _own_checks(asked: ServeRequest, children: Children, schedule: Schedule, fleet: FleetPoll | None) -> OwnChecks:
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
            lambda words: child.Command(asked.silencing(words), children.environment, LONGEST_S),
            children.folder / "silences.log",
            children.stop,
            _pass_on,
            is_allowed=asked.allows_silences,
        ),
        has_backup=asked.backup is not None,
        fleet=fleet,
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:  # no check has ended yet
        return ""


def _pass_on(output: bytes) -> None:
    say(sys.stdout, output.decode("utf-8", "replace"))


async def _until_stopped(
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
