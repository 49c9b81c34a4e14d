from tests.checks.breaking import Faults
from tests.lab.running import needs_lab

pytestmark = needs_lab


class TestNvue(Faults):
    platform = "nvue"
    column = "nvue"
    device = "leaf01"
