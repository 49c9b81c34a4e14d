"""What can be asked: a table, by name, place and columns, as `walk ifXTable 1.3.6.1.2.1.31.1.1.1 1,6`."""

import re
from dataclasses import dataclass

from netkit.platforms.snmp.varbind import ARCS, Oid, oid, spelled

COMMAND = re.compile(rf"walk (\S+) ({ARCS}) (\d{{1,5}}(?:,\d{{1,5}})*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Question:
    """Columns of a table."""

    name: str
    root: Oid
    columns: tuple[int, ...]

    @property
    def command(self) -> str:
        """Return it as a command."""
        return f"walk {self.name} {spelled(self.root)} {','.join(map(str, self.columns))}"


def question(command: str) -> Question | None:
    """Return what a command asks; None when it is none of SNMP's."""
    found = COMMAND.fullmatch(command)
    return Question(found[1], oid(found[2]), tuple(map(int, found[3].split(",")))) if found else None
