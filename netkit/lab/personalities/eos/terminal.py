"""Someone at the command line of a switch: privilege, mode, and what is typed in each."""

from dataclasses import dataclass

from netkit.lab.personalities.eos import commands
from netkit.lab.personalities.eos.commands import closest
from netkit.lab.personalities.eos.configuration import Editor, body, differences
from netkit.lab.personalities.eos.machine import ConfigSession, EosMachine
from netkit.lab.personalities.eos.reply import DONE, EosCommandError, EosReply, InvalidCommandError, invalid, through
from netkit.lab.personalities.eos.tree import EosSection
from netkit.lab.personalities.eos.views import catalog
from netkit.lab.personalities.eos.views.lens import Lens

CONFIGURATIONS = ("running-config", "startup-config", "session-config")


@dataclass(slots=True)
class Typing:
    """Configuration mode: into a session, or into a draft that counts after every line."""

    editor: Editor
    root: EosSection
    session: ConfigSession | None


class Terminal:
    """One login, or one eAPI request: a sequence of commands that share a mode."""

    def __init__(self, machine: EosMachine, user: str) -> None:
        self.machine = machine
        self.user = user
        self.typing: Typing | None = None
        # A login gets the privilege of its account only when authorization says so; others must ask for it.
        self.is_privileged = machine.running.word("aaa", "authorization", "exec", "default") == "local"

    @property
    def prompt(self) -> str:
        """Return what stands before the cursor."""
        name = self.machine.running.word("hostname") or "localhost"
        if self.typing is None:
            return f"{name}{'#' if self.is_privileged else '>'}"
        session = self.typing.session
        return f"{name}(config{f'-s-{session.name[:6]}' if session else ''})#"

    def run(self, line: str, given: str = "") -> EosReply:
        """Run one command; `given` is the input of a command that asks for some."""
        command, *filters = line.split("|")
        words = tuple(command.split())
        if not words or words[0].startswith("!"):
            return DONE
        with self.machine.turn:
            reply = self._run(words, given)
        return through(reply, [part.strip() for part in filters]) if filters else reply

    def start_typing(self, session: ConfigSession | None) -> None:
        """Enter configuration mode."""
        root = session.config if session else self.machine.running.copy()
        self.typing = Typing(Editor(self.machine.grammar, self.machine.ports, root), root, session)

    def leave(self) -> None:
        """Go one mode up."""
        if self.typing and self.typing.editor.depth:
            self.typing.editor.leave()
        else:
            self.typing = None

    def session(self) -> ConfigSession:
        """Return the session that is being typed into."""
        if self.typing is None or self.typing.session is None:
            raise InvalidCommandError("Invalid input (not in a configuration session)")
        return self.typing.session

    def _run(self, words: tuple[str, ...], given: str) -> EosReply:
        if words[0] == "show":
            return self._show(words)
        found = closest(commands.COMMANDS, words)
        if isinstance(found, int):
            return self._configure(words, found)
        command, captured = found
        if command.in_session and (self.typing is None or self.typing.session is None):
            raise invalid(words, 0)
        if command.is_privileged and not self.is_privileged:
            raise InvalidCommandError(f"Invalid input (privileged mode required) (at token 0: '{words[0]}')")
        return command.answer(self, captured, given)

    def _show(self, words: tuple[str, ...]) -> EosReply:
        what = words[1] if len(words) > 1 else ""
        if what in CONFIGURATIONS and not self.is_privileged:
            raise InvalidCommandError(f"Invalid input (privileged mode required) (at token 1: '{what}')")
        if what == "session-config":
            return self._show_session(words)
        return catalog.show(Lens(self.machine, is_privileged=self.is_privileged), words)

    def _show_session(self, words: tuple[str, ...]) -> EosReply:
        rest = words[2:]
        if rest[:1] == ("named",) and len(rest) > 1:
            session, rest = self.machine.session(rest[1]), rest[2:]
        else:
            session = self.session()
        if rest == ("diffs",):
            return EosReply(None, differences(self.machine.running, session.config, session.name))
        if rest in {(), ("sanitized",)}:
            return EosReply(None, f"! Command: {' '.join(words)}\n{body(session.config)}")
        raise invalid(words, len(words) - len(rest))

    def _configure(self, words: tuple[str, ...], understood: int) -> EosReply:
        """Take a line as configuration; outside of a session it counts at once."""
        if self.typing is None:
            raise invalid(words, understood)
        self.typing.editor.type(" ".join(words))
        if self.typing.session is None:
            self._apply_draft(self.typing.root)
        return DONE

    def _apply_draft(self, draft: EosSection) -> None:
        try:
            self.machine.apply(draft.copy())
        except EosCommandError:
            self.start_typing(None)
            raise
