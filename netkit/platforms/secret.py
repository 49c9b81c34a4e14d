"""Secrets, kept out of everything that is compared, shown or stored.

A configuration is masked while it is parsed: what stands at a secret's place reads `<secret>`, whether it is netkit's
placeholder, a hash or `*`. So a secret and any other secret in its place are equal, a missing one is a difference,
and a rotated one is not seen: rotate secrets with a deploy that is told to.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from netkit.platforms.config import Config, Path

SECRET = "<secret>"  # noqa: S105 (the word that replaces one)
PLACEHOLDER = re.compile(r"@secret:[^@\s]+@")
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
