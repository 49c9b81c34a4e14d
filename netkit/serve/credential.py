"""Where the token comes from: the environment, a file, or one that is made and kept beside the rest of the state."""

import os
import secrets
from pathlib import Path

from netkit.errors import Problem, UsageError
from netkit.serve.diary import write_private
from netkit.serve.gate import SHORTEST_TOKEN, Token

VARIABLE = "NETKIT_SECRET_SERVE_TOKEN"
MADE = "token"


def token_of(file: Path | None, folder: Path) -> tuple[Token, str]:
    """Return the token, and where it is to be found."""
    if file is not None:
        return _checked(_read(file), str(file)), str(file)
    if value := os.environ.get(VARIABLE, ""):
        return _checked(value, VARIABLE), f"${VARIABLE}"
    kept = folder / MADE
    if not kept.exists():
        write_private(kept, f"{secrets.token_urlsafe(32)}\n")
    return _checked(_read(kept), str(kept)), str(kept)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(Problem(f"the token cannot be read: {why}", "name another file", file=str(file))) from None


def _checked(value: str, where: str) -> Token:
    if len(value) < SHORTEST_TOKEN or not value.isascii() or not value.isprintable() or " " in value:
        what = f"{where}: a token has at least {SHORTEST_TOKEN} letters, digits and signs, and no blank"
        raise UsageError(Problem(what, "openssl rand -base64 32 makes a good one"))
    return Token(value)
