from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.lab.model.wiring import NicTraffic
from netkit.lab.reading import ModuleThresholds, NicReading, SwitchPortReading
from tests.lab.model_bed import STARTED_S, Bed, pauses, small_fabric
from tests.lanes import examples

FABRIC = small_fabric()
ALL = frozenset(port.name for port in FABRIC.switch("spine01").ports)
LATER = st.floats(min_value=0, max_value=1e6).map(lambda past_s: STARTED_S + past_s)


def ends(fabric: Fabric) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    found = [((link.device, link.port), (link.peer, link.peer_port)) for link in fabric.links()]
    assert found
    return found


def test_two_models_of_one_fabric_have_the_same_readings() -> None:
    one, other = Bed(FABRIC), Bed(FABRIC)
    other.everything(STARTED_S + 20)

    assert one.everything(STARTED_S + 60) == other.everything(STARTED_S + 60)


@settings(max_examples=examples(25))
@given(LATER)
def test_both_ends_of_a_cable_count_the_same_pauses(now_s: float) -> None:
    shown = Bed(FABRIC).everything(now_s)

    for (device, port), (peer, peer_port) in ends(FABRIC):
        near, far = pauses(shown[device][port]), pauses(shown[peer][peer_port])
        assert (near.rx, near.tx, near.rx_us, near.tx_us) == (far.tx, far.rx, far.tx_us, far.rx_us)


def test_a_healthy_fabric_pauses_a_little_on_the_lossless_priority_only() -> None:
    shown = Bed(FABRIC).everything(STARTED_S + 100)

    for readings in shown.values():
        for reading in readings.values():
            assert [pauses(reading, priority).rx for priority in range(8) if priority != 3] == [0] * 7
            row = pauses(reading)
            assert 10 <= row.rx <= 300
            assert 0.75 < row.rx / row.tx < 1.35
            assert row.rx_us / 100e6 < 1e-4


def test_traffic_avoids_a_drained_switch_and_returns() -> None:
    bed = Bed(FABRIC)
    uplink = FABRIC.switch("leaf01").fabric_ports[0]
    assert uplink.peer == "spine01"

    def sent(now_s: float) -> tuple[int, int, int]:
        own, far = bed.ports("spine01", now_s)[uplink.peer_port], bed.ports("leaf01", now_s)[uplink.name]
        other = bed.ports("spine02", now_s)[uplink.peer_port]
        return own.queues[3].tx_bytes, far.queues[3].tx_bytes, other.queues[3].tx_bytes

    at_first = sent(STARTED_S + 10)
    bed.model.avoid("spine01", ALL, STARTED_S + 10)
    drained = sent(STARTED_S + 20)
    assert drained[:2] == at_first[:2]
    assert drained[2] > at_first[2]
    bed.model.avoid("spine01", frozenset(), STARTED_S + 20)
    assert all(more > less for more, less in zip(sent(STARTED_S + 30), drained, strict=True))


def test_traffic_avoids_one_drained_port_and_stays_on_the_others() -> None:
    bed = Bed(FABRIC)
    first, second = FABRIC.switch("leaf01").fabric_ports[:2]

    def sent(now_s: float) -> tuple[int, int]:
        shown = bed.ports("leaf01", now_s)
        return shown[first.name].queues[3].tx_bytes, shown[second.name].queues[3].tx_bytes

    bed.model.avoid("leaf01", frozenset({first.name}), STARTED_S)
    (one, two), (one_later, two_later) = sent(STARTED_S + 10), sent(STARTED_S + 20)
    assert one_later == one
    assert two_later > two


def test_without_load_a_fabric_is_idle_until_it_has_load_again() -> None:
    bed = Bed(FABRIC)

    def moved(now_s: float) -> list[tuple[int, int]]:
        found = [one for name in FABRIC.names if "gpu" not in name for one in bed.ports(name, now_s).values()]
        return [(one.queues[3].tx_bytes, pauses(one).tx_us) for one in found]

    bed.model.set_load(STARTED_S + 10, is_on=False)
    rested = moved(STARTED_S + 10)
    assert moved(STARTED_S + 1000) == rested
    bed.model.set_load(STARTED_S + 1000, is_on=True)
    assert all(now[0] > was[0] and now[1] > was[1] for now, was in zip(moved(STARTED_S + 1010), rested, strict=True))


def counters(reading: SwitchPortReading | NicReading) -> list[int]:
    fec = [*reading.fec.histogram, reading.fec.corrected_codewords, reading.fec.uncorrectable_codewords]
    if isinstance(reading, NicReading):
        return [*reading.hw_counters.values(), *reading.port_counters.values(), *reading.ethtool.values(), *fec]
    rows = [(row.rx_pause, row.tx_pause, row.rx_pause_us, row.tx_pause_us) for row in reading.priorities]
    queues = [(row.tx_packets, row.tx_bytes, row.dropped_packets, row.peak_bytes) for row in reading.queues]
    groups = [(row.peak_bytes, row.headroom_peak_bytes, row.dropped_packets, 0) for row in reading.buffers]
    return [*(count for row in (*rows, *queues, *groups) for count in row), *fec]


@settings(max_examples=examples(25))
@given(st.floats(min_value=0, max_value=1e5), st.floats(min_value=0, max_value=1e5))
def test_counters_never_fall(past_s: float, further_s: float) -> None:
    bed = Bed(FABRIC)
    before, after = (bed.everything(STARTED_S + since_s) for since_s in (past_s, past_s + further_s))

    for device, readings in before.items():
        for port, reading in readings.items():
            for earlier, later in zip(counters(reading), counters(after[device][port]), strict=True):
                assert earlier <= later


def within(value: float, limits: ModuleThresholds | None) -> bool:
    assert limits is not None
    return limits.warning_low < value < limits.warning_high


def test_nothing_is_wrong_in_a_healthy_fabric() -> None:
    for readings in Bed(FABRIC).everything(STARTED_S + 5000).values():
        for reading in readings.values():
            assert reading.fec.uncorrectable_codewords == 0
            assert 1e-11 < reading.fec.pre_fec_ber < 1e-8
            assert reading.fec.effective_ber == 0
            assert not any(reading.fec.histogram[4:])
            if isinstance(reading, SwitchPortReading):
                assert not any(queue.dropped_packets for queue in reading.queues)
                assert not any(group.dropped_packets for group in reading.buffers)
                assert not any(row.storms_detected or row.is_stormed for row in reading.watchdogs)
                assert not any(row.headroom_bytes for row in reading.buffers)
                assert all(row.peak_bytes < 150_000 for row in reading.queues)
            else:
                bad = ("discard", "stalled", "storm", "out_of_sequence", "_err", "retrans", "crc", "symbol")
                rest = {**reading.hw_counters, **reading.port_counters, **reading.ethtool}
                names = [name for name in rest if any(part in name for part in bad) and "err_lane" not in name]
                assert len(names) > 20
                assert {name: rest[name] for name in names if rest[name]} == {}


def test_modules_are_within_their_own_thresholds_and_have_the_loss_of_their_fibre() -> None:
    shown = Bed(FABRIC).everything(STARTED_S + 1)

    for (device, port), (peer, peer_port) in ends(FABRIC):
        near, far = shown[device][port].module, shown[peer][peer_port].module
        assert near is not None
        assert far is not None
        assert within(near.temperature_c, near.temperature_limits)
        assert within(near.voltage_v, near.voltage_limits)
        assert len(near.lanes) == len(far.lanes) == 4
        for sent, received in zip(near.lanes, far.lanes, strict=True):
            assert within(sent.tx_dbm, near.tx_limits)
            assert within(received.rx_dbm, far.rx_limits)
            assert within(sent.bias_ma, near.bias_limits)
            assert 0 < sent.tx_dbm - received.rx_dbm < 3


def test_two_ports_of_a_cage_share_one_module_by_lanes_and_no_other_port_does() -> None:
    first, second = list(Bed(FABRIC).ports("leaf01", STARTED_S + 1).values())[:2]

    assert first.module is not None
    assert second.module is not None
    assert (first.module.serial, first.module.temperature_c) == (second.module.serial, second.module.temperature_c)
    assert (first.module.first_lane, second.module.first_lane) == (1, 5)
    assert first.module.lanes != second.module.lanes


def test_serials_are_unique_and_parts_uniform() -> None:
    shown = Bed(FABRIC).everything(STARTED_S + 1)
    cages: dict[str, set[tuple[str, str]]] = {}
    printed: dict[str, set[tuple[str, str, str]]] = {}
    for device, readings in shown.items():
        for reading in readings.values():
            module = reading.module
            assert module is not None
            cages.setdefault(module.serial, set()).add((device, str(module.temperature_c)))
            printed.setdefault(module.media, set()).add((module.vendor, module.part, module.firmware))

    assert {len(found) for found in cages.values()} == {1}
    assert set(printed) == {"800G-2xDR4", "800G-2xSR4"}
    assert {len(found) for found in printed.values()} == {1}


def test_counts_of_traffic_programs_are_shown_unchanged() -> None:
    bed = Bed(FABRIC)
    bed.traffic["gpu01", "rail0"] = NicTraffic(
        cnp_sent=7, cnp_handled=5, cnp_ignored=2, ecn_marked_packets=90, out_of_sequence=3, packet_seq_err=4
    )
    shown = bed.nics("gpu01", STARTED_S + 9)["rail0"].hw_counters

    wanted = {
        "np_cnp_sent": 7,
        "rp_cnp_handled": 5,
        "rp_cnp_ignored": 2,
        "np_ecn_marked_roce_packets": 90,
        "out_of_sequence": 3,
        "packet_seq_err": 4,
    }
    assert {name: shown[name] for name in wanted} == wanted


def test_queue_counters_of_a_nic_wrap_at_32_bits_and_congestion_counters_do_not() -> None:
    bed = Bed(FABRIC)
    bed.traffic["gpu01", "rail0"] = NicTraffic(cnp_sent=2**32 + 7, out_of_sequence=2**32 + 3)
    shown = bed.nics("gpu01", STARTED_S)["rail0"].hw_counters

    assert (shown["np_cnp_sent"], shown["out_of_sequence"]) == (2**32 + 7, 3)


def test_a_nic_reports_pauses_only_of_priorities_with_pfc() -> None:
    shown = Bed(FABRIC).nics("gpu01", STARTED_S + 9)["rail0"].ethtool

    assert {name for name in shown if "_pause" in name and "prio" in name} == {
        "rx_prio3_pause",
        "rx_prio3_pause_duration",
        "rx_prio3_pause_transition",
        "tx_prio3_pause",
        "tx_prio3_pause_duration",
    }
