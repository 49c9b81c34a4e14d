"""Each fault of the model changes what its description names, at its place, and nothing else."""

from collections.abc import Mapping
from dataclasses import fields, replace

import pytest

from netkit.lab.faults import CATALOG, check
from netkit.lab.model.wiring import KernelPort, NicTraffic
from netkit.lab.reading import NicReading, SwitchPortReading, TrafficReading, TransceiverReading
from netkit.lab.state import EcnState
from tests.lab.model_bed import STARTED_S, Bed, pauses, small_fabric

FABRIC = small_fabric()
BROKEN_S = STARTED_S + 100
READ_S = STARTED_S + 160
Reading = SwitchPortReading | NicReading
Shown = Mapping[str, Mapping[str, Reading]]


def broken(name: str, place: str, options: Mapping[str, str] | None = None) -> Bed:
    bed = Bed(FABRIC)
    bed.faults.add(check(FABRIC, name, place, options, BROKEN_S))
    return bed


def differing(one: Shown, other: Shown) -> dict[str, set[str]]:
    """The fields that differ at each end; of a module, those inside it."""
    found: dict[str, set[str]] = {}
    for device, readings in one.items():
        for port, reading in readings.items():
            names = set(_fields(reading, other[device][port]))
            if names:
                found[f"{device}:{port}"] = names
    return found


def _fields(one: Reading, other: Reading) -> list[str]:
    names = [field.name for field in fields(one) if getattr(one, field.name) != getattr(other, field.name)]
    if "module" in names:
        near, far = one.module, other.module
        assert near is not None
        assert far is not None
        names.remove("module")
        names += [
            f"module.{field.name}" for field in fields(near) if getattr(near, field.name) != getattr(far, field.name)
        ]
    return names


HEALTHY: Shown = Bed(FABRIC).everything(READ_S)
LINE = {"fec", "ethtool"}


def test_every_fault_of_the_model_is_tested_here() -> None:
    tried = {row[0] for row in PLACES} | {"pause-storm", "watchdog-trip"}

    assert tried == {kind.name for kind in CATALOG.values() if kind.maker == "model"} | {"pfc-off", "slow-link-up"}


PLACES: list[tuple[str, str, dict[str, set[str]]]] = [
    (
        "dim-optic",
        "leaf01:swp1s0",
        {"leaf01:swp1s0": {"module.lanes"}, "gpu01:rail0": {"module.lanes", "fec", "ethtool"}},
    ),
    (
        "dim-optic",
        "gpu01:rail0",
        {"gpu01:rail0": {"module.lanes"}, "leaf01:swp1s0": {"module.lanes", "fec"}},
    ),
    ("dirty-lane", "leaf01:swp1s0", {"leaf01:swp1s0": {"module.lanes", "fec"}}),
    ("dirty-lane", "gpu01:rail0", {"gpu01:rail0": {"module.lanes", "fec", "ethtool"}}),
    (
        "hot-optic",
        "leaf01:swp1s0",
        {"leaf01:swp1s0": {"module.temperature_c"}, "leaf01:swp1s1": {"module.temperature_c"}},
    ),
    (
        "mixed-optic-firmware",
        "leaf01:swp1s1",
        {"leaf01:swp1s0": {"module.firmware"}, "leaf01:swp1s1": {"module.firmware"}},
    ),
    ("mixed-nic-firmware", "gpu01:rail0", {"gpu01:rail0": {"firmware"}}),
    ("slow-link-up", "spine01:swp1s0", {"spine01:swp1s0": {"link_up_s"}, "leaf01:swp33s0": {"link_up_s"}}),
    ("slow-link-up", "gpu01:rail0", {"leaf01:swp1s0": {"link_up_s"}, "gpu01:rail0": {"link_up_s"}}),
    ("adaptive-routing-half-on", "leaf01", {"leaf01:swp33s0": {"adaptive_routing"}}),
    ("adaptive-routing-half-on", "leaf01:swp33s1", {"leaf01:swp33s1": {"adaptive_routing"}}),
    (
        "pfc-off",
        "leaf01:swp1s0",
        {
            "leaf01:swp1s0": {"priorities", "queues", "buffers"},
            "gpu01:rail0": {"hw_counters", "port_counters", "ethtool"},
        },
    ),
    (
        "pfc-off",
        "gpu01:rail0",
        {
            "leaf01:swp1s0": {"priorities", "queues", "buffers"},
            "gpu01:rail0": {"hw_counters", "port_counters", "ethtool"},
        },
    ),
    (
        "counter-reset",
        "leaf01:swp1s0",
        {"leaf01:swp1s0": {"priorities", "queues", "fec"}},
    ),
    (
        "counter-wrap",
        "leaf01:swp1s0",
        {"leaf01:swp1s0": {"priorities", "queues"}},
    ),
    ("counter-wrap", "gpu01:rail0", {"gpu01:rail0": {"hw_counters", "port_counters", "ethtool"}}),
    ("counter-reset", "gpu01:rail0", {"gpu01:rail0": {"hw_counters", "port_counters", "ethtool", "fec"}}),
    ("counter-stuck", "gpu01:rail0", {"gpu01:rail0": {"hw_counters", "port_counters", "ethtool", "fec"}}),
]


@pytest.mark.parametrize(("name", "place", "wanted"), PLACES, ids=[f"{row[0]}-{row[1]}" for row in PLACES])
def test_a_fault_changes_what_its_description_names_and_nothing_else(
    name: str, place: str, wanted: dict[str, set[str]]
) -> None:
    bed = broken(name, place)
    bed.everything(BROKEN_S + 1)

    assert differing(HEALTHY, bed.everything(READ_S)) == wanted


@pytest.mark.parametrize(("name", "place"), [row[:2] for row in PLACES if not row[0].startswith("counter")])
def test_a_healed_fault_leaves_only_its_counts(name: str, place: str) -> None:
    bed = broken(name, place)
    device, _, port = place.partition(":")
    bed.faults.heal(name, device, port, now_s=BROKEN_S + 10)
    counted = {"priorities", "queues", "buffers", "fec", "hw_counters", "port_counters", "ethtool"}

    assert set().union(*differing(HEALTHY, bed.everything(READ_S)).values()) <= counted


def module(shown: Shown, place: str) -> TransceiverReading:
    device, _, port = place.partition(":")
    found = shown[device][port].module
    assert found is not None
    return found


def test_a_dim_optic_sends_less_at_a_higher_current_and_the_far_end_receives_less() -> None:
    shown = broken("dim-optic", "leaf01:swp1s0", {"db": "8", "lane": "3"}).everything(READ_S)
    near, was = module(shown, "leaf01:swp1s0").lanes, module(HEALTHY, "leaf01:swp1s0").lanes
    far, far_was = module(shown, "gpu01:rail0").lanes, module(HEALTHY, "gpu01:rail0").lanes

    assert [round(before.tx_dbm - after.tx_dbm, 2) for before, after in zip(was, near, strict=True)] == [0, 0, 8, 0]
    assert [round(before.rx_dbm - after.rx_dbm, 2) for before, after in zip(far_was, far, strict=True)] == [0, 0, 8, 0]
    assert near[2].bias_ma > was[2].bias_ma + 10
    limits = module(shown, "leaf01:swp1s0").tx_limits
    assert limits is not None
    assert near[2].tx_dbm < limits.warning_low


def test_a_dirty_lane_loses_power_at_its_end_only_and_grows_a_tail_of_errors() -> None:
    bed = broken("dirty-lane", "gpu01:rail0")
    bed.everything(BROKEN_S + 1)
    shown = bed.everything(READ_S)
    nic, was = shown["gpu01"]["rail0"], HEALTHY["gpu01"]["rail0"]
    assert isinstance(nic, NicReading)
    lost = [
        round(before.rx_dbm - after.rx_dbm, 2)
        for before, after in zip(module(HEALTHY, "gpu01:rail0").lanes, module(shown, "gpu01:rail0").lanes, strict=True)
    ]

    assert lost == [0, 4.5, 0, 0]
    assert nic.fec.pre_fec_ber == 5e-5
    assert was.fec.pre_fec_ber < 1e-8
    assert sum(nic.fec.histogram[5:]) > 10 > sum(was.fec.histogram[5:])
    assert (nic.fec.uncorrectable_codewords, nic.fec.effective_ber) == (0, 0)
    lanes = [nic.ethtool[f"rx_err_lane_{lane}_phy"] for lane in range(4)]
    assert lanes[1] > 10 * max(lanes[0], lanes[2], lanes[3])
    errors = nic.ethtool["rx_corrected_bits_phy"]
    assert 0.9 < errors / (60 * 400e9 * 5e-5) < 1.1


def test_a_link_beyond_correction_loses_codewords() -> None:
    fec = broken("dirty-lane", "leaf01:swp1s0", {"ber": "1e-3"}).ports("leaf01", READ_S)["swp1s0"].fec

    assert fec.uncorrectable_codewords > 1000
    assert fec.effective_ber > 1e-10


def test_a_histogram_holds_every_codeword_once() -> None:
    fec = broken("dirty-lane", "leaf01:swp1s0").ports("leaf01", READ_S)["swp1s0"].fec
    codewords = 160 * 400e9 * (544 / 514) * (257 / 256) / 5440

    assert len(fec.histogram) == 16
    assert fec.corrected_codewords == sum(fec.histogram[1:])
    assert abs(sum(fec.histogram) / codewords - 1) < 1e-9


def test_reset_counters_count_on_from_zero() -> None:
    bed = broken("counter-reset", "leaf01:swp1s0")
    assert bed.ports("leaf01", BROKEN_S)["swp1s0"].priorities[3].rx_pause == 0
    later = bed.ports("leaf01", READ_S)["swp1s0"]
    was = HEALTHY["leaf01"]["swp1s0"]

    assert 0 < later.priorities[3].rx_pause < pauses(was).rx
    assert 0 < later.fec.histogram[0] < was.fec.histogram[0]


def test_reset_counters_of_a_nic_count_on_from_zero() -> None:
    bed = broken("counter-reset", "gpu01:rail0")
    assert set(bed.nics("gpu01", BROKEN_S)["rail0"].ethtool.values()) == {0}
    later, was = bed.nics("gpu01", READ_S)["rail0"].ethtool, Bed(FABRIC).nics("gpu01", READ_S)["rail0"].ethtool

    for name in ("rx_bits_phy", "rx_corrected_bits_phy", "rx_err_lane_0_phy", "rx_bytes_phy"):
        assert 0 < later[name] < was[name]


def test_a_clear_by_command_resets_one_port_with_its_kernel_counters() -> None:
    bed = Bed(FABRIC)
    port = KernelPort(mtu_bytes=9216, ecn_marked_packets=90, traffic=TrafficReading(rx_bytes=500, tx_packets=7))
    bed.kernel["leaf01", "swp1s0"] = port
    bed.model.clear("leaf01", "swp1s0", BROKEN_S)
    cleared, beside = (bed.ports("leaf01", BROKEN_S)[name] for name in ("swp1s0", "swp1s1"))
    bed.kernel["leaf01", "swp1s0"] = replace(port, traffic=TrafficReading(rx_bytes=700, tx_packets=8))

    assert (cleared.traffic, cleared.queues[3].ecn_marked_packets) == (TrafficReading(), 0)
    assert cleared.queues[3].tx_packets == 0
    assert beside == HEALTHY_THEN["swp1s1"]
    assert bed.ports("leaf01", READ_S)["swp1s0"].traffic == TrafficReading(rx_bytes=200, tx_packets=1)


HEALTHY_THEN = Bed(FABRIC).ports("leaf01", BROKEN_S)


@pytest.mark.parametrize("bits", [32, 64])
def test_counters_near_the_end_of_their_range_wrap(bits: int) -> None:
    bed = broken("counter-wrap", "leaf01:swp1s0", {"bits": str(bits), "left": "20"})
    first = pauses(bed.ports("leaf01", BROKEN_S)["swp1s0"])
    later = pauses(bed.ports("leaf01", BROKEN_S + 600)["swp1s0"])
    whole = pauses(Bed(FABRIC).ports("leaf01", BROKEN_S + 600)["swp1s0"]).rx
    grown = whole - pauses(HEALTHY_THEN["swp1s0"]).rx

    assert first.rx == 2**bits - 20
    assert later.rx == (first.rx + grown) % 2**bits
    assert later.rx < 10_000


def marking_bed() -> Bed:
    """A bed whose first leaf marks RoCE on the port of a storm."""
    bed = Bed(FABRIC)
    bed.retell("leaf01", {"swp1s0"}, STARTED_S, ecn={FABRIC.lossless.roce.priority: EcnState(1, 2, 100)})
    return bed


def marks(bed: Bed, now_s: float) -> int:
    return sum(queue.ecn_marked_packets for queue in bed.ports("leaf01", now_s)["swp1s0"].queues)


def test_a_full_queue_marks_unless_a_fault_prevents_it() -> None:
    storm = {"pauses_per_s": 2500.0, "share": 0.6, "burst_ms": 50.0}
    for is_unmarked in (False, True):
        bed = marking_bed()
        bed.break_("pause-storm", "leaf01:swp1s0", BROKEN_S, **storm)
        if is_unmarked:
            bed.break_("ecn-unmarked", "leaf01", BROKEN_S)
        grown = marks(bed, BROKEN_S + 10) - marks(bed, BROKEN_S)
        assert (grown == 0) is is_unmarked
    assert marks(marking_bed(), BROKEN_S + 10) == 0


def test_a_port_past_its_rate_has_a_full_queue() -> None:
    bed = Bed(FABRIC)
    quiet = max(queue.occupancy_bytes for queue in bed.ports("leaf01", READ_S)["swp1s0"].queues)
    bed.kernel["leaf01", "swp1s0"] = KernelPort(is_crowded=True)
    full = max(queue.occupancy_bytes for queue in bed.ports("leaf01", READ_S)["swp1s0"].queues)
    assert quiet < 200_000
    assert full > 3_000_000


def test_stuck_counters_stand_still_and_count_on_when_healed() -> None:
    bed = broken("counter-stuck", "leaf01:swp1s0")
    first, second = (bed.ports("leaf01", BROKEN_S + past_s)["swp1s0"] for past_s in (1, 60))
    bed.faults.heal("counter-stuck", "leaf01", "swp1s0", now_s=READ_S)
    healed = bed.ports("leaf01", READ_S + 1)["swp1s0"]

    assert (first.priorities, first.queues, first.fec) == (second.priorities, second.queues, second.fec)
    assert pauses(healed).rx > pauses(second).rx


def test_a_whole_device_can_lose_its_counters() -> None:
    bed = broken("counter-reset", "gpu01")
    bed.traffic["gpu01", "rail1"] = NicTraffic(cnp_sent=50)
    shown = bed.nics("gpu01", BROKEN_S)

    assert [nic.hw_counters["rx_write_requests"] for nic in shown.values()] == [0, 0]
    assert shown["rail1"].hw_counters["np_cnp_sent"] == 0


def test_a_reboot_loses_settings_and_counters() -> None:
    bed = Bed(FABRIC)
    bed.model.rebooted("leaf01", BROKEN_S)
    first, later = (bed.ports("leaf01", BROKEN_S + past_s)["swp1s0"] for past_s in (0, 60))

    assert first.fec.histogram[0] == first.queues[0].tx_packets == 0
    assert (pauses(later).rx, pauses(later).tx) == (0, 0)
    assert bed.model.pfc_priorities("leaf01", "swp1s0", READ_S) == frozenset()
