from tests.checks.breaking import Faults
from tests.lab.running import needs_lab

pytestmark = needs_lab


class TestFrr(Faults):
    platform = "frr"
    column = "frr"
    device = "leaf01"
