"""Write to a stream; ignore a reader that has closed: no change of devices fails because nobody listens any more."""

import os
from typing import Any, TextIO


def say(stream: TextIO, text: str) -> None:
    """Write a text; once nobody takes it, nothing more is written there, and the exit code is left to tell."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Listener:
    """A stream for what writes by itself: as `say`, it goes on when its reader has closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        say(self._stream, text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
