"""Faults of a fabric whose switches run eos: each is found where it is, and nothing else is."""

from tests.checks.breaking import Faults
from tests.lab.running import needs_lab

pytestmark = needs_lab


class TestEos(Faults):
    platform = "eos"
    column = "eos"
    device = "leaf01"
