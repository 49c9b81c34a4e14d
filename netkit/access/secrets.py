"""Secrets and passwords from the environment, a command or a keyring; kept in memory, never shown."""

import importlib
import os
import shlex
import subprocess
import threading

from netkit.access.settings import SecretSource
from netkit.errors import AccessError, Problem
from netkit.private import SECRET_PREFIX, without_secrets

TIMEOUT_S = 120


class SecretStore:
    """Provides secrets by name; each is fetched once. Thread-safe."""

    def __init__(self, source: SecretSource | None = None) -> None:
        self._source = source
        self._values: dict[str, str] = {}
        self._read: dict[tuple[SecretSource, str], str] = {}
        self._lock = threading.Lock()

    def __call__(self, name: str) -> str:
        """A secret; AccessError if it is not available."""
        with self._lock:
            if name not in self._values:
                self._values[name] = self._fetched(name)
            return self._values[name]

    def known(self, name: str) -> str:
        """A secret; empty if it is not available."""
        try:
            return self(name)
        except AccessError:
            return ""

    def read(self, source: SecretSource, what: str, name: str) -> str:
        """Read a secret from another source; it is asked once, however many devices share it."""
        with self._lock:
            if (source, name) not in self._read:
                self._read[source, name] = read(source, what, name)
            return self._read[source, name]

    def __repr__(self) -> str:
        return "SecretStore()"

    def _fetched(self, name: str) -> str:
        variable = SECRET_PREFIX + name
        if value := os.environ.get(variable, ""):
            return _single_line(f"the secret {name}", value)
        if self._source is None:
            raise _missing(f"the secret {name} is not available", f"set {variable}, or set a source in access.yaml")
        return read(self._source, f"the secret {name}", name)


def read(source: SecretSource, what: str, name: str) -> str:
    if source.env:
        value = os.environ.get(source.env.replace("{name}", name), "")
        why = f"{source.env} is not set"
    elif source.command:
        value, why = _from_command(source.command, name, what), "its command prints nothing"
    else:
        value, why = _from_keyring(source.keyring or "", name, what), f"the keyring has no {name}"
    if not value:
        raise _missing(f"{what} is not available: {why}", "check `secrets` and `password` in access.yaml")
    return _single_line(what, value)


def _from_command(command: str, name: str, what: str) -> str:
    """The output of a command. Errors do not show it, since it may hold the secret."""
    try:
        words = [word.replace("{name}", name) for word in shlex.split(command)]
        done = subprocess.run(  # noqa: S603
            words, env=without_secrets(), stdout=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT_S
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        why = "it did not end in time" if isinstance(error, subprocess.TimeoutExpired) else str(error)
        raise _missing(f"{what} is not available: `{command}` cannot be run: {why}", "run it by hand") from None
    if done.returncode != 0:
        raise _missing(f"{what} is not available: `{command}` ends with {done.returncode}", "run it by hand")
    return done.stdout.rstrip("\r\n")


def _from_keyring(service: str, name: str, what: str) -> str:
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        raise _missing(f"{what} is not available: no keyring is installed", "pip install keyring") from None
    try:
        return str(keyring.get_password(service, name) or "")
    except Exception as error:
        raise _missing(
            f"{what} is not available: the keyring denies access ({type(error).__name__})", "unlock it"
        ) from None


def _single_line(what: str, value: str) -> str:
    if not value.isprintable():
        raise _missing(f"{what} contains a line break or a control character", "store it on one line")
    return value


def _missing(what: str, remedy: str) -> AccessError:
    return AccessError(Problem(what, remedy))
