"""Secrets: filled in on their way to a device, and kept out of everything that is compared, shown or stored.

A configuration is masked while it is parsed: a secret reads `<secret>`, whether it is netkit's placeholder, a hash or
`*`. So a secret and any other secret in its place are equal, a missing one is a difference, and a rotated one is not
seen: rotate secrets with a deploy that is told to.

A driver fills placeholders with one `SecretResolver`, which then masks the values in what the device prints.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from netkit.errors import AccessError, NetkitError, Problem
from netkit.platforms.config import Config, Path

T = TypeVar("T")

SECRET = "<secret>"  # noqa: S105 (the word that replaces one)
PLACEHOLDER = re.compile(r"@secret:([^@\s]+)@")
SHORTEST_CUT = 4
"""Characters of a secret that still give it away at the end of a message that was cut off."""
NAME = re.compile(
    r"(?:^|[-_ ])(?:password|passwd|passphrase|passkey|secret|auth-(?:md5|sha\d*)|encrypt-(?:aes\d*|des)|key|token)$",
    re.IGNORECASE,
)


@lru_cache(maxsize=10_000)
def is_secret_name(key: str) -> bool:
    """Whether what stands below a key of this name is a secret."""
    return bool(NAME.search(key))


def has_placeholder(text: str) -> bool:
    """Whether there may be a placeholder of netkit's in a text."""
    return "@secret:" in text


def without_placeholders(entries: Config) -> dict[Path, str]:
    """Return a configuration in which netkit's placeholders are masked."""
    return {tuple(map(_masked, path)): _masked(value) for path, value in entries.items()}


def _masked(text: str) -> str:
    return PLACEHOLDER.sub(SECRET, text) if "@secret:" in text else text


def settled(running: Config, intended: Config) -> dict[Path, str]:
    """Return a running configuration in which every secret of the intended one is masked too.

    A user's own template may put a secret where no rule of the platform expects one; on the device it is in clear.
    """
    return {_path(path, intended): _value(path, value, intended) for path, value in running.items()}


def _value(path: Path, value: str, intended: Config) -> str:
    wanted = intended.get(path, "")
    return wanted if SECRET in wanted and _pattern(wanted).fullmatch(value) else value


def _path(path: Path, intended: Config) -> Path:
    if path in intended:
        return path
    wanted = (other for other in intended if len(other) == len(path) and any(SECRET in key for key in other))
    return next((other for other in wanted if all(map(_is_same, path, other))), path)


def _is_same(key: str, wanted: str) -> bool:
    return key == wanted or (SECRET in wanted and bool(_pattern(wanted).fullmatch(key)))


def _pattern(wanted: str) -> re.Pattern[str]:
    return re.compile(".+".join(map(re.escape, wanted.split(SECRET))), re.DOTALL)


def holds_secret(entries: Mapping[Path, str]) -> bool:
    """Whether a secret of any place is among some entries."""
    return any(SECRET in value or any(SECRET in key for key in path) for path, value in entries.items())


class SecretResolver:
    """Fills placeholders by a function, and masks what was filled in wherever it comes back."""

    def __init__(self, secrets: Callable[[str], str] | None) -> None:
        self._secrets = secrets or _no_secret
        self._forms: dict[str, frozenset[str]] = {}
        """Secret → how a device may write it."""

    def __repr__(self) -> str:
        return "SecretResolver()"

    @property
    def values(self) -> frozenset[str]:
        """The secrets that were filled in."""
        return frozenset(self._forms)

    def text(self, text: str) -> str:
        """Return a text with its secrets, as they are."""
        return PLACEHOLDER.sub(self._value, text) if has_placeholder(text) else text

    def command(self, line: str) -> str:
        """Return a line for a shell with its secrets, quoted for it."""
        return shlex.join(map(self.text, shlex.split(line, comments=True))) if has_placeholder(line) else line

    def tree(self, tree: T) -> T:
        """Return dictionaries and lists with the secrets of their keys and values."""
        found: object = tree
        if isinstance(tree, dict):
            found = {self.tree(key): self.tree(below) for key, below in tree.items()}
        elif isinstance(tree, list):
            found = [self.tree(below) for below in tree]
        elif isinstance(tree, str):
            found = self.text(tree)
        return found  # type: ignore[return-value]  # of the same type, which mypy cannot follow

    def _value(self, placeholder: re.Match[str]) -> str:
        value = self._secrets(placeholder[1])
        if not value or not value.isprintable():  # a second line would be a command of its own
            raise AccessError(Problem(f"{placeholder[0]} is not a secret of one line", "store it on one line"))
        self._forms[value] = _forms(value)
        return value

    def hidden(self, text: str) -> str:
        """Return a text without the secrets that were filled in, however they are escaped or where it was cut off."""
        if not self._forms:
            return text
        forms = sorted({form for forms in self._forms.values() for form in forms}, key=len, reverse=True)
        text = re.sub("|".join(map(_pattern_of, forms)), SECRET, text)
        end = max(_cut(text, form) for form in forms)
        return text[: len(text) - end] + SECRET if end else text

    @contextmanager
    def hiding(self) -> Iterator[None]:
        """Take secrets out of the errors of a block."""
        try:
            yield
        except NetkitError as error:
            hidden = [
                replace(one, message=self.hidden(one.message), remedy=self.hidden(one.remedy)) for one in error.problems
            ]
            raise type(error)(hidden) from None


def _forms(value: str) -> frozenset[str]:
    """Return a secret as shells, JSON, YAML, Python and JSON pointers write it."""
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return frozenset(
        {
            value,
            quoted,
            json.dumps(value)[1:-1],
            repr(value)[1:-1],
            "".join(map(_yaml_escaped, quoted)),
            value.replace("'", "''"),
            shlex.quote(value).removeprefix("'").removesuffix("'"),
            value.replace("~", "~0").replace("/", "~1"),
        }
    )


def _yaml_escaped(one: str) -> str:
    code = ord(one)
    if one.isascii():
        return one
    return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _pattern_of(form: str) -> str:
    """Return an expression that finds a form also behind backslashes, and where lines were folded or joined."""
    words = filter(None, re.split(r"\s+", form))
    return r"(?:\\*\s)+".join("".join(rf"\\?{re.escape(one)}" for one in word) for word in words) or re.escape(form)


def _cut(text: str, form: str) -> int:
    """Return how many characters at the end of a text begin a secret."""
    sizes = range(min(len(form) - 1, len(text)), SHORTEST_CUT - 1, -1)
    return next((size for size in sizes if text.endswith(form[:size])), 0)


def _no_secret(name: str) -> str:
    raise AccessError(Problem(f"the secret {name} is not to be had", "give the driver optional_args secrets"))
