from collections.abc import Mapping
from dataclasses import replace

from netkit.design import Fabric
from netkit.facts import Counters, Facts, Observation
from netkit.facts.qos import Buffer
from netkit.judge import CheckContext, Verdict
from netkit.judge.cause import cause_groups
from tests.checks.judging import judge, results, said, shipped, skipped
from tests.judge.scenes import fabric, moved, observation, scene

BUILT = fabric()
GPU1, GPU2 = BUILT.hosts
RAIL1, RAIL2 = GPU1.nics[0], GPU2.nics[1]
LEAF_PORTS = [one.name for one in BUILT.switch(RAIL1.leaf).ports]
Pair = tuple[int, int]


def port(device: str, peer: str, peer_port: str = "") -> str:
    """The first port of a switch towards a device."""
    ports = BUILT.switch(device).ports
    return next(one.name for one in ports if one.peer == peer and peer_port in {"", one.peer_port})


def paused(
    built: Fabric, held: Mapping[str, Mapping[str, Pair]], used: Mapping[str, Buffer] | None = None
) -> CheckContext:
    """Facts in which ports receive pauses, and the other ends send them."""
    sent: dict[str, dict[str, Pair]] = {name: {} for name in built.names}
    quiet = scene(built, *(observation(name) for name in built.names))
    for device, ports in held.items():
        for name, pair in ports.items():
            far = quiet.far(device, name)
            assert far is not None
            sent[far.device][f"{far.port}/3"] = pair
    return scene(built, *(_seen(built, name, held.get(name, {}), sent[name], used) for name in built.names))


def _seen(
    built: Fabric, name: str, held: Mapping[str, Pair], sent: Mapping[str, Pair], used: Mapping[str, Buffer] | None
) -> Observation:
    device = built.device(name)
    assert device is not None
    ports = [one.name for one in getattr(device, "ports", ())] or [nic.interface for nic in getattr(device, "nics", ())]
    none = {f"{one}/3": (5, 5) for one in ports}
    received = {**none, **{f"{one}/3": pair for one, pair in held.items()}}
    return observation(name, Facts(buffers=used or {}), rx_pause=received, tx_pause={**none, **sent})


def test_a_slow_nic_is_named_and_its_victims_are_not() -> None:
    down, up = port("spine01", RAIL1.leaf), port(RAIL2.leaf, "spine01")
    held = {
        RAIL1.leaf: {RAIL1.leaf_port: (0, 25_000)},
        "spine01": {down: (0, 20_000)},
        RAIL2.leaf: {up: (0, 15_000)},
        "gpu02": {RAIL2.interface: (0, 12_000)},
    }
    found = paused(BUILT, held)
    (only,) = said(found, "pfc.origin")
    assert only == ("fail", "gpu01", f"{RAIL1.interface}/3", "this NIC causes pauses on 4 cables")
    judged = judge(found, tuple(shipped().values()))
    assert [(one.head.check, one.head.device, one.head.place) for one in cause_groups(judged.findings, {})] == [
        ("pfc.origin", "gpu01", f"{RAIL1.interface}/3")
    ]


def test_two_origins_of_the_same_pauses_are_two_incidents() -> None:
    other = BUILT.hosts[1].nics[0]
    held = {
        RAIL1.leaf: {RAIL1.leaf_port: (0, 25_000), other.leaf_port: (0, 24_000)},
        "spine01": {DOWN: (0, 20_000)},
        RAIL2.leaf: {UP: (0, 15_000)},
    }
    judged = judge(paused(BUILT, held), tuple(shipped().values()))
    assert sorted((one.head.check, one.head.device, one.head.place) for one in cause_groups(judged.findings, {})) == [
        ("pfc.origin", "gpu01", f"{RAIL1.interface}/3"),
        ("pfc.origin", "gpu02", f"{other.interface}/3"),
    ]


def test_a_congested_switch_port_is_identified_by_its_queue() -> None:
    down, up = port("spine01", RAIL1.leaf), port(RAIL2.leaf, "spine01")
    held = {
        "spine01": {down: (0, 20_000)},
        RAIL2.leaf: {up: (0, 15_000)},
        "gpu02": {BUILT.hosts[1].nics[0].interface: (0, 9_000), RAIL2.interface: (0, 12_000)},
    }
    found = paused(BUILT, held, {f"{RAIL1.leaf_port}/3": Buffer(used_bytes=900_000)})
    assert said(found, "pfc.origin") == [
        ("fail", RAIL1.leaf, f"{RAIL1.leaf_port}/3", "this egress port causes pauses on 4 cables")
    ]


def test_marks_of_an_incast_do_not_hide_the_congested_port() -> None:
    """Where no queue lengths are known: the incast is at gpu01's port, whose own NIC is paused as well."""
    held = {host.name: {host.nics[0].interface: (0, 9_000)} for host in BUILT.hosts}
    found = paused(BUILT, held)
    leaf, up = RAIL1.leaf, port(RAIL1.leaf, "spine01")
    marks = {f"{RAIL1.leaf_port}/3": (0, 50), f"{up}/3": (0, 8)}
    own = observation(leaf, Facts(), **{**found_counts(found, leaf), "queue_ecn_marked": marks})
    whole = replace(found.snapshot, devices={**found.snapshot.devices, leaf: own})
    assert [one[:3] for one in said(replace(found, snapshot=whole), "pfc.origin")] == [("fail", leaf, f"{up}/3")]


def test_stale_queue_levels_identify_no_port() -> None:
    found = paused(BUILT, {host.name: {host.nics[0].interface: (0, 9_000)} for host in BUILT.hosts})
    leaf = RAIL1.leaf
    full = Facts(buffers={f"{RAIL1.leaf_port}/3": Buffer(used_bytes=3_000_000)})
    rows = {"rx_bytes": dict.fromkeys(LEAF_PORTS, (7, 7)), "tx_bytes": dict.fromkeys(LEAF_PORTS, (7, 7))}
    nics = {name: {host.nics[0].interface: (0, 99_999) for host in BUILT.hosts} for name in ("rx_bytes", "tx_bytes")}
    seen = {
        host.name: observation(host.name, None, **{**found_counts(found, host.name), **nics}) for host in BUILT.hosts
    }
    seen[leaf] = observation(leaf, full, **rows)
    whole = replace(found.snapshot, devices={**found.snapshot.devices, **seen})
    reported = [one[1:3] for one in said(replace(found, snapshot=whole), "pfc.origin")]
    assert reported == [(leaf, "")]


def found_counts(found: CheckContext, name: str) -> dict[str, dict[str, Pair]]:
    """The counters of a device at both ends of its window."""
    first, last = found.snapshot.devices[name].samples
    return {
        key: {at: (first.counters[key][at], count) for at, count in counts.items()}
        for key, counts in last.counters.items()
    }


def without(found: CheckContext, *names: str) -> CheckContext:
    """Facts without some devices, which were not reached."""
    left = [one for name, one in found.snapshot.devices.items() if name not in names]
    return scene(found.fabric, *left)


DOWN, UP = port("spine01", RAIL1.leaf), port(RAIL2.leaf, "spine01")
WAY = {"spine01": {DOWN: (0, 20_000)}, RAIL2.leaf: {UP: (0, 15_000)}, "gpu02": {RAIL2.interface: (0, 12_000)}}
FROM_NIC = {RAIL1.leaf: {RAIL1.leaf_port: (0, 25_000)}, **WAY}
BLIND = "pauses on 2 cables come from here, but this switch did not report its own: they may begin beyond it"


def test_a_trace_passes_an_unread_switch_by_its_neighbours_counters() -> None:
    nic = "fail", "gpu01", f"{RAIL1.interface}/3", "this NIC causes pauses on 4 cables"
    assert said(without(paused(BUILT, FROM_NIC), "spine01"), "pfc.origin") == [nic]


def test_a_trace_ends_where_no_device_reports_and_says_so() -> None:
    spine = "warn", "spine01", f"{port('spine01', RAIL2.leaf)}/3", BLIND
    limited = replace(paused(BUILT, FROM_NIC), names=frozenset(BUILT.names) - {"spine01", RAIL1.leaf})
    assert spine in said(limited, "pfc.origin")


def test_a_storm_behind_a_leaf_with_frozen_counters_is_attributed_to_the_nic() -> None:
    found = paused(BUILT, FROM_NIC)
    seen = found.snapshot.devices[RAIL1.leaf]
    stood = replace(seen, samples=tuple(replace(one, counters=still_at(one.counters)) for one in seen.samples))
    nic = found.snapshot.devices["gpu01"]
    ends = zip(nic.samples, (0, 900_000), strict=True)
    busy = [replace(one, counters={**one.counters, "tx_bytes": {RAIL1.interface: count}}) for one, count in ends]
    devices = {**found.snapshot.devices, RAIL1.leaf: stood, "gpu01": replace(nic, samples=tuple(busy))}
    stuck = replace(found, snapshot=replace(found.snapshot, devices=devices))
    assert [(one[1], one[2]) for one in said(stuck, "pfc.origin")] == [("gpu01", f"{RAIL1.interface}/3")]


def still_at(counters: Counters) -> Counters:
    """Counters frozen at their current values."""
    bytes_ = {one.name: 7 for one in BUILT.switch(RAIL1.leaf).ports}
    return {
        **{name: dict.fromkeys(counts, 9) for name, counts in counters.items()},
        "rx_bytes": bytes_,
        "tx_bytes": bytes_,
    }


def test_a_nic_is_blamed_although_its_host_was_not_read() -> None:
    found = paused(BUILT, FROM_NIC)
    expected = [("fail", "gpu01", f"{RAIL1.interface}/3", "this NIC causes pauses on 4 cables")]
    assert said(without(found, "gpu01"), "pfc.origin") == expected
    assert said(replace(found, names=frozenset(BUILT.names) - {"gpu01"}), "pfc.origin") == expected


def test_a_switch_without_a_known_full_port_is_named_itself() -> None:
    found = said(paused(BUILT, WAY), "pfc.origin")
    text = "this switch causes pauses on 3 cables; it does not report which of its egress ports is full"
    assert found == [("fail", RAIL1.leaf, "", text)]


def test_a_switch_of_unknown_ports_is_one_origin_for_all_cables_it_pauses() -> None:
    own = BUILT.hosts[1].nics[0]
    both = {**WAY, "gpu02": {own.interface: (0, 9_000), RAIL2.interface: (0, 12_000)}}
    text = "this switch causes pauses on 4 cables; it does not report which of its egress ports is full"
    assert said(paused(BUILT, both), "pfc.origin") == [("fail", RAIL1.leaf, "", text)]


def test_a_current_level_counts_before_a_peak_and_a_share_before_a_rate() -> None:
    other = BUILT.hosts[1].nics[0].leaf_port
    levels = {f"{RAIL1.leaf_port}/3": Buffer(used_bytes=900_000), f"{other}/3": Buffer(used_bytes=0, peak_bytes=2**23)}
    (_, device, at, _), *_ = said(paused(BUILT, WAY, levels), "pfc.origin")
    assert (device, at) == (RAIL1.leaf, f"{RAIL1.leaf_port}/3")


def test_unread_ports_are_not_counted_as_calm() -> None:
    (found,) = results(scene(BUILT), "pfc.origin").values()
    assert (found.verdict, found.examined) == (Verdict.SKIPPED, 0)


def test_a_cycle_of_pauses_is_reported_and_terminates() -> None:
    held = {
        "spine01": {port("spine01", "leaf01"): (0, 20_000)},
        "leaf01": {port("leaf01", "spine02"): (0, 20_000)},
        "spine02": {port("spine02", "leaf02"): (0, 20_000)},
        "leaf02": {port("leaf02", "spine01"): (0, 20_000)},
    }
    text = "is held up in a cycle: every port waits for the next one, and none can send"
    places = {(device, f"{name}/3") for device, ports in held.items() for name in ports}
    found = said(paused(BUILT, held), "pfc.origin")
    assert {(device, at) for _, device, at, _ in found} == places
    assert {(verdict, words) for verdict, _, _, words in found} == {("fail", text)}
    assert [verdict for verdict, *_ in said(paused(BUILT, held), "pfc.rate")] == ["fail"] * 8


def test_a_fabric_full_of_pauses_is_judged() -> None:
    """Traces form cycles and merge on most ports of many leaves."""
    built = fabric(
        units=[{"unit": "1-40", "hosts": 1}],
        ceilings={"units": 40, "hosts_per_unit": 4, "spines": 4},
        pools={"loopbacks": "10.255.0.0/22", "hosts": "10.128.0.0/14"},
        management={"pool": "198.18.0.0/22", "gateway": "198.18.0.1"},
    )
    held = {switch.name: {port.name: (0, 20_000) for port in switch.fabric_ports} for switch in built.switches}
    found = results(paused(built, held), "pfc.origin")
    assert {name: result.verdict for name, result in found.items()} == {"fabric": Verdict.FAIL}


def test_few_pauses_pass_and_rates_apply_where_no_time_is_reported() -> None:
    for frames, verdicts in ((900, []), (1_000, ["warn"] * 2), (9_900, ["warn"] * 2), (10_000, ["fail"] * 2)):
        found = paused(BUILT, {"gpu01": {RAIL1.interface: (7, 7 + frames)}})
        assert [verdict for verdict, *_ in said(found, "pfc.rate")] == verdicts


def test_paused_time_applies_where_it_is_reported() -> None:
    seen = observation("leaf01", rx_pause={"swp1s0/3": (0, 5)}, rx_pause_us={"swp1s0/3": (0, 600_000)})
    assert said(scene(BUILT, seen), "pfc.rate") == [
        ("fail", "leaf01", "swp1s0/3", "is held up by gpu01:rail0: 0 pauses a second, 6.0% of the time")
    ]


def test_pauses_of_another_priority_are_a_fault() -> None:
    seen = observation("leaf01", rx_pause={"swp1s0/0": (0, 3), "swp1s0/3": (0, 3), "swp63/1": (0, 9)})
    assert said(scene(BUILT, seen), "pfc.priority") == [
        ("fail", "leaf01", "swp1s0/0", "pauses arrive on priority 0, which is not lossless: 3")
    ]


def test_disagreeing_ends_are_reported() -> None:
    host = observation("gpu01", tx_pause={"rail0/3": (0, 5_000)}, rx_pause={"rail0/3": (0, 0)})
    leaf = observation("leaf01", rx_pause={"swp1s0/3": (0, 100)}, tx_pause={"swp1s0/3": (0, 5)})
    assert said(scene(BUILT, host, leaf), "pfc.symmetry") == [
        ("warn", "leaf01", "swp1s0/3", "gpu01:rail0 sends 500 pauses a second, 10 arrive")
    ]


def test_ends_read_at_different_times_are_not_compared() -> None:
    host = observation("gpu01", tx_pause={"rail0/3": (0, 5_000)}, rx_pause={"rail0/3": (0, 0)})
    leaf = observation("leaf01", rx_pause={"swp1s0/3": (0, 100)}, tx_pause={"swp1s0/3": (0, 0)})
    for begin_s, end_s, is_told in ((-3_600, 0, False), (-2, 2, False), (0.5, 1.5, True)):
        found = scene(BUILT, moved(host, begin_s, end_s), leaf)
        assert bool(said(found, "pfc.symmetry")) == is_told
        words = "it and gpu01 were not read at the same moment"
        assert (("leaf01", "swp1s0/3", words) in skipped(found, "pfc.symmetry")) != is_told


def test_unreported_counters_are_skipped() -> None:
    seen = observation("leaf01", rx_bytes={"swp1s0": (0, 3)})
    (found,) = [one for one in results(scene(BUILT, seen), "pfc.rate").values() if one.device == "leaf01"]
    assert found.examined == 0
    assert {one.text for one in found.findings} == {"pauses are not known: missing"}


def test_a_nic_with_a_pause_storm_is_reported() -> None:
    seen = observation("gpu01", pause_storm_warnings={"rail0": (1, 3)}, pause_storm_errors={"rail0": (0, 0)})
    assert said(scene(BUILT, seen), "pfc.storms") == [
        ("fail", "gpu01", "rail0", "paused its leaf without end: 2 alarms")
    ]


def test_pauses_of_all_priorities_are_judged_where_no_others_are_reported() -> None:
    down, up = port("spine01", RAIL1.leaf), port(RAIL1.leaf, "spine01")
    total = observation("spine01", port_rx_pause={down: (0, 90_000)}, port_tx_pause={down: (0, 0)})
    found = scene(BUILT, total, observation(RAIL1.leaf, tx_pause={f"{up}/3": (0, 50)}))
    assert [(verdict, device, place, text) for verdict, device, place, text in said(found, "pfc.rate")] == [
        ("fail", "spine01", f"{down}/3", f"is held up by {RAIL1.leaf}:{up}: 9000 pauses of all priorities a second")
    ]
    assert said(found, "pfc.symmetry") == []
