"""What can be asked: everything below a path, as `once /interfaces/interface/state` or `once APPL_DB:/PORT_TABLE`."""

import re
from dataclasses import dataclass

from netkit.platforms.gnmi.path import Path, path, spelled

PLACE = re.compile(r"(?:([\w.-]{1,64}):)?(/\S+)", re.ASCII)
ONCE = "once "
CAPABILITIES = "capabilities"
"""What the server speaks; whoever may ask that is let in."""


@dataclass(frozen=True, slots=True)
class Question:
    """Something to be told: a path, and on SONiC the database it is in."""

    path: Path
    target: str = ""

    @property
    def place(self) -> str:
        """Return it as it is written."""
        return f"{self.target}:{spelled(self.path)}" if self.target else spelled(self.path)

    @property
    def command(self) -> str:
        """Return it as a command."""
        return f"{ONCE}{self.place}"


def question(place: str) -> Question | None:
    """Return what is asked at a place; None when it is none."""
    found = PLACE.fullmatch(place)
    steps = path(found[2]) if found else ()
    return Question(steps, found[1] or "") if found and steps else None


def asked(command: str) -> Question | None:
    """Return what a command asks; None when it is none of gNMI's."""
    return question(command.removeprefix(ONCE)) if command.startswith(ONCE) else None
