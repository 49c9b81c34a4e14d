"""`netkit serve`: the schedule and the web server in one process, whose children do the work. `netkit mcp`."""

import asyncio
import gc
import importlib
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

from starlette.routing import Route

from netkit.cli.fabric import TerminalFeedback
from netkit.cli.requests import check_profile
from netkit.errors import Problem, UsageError
from netkit.private import make_folder
from netkit.project.connections import chosen_source
from netkit.project.past import place_of, usual_file
from netkit.project.project import OF_THE_FABRIC, Project
from netkit.project.serving import PreparedFabric, children_of, own_checks, prepared_fabric, schedule_of, until_stopped
from netkit.serve.app import app
from netkit.serve.fabrics import Fabrics, key_of
from netkit.serve.fleet_state import FleetPoll
from netkit.serve.forking import ForkServer, fork_server
from netkit.serve.guard import Door, Token, is_from_here, proposer_token, token_of
from netkit.serve.listening import ListenAddress, server
from netkit.serve.now import ServedFabric
from netkit.serve.openapi import openapi
from netkit.serve.record import StoreReader
from netkit.serve.request import ServeRequest
from netkit.serve.rounds import Children, take_lock
from netkit.serve.schedule import Agenda, Schedule
from netkit.store.store import open_store
from netkit.terminal.output import say


def mcp(folder: Path, store: str, *, lab: str = "", site: str = "") -> None:
    """Serve a fabric on standard input and output until the client closes them."""
    with sdk():
        from netkit.mcp import server  # noqa: PLC0415 (an extra)
    Project.open(folder)  # an invalid intent is reported here, not by every tool
    server(folder, store, lab, site).run("stdio")


@contextmanager
def sdk() -> Iterator[None]:
    """Import what needs the SDK of the protocol; without it, name the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "netkit":
            raise
        raise UsageError(
            Problem(f"{(error.name or 'mcp').partition('.')[0]} is not installed", "pip install 'netkit-fabric[mcp]'")
        ) from None


def run(request: ServeRequest, *, has_openapi: bool = False) -> int:
    """Serve until stopped."""
    if has_openapi:
        sys.stdout.write(json.dumps(openapi(), indent=1) + "\n")
        return 0
    forks = _fork_server(has_mcp=request.has_mcp)
    gc.enable()  # this process is to last
    every_s = request.every_s
    check_profile(request.profile)
    request.refuse()
    if request.more and (request.snapshot is not None or request.lab not in {"", OF_THE_FABRIC}):
        raise UsageError(Problem("--from and a named lab apply to one fabric", "give one --fabric"))
    chosen_source(request.source)
    place = ListenAddress.of(request.listen, request.certificate, request.key)
    place.check_certificate()
    reader = StoreReader(place_of(request.store or "."))
    prepared = [
        prepared_fabric(one, reader, _sites(one), has_others=len(request.folders) > 1) for one in request.of_each()
    ]
    names = [one.records.source.fabric for one in prepared]
    if doubled := sorted({one for one in names if names.count(one) > 1}):
        raise UsageError(Problem(f"two folders have a fabric called {doubled[0]}", "start a separate server for each"))
    token, where = token_of(request.token_file, prepared[0].folder)
    file = request.proposer_token_file
    tokens = (token, None if file is None else proposer_token(file, token))
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
        place = place.bound_to(listening)
        _greet(place, where, ", ".join(names))
        return asyncio.run(_serve(request, every_s, place, listening, prepared, tokens, fleet, forks))


def _fork_server(*, has_mcp: bool) -> ForkServer:
    """Start the process that rounds are forked from; a round runs here, and ends its process."""
    for verb in ("check", "report", "snapshot", "silence"):
        importlib.import_module(f"netkit.cli.{verb}")
    if has_mcp:
        with sdk():
            import netkit.mcp  # noqa: F401, PLC0415 (an extra)
    found = fork_server()
    if found is None:
        from netkit.cli import main  # noqa: PLC0415 (it imports this module)

        main()
        sys.exit()
    return found


def _fleet(folder: Path) -> FleetPoll:
    """Begin to ask for the state of a fleet; its settings and keys are refused here, not in a round."""
    from netkit.cli.fleet import state  # noqa: PLC0415 (an extra)
    from netkit.fleet.dispatch import Dispatch  # noqa: PLC0415 (see above)

    found = FleetPoll(partial(state, Dispatch.of(folder)))
    found.start()
    return found


def _sites(request: ServeRequest) -> Sequence[str]:
    """Where the fabric is; none without a fleet."""
    if request.fleet is None:
        return ()
    from netkit.fleet.dispatch import Dispatch  # noqa: PLC0415 (an extra)

    return Dispatch.of(request.fleet).sites_of(request.folder)


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
    prepared: Sequence[PreparedFabric],
    tokens: tuple[Token, Token | None],
    fleet: FleetPoll | None,
    forks: ForkServer,
) -> int:
    stop = asyncio.Event()
    children, schedules, served = list[Children](), list[Schedule](), list[ServedFabric]()
    for number, one in enumerate(prepared):
        commands = [children_of(part, stop, forks) for part in (one, *one.sites)]
        children += commands
        # The rounds of several fabrics are spread over the interval.
        agenda = Agenda(float(every_s), every_s * number / len(prepared))
        schedules.append(schedule_of(one, commands[0], agenda, _pass_on, TerminalFeedback()))
        for part, own_commands in zip((one, *one.sites), commands, strict=True):
            own = own_checks(part, own_commands, schedules[-1], fleet, _pass_on, is_part=part is not one)
            served.append(ServedFabric(part.records, own, part.base))
    names = {"localhost", socket.gethostname().lower(), socket.getfqdn().lower(), *map(str.lower, asked.names)}
    about = served[0].fabric if len(prepared) == 1 else f"{len(prepared)} fabrics"
    is_tls = place.certificate is not None
    door = Door(tokens[0], about, names, f"netkit_{place.port}", is_tls=is_tls, proposer=tokens[1])
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    async with _mcp(children, door) as routes:
        web = server(app(Fabrics(served, prepared[0].records.store, fleet), door, routes), place)
        await until_stopped(web, schedules, listening, stop)
    for one_of_each in children:
        await one_of_each.ended()
    return 0


@asynccontextmanager
async def _mcp(children: Sequence[Children], door: Door) -> AsyncIterator[Sequence[Route]]:
    """Serve the tools of `netkit mcp` for the length of a block, where that is asked for."""
    if not children[0].asked.has_mcp:
        yield ()
        return
    from netkit.mcp import MOST_AT_ONCE, McpEndpoint, Tools  # noqa: PLC0415 (an extra)

    turns = asyncio.Semaphore(MOST_AT_ONCE)
    tools = {
        key_of(one.records.source): Tools(one.asked.mcp(), one.environment, turns, one.stop, one.forks)
        for one in children
    }
    endpoint = McpEndpoint(tools, door.access, lambda request: not is_from_here(request))
    async with endpoint.running():
        yield endpoint.routes


def _pass_on(output: bytes) -> None:
    say(sys.stdout, output.decode("utf-8", "replace"))
