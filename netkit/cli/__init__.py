"""The command line."""

from netkit.cli.app import main

__all__ = ["main"]
