"""The FRR model against real daemons: what they print back is what was meant."""

import pytest

from netkit.platforms.compare import compare
from netkit.platforms.frr.model import FRR_CONF, MODEL
from tests import intents
from tests.frr_daemons import lone_switch, needs_frr
from tests.platforms.samples import files_of

DRAINED = {"overrides": {"leaf01": {"drain_neighbors": ["spine02"]}, "spine01": {"drain": True}}}


@needs_frr
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
@pytest.mark.parametrize("changes", [{}, DRAINED], ids=["plain", "drained"])
def test_what_daemons_print_back_is_what_was_meant(name: str, changes: dict[str, object]) -> None:
    fabric = intents.fabric(intents.on_platform("frr", "8.4.4", changes))
    files = files_of(fabric)[name]
    with lone_switch(files) as box:
        box.load(files[FRR_CONF])
        running = box.vtysh("-c", "show running-config")
    assert compare(MODEL, {FRR_CONF: running}, {FRR_CONF: files[FRR_CONF]}).changes == ()
