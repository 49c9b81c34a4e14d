"""One EOS switch: running, startup, sessions, the commit timer, checkpoints; and what a `show` command reads."""

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from netkit.design.fabric import Switch
from netkit.lab.agents import lldp_daemon
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.eos import configuration
from netkit.lab.personalities.eos.configuration import EosSection, body, grammar_of, parse, release_of
from netkit.lab.personalities.eos.grammar import port_list
from netkit.lab.personalities.eos.reply import EosCommandError, EosFlash, InvalidCommandError
from netkit.lab.personalities.eos.switch_state import switch_state
from netkit.lab.reading import SwitchPortReading

SessionState = Literal["pending", "completed", "pendingCommitTimer"]
HIGHEST_OPEN, HIGHEST_SAVED = 5, 1
FACTORY = """
management api http-commands
   no shutdown
!
aaa authorization exec default local
"""
"""The configuration of a switch without a startup-config: just enough to reach it."""


@dataclass(slots=True)
class ConfigSession:
    """A configuration session."""

    name: str
    config: EosSection
    state: SessionState = "pending"
    completed_s: float = 0
    user: str = ""
    description: str = ""


@dataclass(slots=True)
class Timer:
    """A running commit timer, and the configuration it restores."""

    session: str
    before: EosSection
    ends_s: float
    clock: threading.Timer


class EosMachine:
    """Running and startup configuration, sessions, checkpoints and the commit timer of one switch.

    The commit timer fires in its own thread; hold `lock` around any other access.
    """

    def __init__(self, node: Node) -> None:
        assert isinstance(node.device, Switch)  # noqa: S101 - hosts have no EOS
        self.node = node
        self.switch = node.device
        self.release = release_of(self.switch.version)
        self.grammar = grammar_of(self.switch)
        self.ports = tuple(node.kernel_names)
        self.flash = EosFlash(node.saved)
        self.running = EosSection()
        self.sessions: dict[str, ConfigSession] = {}
        self.timer: Timer | None = None
        self.loses_commits = False
        """Lab fault: a commit reports success but changes nothing."""
        self.lock = threading.RLock()
        self._booted_s = time.monotonic()
        self.booted_at_s = time.time()

    @property
    def uptime_s(self) -> float:
        return time.monotonic() - self._booted_s

    def parse(self, text: str) -> EosSection:
        return parse(text, self.grammar, self.ports)

    def boot(self) -> None:
        """Load the startup-config."""
        with self.lock:
            self.stop()
            self._booted_s = time.monotonic()
            self.booted_at_s = time.time()
            self.sessions = {}
            self._become(self.parse(self.flash.startup or FACTORY))

    def stop(self) -> None:
        """Cancel the commit timer, as a power-off does."""
        with self.lock:
            self._end_timer()

    def load_startup(self, text: str) -> None:
        """Replace the startup-config if it could be committed."""
        problems = tuple(configuration.complaints(self.parse(text)))
        if problems:
            raise EosCommandError(*problems)
        self.flash.startup = text

    def save(self) -> None:
        self.flash.startup = body(self.running)

    def enter(self, name: str) -> ConfigSession:
        """Open a session; a new one starts from the running configuration."""
        known = self.sessions.get(name)
        if known:
            if known.state != "pending":
                raise EosCommandError(f"Session {name} is {known.state} and cannot be entered")
            return known
        if sum(session.state == "pending" for session in self.sessions.values()) >= HIGHEST_OPEN:
            raise EosCommandError("Maximum number of pending sessions has been reached")
        session = ConfigSession(name, self.running.copy())
        self.sessions[name] = session
        return session

    def session(self, name: str) -> ConfigSession:
        if name not in self.sessions:
            raise EosCommandError(f"Session {name} does not exist")
        return self.sessions[name]

    def commit(self, name: str, user: str, timer_s: int = 0) -> None:
        """Commit a session, or confirm the one whose timer is running."""
        session = self.session(name)
        if self.timer and self.timer.session == name and not timer_s:
            self._end_timer()
            self._complete(session)
            self.node.log(f"%SYS-5-CONFIG_SESSION_COMMIT_SUCCESS: Session {session.name} is confirmed")
            return
        if self.timer:
            raise EosCommandError(f"Cannot commit: session {self.timer.session} waits for its commit timer")
        if session.state != "pending":
            raise EosCommandError(f"Session {name} is {session.state}")
        before = self.running
        self.apply(session.config.copy())
        session.user, session.completed_s = user, time.time()
        if timer_s:
            self._start_timer(session, before, timer_s)
        else:
            self._complete(session)
            self.node.log(f"%SYS-5-CONFIG_SESSION_COMMIT_SUCCESS: User {user} committed session {name} successfully")

    def abort(self, name: str) -> None:
        """Discard a session; a pending timed commit is rolled back at once."""
        if self.timer and self.timer.session == name:
            self._roll_back()
            return
        if self.session(name).state != "pending":
            raise EosCommandError(f"Session {name} is {self.sessions[name].state}")
        del self.sessions[name]

    def apply(self, intended: EosSection) -> None:
        """Validate and apply a configuration."""
        problems = tuple(configuration.complaints(intended))
        if problems:
            raise EosCommandError(*problems)
        if not self.loses_commits:
            self._become(intended)

    def expire(self, session: str) -> None:
        """Roll back an unconfirmed commit; a failure can only be logged, as no user is waiting."""
        with self.lock:
            if self.timer is None or self.timer.session != session:
                return
            try:
                self._roll_back()
            except EosCommandError as error:
                self.node.log(f"session {session} could not be rolled back: {error}")

    def restore(self, text: str) -> None:
        """Replace the running configuration."""
        if self.timer:
            raise EosCommandError(f"Cannot replace: session {self.timer.session} waits for its commit timer")
        self.apply(self.parse(text))

    def _become(self, intended: EosSection) -> None:
        """Realise a configuration; if the node refuses it, restore the previous one."""
        before = self.running
        try:
            self.node.realise(switch_state(intended, self.node.kernel_names))
        except (ConfigRefusedError, RuntimeError) as error:
            self.node.realise(switch_state(before, self.node.kernel_names))
            raise EosCommandError(str(error)) from error
        self.running = intended

    def _start_timer(self, session: ConfigSession, before: EosSection, timer_s: int) -> None:
        clock = threading.Timer(timer_s, self.expire, (session.name,))
        clock.daemon = True
        self.timer = Timer(session.name, before, self.uptime_s + timer_s, clock)
        session.state = "pendingCommitTimer"
        clock.start()
        hours, minutes, seconds = timer_s // 3600, timer_s // 60 % 60, timer_s % 60
        self.node.log(
            f"%SYS-5-CONFIG_SESSION_COMMIT_TIMER_STARTED: User {session.user} committed session {session.name}, "
            f"with timer {hours}:{minutes}:{seconds}(hr:min:sec)."
        )

    def _complete(self, session: ConfigSession) -> None:
        session.state = "completed"
        session.completed_s = time.time()
        done = [name for name, known in self.sessions.items() if known.state == "completed"]
        for name in done[:-HIGHEST_SAVED]:
            del self.sessions[name]

    def _roll_back(self) -> None:
        timer = self._end_timer()
        if timer is None:
            return
        self._become(timer.before)
        self.sessions.pop(timer.session, None)
        self.node.log(
            f"%SYS-5-CONFIG_SESSION_COMMIT_TIMER_CANCELED: The commit timer on session {timer.session} has been "
            "canceled. The system configuration has been rolled back."
        )

    def _end_timer(self) -> Timer | None:
        timer, self.timer = self.timer, None
        if timer is not None:
            timer.clock.cancel()
        return timer


Captured = Mapping[str, str]
Found = TypeVar("Found")


def closest(known: Mapping[str, Found], words: Sequence[str]) -> tuple[Found, Captured] | int:
    """Match a command such as `show lldp neighbors <ports> detail`.

    Return its value and the captured words, or how many words the best form understood.
    """
    furthest = 0
    for form, value in known.items():
        captured: dict[str, str] = {}
        places = form.split()
        understood = 0
        for place, word in zip(places, words, strict=False):
            if place.startswith("<"):
                captured[place.strip("<>")] = word
            elif place != word:
                break
            understood += 1
        if understood == len(places) == len(words):
            return value, captured
        furthest = max(furthest, understood)
    return furthest


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [tuple(heads), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "".join(f"{line}\n" for line in lines)


LLDP_COMMAND = ("lldpcli", "-f", "json0", "show", "neighbors", "details")


class ShowContext:
    """The state a `show` command reads; nothing is read before a view needs it."""

    def __init__(self, machine: EosMachine) -> None:
        self.machine = machine
        self.config: EosSection = machine.running
        self.now_s = time.time()

    def section(self, port: str) -> EosSection:
        return self.config.section("interface", port)

    def ports(self, captured: Captured) -> Iterator[tuple[str, SwitchPortReading]]:
        """Yield the readings of the ports named in the command, or of all."""
        word = captured.get("ports", "")
        names = port_list(word, self.machine.ports) if word else self.machine.ports
        if not names:
            raise InvalidCommandError(f"Invalid input (at token 2: '{word}')")
        for reading in self.machine.node.ports():
            if reading.name in names:
                yield reading.name, reading

    def port_of(self, kernel_name: str) -> str:
        """The NOS name of a kernel interface, or the kernel name if it is not a port."""
        names = self.machine.node.kernel_names
        return next((port for port, name in names.items() if name == kernel_name), kernel_name)

    def bgp(self, command: str) -> Mapping[str, Any]:
        found = self._json(command, "bgpd")
        return found if isinstance(found, dict) else {}

    def bfd(self) -> list[Mapping[str, Any]]:
        found = self._json("show bfd peers json", "bfdd")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def routes(self) -> Mapping[str, Any]:
        found = self._json("show ip route json", "zebra")
        return found if isinstance(found, dict) else {}

    def lldp(self) -> Iterator[tuple[str, lldp_daemon.LldpNeighbor]]:
        if self.config.is_off("lldp", "run"):
            return
        result = self.machine.node.run(*LLDP_COMMAND)
        for neighbor in lldp_daemon.neighbors(result.stdout):
            yield self.port_of(neighbor.interface), neighbor

    def _json(self, command: str, daemon: str) -> object:
        try:
            found: object = json.loads(self.machine.node.vty(command, daemon))
        except (OSError, ValueError):
            return None
        return found
