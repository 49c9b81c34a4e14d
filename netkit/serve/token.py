"""The token that grants read access, sessions derived from it, and protection against guessing."""

import hashlib
import hmac
import ipaddress
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from netkit.errors import Problem, UsageError
from netkit.serve.diary import write_private

SHORTEST_TOKEN = 20
SESSION_S = 12 * 3600
MOST_WRONG = 10
WRONG_S = 60.0
MOST_ADDRESSES = 1024


@dataclass(frozen=True, slots=True)
class Token:
    """The secret that grants read access."""

    text: str

    def __repr__(self) -> str:
        return "Token()"

    def is_it(self, given: str) -> bool:
        """Compare a text with the token in constant time."""
        return hmac.compare_digest(_digest(given), _digest(self.text))

    def session(self, now_s: float) -> str:
        """Return a session cookie; it cannot be made without the token."""
        head = f"{int(now_s) + SESSION_S}.{secrets.token_hex(8)}"
        return f"{head}.{self._mark(head)}"

    def has_made(self, session: str, now_s: float) -> bool:
        """Whether a session was made with this token, and has not expired."""
        head, _, mark = session.rpartition(".")
        if not hmac.compare_digest(_digest(mark), _digest(self._mark(head))):
            return False
        return now_s < int(head.partition(".")[0])

    def form(self, session: str) -> str:
        """Return the token of forms in a session (CSRF); no other page can know it."""
        return hmac.new(self.text.encode(), f"netkit form {session}".encode(), hashlib.sha256).hexdigest()

    def _mark(self, head: str) -> str:
        return hmac.new(self.text.encode(), f"netkit session {head}".encode(), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@dataclass(slots=True)
class Guesses:
    """Recent wrong tokens by address; after too many, an address has to wait."""

    clock: Callable[[], float] = time.monotonic
    wrong: OrderedDict[str, list[float]] = field(default_factory=OrderedDict)

    def wait_s(self, address: str) -> float:
        """Return how long an address has to wait before it may try again."""
        recent = [at_s for at_s in self.wrong.get(address, ()) if self.clock() - at_s < WRONG_S]
        return 0.0 if len(recent) < MOST_WRONG else WRONG_S - (self.clock() - recent[0])

    def note(self, address: str) -> None:
        """Record a wrong token; the addresses unused for longest are dropped first."""
        self.wrong[address] = [*self.wrong.get(address, ())[-(MOST_WRONG - 1) :], self.clock()]
        self.wrong.move_to_end(address)
        while len(self.wrong) > MOST_ADDRESSES:
            self.wrong.popitem(last=False)


def is_own_name(host: str, names: Collection[str]) -> bool:
    """Whether a Host header means this server: an address, or one of its names, on any port.

    Guards against DNS rebinding: a foreign name that resolves to this address.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.startswith("[") and name.endswith("]"):
        return is_address(name[1:-1])
    return is_address(name) or name.lower().rstrip(".") in names


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


VARIABLE = "NETKIT_SECRET_SERVE_TOKEN"
MADE = "token"


def token_of(file: Path | None, folder: Path) -> tuple[Token, str]:
    """Return the token, and where it comes from."""
    if file is not None:
        return _checked(_read(file), str(file)), str(file)
    if value := os.environ.get(VARIABLE, ""):
        return _checked(value, VARIABLE), f"${VARIABLE}"
    kept = folder / MADE
    if not kept.exists():
        write_private(kept, f"{secrets.token_urlsafe(32)}\n")
    return _checked(_read(kept), str(kept)), str(kept)


def proposer_token(file: Path, reader: Token) -> Token:
    """Return the token that may propose; it must not be the one that reads."""
    found = _checked(_read(file), str(file))
    if found.is_it(reader.text):
        what = f"{file}: the token that may propose is the one that reads"
        raise UsageError(Problem(what, "make another one with openssl rand -base64 32"))
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(Problem(f"the token cannot be read: {why}", "name another file", file=str(file))) from None


def _checked(value: str, where: str) -> Token:
    if len(value) < SHORTEST_TOKEN or not value.isascii() or not value.isprintable() or " " in value:
        what = f"{where}: a token has at least {SHORTEST_TOKEN} printable ASCII characters, and no space"
        raise UsageError(Problem(what, "make one with openssl rand -base64 32"))
    return Token(value)
