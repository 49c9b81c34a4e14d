"""What the generic updater of a branch lets a patch do on a model, read from the data file."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from netkit.lab.personalities.sonic.edits import Edit
from netkit.lab.personalities.sonic.schema import FOREVER

FILE = Path(__file__).parent / "data" / "updater.yaml"


@dataclass(frozen=True, slots=True)
class Rule:
    """Operations on paths of one pattern."""

    path: re.Pattern[str]
    operations: frozenset[str]
    reason: str = ""
    is_for_any: bool = False
    """Whether it holds for models that are not listed, too."""

    def names(self, edit: Edit) -> bool:
        """Whether an edit is one of those meant."""
        return edit.operation in self.operations and self.path.fullmatch(edit.path) is not None


@dataclass(frozen=True, slots=True)
class Permissions:
    """The updater's rules for one branch and model."""

    is_listed: bool
    guarded: Mapping[str, tuple[Rule, ...]]
    forbidden: tuple[Rule, ...]
    flapping: frozenset[str]
    create_only: tuple[re.Pattern[str], ...]

    def refusals(self, edits: Iterable[Edit]) -> Iterator[str]:
        """Yield why edits are not permitted."""
        for edit in edits:
            found = next((rule for rule in self.forbidden if rule.names(edit)), None)
            if found:
                yield f"{edit.operation} of {edit.path} is not permitted: {found.reason}"
            elif edit.table in self.guarded and not self._is_allowed(edit):
                yield f"Modification of {edit.path} ({edit.operation}) is illegal- validating function returned False"

    def flaps(self, edit: Edit) -> bool:
        """Whether the port of an edit must be down for it."""
        return edit.table in self.flapping and edit.port.startswith("Ethernet")

    def recreates(self, edit: Edit) -> bool:
        """Whether an edit takes its whole row with it."""
        return any(pattern.fullmatch(edit.path) for pattern in self.create_only)

    def _is_allowed(self, edit: Edit) -> bool:
        return any(rule.names(edit) and (self.is_listed or rule.is_for_any) for rule in self.guarded[edit.table])


@cache
def permissions(branch: int, hwsku: str) -> Permissions:
    """Return the rules of a branch for a model."""
    data: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return Permissions(
        is_listed=any(
            branch >= entry["since"] and re.fullmatch(entry["hwsku"], hwsku) is not None for entry in data["listed"]
        ),
        guarded={
            entry["table"]: tuple(map(_rule, entry["allow"]))
            for entry in data["guarded"]
            if int(entry.get("since", 0)) <= branch <= int(entry.get("until", FOREVER))
        },
        forbidden=tuple(map(_rule, data["forbidden"])),
        flapping=frozenset(data["flapping"]),
        create_only=tuple(re.compile(path) for path in data["create_only"]),
    )


def _rule(entry: Mapping[str, Any]) -> Rule:
    operations, is_for_any = frozenset(entry["operations"]), bool(entry.get("any"))
    return Rule(re.compile(entry["path"]), operations, entry.get("reason", ""), is_for_any)
