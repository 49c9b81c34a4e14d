import json
import re
from typing import get_args

import pytest

from netkit.errors import LabError
from netkit.lab.faults import CATALOG, FaultKind, Faults, InjectedFault, Maker, Target, check, parse_options
from tests.lab.model_bed import small_fabric

FABRIC = small_fabric()
PLACES: dict[Target, str] = {
    "switch": "leaf01",
    "switch port": "leaf01:swp33s0",
    "host": "gpu01",
    "host NIC": "gpu01:rail0",
}
EVERY_FAULT = pytest.mark.parametrize("kind", CATALOG.values(), ids=list(CATALOG))


@EVERY_FAULT
def test_each_fault_has_an_explanation(kind: FaultKind) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.name)
    assert 40 < len(kind.text) < 600
    assert kind.text.endswith(".")
    assert kind.maker in get_args(Maker)
    assert kind.targets
    assert [option.name for option in kind.options if not option.meaning] == []


@EVERY_FAULT
def test_each_fault_can_be_injected_at_its_places_with_all_its_options_and_nowhere_else(kind: FaultKind) -> None:
    for target, place in PLACES.items():
        if target in kind.targets:
            fault = check(FABRIC, kind.name, place, since_s=9)
            assert (fault.name, fault.place, fault.since_s) == (kind.name, place, 9)
            assert set(fault.options) == {option.name for option in kind.options}
        else:
            with pytest.raises(LabError, match=f"does not apply to a {target}"):
                check(FABRIC, kind.name, place)


@EVERY_FAULT
def test_options_given_as_text_get_the_type_of_their_defaults(kind: FaultKind) -> None:
    place = PLACES[kind.targets[0]]
    given = {option.name: str(option.default) for option in kind.options if option.default != ""}
    fault = check(FABRIC, kind.name, place, given)

    assert fault == check(FABRIC, kind.name, place)
    assert {name: type(value) for name, value in fault.options.items()} == {
        option.name: type(option.default) for option in kind.options
    }


REFUSALS = {
    ("dim-optik", "gpu01:rail0", ""): "no fault 'dim-optik'; did you mean dim-optic?",
    ("dim-optic", "gpu1:rail0", ""): "no device 'gpu1'; did you mean gpu01?",
    ("dim-optic", "gpu01:rail00", ""): "gpu01 has no interface 'rail00'; did you mean rail0? there are rail0, rail1",
    ("dim-optic", "leaf01:", ""): "leaf01 has no port in use ''; there are swp1s0, swp1s1",
    ("dim-optic", "gpu01", ""): "dim-optic does not apply to a host; name switch port or host NIC",
    ("dim-optic", "gpu01:rail0", "db=x"): "dim-optic: db is 'x'; give a number; it is how much weaker",
    ("dim-optic", "gpu01:rail0", "db=nan"): "dim-optic: db is 'nan'; give 0.1 to 35",
    ("dim-optic", "gpu01:rail0", "lane=1.5"): "dim-optic: lane is '1.5'; give a whole number",
    ("dim-optic", "gpu01:rail0", "lane=7"): "gpu01:rail0 has 4 lanes; give a lane from 1 to 4",
    ("dim-optic", "gpu01:rail0", "lan=1"): "dim-optic has no option 'lan'; did you mean lane?",
    ("slow", "gpu01", "x=1"): "slow has no option 'x'; there are seconds",
    ("disk-full", "gpu01", "x=1"): "disk-full has no option 'x'; there is none",
    ("counter-wrap", "leaf01", "bits=16"): "counter-wrap: bits is '16'; give 32 or 64",
    ("bgp-session-down", "leaf01:swp1s0", ""): "leaf01:swp1s0 leads to a host; name a port to another switch",
    ("wrong-cable", "gpu01:rail0", "with=rail9"): "gpu01:rail0 cannot be swapped; give with=PORT",
    ("wrong-source-route", "gpu01:rail0", "as=rail0"): "gpu01:rail0 cannot use another rail's table; give as=INTERFACE",
}


@pytest.mark.parametrize(("asked", "answer"), REFUSALS.items(), ids=[" ".join(row) for row in REFUSALS])
def test_an_invalid_fault_is_refused_with_the_valid_ones(asked: tuple[str, str, str], answer: str) -> None:
    name, place, option = asked
    with pytest.raises(LabError) as refusal:
        check(FABRIC, name, place, parse_options([option] if option else []))

    assert str(refusal.value).startswith(answer)


def test_optical_power_cannot_be_lost_where_it_is_not_measured() -> None:
    fabric = small_fabric({"cables": {"host": {"media": "800G-DAC-2x400", "length_m": 2}}})

    for name in ("dim-optic", "hot-optic", "mixed-optic-firmware"):
        with pytest.raises(LabError, match="leaf01:swp1s0 has 800G-DAC-2x400, which"):
            check(fabric, name, "leaf01:swp1s0")
    assert check(fabric, "dirty-lane", "leaf01:swp1s0").number("ber") == 5e-5


def test_an_option_needs_a_name_and_a_value() -> None:
    assert parse_options(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    for word in ("db", "=5", ""):
        with pytest.raises(LabError, match="write NAME=VALUE"):
            parse_options([word])


def test_faults_are_added_removed_and_replaced() -> None:
    faults = Faults()
    first, second = (
        InjectedFault("slow", "leaf01", since_s=1),
        InjectedFault("slow", "leaf01", since_s=2, options={"seconds": 9.0}),
    )
    other = InjectedFault("dim-optic", "leaf01", "swp1s0", 3)
    for fault in (first, second, other):
        faults.add(fault)

    assert faults.active == (second, other)
    assert faults.of("slow", "leaf01", "swp1s0") == second
    assert faults.of("dim-optic", "leaf01") is None
    assert faults.of("slow", "leaf02") is None
    assert faults.heal("slow", "leaf01", now_s=4) == (second,)
    assert faults.heal("slow", "leaf01", now_s=5) == ()
    assert [change.at_s for change in faults.history] == [1, 2, 3, 4]
    assert faults.heal("", "leaf01", now_s=6) == (other,)
    assert not faults.active


def test_faults_survive_json() -> None:
    faults = Faults([check(FABRIC, kind.name, PLACES[kind.targets[0]], since_s=5) for kind in CATALOG.values()])
    written = json.loads(json.dumps(faults.to_json()))

    assert tuple(InjectedFault.from_json(row) for row in written) == faults.active
