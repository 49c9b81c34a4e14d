"""What a user has chosen to see; keys change it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from netkit.watch.board import Row, Scene
from netkit.watch.trouble import natural, use

Sort = Literal["wrong", "traffic", "name"]
SORTS: tuple[Sort, ...] = ("wrong", "traffic", "name")
Key = tuple[str, str]
"""Device and port."""
LONGEST_FILTER = 60


@dataclass(frozen=True, slots=True)
class Look:
    """The view."""

    is_rails: bool = False
    is_detail: bool = False
    is_paused: bool = False
    is_typing: bool = False
    """Whether keys go into the filter."""
    sort: Sort = "wrong"
    wanted: str = ""
    """Only ports whose names hold each of these words."""
    chosen: Key | None = None


def key(row: Row) -> Key:
    """Return by what a row is known."""
    return row.wire.device, row.wire.port


def shown(scene: Scene, look: Look) -> tuple[Row, ...]:
    """Return the rows a view has, in its order."""
    words = look.wanted.lower().split()
    rows = (row for row in scene.rows if all(word in row.wire.label for word in words))
    if look.sort == "name":
        return tuple(sorted(rows, key=lambda row: (natural(row.wire.device), natural(row.wire.port))))
    if look.sort == "traffic":  # in steps, so that rows of equal use stay where they are
        return tuple(sorted(rows, key=lambda row: -round(16 * use(row.reading, row.wire.speed_gbps))))
    return tuple(rows)


def pressed(look: Look, name: str, rows: Sequence[Row], page: int = 10) -> Look:
    """Return the view after a key: a character, or the name of one that is none."""
    if look.is_typing:
        return _typed(look, name)
    if look.is_detail and name in {"enter", "escape", "backspace"}:
        return replace(look, is_detail=False)
    steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page, "home": -len(rows)}
    steps["end"] = len(rows)
    if name in steps:
        return _moved(look, steps[name], rows)
    if name == "enter":
        chosen = look.chosen or (key(rows[0]) if rows else None)
        return replace(look, chosen=chosen, is_detail=chosen is not None)
    return _switched(look, name)


def _switched(look: Look, name: str) -> Look:
    if name == "p":
        return replace(look, is_paused=not look.is_paused)
    if name == "s":
        return replace(look, sort=SORTS[(SORTS.index(look.sort) + 1) % len(SORTS)])
    if name == "/":
        return replace(look, is_typing=True, is_detail=False, is_rails=False)
    if name == "tab":
        return replace(look, is_rails=not look.is_rails, is_detail=False)
    return replace(look, wanted="", chosen=None) if name == "escape" else look


def _typed(look: Look, name: str) -> Look:
    if name == "enter":
        return replace(look, is_typing=False)
    if name == "escape":
        return replace(look, is_typing=False, wanted="")
    if name == "backspace":
        return replace(look, wanted=look.wanted[:-1])
    is_text = len(name) == 1 and name.isprintable() and len(look.wanted) < LONGEST_FILTER
    return replace(look, wanted=look.wanted + name) if is_text else look


def _moved(look: Look, by: int, rows: Sequence[Row]) -> Look:
    if not rows:
        return look
    keys = [key(row) for row in rows]
    before = keys.index(look.chosen) if look.chosen in keys else -1 if by > 0 else len(keys)
    return replace(look, chosen=keys[max(0, min(len(keys) - 1, before + by))])
