"""Fixtures of the tests of the Python API."""

from tests.cli.scene import scene

__all__ = ["scene"]
