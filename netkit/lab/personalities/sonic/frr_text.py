"""A frr.conf of our own (split mode): what of it reaches FRR in the lab."""

from collections.abc import Iterator

FORWARDING_LINES = frozenset({"no fpm use-next-hop-groups", "fpm address 127.0.0.1"})
"""They tell zebra how to reach the switch chip. A lab forwards in the kernel, and zebra there does not know them."""


def realisable(text: str, *, has_bfd: bool) -> str:
    """Return the text without what is for the chip, and without BFD when its daemon is not started."""
    return "".join(f"{line}\n" for line in _lines(text, has_bfd=has_bfd))


def _lines(text: str, *, has_bfd: bool) -> Iterator[str]:
    is_bfd = False
    for line in text.splitlines():
        if line == "bfd":
            is_bfd = True
        if not (is_bfd and not has_bfd) and line.rstrip() not in FORWARDING_LINES:
            yield line
        if line == "exit":
            is_bfd = False
