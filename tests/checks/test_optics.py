from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.facts import Facts
from netkit.facts.optic import Lane, Limits, Line, Module
from netkit.judge import CheckContext, Verdict
from tests.checks.judging import judge, results, said, shipped, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
LIGHT = Limits(low_alarm=-8.0, low_warning=-6.0, high_warning=4.0, high_alarm=5.0)
LANE = Lane(rx_dbm=0.0, tx_dbm=1.0, bias_ma=60.0)
WELL = Module(
    kind="optic",
    part="P",
    firmware="1",
    temperature_c=50.0,
    voltage_v=3.3,
    lanes=dict.fromkeys(range(1, 5), LANE),
    limits={"rx_dbm": LIGHT, "tx_dbm": LIGHT, "bias_ma": Limits(high_warning=90.0, high_alarm=100.0)},
)


def modules(**ports: Module) -> CheckContext:
    return scene(BUILT, observation("leaf01", Facts(modules=ports)))


def with_lane(number: int, lane: Lane) -> Module:
    return replace(WELL, lanes={**WELL.lanes, number: lane})


def test_a_healthy_module_passes() -> None:
    assert said(modules(swp1s0=WELL), "optics") == []


@pytest.mark.parametrize(
    ("rx_dbm", "expected"),
    [
        (-4.9, []),
        (-5.1, [("warn", "lane 2, received power -5.1 dBm, its warning limit is -6")]),
        (-7.9, [("warn", "lane 2, received power -7.9 dBm, its warning limit is -6")]),
        (-8.1, [("fail", "lane 2, received power -8.1 dBm, below its alarm limit -8")]),
        (-40.0, [("fail", "lane 2, received power -40.0 dBm, below its alarm limit -8")]),
        (3.1, [("warn", "lane 2, received power 3.1 dBm, its warning limit is 4")]),
        (5.1, [("fail", "lane 2, received power 5.1 dBm, above its alarm limit 5")]),
    ],
)
def test_optical_power_is_judged_by_the_thresholds_of_the_module(
    rx_dbm: float, expected: list[tuple[str, str]]
) -> None:
    found = said(modules(swp1s0=with_lane(2, replace(LANE, rx_dbm=rx_dbm))), "optics.light")
    assert [(verdict, text) for verdict, _, _, text in found] == expected


def test_without_module_thresholds_those_of_the_medium_apply() -> None:
    bare = replace(with_lane(2, replace(LANE, rx_dbm=-8.0)), limits={}, identifier="OSFP 400GBASE-DR4")
    assert [text for *_, text in said(modules(swp1s0=bare), "optics.light")] == [
        "lane 2, received power -8.0 dBm, below its alarm limit -7.9"
    ]


def test_optical_power_without_known_thresholds_is_not_a_pass() -> None:
    bare = replace(WELL, lanes={1: LANE}, limits={"rx_dbm": Limits()}, identifier="OSFP 800G-XYZ")
    found = scene(BUILT, observation("gpu01", Facts(modules={"rail0": bare})))
    assert results(found, "optics.light")["gpu01"].examined == 0
    assert ("gpu01", "rail0", "lane 1, received power 0.0 dBm; its limits are not known") in (
        skipped(found, "optics.light")
    )


def test_a_laser_without_module_thresholds_is_judged_by_its_medium() -> None:
    old = replace(with_lane(2, replace(LANE, tx_dbm=-5.0)), limits={}, identifier="OSFP 400GBASE-DR4")
    assert [text for *_, text in said(modules(swp1s0=old), "optics.light")] == [
        "lane 2, transmitted power -5.0 dBm, below its alarm limit -4.9"
    ]


def test_a_duplicate_serial_number_is_a_copied_module() -> None:
    one = replace(WELL, serial="S1")
    found = modules(swp1s0=one, swp1s1=one, swp33s0=one)
    texts = {place: text for _, _, place, text in said(found, "optics.parts")}
    assert texts == {
        "swp1s0": "serial number S1 is not unique: also in leaf01:swp33s0",
        "swp1s1": "serial number S1 is not unique: also in leaf01:swp33s0",
        "swp33s0": "serial number S1 is not unique: also in leaf01:swp1s0, leaf01:swp1s1",
    }


def test_ports_of_a_cage_nics_of_a_host_and_ends_of_a_cable_may_share_a_module() -> None:
    one = replace(WELL, serial="S1")
    nics = Facts(modules=dict.fromkeys(("rail0", "rail1"), one))
    split = Facts(modules=dict.fromkeys(("swp1s0", "swp1s1"), one))
    assert said(scene(BUILT, observation("gpu01", nics)), "optics.parts") == []
    found = scene(BUILT, *(observation(name, Facts(modules={"rail0": one})) for name in ("gpu01", "gpu02")))
    assert len(said(found, "optics.parts")) == 2
    cable = scene(
        BUILT,
        observation("leaf01", split),
        *(observation(name, Facts(modules={"rail0": one})) for name in ("gpu01", "gpu02")),
    )
    assert said(cable, "optics.parts") == []


def test_a_module_of_unknown_medium_is_judged_by_its_designed_cable() -> None:
    bare = replace(with_lane(2, replace(LANE, rx_dbm=-8.0)), limits={}, identifier="OSFP")
    designed = {"swp1s0": "800G-2xDR4", "swp33s0": "800G-2xSR4"}
    assert [(place, text) for _, _, place, text in said(modules(swp1s0=bare, swp33s0=bare), "optics.light")] == [
        ("swp1s0", "lane 2, received power -8.0 dBm, below its alarm limit -7.9")
    ]
    assert {
        port.name: port.profile.cable.media for port in BUILT.switch("leaf01").ports if port.name in designed
    } == designed


def test_one_lane_weaker_than_the_others_is_dirt() -> None:
    found = modules(swp1s0=with_lane(3, replace(LANE, rx_dbm=-3.5)))
    assert said(found, "optics.lanes") == [
        ("warn", "leaf01", "swp1s0", "lane 3 receives 3.5 dB less than the other lanes")
    ]


@pytest.mark.parametrize(
    ("sent", "causes"),
    [
        ({}, {"gpu01:rail0 → leaf01:swp1s0: one lane", "gpu01:rail0 → leaf01:swp1s0"}),
        ({3: -10.5}, {"gpu01:rail0 → leaf01:swp1s0"}),
    ],
    ids=["all lanes alike", "one lane weaker"],
)
def test_a_weak_laser_does_not_explain_one_lane_with_more_loss(sent: dict[int, float], causes: set[str]) -> None:
    weak = replace(WELL, lanes={one: replace(LANE, tx_dbm=sent.get(one, -6.5), rx_dbm=-1.0) for one in range(1, 5)})
    dirty = replace(WELL, lanes={one: replace(LANE, rx_dbm=-11.0 if one == 3 else -7.0) for one in range(1, 5)})
    seen = [
        observation("gpu01", Facts(modules={"rail0": weak})),
        observation("leaf01", Facts(modules={"swp1s0": dirty})),
    ]
    reported = judge(scene(BUILT, *seen), [shipped()[name] for name in ("optics.light", "optics.lanes")]).findings
    assert {one.cause for one in reported if one.verdict > Verdict.SKIPPED} == causes


def test_a_transmitter_that_reports_a_fault_fails() -> None:
    well = replace(LANE, has_tx_fault=False, has_rx_loss=False)
    ports = {
        "swp1s0": with_lane(2, replace(well, has_tx_fault=True)),
        "swp33s0": replace(WELL, lanes=dict.fromkeys(range(1, 5), well)),
    }
    assert said(modules(**ports), "optics.flags") == [
        ("fail", "leaf01", "swp1s0", "lane 2 cannot transmit: its transmitter reports a fault")
    ]


def test_without_power_readings_the_loss_of_signal_flag_is_judged() -> None:
    """Where optical power is measured the flag is not judged: it may be latched, and the power is more precise."""
    blind, seeing = Lane(has_rx_loss=True), replace(LANE, has_rx_loss=True)
    ports = {"swp1s0": replace(WELL, kind="aoc", lanes={1: blind}), "swp33s0": replace(WELL, lanes={1: seeing})}
    assert [(place, text) for _, _, place, text in said(modules(**ports), "optics.flags")] == [
        ("swp1s0", "lane 1 receives no signal")
    ]


def test_unreported_flags_are_skipped_once() -> None:
    whole = ("leaf01", "", "it does not report the flags of its modules")
    assert skipped(modules(swp1s0=WELL, swp33s0=WELL), "optics.flags") == [whole]
    reported = replace(WELL, lanes={1: replace(LANE, has_tx_fault=False)})
    one = ("leaf01", "swp1s0", "an optic module does not report its flags")
    assert skipped(modules(swp1s0=WELL, swp33s0=reported), "optics.flags") == [one]


def test_temperature_current_and_firmware_are_reported() -> None:
    hot = replace(WELL, temperature_c=76.0)
    assert [text for *_, text in said(modules(swp1s0=hot), "optics.heat")] == [
        "temperature 76.0 °C, above its alarm limit 75"
    ]
    aged = with_lane(1, replace(LANE, bias_ma=95.0))
    assert [text for *_, text in said(modules(swp1s0=aged), "optics.heat")] == [
        "lane 1, laser current 95.0 mA, its warning limit is 90"
    ]
    mixed = modules(swp1s0=WELL, swp1s1=WELL, swp33s0=replace(WELL, firmware="2"))
    assert said(mixed, "optics.parts") == [("warn", "leaf01", "swp33s0", "firmware 2, most P have 1")]


@pytest.mark.parametrize(("spares", "reported"), [(1, 1), (4, 0), (0, 0)])
def test_a_spare_of_an_unusual_part_number_is_reported_and_two_common_ones_are_not(spares: int, reported: int) -> None:
    ends = [(one.name, port.name) for one in BUILT.switches for port in one.ports if port.role != "host"]
    odd = ends[:spares]
    modules = {end: replace(WELL, part="Q" if end in odd else "P") for end in ends}
    seen = [
        observation(
            one.name, Facts(modules={port: module for (name, port), module in modules.items() if name == one.name})
        )
        for one in BUILT.switches
    ]
    media = {port.profile.cable.media for one in BUILT.switches for port in one.ports if port.role != "host"}
    text = f"a module Q, {len(ends) - 1} of {len(ends)} ends of {media.pop()} have P"
    assert said(scene(BUILT, *seen), "optics.kinds") == [("warn", *end, text) for end in odd[:reported]]


def test_copper_has_no_optical_power_to_judge() -> None:
    copper = Module(kind="copper", lanes={1: Lane()})
    assert said(modules(swp1s0=copper), "optics") == []
    assert ("leaf01", "swp1s0", "a copper module does not measure optical power") in skipped(
        modules(swp1s0=copper), "optics"
    )


def test_a_cable_with_more_loss_than_its_kind_warns_and_never_fails() -> None:
    fabric_ports = [port for port in BUILT.switch("leaf01").ports if port.role == "up"]
    far = {"spine01": {}, "spine02": {}, "leaf01": {}, "leaf02": {}}  # type: dict[str, dict[str, Module]]
    for name in far:
        far[name] = {port.name: WELL for port in BUILT.switch(name).ports if port.role != "host"}
    dim = dict.fromkeys(range(1, 5), replace(LANE, rx_dbm=-4.5))
    far["leaf01"][fabric_ports[0].name] = replace(WELL, lanes=dim)
    found = scene(BUILT, *(observation(name, Facts(modules=ports)) for name, ports in far.items()))
    assert [(verdict, device, place) for verdict, device, place, _ in said(found, "optics.loss")] == [
        ("warn", "leaf01", fabric_ports[0].name)
    ]


@pytest.mark.parametrize("lanes", [{}, {1: Lane()}, {1: replace(LANE, tx_dbm=-40.0)}])
def test_the_loss_of_a_cable_with_a_dark_far_end_is_not_judged(lanes: dict[int, Lane]) -> None:
    port = next(port for port in BUILT.switch("leaf01").ports if port.role == "up")
    link = next(one for one in BUILT.links() if (one.device, one.port) == ("leaf01", port.name))
    near = observation("leaf01", Facts(modules={link.port: WELL}))
    far = observation(link.peer, Facts(modules={link.peer_port: replace(WELL, lanes=lanes)}))
    assert ("leaf01", link.port, "not both ends measure optical power") in skipped(
        scene(BUILT, near, far), "optics.loss"
    )


@pytest.mark.parametrize(("ber", "verdicts"), [(1e-9, []), (2e-6, ["warn"]), (3e-5, ["fail"])])
def test_the_bit_error_rate_is_judged_before_fec(ber: float, verdicts: list[str]) -> None:
    found = scene(BUILT, observation("leaf01", Facts(lines={"swp1s0": Line(ber=1e-9, lane_ber={2: ber})})))
    assert [verdict for verdict, *_ in said(found, "optics.bits")] == verdicts


@pytest.mark.parametrize(("wrong", "verdicts"), [(1_000, []), (4_000_000, ["warn"]), (60_000_000, ["fail"])])
def test_bit_errors_of_the_window_outweigh_those_of_a_lifetime(wrong: int, verdicts: list[str]) -> None:
    lines = {"rail0": Line(ber=5e-5, lane_ber={1: 1e-4})}
    bits = {"rail0": (10**15, 10**15 + 2 * 10**12)}
    seen = observation(
        "gpu01", Facts(lines=lines), corrected_bits={"rail0": (10**9, 10**9 + wrong)}, received_bits=bits
    )
    assert [verdict for verdict, *_ in said(scene(BUILT, seen), "optics.bits")] == verdicts


def test_exhausted_fec_margin_is_reported() -> None:
    bins = {"swp1s0/1": (0, 9), "swp1s0/9": (3, 4), "swp1s1/12": (0, 1)}
    seen = observation("leaf01", fec_bin=bins, fec_uncorrectable={"swp33s0": (1, 3), "swp33s1": (1, 1)})
    assert [(verdict, place, text) for verdict, _, place, text in said(scene(BUILT, seen), "optics.fec")] == [
        ("fail", "swp1s1", "codewords with 12 wrong symbols, 15 can be corrected"),
        ("fail", "swp33s0", "2 uncorrectable codewords in 10 s"),
        ("warn", "swp1s0", "codewords with 9 wrong symbols, 15 can be corrected"),
    ]


class Earlier:
    def readings(self, device: str, place: str, quantity: str) -> list[tuple[float, float]]:
        return [(1.0, 2.5), (2.0, 2.6)] if (device, place, quantity) == ("leaf01", "swp1s0/1", "rx_dbm") else []


def test_declining_optical_power_is_reported() -> None:
    found = scene(BUILT, observation("leaf01", Facts(modules={"swp1s0": WELL})), history=Earlier())
    assert said(found, "optics.trend") == [
        ("warn", "leaf01", "swp1s0", "lane 1 receives 2.5 dB less than in earlier runs")
    ]


DAY_S = 86_400.0


class Kept:
    """Earlier runs that measured one lane, a day apart; the current run is a day later."""

    def __init__(self, values: Sequence[float]) -> None:
        now_s = scene(BUILT).snapshot.taken_s
        self._values = [(now_s - DAY_S * (len(values) - at), value) for at, value in enumerate(values)]

    def readings(self, device: str, place: str, quantity: str) -> list[tuple[float, float]]:
        return self._values if (device, place, quantity) == ("leaf01", "swp1s0/1", "rx_dbm") else []


def trend(*values: float) -> list[str]:
    """The finding on a lane with these readings, the last one current."""
    now = replace(WELL, lanes={**WELL.lanes, 1: replace(LANE, rx_dbm=values[-1])})
    found = scene(BUILT, observation("leaf01", Facts(modules={"swp1s0": now})), history=Kept(values[:-1]))
    return [text for *_, text in said(found, "optics.trend")]


@pytest.mark.parametrize(
    ("sent_dbm", "said_of_it"),
    [
        (1.0, "gpu01:rail0 transmits as before, so the path loses it"),
        (-1.5, "gpu01:rail0 transmits 2.5 dB less"),
    ],
)
def test_declining_power_is_attributed_to_the_path_or_the_transmitter(sent_dbm: float, said_of_it: str) -> None:
    class Both:
        def readings(self, device: str, place: str, quantity: str) -> list[tuple[float, float]]:
            value = {("leaf01", "rx_dbm"): 2.5, ("gpu01", "tx_dbm"): 1.0}.get((device, quantity))
            return [] if value is None or not place.endswith("/1") else [(1.0, value), (2.0, value)]

    near = replace(WELL, lanes={1: replace(LANE, rx_dbm=0.0)})
    far = replace(WELL, lanes={1: replace(LANE, tx_dbm=sent_dbm)})
    seen = (observation("leaf01", Facts(modules={"swp1s0": near})), observation("gpu01", Facts(modules={"rail0": far})))
    reported = [text for *_, text in said(scene(BUILT, *seen, history=Both()), "optics.trend")]
    assert reported == [f"lane 1 receives 2.5 dB less than in earlier runs; {said_of_it}"]


def test_a_slow_decline_is_reported_when_its_total_passes_the_limit() -> None:
    assert trend(*(1.0 - 0.07 * day for day in range(31))) == [
        "lane 1 degrades: it receives 2.1 dB less than 30 days ago, falling steadily"
    ]
    assert trend(*(1.0 - 0.06 * day for day in range(31))) == []
    assert trend(*(1.0 + 0.07 * day for day in range(31))) == []


@given(st.lists(st.floats(-0.6, 0.6), min_size=3, max_size=40))
def test_fluctuating_power_is_not_a_trend(noise: list[float]) -> None:
    assert trend(*(1.0 + one for one in noise)) == []


@given(st.lists(st.floats(-0.25, 0.25), min_size=30, max_size=30))
def test_a_decline_is_reported_although_other_readings_fluctuate(noise: list[float]) -> None:
    assert len(trend(*(1.0 - 0.11 * day + one for day, one in enumerate(noise)))) == 1


def test_one_outlier_is_not_a_trend() -> None:
    assert trend(1.0, 1.0, 1.0, -4.0, 1.0, 1.0, 1.0, 0.9) == []
    assert trend(5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.9) == []


def test_a_single_step_is_not_a_decline() -> None:
    assert trend(*[1.0] * 10, *[-1.2] * 11) == []
