"""Values that differ from port to port and stay the same from run to run."""

from hashlib import blake2b

RANGE = 2**64


def draw(*names: str | int) -> float:
    """Return a number from 0 up to 1 that belongs to these names."""
    return number(*names) / RANGE


def between(low: float, high: float, *names: str | int) -> float:
    """Return a number between two bounds that belongs to these names."""
    return low + (high - low) * draw(*names)


def number(*names: str | int) -> int:
    """Return a 64-bit number that belongs to these names."""
    text = "\0".join(map(str, names)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
