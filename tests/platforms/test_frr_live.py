"""The FRR model against real daemons: they print back what was rendered."""

import re

import pytest

from netkit import plan as planning
from netkit.platforms.compare import compare
from netkit.platforms.frr.model import FRR_CONF, MODEL
from tests import intents
from tests.frr_daemons import lone_switch, needs_frr
from tests.plan.test_order import EDITS, TABLE, merged, transition
from tests.platforms.samples import files_of

DRAINED = {"overrides": {"leaf01": {"drain_neighbors": ["spine02"]}, "spine01": {"drain": True}}}


@needs_frr
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
@pytest.mark.parametrize("changes", [{}, DRAINED], ids=["plain", "drained"])
def test_daemons_print_back_what_was_rendered(name: str, changes: dict[str, object]) -> None:
    fabric = intents.fabric(intents.on_platform("frr", "8.4.4", changes))
    files = files_of(fabric)[name]
    with lone_switch(files) as box:
        box.load(files[FRR_CONF])
        running = box.vtysh("-c", "show running-config")
    assert compare(MODEL, {FRR_CONF: running}, {FRR_CONF: files[FRR_CONF]}).changes == ()


@needs_frr
@pytest.mark.parametrize("platform", ["frr", "sonic"])
@pytest.mark.parametrize("name", TABLE["needs detours"])
def test_daemons_load_a_detour_configuration_from_empty(platform: str, name: str) -> None:
    before, after = (merged(*(EDITS[edit] for edit in edits)) for edits in TABLE["needs detours"][name])
    found = transition(platform, before, after)
    bridge = found.plan.bridges[0]
    files = planning.keeping(found.fabrics[-1], bridge.device, found.intended[bridge.device], bridge.kept)
    text = re.sub(r"(?m)^(no )?fpm .*\n", "", files[FRR_CONF])  # needs the fpm module of SONiC's own zebra
    with lone_switch(files_of(intents.fabric(intents.on_platform("frr", "8.4.4", {})))["leaf01"]) as box:
        box.load(text)
        running = box.vtysh("-c", "show running-config")
    assert compare(MODEL, {FRR_CONF: running}, {FRR_CONF: text}).changes == ()
