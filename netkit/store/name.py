"""Text as every database takes it: a name that is too long for one is the same cut name in every run."""

import re

LONGEST_NAME = 255
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""What PostgreSQL takes in no text."""


def clean(text: str) -> str:
    """Return text as every database takes it."""
    return UNSTORABLE.sub("\ufffd", text)


def short(text: str) -> str:
    """Return text that fits a name."""
    return clean(text)[:LONGEST_NAME]
