"""The health gate, with a device of scripted answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from netkit.deploy.clock import DeployClock
from netkit.deploy.gate import GateAnswer, GateQuestion, Moment
from netkit.design import Fabric
from netkit.facts import Absent, Facts
from netkit.facts.optic import Lane, Module
from netkit.facts.qos import PortQos
from netkit.gate.health import HealthGate
from netkit.platforms.change import Risk
from netkit.platforms.driver import Reader
from netkit.platforms.view import Reply, View
from tests import intents
from tests.judge.scenes import fabric

BUILT = fabric()
FAR = BUILT.switch("leaf02").leaf_prefix


def counters(text: str) -> Facts:
    return Facts(counters=json.loads(text) if text else Absent("nothing"))


def routes(text: str) -> Facts:
    return Facts(routes={prefix: tuple(ways) for prefix, ways in json.loads(text).items()} if text else Absent("?"))


def modules(text: str) -> Facts:
    return Facts(modules={port: Module(lanes={1: Lane(dbm)}) for port, dbm in json.loads(text).items()})


def qos(text: str) -> Facts:
    """PFC on priorities whose queue has the next number."""
    paused = json.loads(text)
    return Facts(qos={"swp1s0": PortQos(pfc_rx=frozenset(paused), priority_to_class={one: one + 1 for one in paused})})


VIEWS = (
    View(("counters",), frozenset({"counters"}), counters),
    View(("routes",), frozenset({"routes"}), routes),
    View(("modules",), frozenset({"modules"}), modules),
    View(("qos",), frozenset({"qos"}), qos),
)


@dataclass
class Device:
    """Rates a second by counter and place, and other facts; time passes only while the gate sleeps."""

    now_s: float = 100.0
    rates: dict[str, dict[str, float]] = field(default_factory=lambda: {"buffer_drops": {"swp1s0/3": 0.0}})
    routes: dict[str, list[str]] | None = field(default_factory=lambda: {FAR: ["swp5", "swp6"], "10.9.0.0/16": ["x"]})
    modules: dict[str, float] = field(default_factory=lambda: {"swp1s0": -1.0})
    paused: list[int] = field(default_factory=lambda: [3])
    asked: list[str] = field(default_factory=list)
    counts: dict[str, dict[str, float]] = field(default_factory=dict)

    def sleep_s(self, seconds: float) -> None:
        self.now_s += seconds
        for name, places in self.rates.items():
            row = self.counts.setdefault(name, {})
            for place, rate in places.items():
                row[place] = row.get(place, 0.0) + rate * seconds

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        self.asked.extend(commands)
        whole = {
            name: {place: int(self.counts.get(name, {}).get(place, 0)) for place in self.rates[name]}
            for name in self.rates
        }
        texts = {
            "counters": json.dumps(whole) if self.rates else "",
            "routes": json.dumps(self.routes) if self.routes is not None else "",
            "modules": json.dumps(self.modules),
            "qos": json.dumps(self.paused),
        }
        return tuple(Reply(texts[command], at_s=self.now_s) for command in commands)


@dataclass
class Scene:
    device: Device
    built: Fabric = BUILT
    risk: Risk = Risk.LOW
    name: str = "leaf01"
    sample: str = ""
    others: GateAnswer = field(default_factory=lambda: GateAnswer("healthy", sample="mine"))
    reported: list[GateQuestion] = field(default_factory=list)

    def ask(self, moment: Moment, **more: Any) -> GateAnswer:
        def others(question: GateQuestion) -> GateAnswer:
            self.reported.append(question)
            return self.others

        clock = DeployClock(lambda: self.device.now_s, self.device.sleep_s, lambda: self.device.now_s)
        gate = HealthGate(self.built, others, lambda _name: VIEWS, clock=clock)
        reader = cast("Reader", self.device)
        question = GateQuestion(self.name, moment, reader, (), self.risk, sample=self.sample, **more)
        answer = gate(question)
        if moment is Moment.BEFORE:
            self.sample = answer.sample
        return answer


def test_an_unchanged_device_is_healthy_and_the_other_gate_gets_its_own_sample_back() -> None:
    scene = Scene(Device())
    assert scene.ask(Moment.BEFORE).is_healthy
    assert scene.ask(Moment.AFTER, time_limit_s=5) == GateAnswer("healthy")
    assert [one.sample for one in scene.reported] == ["", "mine"]
    assert "modules" not in scene.device.asked


def test_descriptions_are_left_to_the_other_gate() -> None:
    scene = Scene(Device(), risk=Risk.NONE)
    assert scene.ask(Moment.BEFORE).is_healthy
    assert scene.ask(Moment.AFTER).is_healthy
    assert scene.device.asked == []


def test_the_verdict_of_the_other_gate_applies() -> None:
    scene = Scene(Device(), others=GateAnswer("worse", ("a session is gone",)))
    assert scene.ask(Moment.AFTER).reasons == ("a session is gone",)


@pytest.mark.parametrize(
    ("change", "verdict", "reason"),
    [
        (
            {"rates": {"buffer_drops": {"swp1s0/3": 7.0}}},
            "worse",
            "leaf01: swp1s0/3: loses lossless packets for lack of buffer, 7 a second, 0 before",
        ),
        (
            {"rates": {"buffer_drops": {"swp1s0/3": 0.0}, "watchdog_detected": {"swp1s0/3": 2.0}}},
            "worse",
            "leaf01: swp1s0/3: its PFC watchdog trips, 2 a second, 0 before",
        ),
        (
            {"rates": {"buffer_drops": {"swp1s0/3": 0.0}, "rx_pause": {"swp1s0/3": 99.0, "swp1s0/0": 900.0}}},
            "healthy",
            "",
        ),
        (
            {"rates": {"buffer_drops": {"swp1s0/3": 0.0}, "rx_pause": {"swp1s0/3": 300.0}}},
            "worse",
            "leaf01: swp1s0/3: is paused, 300 a second, 0 before",
        ),
        ({"rates": {}}, "inconclusive", "leaf01: does not report buffer drops any more"),
        ({"routes": {FAR: ["swp5"]}}, "worse", f"leaf01: reaches {FAR} over 1 ports, 2 before"),
        ({"routes": {}}, "worse", f"leaf01: does not reach {FAR} any more"),
        ({"routes": None}, "inconclusive", "leaf01: does not report its routes any more"),
        ({"modules": {"swp1s0": -3.5}}, "worse", "leaf01: swp1s0: receives 2.5 dB less optical power than before"),
        ({"modules": {"swp1s0": -2.5}}, "healthy", ""),
    ],
)
def test_worse_values_are_reported(change: dict[str, Any], verdict: str, reason: str) -> None:
    scene = Scene(Device(), risk=Risk.PORT)
    assert scene.ask(Moment.BEFORE).is_healthy
    for name, value in change.items():
        setattr(scene.device, name, value)
    answer = scene.ask(Moment.AFTER, time_limit_s=5)
    assert (answer.verdict, *answer.reasons) == ((verdict, reason) if reason else (verdict,))


@pytest.mark.parametrize(
    ("after", "reasons"),
    [
        (50.0, ()),
        (120.0, ()),
        (130.0, ("leaf01: swp1s0/3: loses lossless packets for lack of buffer, 130 a second, 100 before",)),
    ],
)
def test_an_existing_loss_may_vary_by_a_quarter(after: float, reasons: tuple[str, ...]) -> None:
    scene = Scene(Device())
    scene.device.rates = {"buffer_drops": {"swp1s0/3": 100.0}}
    scene.ask(Moment.BEFORE)
    scene.device.rates = {"buffer_drops": {"swp1s0/3": after}}
    assert scene.ask(Moment.AFTER, time_limit_s=5).reasons == reasons


def test_a_switch_without_pfc_may_drop() -> None:
    scene = Scene(Device(), built=fabric("frr", "10.3", purpose="lab"))
    scene.ask(Moment.BEFORE)
    scene.device.rates = {"buffer_drops": {"swp1s0/3": 7.0}}
    assert scene.ask(Moment.AFTER, time_limit_s=5).is_healthy


def test_a_momentary_loss_is_forgiven() -> None:
    scene = Scene(Device())
    scene.ask(Moment.BEFORE)
    began_s = scene.device.now_s
    device = scene.device
    device.rates = {"buffer_drops": {"swp1s0/3": 50.0}}
    sleep_s = device.sleep_s

    def recovering(seconds: float) -> None:
        sleep_s(seconds)
        if device.now_s > began_s + 2:
            device.rates = {"buffer_drops": {"swp1s0/3": 0.0}}

    device.sleep_s = recovering  # type: ignore[method-assign]
    assert scene.ask(Moment.AFTER, time_limit_s=30).is_healthy


def test_a_session_to_be_removed_takes_paths_with_it() -> None:
    scene = Scene(Device())
    scene.ask(Moment.BEFORE)
    scene.device.routes = {FAR: ["swp5"]}
    assert scene.ask(Moment.AFTER, ending=frozenset({"swp6"})).is_healthy


@pytest.mark.parametrize(
    ("predicted", "ports", "reasons"),
    [
        (0, 0, ()),
        (1, 1, ()),
        (1, 0, (f"leaf01: does not reach {FAR} any more",)),
        (2, 1, (f"leaf01: reaches {FAR} over 1 ports, 2 before",)),
    ],
)
def test_routes_need_no_more_ports_than_the_plan_predicts(predicted: int, ports: int, reasons: tuple[str, ...]) -> None:
    scene = Scene(Device())
    scene.ask(Moment.BEFORE)
    scene.device.routes = {FAR: ["swp5", "swp6"][:ports]}
    for leaf, found in (("leaf02", reasons), ("leaf03", scene.ask(Moment.AFTER).reasons)):
        assert scene.ask(Moment.AFTER, narrowed={leaf: predicted}).reasons == found


def test_a_new_prefix_over_fewer_ports_does_not_count_while_the_old_one_inside_is_there() -> None:
    scene = Scene(Device())
    narrow = f"{FAR.partition('/')[0]}/31"
    scene.device.routes = {narrow: ["swp5", "swp6"]}
    scene.ask(Moment.BEFORE)
    scene.device.routes = {FAR: ["swp7"], narrow: ["swp5", "swp6"]}
    assert scene.ask(Moment.AFTER).is_healthy
    for routes in (
        {FAR: ["swp7"]},
        {FAR: ["swp7"], narrow: ["swp5"]},
        {FAR: ["swp7"], "10.9.0.0/31": ["swp5", "swp6"]},
    ):
        scene.device.routes = routes
        assert scene.ask(Moment.AFTER).reasons == (f"leaf01: reaches {FAR} over 1 ports, 2 before",)


def test_prefixes_of_the_intent_that_a_run_began_with_may_be_unknown_now() -> None:
    scene = Scene(Device())
    scene.ask(Moment.BEFORE)
    scene.built = intents.fabric(intents.values({"pools": {"hosts": "10.64.0.0/16"}}))
    assert FAR not in {leaf.leaf_prefix for leaf in scene.built.tier("leaf")}
    assert scene.ask(Moment.AFTER).is_healthy


def test_a_discarded_summary_is_reached_by_its_more_specific_routes() -> None:
    scene = Scene(Device())
    narrow = f"{FAR.partition('/')[0]}/31"
    scene.ask(Moment.BEFORE)
    scene.device.routes = {FAR: [], narrow: ["swp1", "swp2"]}
    assert scene.ask(Moment.AFTER).is_healthy
    scene.device.routes = {FAR: [], narrow: ["swp1"]}
    assert scene.ask(Moment.AFTER).reasons == (f"leaf01: reaches {FAR} over 1 ports, 2 before",)
    scene.device.routes = {FAR: [], f"{FAR.partition('/')[0]}/20": [], "10.9.0.0/16": ["x"]}
    assert scene.ask(Moment.AFTER).reasons == (f"leaf01: does not reach {FAR} any more",)


@pytest.mark.parametrize("own", [BUILT.switch("leaf01").host_ports[0].name, "Vlan10"])
def test_what_a_leaf_gives_its_own_hosts_is_not_the_way_to_another_leaf(own: str) -> None:
    scene = Scene(Device())
    narrow = f"{FAR.partition('/')[0]}/31"  # it moves to another prefix, and its old one becomes that of leaf02
    inside = f"{BUILT.switch('leaf01').leaf_prefix.partition('/')[0]}/31"  # its new one had addresses of others
    scene.device.routes = {narrow: [own], inside: ["swp5", "swp6"]}
    scene.ask(Moment.BEFORE)
    scene.device.routes = {}
    assert scene.ask(Moment.AFTER).is_healthy
    scene = Scene(Device())
    scene.device.routes = {narrow: [own, "swp5"]}
    scene.ask(Moment.BEFORE)
    scene.device.routes = {}
    assert scene.ask(Moment.AFTER).reasons == (f"leaf01: does not reach {FAR} any more",)


@pytest.mark.parametrize(("drained", "is_healthy"), [("spine01", True), ("", False)])
def test_a_drained_session_takes_its_paths_with_it_and_no_more(drained: str, *, is_healthy: bool) -> None:
    changes: dict[str, Any] = {"overrides": {"leaf01": {"drain_neighbors": [drained]}}} if drained else {}
    scene = Scene(Device(), fabric(**changes))
    scene.ask(Moment.BEFORE)
    scene.device.routes = {FAR: ["swp5"]}
    assert scene.ask(Moment.AFTER).is_healthy is is_healthy
    scene.device.routes = {}
    assert not scene.ask(Moment.AFTER).is_healthy


@pytest.mark.parametrize(
    ("rates", "verdict", "reason"),
    [
        ({"queue_tx_bytes": {"swp1s0/3": 0.0, "swp1s0/0": 1e9}}, "healthy", ""),
        (
            {"queue_tx_bytes": {"swp1s0/3": 1e9}},
            "worse",
            (
                "leaf01: swp1s0/3 sends 8.0 Gb/s of the lossless class; deploy again when it is idle; "
                "--disruptive --busy proceeds anyway"
            ),
        ),
        (
            {"rx_errors": {"swp1s0": 0.0}},
            "inconclusive",
            "leaf01: does not report whether lossless traffic flows; --disruptive --busy proceeds without knowing",
        ),
    ],
)
def test_a_disruptive_change_needs_an_idle_device(
    rates: dict[str, dict[str, float]], verdict: str, reason: str
) -> None:
    scene = Scene(Device(rates=rates))
    answer = scene.ask(Moment.BEFORE, needs_idle=True)
    assert (answer.verdict, *answer.reasons) == ((verdict, reason) if reason else (verdict,))
    assert Scene(Device(rates=rates)).ask(Moment.BEFORE).is_healthy


def test_the_lossless_class_is_watched_on_the_priority_that_runs() -> None:
    """The intent moves it from 5 to 3, or a rollback goes back to 5."""
    busy = Scene(Device(rates={"queue_tx_bytes": {"swp1s0/3": 0.0, "swp1s0/6": 1e9}}, paused=[5]), risk=Risk.BUFFER)
    assert busy.ask(Moment.BEFORE, needs_idle=True).verdict == "worse"
    scene = Scene(Device(rates={"watchdog_detected": {"swp1s0/3": 0.0}}), risk=Risk.BUFFER)
    scene.ask(Moment.BEFORE)
    scene.device.rates, scene.device.paused = {"watchdog_detected": {"swp1s0/5": 0.0}}, [5]
    assert scene.ask(Moment.AFTER, time_limit_s=5).is_healthy
    scene.device.rates = {"watchdog_detected": {"swp1s0/5": 2.0}}
    assert scene.ask(Moment.AFTER, time_limit_s=5).verdict == "worse"


def test_a_switch_whose_lossless_class_runs_on_another_priority_is_not_unused() -> None:
    counts = {"queue_tx_bytes": {"swp1s0/6": 1e12}}
    device = Device(rates={"queue_tx_bytes": {"swp1s0/3": 0.0, "swp1s0/6": 1e9}}, routes={}, counts=counts, paused=[5])
    scene = Scene(device, risk=Risk.BUFFER, others=GateAnswer("healthy", is_blank=True))
    assert scene.ask(Moment.BEFORE, needs_idle=True).verdict == "worse"


@pytest.mark.parametrize(("after", "verdict"), [(1e9, "worse"), (1e7, "healthy")])
def test_a_drained_device_has_to_be_empty(after: float, verdict: str) -> None:
    scene = Scene(Device(rates={"queue_tx_bytes": {"swp1s0/3": 1e9}}))
    scene.ask(Moment.BEFORE)
    scene.device.rates = {"queue_tx_bytes": {"swp1s0/3": after}}
    assert scene.ask(Moment.DRAINED).verdict == verdict


def test_without_traffic_before_nothing_is_compared_after() -> None:
    for device, reads in (("leaf01", True), (BUILT.hosts[0].name, False)):
        scene = Scene(Device(routes={}), name=device, others=GateAnswer("healthy", is_blank=True))
        assert scene.ask(Moment.BEFORE).is_blank
        assert bool(scene.device.asked) is reads
        scene.device.asked.clear()
        scene.device.rates = {"buffer_drops": {"swp1s0/3": 7.0}}
        assert scene.ask(Moment.AFTER) == scene.others
        assert scene.device.asked == []
    sent = {"queue_tx_bytes": {"swp1s0/3": 1e12}}
    carrying = Device(rates={"queue_tx_bytes": {"swp1s0/3": 1e9}}, routes={}, counts=sent)
    scene = Scene(carrying, others=GateAnswer("healthy", is_blank=True))
    assert not scene.ask(Moment.BEFORE).is_blank


@pytest.mark.parametrize(
    ("sent", "ways", "is_known_unused"),
    [
        ({"queue_tx_bytes": {"swp1s0/3": 0, "swp1s0/0": 7}}, {}, True),
        ({"queue_tx_bytes": {"swp1s0/3": 7}}, {}, False),
        ({"queue_tx_bytes": {"swp1s0/3": 0}}, {FAR: ["swp5"]}, False),
        ({"buffer_drops": {"swp1s0/3": 0}}, {}, True),
        ({}, {}, True),
    ],
    ids=["nothing ever", "something once", "has routes", "not reported", "no counters"],
)
def test_a_switch_that_never_sent_anything_is_not_watched(
    sent: dict[str, dict[str, float]], ways: dict[str, list[str]], is_known_unused: bool
) -> None:
    """Where it is not known at once, two samples tell whether anything flows."""
    still = {name: dict.fromkeys(places, 0.0) for name, places in sent.items()}
    scene = Scene(Device(rates=still, routes=ways, counts=sent), others=GateAnswer("healthy", is_blank=True))
    began_s = scene.device.now_s
    assert scene.ask(Moment.BEFORE).is_blank is not bool(ways)
    assert (scene.device.now_s == began_s) is is_known_unused
    began_s = scene.device.now_s
    needing = scene.ask(Moment.BEFORE, needs_idle=True)
    has_counter = "queue_tx_bytes" in sent
    assert (needing.verdict, needing.is_blank) == (
        ("healthy", is_known_unused) if has_counter else ("inconclusive", False)
    )
    assert (scene.device.now_s == began_s) is (is_known_unused and has_counter)


def test_without_a_reading_before_the_result_is_unknown() -> None:
    scene = Scene(Device(), sample=json.dumps({"others": "mine"}))
    assert scene.ask(Moment.AFTER).verdict == "inconclusive"
