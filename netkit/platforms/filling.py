"""Secrets on their way to a device: put in their places in memory, taken out of what the device complains of."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from netkit.errors import AccessError, NetkitError, Problem
from netkit.platforms.secret import PLACEHOLDER, SECRET, has_placeholder


class Filling:
    """Fills placeholders by a function, and remembers what must not be shown."""

    def __init__(self, secrets: Callable[[str], str] | None) -> None:
        self._secrets = secrets or _no_secret
        self._seen: set[str] = set()

    def __repr__(self) -> str:
        return "Filling()"

    @property
    def values(self) -> frozenset[str]:
        """Return the secrets that were filled in."""
        return frozenset(self._seen)

    def text(self, text: str) -> str:
        """Return a text with its secrets."""
        return PLACEHOLDER.sub(lambda found: self._value(found[0]), text) if has_placeholder(text) else text

    def _value(self, placeholder: str) -> str:
        value = self._secrets(placeholder.removeprefix("@secret:").removesuffix("@"))
        if not value or not value.isprintable():
            raise AccessError(Problem(f"{placeholder} is no secret of one line", "store it on one line"))
        self._seen.add(value)
        return value

    @contextmanager
    def hiding(self) -> Iterator[None]:
        """Take secrets out of the errors of a block."""
        try:
            yield
        except NetkitError as error:
            raise type(error)(replace(one, message=self.hidden(one.message)) for one in error.problems) from None

    def hidden(self, text: str) -> str:
        """Return a text without the secrets that were filled in."""
        for value in sorted(self._seen, key=len, reverse=True):
            text = text.replace(value, SECRET)
        return text


def _no_secret(name: str) -> str:
    raise AccessError(Problem(f"the secret {name} is not to be had", "give the driver optional_args secrets"))
