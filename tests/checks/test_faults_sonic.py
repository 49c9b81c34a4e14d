from tests.checks.breaking import Faults
from tests.lab.running import needs_lab

pytestmark = needs_lab


class TestSonic(Faults):
    platform = "sonic"
    column = "sonic"
    device = "leaf01"
