from dataclasses import asdict

import pytest

from netkit.lab.model.wiring import KernelPort
from netkit.lab.state import EcnState
from tests.lab.model_bed import STARTED_S, Bed, pauses, small_fabric

FABRIC = small_fabric()
BROKEN_S = STARTED_S + 100
STORM = {"pauses_per_s": 2500.0, "share": 0.6, "burst_ms": 50.0}


def stormy(bed: Bed, begin_s: float, end_s: float) -> dict[str, tuple[int, int]]:
    """Pauses received and sent per second, by end, where either is far above a healthy rate."""
    before, after = bed.everything(begin_s), bed.everything(end_s)
    found = {}
    for device, readings in after.items():
        for port, reading in readings.items():
            then, now = asdict(pauses(before[device][port])), asdict(pauses(reading))
            rx, tx = (round((now[way] - then[way]) / (end_s - begin_s), -2) for way in ("rx", "tx"))
            if rx or tx:
                found[f"{device}:{port}"] = (int(rx), int(tx))
    return found


def neighbors() -> dict[str, str]:
    found: dict[str, str] = {}
    for link in FABRIC.links():
        one, other = f"{link.device}:{link.port}", f"{link.peer}:{link.peer_port}"
        found |= {one: other, other: one}
    return found


def origins(bed: Bed, victim: str, begin_s: float, end_s: float) -> set[str]:
    """Follow pauses from an end that receives them to those that send them without receiving any."""
    rates, peers = stormy(bed, begin_s, end_s), neighbors()
    found, ahead = set(), [victim]
    while ahead:
        sender = peers[ahead.pop()]
        device = sender.partition(":")[0]
        paused = [end for end, (rx, _) in rates.items() if end.partition(":")[0] == device and rx]
        if not paused:
            queues = bed.ports(device, end_s).items()
            found |= {f"{device}:{name}" for name, port in queues if port.queues[3].occupancy_bytes > 1_000_000}
        ahead += [end for end in paused if peers[end].startswith("leaf") or peers[end].startswith("spine")]
        found |= {peers[end] for end in paused if peers[end].startswith("gpu")}
    return found


def test_a_storm_from_a_nic_reaches_senders_on_its_leaf_and_across_the_spines() -> None:
    bed = Bed(FABRIC)
    bed.break_("pause-storm", "gpu01:rail0", BROKEN_S, **STORM)
    found = stormy(bed, BROKEN_S, BROKEN_S + 10)

    victims = {end: rx for end, (rx, _) in found.items() if end.startswith("gpu") and rx}
    assert found["gpu01:rail0"] == (0, 2500)
    assert found["leaf01:swp1s0"] == (2500, 0)
    assert len(victims) == 4
    assert {end.partition(":")[2] for end in victims} == {"rail0"}
    assert {rx > 1000 for rx in victims.values()} == {True}
    on_own_leaf = {end for end in victims if neighbors()[end].startswith("leaf01")}
    assert len(on_own_leaf) == 2
    assert {end.partition(":")[0] for end in found if end.startswith("spine")} == {"spine01", "spine02"}


@pytest.mark.parametrize("origin", ["gpu01:rail0", "gpu07:rail1"])
def test_every_victim_leads_back_to_the_one_nic_that_sends_without_receiving(origin: str) -> None:
    bed = Bed(FABRIC)
    bed.break_("pause-storm", origin, BROKEN_S, **STORM)
    found = stormy(bed, BROKEN_S, BROKEN_S + 10)

    victims = [end for end, (rx, _) in found.items() if end.startswith("gpu") and rx]
    assert len(victims) == 4
    for victim in victims:
        assert origins(bed, victim, BROKEN_S, BROKEN_S + 10) == {origin}


@pytest.mark.parametrize("origin", ["leaf01:swp1s0", "spine01:swp1s0", "leaf03:swp33s0"])
def test_a_congested_egress_is_the_port_with_a_full_queue_and_no_pauses(origin: str) -> None:
    bed = Bed(FABRIC)
    bed.break_("pause-storm", origin, BROKEN_S, **STORM)
    found = stormy(bed, BROKEN_S, BROKEN_S + 10)

    device, _, port = origin.partition(":")
    assert origin not in found
    assert bed.ports(device, BROKEN_S + 10)[port].queues[3].occupancy_bytes > 2_000_000
    victims = [end for end, (rx, _) in found.items() if end.startswith("gpu") and rx]
    assert len(victims) >= 2
    for victim in victims:
        assert origins(bed, victim, BROKEN_S, BROKEN_S + 10) == {origin}


def test_both_ends_agree_in_a_storm_and_the_rest_of_the_fabric_stays_healthy() -> None:
    bed, healthy = Bed(FABRIC), Bed(FABRIC)
    bed.break_("pause-storm", "gpu01:rail0", BROKEN_S, **STORM)
    shown, well = bed.everything(BROKEN_S + 60), healthy.everything(BROKEN_S + 60)
    touched = stormy(bed, BROKEN_S, BROKEN_S + 60)

    for end, peer in neighbors().items():
        (device, _, port), (far, _, far_port) = end.partition(":"), peer.partition(":")
        near, other = pauses(shown[device][port]), pauses(shown[far][far_port])
        assert (near.rx, near.tx, near.rx_us, near.tx_us) == (other.tx, other.rx, other.tx_us, other.rx_us)
        if end not in touched:
            assert shown[device][port] == well[device][port]


def test_a_storm_ends_when_it_is_healed_and_its_counts_stay() -> None:
    bed = Bed(FABRIC)
    bed.break_("pause-storm", "gpu01:rail0", BROKEN_S, **STORM)
    bed.faults.heal("pause-storm", "gpu01", "rail0", now_s=BROKEN_S + 60)

    assert stormy(bed, BROKEN_S + 60, BROKEN_S + 120) == {}
    leaf = bed.ports("leaf01", BROKEN_S + 120)["swp1s0"]
    assert 2500 * 60 <= leaf.priorities[3].rx_pause <= 2500 * 60 + 1000
    assert leaf.queues[3].peak_bytes > 4_000_000
    assert leaf.queues[3].occupancy_bytes < 100_000


def test_an_unmarked_incast_is_held_by_pauses_until_it_ends() -> None:
    bed = Bed(FABRIC)
    bed.model.incast("gpu01", "rail0", 30, BROKEN_S)
    found = stormy(bed, BROKEN_S, BROKEN_S + 10)

    assert "leaf01:swp1s0" not in found
    assert bed.ports("leaf01", BROKEN_S + 10)["swp1s0"].queues[3].occupancy_bytes > 2_000_000
    victims = [end for end, (rx, _) in found.items() if end.startswith("gpu") and rx]
    assert len(victims) == 4
    for victim in victims:
        assert origins(bed, victim, BROKEN_S, BROKEN_S + 10) == {"leaf01:swp1s0"}
    assert stormy(bed, BROKEN_S + 30, BROKEN_S + 60) == {}


def test_an_incast_that_ended_before_the_first_reading_counts_for_its_duration() -> None:
    bed = Bed(FABRIC)
    before = pauses(bed.nics("gpu02", BROKEN_S)["rail0"]).rx
    bed.model.incast("gpu01", "rail0", 10, BROKEN_S)
    bed.break_("pause-storm", "gpu05:rail1", BROKEN_S + 40, **STORM)
    late = stormy(bed, BROKEN_S + 30, BROKEN_S + 31)
    shown = {host.name: pauses(bed.nics(host.name, BROKEN_S + 60)["rail0"]).rx - before for host in FABRIC.hosts}

    assert late == {}
    held = [count for count in shown.values() if count > 1000]
    assert len(held) == 4
    assert max(held) < 2000 * 11


def test_an_incast_is_not_held_by_pauses_where_it_is_marked_calmed_or_has_no_pfc() -> None:
    ecn = {3: EcnState(150_000, 1_500_000, 100)}
    marked, calmed, lossy = Bed(FABRIC), Bed(FABRIC), Bed(FABRIC)
    marked.retell("leaf01", {"swp1s0"}, STARTED_S + 1, ecn=ecn)
    lossy.retell("leaf01", {"swp1s0"}, STARTED_S + 1, pfc_priorities=frozenset())
    for bed in (marked, calmed, lossy):
        bed.model.incast("gpu01", "rail0", 30, BROKEN_S)
    calmed.model.calm(BROKEN_S + 1)

    assert stormy(marked, BROKEN_S, BROKEN_S + 10) == {}
    assert stormy(lossy, BROKEN_S, BROKEN_S + 10) == {}
    assert stormy(calmed, BROKEN_S + 1, BROKEN_S + 10) == {}
    marked.break_("ecn-unmarked", "leaf01", BROKEN_S + 10)
    assert stormy(marked, BROKEN_S + 10, BROKEN_S + 20) != {}


def test_the_counts_of_a_storm_do_not_depend_on_when_it_is_read() -> None:
    often, seldom = Bed(FABRIC), Bed(FABRIC)
    for second in range(0, 100, 7):
        often.everything(STARTED_S + second)
    for bed in (often, seldom):
        bed.break_("pause-storm", "gpu01:rail0", BROKEN_S, **STORM)
    for second in range(0, 100, 7):
        often.everything(BROKEN_S + second)
    for bed in (often, seldom):
        bed.faults.heal("pause-storm", "gpu01", now_s=BROKEN_S + 100)

    for device, readings in seldom.everything(BROKEN_S + 200).items():
        for port, reading in readings.items():
            other = often.everything(BROKEN_S + 200)[device][port]
            for way, count in asdict(pauses(reading)).items():
                assert abs(asdict(pauses(other))[way] - count) <= 1


def test_a_slow_host_stalls_on_its_bus_and_its_victims_do_not() -> None:
    bed = Bed(FABRIC)
    bed.break_("pause-storm", "gpu01:rail0", BROKEN_S, **STORM)
    stalled = {
        f"{host.name}:{name}": (nic.ethtool["outbound_pci_stalled_wr"], nic.ethtool["outbound_pci_stalled_wr_events"])
        for host in FABRIC.hosts
        for name, nic in bed.nics(host.name, BROKEN_S + 30).items()
    }

    assert {end: row for end, row in stalled.items() if row != (0, 0)} == {"gpu01:rail0": (60, 30)}


def watchdogs(bed: Bed, now_s: float) -> dict[str, tuple[bool, int, int, bool]]:
    found = {}
    for switch in FABRIC.switches:
        for name, port in bed.ports(switch.name, now_s).items():
            row = port.watchdogs[3]
            if row.storms_detected or row.is_stormed:
                shown = (row.is_stormed, row.storms_detected, row.storms_restored, row.dropped_packets > 0)
                found[f"{switch.name}:{name}"] = shown
    return found


def test_an_endless_pause_trips_one_watchdog_after_its_detection_time_and_goes_no_further() -> None:
    bed = Bed(FABRIC)
    bed.break_("watchdog-trip", "gpu01:rail0", BROKEN_S, pauses_per_s=2500.0)

    assert watchdogs(bed, BROKEN_S + 0.2) == {}
    assert watchdogs(bed, BROKEN_S + 10) == {"leaf01:swp1s0": (True, 1, 0, True)}
    assert set(stormy(bed, BROKEN_S + 5, BROKEN_S + 15)) == {"gpu01:rail0", "leaf01:swp1s0"}


def test_a_tripped_watchdog_restores_after_its_time_and_counts_the_next_storm_too() -> None:
    bed = Bed(FABRIC)
    bed.break_("watchdog-trip", "leaf01:swp33s0", BROKEN_S, pauses_per_s=2500.0)
    bed.faults.heal("watchdog-trip", "leaf01", "swp33s0", now_s=BROKEN_S + 10)

    assert watchdogs(bed, BROKEN_S + 10.3) == {"leaf01:swp33s0": (True, 1, 0, True)}
    assert watchdogs(bed, BROKEN_S + 11) == {"leaf01:swp33s0": (False, 1, 1, True)}
    bed.break_("watchdog-trip", "leaf01:swp33s0", BROKEN_S + 20, pauses_per_s=2500.0)
    assert watchdogs(bed, BROKEN_S + 30) == {"leaf01:swp33s0": (True, 2, 1, True)}


def test_a_storm_of_bursts_longer_than_detection_trips_and_shorter_ones_do_not() -> None:
    short, long = Bed(FABRIC), Bed(FABRIC)
    short.break_("pause-storm", "gpu01:rail0", BROKEN_S, **STORM)
    long.break_("pause-storm", "gpu01:rail0", BROKEN_S, **{**STORM, "burst_ms": 300.0})

    assert watchdogs(short, BROKEN_S + 60) == {}
    assert watchdogs(long, BROKEN_S + 60) == {"leaf01:swp1s0": (True, 1, 0, True)}


def test_without_a_watchdog_an_endless_pause_spreads() -> None:
    bed = Bed(FABRIC, has_watchdog=False)
    bed.break_("watchdog-trip", "gpu01:rail0", BROKEN_S, pauses_per_s=2500.0)

    assert watchdogs(bed, BROKEN_S + 60) == {}
    assert len([end for end in stormy(bed, BROKEN_S, BROKEN_S + 10) if end.startswith("gpu")]) == 5


def test_a_storm_stops_where_pfc_is_off_and_packets_are_lost_there() -> None:
    bed = Bed(FABRIC)
    bed.retell("leaf01", {"swp33s0", "swp33s1"}, BROKEN_S - 1, pfc_priorities=frozenset())
    bed.break_("pause-storm", "gpu01:rail0", BROKEN_S, **STORM)
    found = stormy(bed, BROKEN_S, BROKEN_S + 10)
    leaf = bed.ports("leaf01", BROKEN_S + 10)

    assert {end.partition(":")[0] for end in found if not end.startswith("gpu")} == {"leaf01"}
    assert leaf["swp33s0"].buffers[3].dropped_packets > 1_000_000
    assert leaf["swp33s0"].queues[3].dropped_packets > 1_000_000
    assert leaf["swp2s0"].buffers[3].dropped_packets == 0


@pytest.mark.parametrize("side", ["switch", "host"])
def test_the_lossless_class_drops_only_where_pfc_is_off_at_one_end(side: str) -> None:
    bed = Bed(FABRIC)
    bed.break_("pfc-off", "leaf01:swp1s0" if side == "switch" else "gpu01:rail0", BROKEN_S)
    losing = {
        f"{switch.name}:{name}"
        for switch in FABRIC.switches
        for name, port in bed.ports(switch.name, BROKEN_S + 60).items()
        if port.buffers[3].dropped_packets
    }
    nics = {
        f"{host.name}:{name}": reading.ethtool["rx_prio3_buf_discard"]
        for host in FABRIC.hosts
        for name, reading in bed.nics(host.name, BROKEN_S + 60).items()
    }

    assert losing == {"leaf01:swp1s0"}
    assert {end for end, count in nics.items() if count} == {"gpu01:rail0"}


def test_no_pauses_cross_a_cable_that_is_down() -> None:
    bed = Bed(FABRIC)
    bed.kernel["leaf01", "swp1s0"] = KernelPort(is_up=False, mtu_bytes=9216)
    first, second = (bed.ports("leaf01", BROKEN_S + past_s)["swp1s0"] for past_s in (0, 60))

    assert first.priorities == second.priorities
    assert first.fec.histogram == second.fec.histogram
    assert (second.fec.pre_fec_ber, second.is_up, second.is_enabled) == (0, False, True)


def test_a_cable_that_came_back_counts_from_when_it_was_last_seen_down() -> None:
    bed, healthy = Bed(FABRIC), Bed(FABRIC)
    up, down = KernelPort(mtu_bytes=9216), KernelPort(is_up=False, mtu_bytes=9216)
    for past_s, shown in ((0, down), (50, down), (150, up)):
        bed.kernel["leaf01", "swp1s0"] = shown
        last = bed.ports("leaf01", STARTED_S + past_s)["swp1s0"]
    whole = healthy.ports("leaf01", STARTED_S + 150)["swp1s0"]

    assert last.queues[3].tx_packets / whole.queues[3].tx_packets == pytest.approx(100 / 150, rel=1e-6)
    assert abs(last.fec.histogram[0] / whole.fec.histogram[0] - 100 / 150) < 1e-6
