"""Running acceptance tests: round after round, over one connection to each host."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Self

from netkit.deploy.fan_out import each, threads
from netkit.errors import NetkitError
from netkit.observe.trial_plan import TrialRound
from netkit.platforms.linux.acceptance.command import TOOLS, programs
from netkit.platforms.linux.acceptance.result import MARK
from netkit.platforms.view import Reply, Viewer

Connect = Callable[[str], Viewer]


class Bench:
    """Hosts that are measured; each is connected to once, and those that cannot be reached say so."""

    def __init__(self, names: Sequence[str], connect: Connect) -> None:
        self._viewers = {name: connect(name) for name in names}
        self.failures: dict[str, str] = {}

    def __enter__(self) -> Self:
        each(threads(len(self._viewers)), self._viewers, self._open)
        return self

    def __exit__(self, *_: object) -> None:
        for viewer in self._viewers.values():
            with suppress(Exception):  # what was measured was measured
                viewer.close()

    def programs(self) -> Mapping[str, frozenset[str]]:
        """Return which programs of acceptance tests each host has; one that does not come to tell is not reached."""
        found = self._replies(dict.fromkeys(self._viewers, TOOLS))
        self.failures |= {name: reply.failure for name, reply in found.items() if reply.failure}
        return {name: programs(reply.text) for name, reply in found.items() if not reply.failure}

    def measure(self, rounds: Sequence[TrialRound], count: Callable[[], None] = lambda: None) -> str:
        """Return what the senders of all rounds printed."""
        parts = []
        for one in rounds:
            found = self._asked({**one.receivers, **one.senders})
            parts += [_whole(one, name, found.get(name) or self.failures.get(name, "")) for name in one.senders]
            count()
        return "".join(parts)

    def _open(self, name: str) -> None:
        self._guarded(name, self._viewers[name].open)

    def _asked(self, commands: Mapping[str, str]) -> dict[str, str]:
        """Return what hosts print that can be reached, and why it ended when it did not end well."""
        found = self._replies(commands)
        return {name: f"{one.text}\n{one.failure}\n" if one.failure else one.text for name, one in found.items()}

    def _replies(self, commands: Mapping[str, str]) -> dict[str, Reply]:
        """Return what hosts answer that can be reached; all are asked at one time."""
        found: dict[str, Reply] = {}

        def ask(name: str) -> None:
            (found[name],) = self._viewers[name].ask([commands[name]])

        names = [name for name in commands if name not in self.failures]
        each(threads(len(names)), names, lambda name: self._guarded(name, lambda: ask(name)))
        return found

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except NetkitError as error:
            self.failures[name] = "; ".join(str(problem).removeprefix(f"{name}: ") for problem in error.problems)
        except Exception as error:  # of one host; the others are none the worse for it
            self.failures[name] = f"{type(error).__name__}: {error}"


def _whole(one: TrialRound, name: str, text: str) -> str:
    """Return what a sender printed; one that did not get as far as telling what it runs did not end well."""
    if MARK in text:
        return f"{text.rstrip()}\n"
    about = json.dumps({"tool": one.tool, "hosts": [name]})
    return f"{MARK}{about}\n{text.strip() or 'it said nothing'}\n"
