"""What the driver of a switch is asked."""

from collections.abc import Callable
from functools import partial

from netkit.facts import Absent, Facts
from netkit.platforms.napalm.facts import link, optic, session
from netkit.platforms.napalm.facts.getter import (
    COUNTERS,
    FACTS,
    INTERFACES,
    NEIGHBORS,
    NEIGHBORS_IN_DETAIL,
    OPTICS,
    SESSIONS,
)
from netkit.platforms.view import Subject, View

NO_GETTER = Absent("NAPALM has no getter for it")
UNTOLD = ("routes", "qos", "lines", "watchdogs", "buffers", "adaptive_routing", "file_systems")


def views(subject: Subject) -> tuple[View, ...]:
    """Return how a switch is looked at."""
    ports = subject.ports
    return (
        _view(_system, ("system", *UNTOLD), FACTS),
        _view(partial(link.counters, ports=ports), ("counters",), COUNTERS),
        _view(partial(link.interfaces, ports=ports), ("interfaces",), INTERFACES),
        _view(partial(link.neighbors, ports=ports), ("neighbors",), NEIGHBORS_IN_DETAIL, NEIGHBORS),
        _view(partial(session.sessions, ports=ports), ("sessions",), SESSIONS),
        _view(partial(optic.modules, ports=ports), ("modules",), OPTICS, is_costly=True),
    )


def _system(shown: str) -> Facts:
    return Facts(
        system=link.system(shown).system,
        routes=NO_GETTER,
        qos=NO_GETTER,
        lines=NO_GETTER,
        watchdogs=NO_GETTER,
        buffers=NO_GETTER,
        adaptive_routing=NO_GETTER,
        file_systems=NO_GETTER,
    )


def _view(parse: Callable[..., Facts], kinds: tuple[str, ...], *commands: str, is_costly: bool = False) -> View:
    return View(commands, frozenset(kinds), parse, is_costly=is_costly)
