"""Fixtures of the command line's tests."""

from tests.cli.scene import scene

__all__ = ["scene"]
