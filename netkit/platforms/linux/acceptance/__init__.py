"""What the tools of an acceptance run print, read without ever raising."""

from netkit.platforms.linux.acceptance.result import results

__all__ = ["results"]
