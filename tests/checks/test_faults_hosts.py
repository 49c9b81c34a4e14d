from tests.checks.breaking import Faults
from tests.lab.running import needs_lab

pytestmark = needs_lab


class TestHosts(Faults):
    platform = "nvue"
    column = "hosts"
    device = "gpu01"
