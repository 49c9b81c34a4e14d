"""Write to a stream; ignore a reader that has closed: no change of devices fails because nobody listens any more."""

import os
from typing import TextIO


def say(stream: TextIO, text: str) -> None:
    """Write a text; once nobody takes it, nothing more is written there, and the exit code is left to tell."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
