"""Facts of devices, written and read back."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.facts import Absent, Facts, Observation, Sample
from netkit.facts.device import Interface
from netkit.facts.host import HostFacts, Lookup, NicFacts
from netkit.facts.optic import Lane, Limits, Module
from netkit.facts.qos import Buffer
from netkit.fleet.checking import packed, unpacked
from netkit.fleet.settings import FleetError
from tests.facts.eos.case import CASES, seen
from tests.facts.hostile import changed
from tests.lanes import examples

PORTS = ("swp1s0", "swp1s1", "swp2s0")
COUNTS = st.dictionaries(st.sampled_from(PORTS), st.integers(0, 2**64 - 1))
COUNTERS = st.dictionaries(st.sampled_from(["rx_bytes", "tx_bytes", "rx_pause"]), COUNTS)
SAMPLES = st.lists(st.builds(Sample, st.floats(0, 2**31), COUNTERS, st.sampled_from(["", "before"])), max_size=3).map(
    tuple
)
MODULES = st.builds(
    Module,
    serial=st.text(max_size=3),
    lanes=st.dictionaries(st.integers(1, 4), st.builds(Lane, st.floats(-40, 5))),
    limits=st.dictionaries(st.sampled_from(["rx_dbm", "tx_dbm"]), st.builds(Limits, st.none() | st.floats(-9, 0))),
)
INTERFACES = st.builds(Interface, st.none() | st.booleans(), mac=st.sampled_from(["", "02:00:00:00:00:01"]))


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    by_port = st.sampled_from(PORTS)
    facts = Facts(
        interfaces=draw(st.dictionaries(by_port, INTERFACES) | st.builds(Absent, st.text(max_size=5))),
        modules=draw(st.dictionaries(by_port, MODULES)),
        adaptive_routing=draw(st.dictionaries(by_port, st.booleans())),
        counters=draw(COUNTERS | st.just(Absent("none"))),
    )
    samples: tuple[Sample, ...] = draw(SAMPLES)
    has_last = draw(st.booleans())
    if samples and has_last:
        facts = replace(facts, counters=samples[-1].counters)
    return Observation(
        draw(st.sampled_from(["leaf01", "leaf02"])), "nvue", facts, samples, draw(st.text(max_size=5)), 0.5
    )


@settings(max_examples=examples(200))
@given(st.lists(observations(), max_size=3))
def test_what_is_written_is_read_back(devices: list[Observation]) -> None:
    assert unpacked(packed(devices)) == devices


@pytest.mark.parametrize("case", CASES)
def test_the_facts_of_recorded_answers_are_read_back(case: str) -> None:
    buffers = {"Ethernet1/5/3": Buffer(used_bytes=1, peak_bytes=2)}
    sample = Sample(5.0, {"rx_bytes": {"Ethernet1/5": 7}}, buffers=buffers)
    devices = [Observation(name, "eos", seen(case), (sample,)) for name in ("leaf01", "leaf02")]
    assert unpacked(packed(devices)) == devices


def device(number: int) -> Observation:
    limits = {"rx_dbm": Limits(-8.0, -6.0, 4.0, 5.0)}
    modules = {port: Module(serial=f"{number}{port}", limits=limits) for port in PORTS}  # type: ignore[arg-type]
    counts = {name: dict.fromkeys(PORTS, 5_000_000 + number) for name in ("rx_bytes", "tx_bytes")}
    samples = (Sample(1.0, counts), Sample(11.0, counts))
    return Observation(f"leaf{number}", "nvue", Facts(modules=modules, counters=counts), samples)


def test_what_is_equal_is_one_object() -> None:
    first, second = unpacked(packed([device(1), device(2)]))
    assert isinstance(first.facts.modules, dict)
    assert isinstance(second.facts.modules, dict)
    limits = [one.limits for facts in (first.facts.modules, second.facts.modules) for one in facts.values()]
    assert len({id(one) for one in limits}) == 1
    assert first.facts.counters is first.samples[-1].counters
    assert first.samples[0].counters["rx_bytes"] is first.samples[1].counters["rx_bytes"]
    names = [at for one in first.samples for counts in one.counters.values() for at in counts]
    assert len({id(at) for at in names}) == len(PORTS)


def test_counters_that_count_nothing_and_settings_are_one_object() -> None:
    zeros = {name: dict.fromkeys(PORTS, 0) for name in ("rx_drops", "tx_drops")}
    own = {"ROCE_NEXT_PROTOCOL": "254", "CNP_DSCP_P1": "48"}
    nics = {port: NicFacts(port, "0000:03:00.0", settings=dict(own), next_settings=own) for port in PORTS}
    about = HostFacts(sysctls={"net.ipv4.tcp_ecn": "1"}, tools={"mft": "4.30"})
    facts = Facts(nics=nics, host=about, counters={"rx_errors": dict.fromkeys(PORTS, 0)})
    seen = [
        Observation(name, "linux", replace(facts, host=replace(about, nccl={"on": name})), (Sample(1.0, zeros),))
        for name in ("gpu1", "gpu2")
    ]
    found = unpacked(packed(seen))
    assert found == seen
    hosts, cards = [one.facts.host for one in found], [one.facts.nics for one in found]
    assert isinstance(hosts[0], HostFacts)
    assert isinstance(hosts[1], HostFacts)
    assert hosts[0].sysctls is hosts[1].sysctls
    assert hosts[0].tools is hosts[1].tools
    kept = [
        one for of in cards if isinstance(of, dict) for nic in of.values() for one in (nic.settings, nic.next_settings)
    ]
    assert len(kept) == 4 * len(PORTS)
    assert len({id(one) for one in kept}) == 1
    counts = [one.facts.counters for one in found] + [one.samples[0].counters for one in found]
    assert len({id(at) for one in counts if isinstance(one, dict) for at in one.values()}) == 1


def test_equal_strings_are_one_object() -> None:
    """A host looks up more than a hundred routes, from few addresses."""
    asked = tuple(Lookup("10.0.0.1", "rail0", f"10.0.0.{number}", gateway="10.0.0.9") for number in (2, 3))
    (found,) = unpacked(packed([Observation("gpu1", "linux", Facts(lookups=asked))]))
    assert found.facts.lookups == asked
    assert isinstance(found.facts.lookups, tuple)
    names = [(one.source, one.interface, one.gateway) for one in found.facts.lookups]
    assert [id(name) for name in names[0]] == [id(name) for name in names[1]]


DOCUMENT = json.loads(packed([device(1), device(2)]))


@settings(max_examples=examples(300))
@given(changed(json.dumps(DOCUMENT)))
def test_damaged_facts_are_refused_or_are_facts(text: str) -> None:
    with suppress(FleetError):
        found = unpacked(text.encode())
        assert unpacked(packed(found)) == found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("devices", 0, "counters"), {"rx_bytes": [-1, [1, 2, 3], False]}),
        (("devices", 0, "counters"), {"rx_bytes": [0, [1, 2], False]}),
        (("devices", 0, "counters"), {"rx_bytes": [0, [1, 2, -3], False]}),
        (("devices", 0, "counters"), {"rx_bytes": [0, [1, 2, 2**64], False]}),
        (("devices", 0, "counters"), {"rx_bytes": [0, [1, 2, True], False]}),
        (("devices", 0, "samples", 0, "at_s"), -1.0),
        (("devices", 0, "samples", 0, "at_s"), 1e300),
        (("devices", 0, "facts", "modules"), [0, [0, 1, 99]]),
        (("devices", 0, "facts", "modules"), 0),
        (("devices", 0, "facts", "colour"), "red"),
        (("values", "modules", 0), {"kind": "wooden"}),
        (("places", 0, 0), 7),
    ],
)
def test_what_no_device_has_is_refused(path: tuple[Any, ...], value: Any) -> None:
    document = json.loads(json.dumps(DOCUMENT))
    at = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(FleetError, match="the facts in its answer are damaged"):
        unpacked(json.dumps(document).encode())


def test_a_float_that_is_not_finite_is_left_out() -> None:
    lanes = {1: Lane(float("nan")), 2: Lane(-2.0), 3: Lane(float("inf"))}
    modules = {port: Module(serial="1", lanes=lanes) for port in PORTS}
    (found,) = unpacked(packed([Observation("leaf01", "nvue", Facts(modules=modules))]))
    whole = {1: Lane(), 2: Lane(-2.0), 3: Lane()}
    assert found.facts.modules == {port: Module(serial="1", lanes=whole) for port in PORTS}
