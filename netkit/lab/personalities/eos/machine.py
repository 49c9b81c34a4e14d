"""The configuration engine of one EOS switch: running, startup, sessions, the commit timer, checkpoints."""

import threading
import time
from dataclasses import dataclass
from typing import Literal

from netkit.design.fabric import Switch
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.eos import configuration
from netkit.lab.personalities.eos.configuration import EosSection, body, grammar_of, parse, release_of
from netkit.lab.personalities.eos.reply import EosCommandError, EosFlash
from netkit.lab.personalities.eos.switch_state import switch_state

SessionState = Literal["pending", "completed", "pendingCommitTimer"]
HIGHEST_OPEN, HIGHEST_SAVED = 5, 1
FACTORY = """
management api http-commands
   no shutdown
!
aaa authorization exec default local
"""
"""What a switch without a startup-config says of itself here: just enough to be reached."""


@dataclass(slots=True)
class ConfigSession:
    """A configuration someone works on."""

    name: str
    config: EosSection
    state: SessionState = "pending"
    completed_s: float = 0
    user: str = ""
    description: str = ""


@dataclass(slots=True)
class Timer:
    """A commit that is taken back unless it is confirmed."""

    session: str
    before: EosSection
    ends_s: float
    clock: threading.Timer


class EosMachine:
    """One switch's configuration; every change of the running one is realised before it counts.

    A commit timer ends by itself, whatever else goes on: whoever acts here takes his turn.
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
        """A fault of the lab: a commit says nothing and changes nothing."""
        self.turn = threading.RLock()
        self._booted_s = time.monotonic()
        self.booted_at_s = time.time()

    @property
    def uptime_s(self) -> float:
        """Return for how long the switch has been up."""
        return time.monotonic() - self._booted_s

    def parse(self, text: str) -> EosSection:
        """Return the configuration a text holds."""
        return parse(text, self.grammar, self.ports)

    def boot(self) -> None:
        """Become what the startup-config says."""
        with self.turn:
            self.stop()
            self._booted_s = time.monotonic()
            self.booted_at_s = time.time()
            self.sessions = {}
            self._become(self.parse(self.flash.startup or FACTORY))

    def stop(self) -> None:
        """Forget the commit timer, as a switch does that goes down."""
        with self.turn:
            self._end_timer()

    def load_startup(self, text: str) -> None:
        """Make a text the startup-config, if it could be committed."""
        wrong = configuration.complaints(self.parse(text))
        if wrong:
            raise EosCommandError(*wrong)
        self.flash.startup = text

    def save(self) -> None:
        """Copy the running configuration to the startup one."""
        self.flash.startup = body(self.running)

    def enter(self, name: str) -> ConfigSession:
        """Return a session to type into; a new one starts from the running configuration."""
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
        """Return a session that is there."""
        if name not in self.sessions:
            raise EosCommandError(f"Session {name} does not exist")
        return self.sessions[name]

    def commit(self, name: str, user: str, timer_s: int = 0) -> None:
        """Make a session the running configuration, or confirm the one that waits for it."""
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
        """Throw a session away; one that waits for its confirmation is taken back at once."""
        if self.timer and self.timer.session == name:
            self._take_back()
            return
        if self.session(name).state != "pending":
            raise EosCommandError(f"Session {name} is {self.sessions[name].state}")
        del self.sessions[name]

    def apply(self, intended: EosSection) -> None:
        """Make a configuration the running one."""
        wrong = configuration.complaints(intended)
        if wrong:
            raise EosCommandError(*wrong)
        if not self.loses_commits:
            self._become(intended)

    def expire(self, session: str) -> None:
        """Take back a commit whose time is over; nobody is there to tell when that fails, so the log is told."""
        with self.turn:
            if self.timer is None or self.timer.session != session:
                return
            try:
                self._take_back()
            except EosCommandError as error:
                self.node.log(f"session {session} could not be taken back: {error}")

    def restore(self, text: str) -> None:
        """Replace the running configuration by a file's."""
        if self.timer:
            raise EosCommandError(f"Cannot replace: session {self.timer.session} waits for its commit timer")
        self.apply(self.parse(text))

    def _become(self, intended: EosSection) -> None:
        """Realise a configuration; when the node refuses, it stays what it was."""
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

    def _take_back(self) -> None:
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
