"""Encryption of the old configurations: they hold secrets in clear, and a rollback needs them byte for byte.

The key is a separate file beside the runs. So a copy or an archive of a run reveals no secret,
and a sealed text that was damaged or exchanged is detected. It does not protect against a reader of the account's other
files: the key is among them.
"""

import base64
import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from netkit import private

KEY, KEY_BYTES, NONCE_BYTES = "seal.key", 32, 12
HEAD = "netkit-sealed:1:"


class SealError(Exception):
    """A sealed text cannot be opened."""


def sealed(text: str, about: str, folder: Path) -> str:
    """Seal a text with the folder's key, which is created if missing; raise OSError if that fails."""
    nonce = os.urandom(NONCE_BYTES)
    return HEAD + base64.b64encode(nonce + AESGCM(_key(folder)).encrypt(nonce, text.encode(), about.encode())).decode()


def opened(text: str, about: str, folder: Path) -> str:
    """Open a sealed text; text that is not sealed, as older versions wrote it, is returned unchanged."""
    if not text.startswith(HEAD):
        return text
    try:
        data = base64.b64decode(text.removeprefix(HEAD), validate=True)
        key = private.read_bytes(folder / KEY)
        return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], about.encode()).decode()
    except OSError as error:
        raise SealError(f"cannot be opened: its key {folder / KEY}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, InvalidTag):
        raise SealError("is damaged, or sealed with another key") from None


def _key(folder: Path) -> bytes:
    """The folder's key. A new key is written completely before it gets its name, and the first writer wins."""
    file = folder / KEY
    if not file.exists():
        private.make_folder(folder)
        # Several threads may seal at once: each writes its own draft.
        draft = folder / f".{KEY}.{secrets.token_hex(8)}"
        with os.fdopen(private.open_file(draft, os.O_WRONLY | os.O_EXCL), "wb") as stream:
            stream.write(os.urandom(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    key = private.read_bytes(file)
    if len(key) != KEY_BYTES:
        raise OSError(0, "is not a key of netkit's; put it back from a backup", str(file))
    return key
