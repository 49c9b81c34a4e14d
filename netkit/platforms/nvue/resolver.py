"""Secrets on their way to a switch: put in their places in memory, taken out of what the switch complains of."""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from netkit.errors import AccessError, NetkitError, Problem
from netkit.platforms.nvue.patch import COMMANDS, PLACEHOLDER, NvuePatch, Tree, Value, typed
from netkit.platforms.secret import SECRET


class Resolver:
    """Resolves placeholders by a function, and remembers what must not be shown."""

    def __init__(self, secrets: Callable[[str], str] | None) -> None:
        self._secrets = secrets or _no_secret
        self._seen: set[str] = set()

    def __repr__(self) -> str:
        return "Resolver()"

    def document(self, document: NvuePatch) -> NvuePatch:
        """Return a document with its secrets."""
        return NvuePatch(document.unset, self._tree(document.set))

    def text(self, text: str) -> str:
        """Return a file as a person writes it with its secrets, quoted as its form wants it."""
        if "@secret:" not in text:
            return text
        if COMMANDS.match(text):
            return "".join(f"{self._line(line)}\n" for line in text.splitlines())
        items = typed(text)
        return json.dumps([self._resolved(item) for item in items] if isinstance(items, list) else items)

    def _line(self, line: str) -> str:
        """Return a command with its secrets, quoted anew."""
        return shlex.join(map(self._text, shlex.split(line, comments=True))) if "@secret:" in line else line

    def _tree(self, tree: Tree) -> Tree:
        return {self._text(key): self._resolved(below) for key, below in tree.items()}

    def _resolved(self, value: Value) -> Value:
        if isinstance(value, dict):
            return self._tree(value)
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda found: self._value(found[1]), text) if "@secret:" in text else text

    def _value(self, name: str) -> str:
        value = self._secrets(name)
        self._seen.add(value)
        return value

    @contextmanager
    def hiding(self) -> Iterator[None]:
        """Take secrets out of the errors of a block."""
        try:
            yield
        except NetkitError as error:
            raise type(error)(replace(one, message=self._hidden(one.message)) for one in error.problems) from None

    def _hidden(self, text: str) -> str:
        for value in sorted(self._seen, key=len, reverse=True):
            text = text.replace(value, SECRET)
        return text


def _no_secret(name: str) -> str:
    raise AccessError(Problem(f"the secret {name} is not to be had", "give the driver optional_args secrets"))
