from tests.checks.breaking import Faults
from tests.lab.running import needs_lab

pytestmark = needs_lab


class TestEos(Faults):
    platform = "eos"
    column = "eos"
    device = "leaf01"
