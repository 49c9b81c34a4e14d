"""Secrets: inserted during the transfer to a device, and masked in everything that is compared, displayed or stored.

Parsing masks a configuration: a secret reads `<secret>`, whether it is netkit's placeholder, a hash or `*`. Two
secrets in the same place therefore compare equal, a missing one is a difference, and a rotated one is not detected:
rotate secrets with a deploy that requests it.

A driver fills placeholders with one `SecretResolver`, which then masks the values in the output of the device.
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

SECRET = "<secret>"  # noqa: S105 (the mask)
ONE_SECRET = rf"(?:{SECRET}|(?:(?!{SECRET}).)+)"
PLACEHOLDER = re.compile(r"@secret:([^@\s]+)@")
SHORTEST_CUT = 4
"""Length of a secret's prefix that is masked at the end of a truncated message."""
NAME = re.compile(
    r"(?:^|[-_ ])(?:password|passwd|passphrase|passkey|secret|auth-(?:md5|sha\d*)|encrypt-(?:aes\d*|des)|key|token)$",
    re.IGNORECASE,
)

# How devices write secrets in lines, also those that netkit does not render.
LINES = (
    re.compile(r"\b(key-string|authentication-key|authentication string|message-digest-key \S+ \S+)( \d+)? \S+$"),
    re.compile(r"\b(authentication key|password|secret|key)( \d+)? (?!\d{1,5}$)\S+$"),  # except a key number
    re.compile(r"^(key \S+)( \d+) \S+(?= fallback$|$)"),
    re.compile(r"^(snmp-server host .* version (?:1|2c))() \S+"),
    re.compile(r"^(snmp-server host \S+(?: vrf \S+)?(?: traps| informs)?)() (?!vrf|version|traps|informs|udp-port)\S+"),
    re.compile(r"(-cvauth=[\w-]+,|\bBearer)()[ ]?\S+"),
)
# Of snmpd.conf, also where a template has a placeholder: both sides of a comparison read the same.
WORD = r"""(?:"(?:\\.|[^"\\])*"?|'[^']*'?|\S+)"""
SNMP_USER = r"createUser\s+(?:-e\s+\S+\s+)?\S+\s+\S+"
SNMPD = (
    re.compile(rf"(?i)^(com2sec(?:6|unix)?(?:\s+-Cn\s+\S+)?\s+\S+\s+\S+)\s+{WORD}"),
    re.compile(rf"(?i)^((?:trap|trap2|inform)sink\s+\S+|r[ow]community6?)\s+{WORD}"),
    re.compile(r"(?i)^(trapcommunity|usmUser|def(?:Auth|Priv)?(?:Passphrase|MasterKey|LocalizedKey))\s+\S.*"),
    re.compile(rf"(?i)^(authcommunity\s+\S+|{SNMP_USER})\s+(?:-[lm]\s+)?{WORD}"),
    re.compile(rf"(?i)^({SNMP_USER} {SECRET}\s+\S+)\s+(?:-[lm]\s+)?{WORD}"),
)
SNMP_CLIENT = re.compile(r"(?:trapsess|proxy)\s", re.IGNORECASE)
SNMP_OPTION = re.compile(rf"(?<=\s)(-(?:[cAXY]|3[kKmM])|--\w+=)\s*{WORD}")
"""Options of net-snmp's commands with a community, a passphrase or a key."""
IN_URL = re.compile(r"(?<=://)[^\s/@]+:[^\s/@]+(?=@)")


@lru_cache(maxsize=10_000)
def is_secret_name(key: str) -> bool:
    return bool(NAME.search(key))


def masked_line(text: str) -> str:
    """Mask the secrets of a line."""
    if SNMP_CLIENT.match(text):
        return SNMP_OPTION.sub(rf"\1 {SECRET}", text)
    for rule in SNMPD:
        text = rule.sub(rf"\1 {SECRET}", text)
    if SECRET in text:
        return text
    for rule in LINES:
        text = rule.sub(rf"\1\2 {SECRET}", text)
    return IN_URL.sub(SECRET, text)


def has_placeholder(text: str) -> bool:
    """Whether a text may contain one of netkit's placeholders."""
    return "@secret:" in text


def without_placeholders(entries: Config) -> dict[Path, str]:
    """Mask netkit's placeholders."""
    return {tuple(map(_masked, path)): _masked(value) for path, value in entries.items()}


def _masked(text: str) -> str:
    return PLACEHOLDER.sub(SECRET, text) if "@secret:" in text else text


def settled(running: Config, intended: Config) -> dict[Path, str]:
    """Mask every secret of the intended configuration in the running one.

    A user's template may put a secret where no rule of the platform expects one; the device prints it in clear text.
    """
    with_secret = [path for path in intended if any(SECRET in key for key in path)]
    found = {}
    for path, value in running.items():
        place = path
        if path not in intended:
            alike = (other for other in with_secret if len(other) == len(path))
            place = next((other for other in alike if all(map(_is_same, path, other))), path)
        wanted = intended.get(path, "")
        found[place] = wanted if _is_same(value, wanted) else value
    return found


def _is_same(text: str, wanted: str) -> bool:
    """Whether a text is what is wanted, with any secret, masked or not, in the place of a masked one."""
    if SECRET not in wanted:
        return text == wanted
    return bool(re.fullmatch(ONE_SECRET.join(map(re.escape, wanted.split(SECRET))), text, re.DOTALL))


def holds_secret(entries: Mapping[Path, str]) -> bool:
    """Whether any key or value contains a masked secret."""
    return any(SECRET in value or any(SECRET in key for key in path) for path, value in entries.items())


class SecretResolver:
    """Fills placeholders and masks the filled-in values wherever they come back."""

    def __init__(self, secrets: Callable[[str], str] | None) -> None:
        self._secrets = secrets
        self._forms: dict[str, frozenset[str]] = {}
        """Secret → the forms in which a device may print it."""

    def __repr__(self) -> str:
        return "SecretResolver()"

    @property
    def values(self) -> frozenset[str]:
        """The secrets that were filled in."""
        return frozenset(self._forms)

    def text(self, text: str) -> str:
        """Fill the placeholders of a text."""
        return PLACEHOLDER.sub(self._value, text) if has_placeholder(text) else text

    def command(self, line: str) -> str:
        """Fill the placeholders of a shell command, quoted for the shell."""
        return shlex.join(map(self.text, shlex.split(line, comments=True))) if has_placeholder(line) else line

    def tree(self, tree: T) -> T:
        """Fill the placeholders in the keys and values of nested dictionaries and lists."""
        found: object = tree
        if isinstance(tree, dict):
            found = {self.tree(key): self.tree(below) for key, below in tree.items()}
        elif isinstance(tree, list):
            found = [self.tree(below) for below in tree]
        elif isinstance(tree, str):
            found = self.text(tree)
        return found  # type: ignore[return-value]  # of the same type, which mypy cannot follow

    def _value(self, placeholder: re.Match[str]) -> str:
        if self._secrets is None:
            raise AccessError(
                Problem(f"the secret {placeholder[1]} is not found", "pass the driver secrets in optional_args")
            )
        value = self._secrets(placeholder[1])
        if not value or not value.isprintable():  # a second line would be a separate command
            raise AccessError(Problem(f"{placeholder[0]} is not a single printable line", "store it on one line"))
        self._forms[value] = _forms(value)
        return value

    def hidden(self, text: str) -> str:
        """Mask the secrets that were filled in, including escaped and truncated ones."""
        if not self._forms:
            return text
        forms = sorted({form for forms in self._forms.values() for form in forms}, key=len, reverse=True)
        text = re.sub("|".join(map(_pattern_of, forms)), SECRET, text)
        # A text may be cut off within a secret: mask the longest beginning of one at its end.
        for size in range(len(forms[0]) - 1, SHORTEST_CUT - 1, -1):
            if any(len(form) > size and text.endswith(form[:size]) for form in forms):
                return text[:-size] + SECRET
        return text

    @contextmanager
    def hiding(self) -> Iterator[None]:
        """Mask secrets in the errors raised by a block."""
        try:
            yield
        except NetkitError as error:
            hidden = [
                replace(one, message=self.hidden(one.message), remedy=self.hidden(one.remedy)) for one in error.problems
            ]
            raise type(error)(hidden) from None


def _forms(value: str) -> frozenset[str]:
    """A secret in the escapings of shells, JSON, YAML, Python and JSON pointers."""
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
    """Build a pattern that also matches a form with backslashes, or with lines folded or joined."""
    words = filter(None, re.split(r"\s+", form))
    return r"(?:\\*\s)+".join("".join(rf"\\?{re.escape(one)}" for one in word) for word in words) or re.escape(form)
