"""The sites of a fleet, as their broker and workers report them. No page waits for these."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netkit.errors import NetkitError
from netkit.report.page.table import cut, name

EVERY_S = 15.0
OLD_S = 120.0
"""After this long without an answer of the broker, the known state of the sites is outdated."""


@dataclass(frozen=True, slots=True)
class FleetState:
    """What was reported last."""

    asked_s: float = 0.0
    """When; 0 if the broker was not asked yet."""
    sites: Sequence[Mapping[str, Any]] = ()
    """As `netkit fleet status --format json` prints them."""
    metrics: str = ""
    """The same for Prometheus."""
    failure: str = ""
    """Why they could not be asked since then; empty if they could."""

    def is_old(self, now_s: float) -> bool:
        return now_s - self.asked_s > OLD_S

    def problems(self, now_s: float) -> Iterator[str]:
        """Yield why something of the sites is not known."""
        if self.failure:
            yield self.failure
        elif self.asked_s and self.is_old(now_s):
            yield "the broker does not answer"
        for failure in dict.fromkeys(one["failure"] for one in self.sites if one["failure"]):
            places = ", ".join(name(one["site"]) for one in self.sites if one["failure"] == failure)
            yield f"{places}: the broker does not answer: {cut(failure)}"

    def described(self, now_s: float) -> dict[str, Any]:
        """The state as plain values, for programs and pages."""
        return {
            "asked_s": self.asked_s or None,
            "problems": list(self.problems(now_s)),
            "sites": [
                {
                    **{key: one[key] for key in ("waiting", "receivers")},
                    "site": name(one["site"]),
                    "failure": cut(one["failure"]),
                    "workers": [_printable(worker) for worker in one["workers"]],
                }
                for one in self.sites
            ],
        }


def _printable(worker: Mapping[str, Any]) -> dict[str, Any]:
    return {key: cut(value) if isinstance(value, str) else value for key, value in worker.items()}


class FleetPoll:
    """Polls in its own thread, so that a broker that hangs delays nothing else."""

    def __init__(self, ask: Callable[[], FleetState], every_s: float = EVERY_S) -> None:
        self._ask, self._every_s = ask, every_s
        self._state = FleetState()

    def __call__(self) -> FleetState:
        """What was reported last."""
        return self._state

    def start(self) -> None:
        threading.Thread(target=self._run, name="fleet", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self._state = self._ask()
            except NetkitError as error:
                self._state = replace(self._state, failure=error.problems[0].message, metrics="")
            time.sleep(self._every_s)
