from dataclasses import replace
from typing import Any

import pytest

from netkit.design import Fabric
from netkit.lab.faults import Faults
from netkit.lab.model import Model
from netkit.lab.model.wiring import KernelPort
from netkit.lab.reading import TransceiverReading
from tests import intents
from tests.lab.model_bed import STARTED_S, Bed, designed_state, small_fabric

WIDE = {"leaf": {"host_breakout": "1x400G", "uplink_breakout": "1x400G"}, "spine": {"breakout": "1x400G"}}


def modules(
    media: str, length_m: float, switches: dict[str, Any] | None = None
) -> tuple[TransceiverReading, TransceiverReading]:
    """The modules of a host's cable: at the leaf, and at the host."""
    cables = {"host": {"media": media, "length_m": length_m}}
    fabric = small_fabric({"cables": cables, **({"switches": switches} if switches else {})})
    port = fabric.switches[0].host_ports[0]
    bed = Bed(fabric)
    near = bed.ports(fabric.switches[0].name, STARTED_S)[port.name].module
    far = bed.nics(port.peer, STARTED_S)[port.peer_port].module
    assert near is not None
    assert far is not None
    return near, far


def test_passive_copper_reports_its_eeprom_and_no_measurements() -> None:
    for module in modules("800G-DAC-2x400", 2):
        assert (module.kind, module.length_m, module.firmware) == ("copper", 2, "")
        assert (module.lanes, module.temperature_c, module.voltage_v) == ((), 0, 0)
        limits = (module.rx_limits, module.tx_limits, module.bias_limits)
        assert (*limits, module.temperature_limits, module.voltage_limits) == (None,) * 5


def test_an_active_cable_reports_its_temperature_but_no_optical_power() -> None:
    for module in modules("800G-AOC-2x400", 20):
        assert (module.kind, module.lanes, module.rx_limits) == ("active", (), None)
        assert module.temperature_limits is not None
        assert module.temperature_limits.warning_low < module.temperature_c < module.temperature_limits.warning_high


def test_unused_lanes_of_a_module_are_dark() -> None:
    near, _ = modules("400G-DR4", 30, WIDE)

    assert [(lane.rx_dbm, lane.tx_dbm, lane.bias_ma) for lane in near.lanes[4:]] == [(-40, -40, 0)] * 4
    assert all(lane.tx_dbm > -3 and lane.rx_dbm > -3 and lane.bias_ma > 10 for lane in near.lanes[:4])


def test_a_longer_fibre_loses_more() -> None:
    def lost(length_m: float) -> float:
        near, far = modules("800G-2xDR4", length_m)
        return sum(one.tx_dbm - other.rx_dbm for one, other in zip(near.lanes, far.lanes, strict=True)) / 4

    assert lost(500) - lost(20) == pytest.approx(0.48 * 0.4, abs=0.01)


def test_a_cage_for_one_port_holds_a_module_for_one_port() -> None:
    fabric = small_fabric({"hosts": {"model": "hgx-h100-xe9680"}})
    bed = Bed(fabric)
    switch = next(iter(bed.ports("leaf01", STARTED_S).values())).module
    host = bed.nics("gpu01", STARTED_S)["rail0"].module
    assert switch is not None
    assert host is not None

    assert (switch.part, host.part) == ("MMS4X00-NS", "MMS4X00-NS400")
    assert len([lane for lane in host.lanes if lane.bias_ma]) == 4


def test_a_disabled_port_is_dark_and_so_is_the_far_end() -> None:
    fabric = small_fabric()
    bed = Bed(fabric)
    state = designed_state(fabric, "leaf01")
    ports = tuple(replace(port, is_enabled=port.name != "swp1s0") for port in state.ports)
    bed.model.configure_switch("leaf01", replace(state, ports=ports), STARTED_S + 1)
    near, far = bed.ports("leaf01", STARTED_S + 9)["swp1s0"], bed.nics("gpu01", STARTED_S + 9)["rail0"]
    assert near.module is not None
    assert far.module is not None

    assert not near.is_enabled
    assert {(lane.tx_dbm, lane.bias_ma) for lane in near.module.lanes} == {(-40, 0)}
    assert {lane.rx_dbm for lane in far.module.lanes} == {-40}
    assert all(lane.tx_dbm > -3 for lane in far.module.lanes)
    assert near.fec.pre_fec_ber == far.fec.pre_fec_ber == 0


def fabrics() -> list[Fabric]:
    changes: list[dict[str, Any]] = [{}, {"attachment": "vlan"}]
    found = [small_fabric(change) for change in changes]
    found += [
        intents.fabric(intents.on_platform(name, version))
        for name, version in (("sonic", "202411"), ("eos", "4.35.1F"))
    ]
    return found


@pytest.mark.parametrize("fabric", fabrics())
def test_every_port_of_every_platform_has_readings_before_any_configuration(fabric: Fabric) -> None:
    model = Model(fabric, Faults(), STARTED_S)

    for switch in fabric.switches:
        kernel = {port.name: KernelPort() for port in switch.ports}
        readings = model.port_readings(switch.name, kernel, STARTED_S + 60)
        assert [reading.name for reading in readings] == [port.name for port in switch.ports]
        assert not any(row.rx_pause or row.tx_pause for reading in readings for row in reading.priorities)
        assert not any(row.dropped_packets for reading in readings for row in reading.buffers)
    for host in fabric.hosts:
        kernel = {nic.interface: KernelPort() for nic in host.nics}
        assert len(model.nic_readings(host.name, kernel, {}, STARTED_S + 60)) == len(host.nics)
