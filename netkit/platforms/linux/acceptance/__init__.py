"""Tolerant parsers of the tools of an acceptance run."""

from netkit.platforms.linux.acceptance.result import results

__all__ = ["results"]
