"""Faults of a fabric whose switches run frr: each is found where it is, and nothing else is."""

from tests.checks.breaking import Faults
from tests.lab.running import needs_lab

pytestmark = needs_lab


class TestFrr(Faults):
    platform = "frr"
    column = "frr"
    device = "leaf01"
