"""How views say that a part is optional: a tuple a template loops over once or not at all."""

from typing import TypeVar

Item = TypeVar("Item")

Block = tuple[tuple[Item, ...], ...]
"""Items under one heading; without items there is no heading either."""


def block(items: tuple[Item, ...]) -> Block[Item]:
    """Return the items under one heading, or no heading at all."""
    return (items,) if items else ()


def when(condition: bool) -> tuple[bool, ...]:
    """Return a tuple with one member when the condition holds."""
    return (True,) if condition else ()


def when_text(text: str) -> tuple[str, ...]:
    """Return a tuple with the text, unless it is empty."""
    return (text,) if text else ()
