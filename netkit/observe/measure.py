"""Run acceptance tests, round after round, over one connection to each host."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Self

from netkit.deploy.fan_out import each, threads
from netkit.errors import NetkitError
from netkit.observe.trial_plan import TrialRound
from netkit.platforms.linux.acceptance import MARK, TOOLS, programs
from netkit.platforms.view import Reply, Viewer

Connect = Callable[[str], Viewer]


class Bench:
    """Connections to the hosts that are measured; unreachable ones are in `failures`."""

    def __init__(self, names: Sequence[str], connect: Connect) -> None:
        self._viewers = {name: connect(name) for name in names}
        self.failures: dict[str, str] = {}

    def __enter__(self) -> Self:
        each(threads(len(self._viewers)), self._viewers, lambda name: self._guarded(name, self._viewers[name].open))
        return self

    def __exit__(self, *_: object) -> None:
        for viewer in self._viewers.values():
            with suppress(Exception):  # the results are complete
                viewer.close()

    def programs(self) -> Mapping[str, frozenset[str]]:
        """Read which programs of acceptance tests each host has; a host whose command fails counts as unreachable."""
        found = self._replies(dict.fromkeys(self._viewers, TOOLS))
        self.failures |= {name: reply.failure for name, reply in found.items() if reply.failure}
        return {name: programs(reply.text) for name, reply in found.items() if not reply.failure}

    def measure(self, rounds: Sequence[TrialRound], count: Callable[[], None] = lambda: None) -> str:
        """Run all rounds and return the output of the senders."""
        parts = []
        for one in rounds:
            found = self._replies({**one.receivers, **one.senders})
            for name in one.senders:
                text = self.failures.get(name, "")
                if name in found:
                    reply = found[name]
                    text = (f"{reply.text}\n{reply.failure}\n" if reply.failure else reply.text) or text
                if MARK not in text:  # it failed before it printed what it runs
                    about = json.dumps({"tool": one.tool, "hosts": [name]})
                    text = f"{MARK}{about}\n{text.strip() or 'it printed nothing'}"
                parts.append(f"{text.rstrip()}\n")
            count()
        return "".join(parts)

    def _replies(self, commands: Mapping[str, str]) -> dict[str, Reply]:
        """Run one command on each reachable host concurrently."""
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
        except Exception as error:  # must not affect other hosts
            self.failures[name] = f"{type(error).__name__}: {error}"
