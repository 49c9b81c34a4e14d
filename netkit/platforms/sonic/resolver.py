"""Secrets on their way to a switch: put in their places in memory, and taken out of whatever it complains of."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from netkit.errors import AccessError, NetkitError, Problem
from netkit.platforms.secret import PLACEHOLDER, SECRET, has_placeholder
from netkit.platforms.sonic.tables import Row, Tables, Value

NAME_AT = slice(len("@secret:"), -1)


class Resolver:
    """Resolves placeholders by a function, and remembers what must not be shown."""

    def __init__(self, secrets: Callable[[str], str] | None) -> None:
        self._secrets = secrets or _no_secret
        self._seen: set[str] = set()

    def __repr__(self) -> str:
        return "Resolver()"

    def tables(self, tables: Tables) -> Tables:
        """Return tables with their secrets."""
        return {table: {self.text(key): self._row(row) for key, row in rows.items()} for table, rows in tables.items()}

    def _row(self, row: Row) -> Row:
        return {name: self._value(value) for name, value in row.items()}

    def _value(self, value: Value) -> Value:
        return [self.text(item) for item in value] if isinstance(value, list) else self.text(value)

    def text(self, text: str) -> str:
        """Return a text with its secrets."""
        if not has_placeholder(text):
            return text
        return PLACEHOLDER.sub(lambda found: self._secret(found[0][NAME_AT]), text)

    def _secret(self, name: str) -> str:
        value = self._secrets(name)
        self._seen.add(value)
        return value

    def hidden(self, text: str) -> str:
        """Return a text without the secrets that were resolved."""
        for value in sorted(self._seen, key=len, reverse=True):
            text = text.replace(value, SECRET).replace(json.dumps(value)[1:-1], SECRET)
        return text

    @contextmanager
    def hiding(self) -> Iterator[None]:
        """Take secrets out of the errors of a block."""
        try:
            yield
        except NetkitError as error:
            raise type(error)(replace(one, message=self.hidden(one.message)) for one in error.problems) from None


def _no_secret(name: str) -> str:
    raise AccessError(Problem(f"the secret {name} is not to be had", "give the driver optional_args secrets"))
