"""Paths: what is asked for, and what was told."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

STEP = re.compile(r"/([^/\[\]]+)((?:\[[^\[\]=]+=[^\[\]]*\])*)")
KEY = re.compile(r"\[([^\[\]=]+)=([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path: a name, and by which keys one of a list is meant."""

    name: str
    keys: Mapping[str, str] = field(default_factory=dict)


Path = tuple[Step, ...]


def path(text: str) -> Path:
    """Return the path that is written as /interfaces/interface[name=Ethernet1]/state; empty when none is."""
    return tuple(_steps(text)) if re.fullmatch(f"(?:{STEP.pattern})+", text) else ()


def _steps(text: str) -> Iterator[Step]:
    for found in STEP.finditer(text):
        yield Step(found[1], dict(KEY.findall(found[2])))


def spelled(steps: Path) -> str:
    """Return a path as text."""
    return "".join(f"/{one.name}" + "".join(f"[{key}={value}]" for key, value in one.keys.items()) for one in steps)
