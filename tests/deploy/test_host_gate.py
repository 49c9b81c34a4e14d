"""How the health gate judges the rails of a host."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from netkit.deploy import GateAnswer, GateQuestion
from netkit.deploy.gate import HostGate, Moment
from netkit.design.fabric import Fabric
from netkit.errors import DeviceError
from netkit.platforms.change import Risk
from netkit.platforms.driver import RailState
from netkit.platforms.linux import rails
from netkit.platforms.linux.rails import ExpectedRail, RouteLookup
from tests import intents
from tests.deploy.fake import FakeDevice, FakeHostDriver, Time

FABRIC = intents.fabric(intents.values())
HOST = FABRIC.hosts[0]
OWNERS = {nic.address: host.name for host in FABRIC.hosts for nic in host.nics}
WELL = RailState("rail0", is_configured=True, is_dark=False, problems=(), answers=(), address="10.0.0.1")


@dataclass
class Reader(FakeHostDriver):
    """A host with one rail."""

    seen: list[RailState] = field(default_factory=list)
    asked: list[Mapping[str, Sequence[str]]] = field(default_factory=list)

    def rail_states(self, far: Mapping[str, Sequence[str]], mtu_bytes: int = 0) -> tuple[RailState, ...]:
        del mtu_bytes
        self.asked.append(far)
        return (self.seen.pop(0) if len(self.seen) > 1 else self.seen[0],)


def others(question: GateQuestion) -> GateAnswer:
    return GateAnswer("inconclusive", (f"{question.device} is another's",))


@dataclass
class Lost:
    """A prediction that some addresses are out of reach, until a later step or for good."""

    addresses: Collection[str]
    is_for_good: bool = False

    def reaches(self, _source: str, target: str) -> bool:
        return target in OWNERS and target not in self.addresses

    def may_stay_lost(self, _source: str, target: str) -> bool:
        return target in self.addresses and not self.is_for_good


def judged(
    before: RailState,
    *after: RailState,
    time_limit_s: float = 0.0,
    prediction: Lost | None = None,
    fabric: Fabric = FABRIC,
) -> GateAnswer:
    time = Time()
    gate = HostGate(fabric, others, clock=time.clock)
    reader = Reader(seen=[before])
    question = GateQuestion(HOST.name, Moment.BEFORE, reader, (), Risk.PORT)
    sample = gate(question)
    assert sample.is_healthy
    reader.seen = list(after)
    asked = replace(question, moment=Moment.AFTER, sample=sample.sample, time_limit_s=time_limit_s)
    return gate(replace(asked, prediction=prediction))


def called(rail: int = 0, fabric: Fabric = FABRIC) -> tuple[str, ...]:
    reader = Reader(seen=[WELL])
    HostGate(fabric, others)(GateQuestion(HOST.name, Moment.BEFORE, reader, (), Risk.PORT))
    return tuple(reader.asked[0][f"rail{rail}"])


def test_the_leaf_and_two_remote_hosts_are_pinged_along_the_rail_and_across() -> None:
    leaf, *far = called()
    nic = HOST.nics[0]
    assert leaf == nic.gateway
    owners = {one.address: one for other in FABRIC.hosts if other != HOST for one in other.nics}
    assert [owners[one].rail == nic.rail for one in far] == [True, True, False, False]
    assert all(owners[one].leaf != nic.leaf for one in far)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (WELL, WELL, ""),
        (WELL, replace(WELL, problems=("its MTU is 1500, not 9000",)), "rail0: its MTU is 1500, not 9000"),
        (WELL, replace(WELL, is_dark=True), "rail0 has no carrier"),
        (replace(WELL, is_dark=True), replace(WELL, is_dark=True), ""),
        (replace(WELL, is_configured=False), replace(WELL, problems=("x",)), "rail0: x"),
        (WELL, replace(WELL, is_configured=False, is_dark=True), ""),
    ],
)
def test_a_configured_rail_must_match_its_files(before: RailState, after: RailState, reason: str) -> None:
    expected = GateAnswer("worse", (f"{HOST.name}: {reason}",)) if reason else GateAnswer("healthy")
    assert judged(before, after) == expected


def test_what_answered_before_must_answer_and_one_host_of_a_kind_is_enough() -> None:
    leaf, far, other, across, another = called()
    before = replace(WELL, answers=(leaf, far, other))
    assert judged(before, replace(WELL, answers=(leaf, other))).is_healthy
    assert judged(before, replace(WELL, answers=(leaf,))).reasons == (
        f"{HOST.name}: rail0: no far rail answers any more; before, {', '.join(sorted((far, other)))} did",
    )
    assert judged(before, replace(WELL, answers=(far,))).reasons == (
        f"{HOST.name}: rail0: its leaf does not answer any more; before, {leaf} did",
    )
    before = replace(WELL, answers=(across, another))
    assert judged(before, replace(WELL, answers=(another,))).is_healthy
    lost = "no NIC on another rail answers any more"
    assert judged(before, WELL).reasons == (
        f"{HOST.name}: rail0: {lost}; before, {', '.join(sorted((across, another)))} did",
    )
    assert judged(WELL, WELL).is_healthy  # none answered before


def test_what_a_later_step_brings_back_need_not_answer() -> None:
    leaf, far, other, across, another = called()
    before = replace(WELL, answers=(leaf, far, across))
    assert judged(before, replace(WELL, answers=(leaf, across)), prediction=Lost({far, other})).is_healthy
    assert judged(before, replace(WELL, answers=(across,)), prediction=Lost({far, other})).reasons == (
        f"{HOST.name}: rail0: its leaf does not answer any more; before, {leaf} did",
    )
    assert judged(before, WELL, prediction=Lost({far, other, across, another})).is_healthy
    assert not judged(before, WELL, prediction=Lost({})).is_healthy
    assert not judged(before, WELL, prediction=Lost({far, other, across, another}, is_for_good=True)).is_healthy


def test_ipv6_is_probed_like_ipv4_and_judged_for_itself() -> None:
    pools = {"loopbacks_v6": "2001:db8:255::/64", "hosts_v6": "2001:db8:128::/48"}
    fabric = intents.fabric(intents.values({"pools": pools}))
    of_ipv6 = {nic.address: nic.address_v6 for host in fabric.hosts for nic in host.nics}
    leaf, far, other, across, another, *six = called(fabric=fabric)
    gateway = fabric.hosts[0].nics[0].gateway_v6
    assert six == [gateway, *(of_ipv6[one] for one in (far, other, across, another))]
    before = replace(WELL, answers=(leaf, far, across, *six))
    after = replace(WELL, answers=(leaf, far, across))
    head, hosts = f"{HOST.name}: rail0: ", [", ".join(sorted(six[start : start + 2])) for start in (1, 3)]
    expected = (
        f"{head}its leaf does not answer over IPv6 any more; before, {gateway} did",
        f"{head}no far rail answers over IPv6 any more; before, {hosts[0]} did",
        f"{head}no NIC on another rail answers over IPv6 any more; before, {hosts[1]} did",
    )
    assert judged(before, after, fabric=fabric).reasons == expected
    assert judged(before, after, fabric=fabric, prediction=Lost(six[1:])).is_healthy
    lost = judged(before, replace(after, answers=tuple(six)), fabric=fabric, prediction=Lost(six[1:]))
    assert lost.reasons == judged(before, replace(WELL, answers=tuple(six)), fabric=fabric).reasons


def test_it_waits_for_rails_that_come_back() -> None:
    leaf = called()[0]
    before = replace(WELL, answers=(leaf,))
    assert judged(before, WELL, WELL, before, time_limit_s=5.0).is_healthy
    assert not judged(before, WELL, time_limit_s=5.0).is_healthy


def test_other_devices_are_judged_by_the_other_gate() -> None:
    time = Time()
    reader = FakeHostDriver("leaf01", FakeDevice(time, {}, {}), lambda _device, _operation: None)
    answer = HostGate(FABRIC, others)(GateQuestion("leaf01", Moment.BEFORE, reader, (), Risk.LOW))
    assert answer.reasons == ("leaf01 is another's",)


RAILS = (
    ExpectedRail(
        "rail0",
        "10.0.0.1/31",
        9000,
        (RouteLookup("10.0.1.6", "10.0.0.0", unbound=True), RouteLookup("10.1.0.6", "", False)),
    ),
)
ADDRESS = '{"family":"inet","local":"10.0.0.1","prefixlen":31}'
LINK = f'{{"ifname":"rail0","flags":["UP","LOWER_UP"],"mtu":9000,"addr_info":[{ADDRESS}]}}'
GOOD = '[{"dst":"10.0.1.6","gateway":"10.0.0.0","dev":"rail0"}]'


def printed(link: str = LINK, first: str = GOOD, second: str = "") -> str:
    failed = "".join(f"Command failed -:{number}\n" for number, one in enumerate((first, second), 1) if not one)
    return f"[{link}]\nways\n{first}\n{second}\nrefused\n{failed}answers\nrail0 10.0.0.0\nend\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (printed(), replace(WELL, answers=("10.0.0.0",))),
        (
            printed(first=GOOD.replace("rail0", "rail1")),
            replace(
                WELL,
                problems=("the route to 10.0.1.6 from 10.0.0.1 oif rail0 is via 10.0.0.0 on rail1",),
                answers=("10.0.0.0",),
            ),
        ),
        (
            printed(first='[{"dst":"10.0.1.6","dev":"rail0"}]'),
            replace(
                WELL,
                problems=("the route to 10.0.1.6 from 10.0.0.1 oif rail0 is via no gateway on rail0",),
                answers=("10.0.0.0",),
            ),
        ),
        (
            printed(second=GOOD),
            replace(
                WELL,
                problems=("the route to 10.1.0.6 from 10.0.0.1 is via 10.0.0.0 on rail0",),
                answers=("10.0.0.0",),
            ),
        ),
        (
            printed(first="", link=LINK.replace("9000", "1500").replace('"10.0.0.1"', '"10.0.0.3"')),
            replace(
                WELL,
                problems=(
                    "its MTU is 1500, not 9000",
                    "its address is 10.0.0.3/31, not 10.0.0.1/31",
                    "the route to 10.0.1.6 from 10.0.0.1 oif rail0 is refused",
                ),
                answers=("10.0.0.0",),
                address="10.0.0.3",
            ),
        ),
        (printed(link=LINK.replace(',"LOWER_UP"', "")), replace(WELL, is_dark=True, answers=("10.0.0.0",))),
    ],
)
def test_reports_about_rails(text: str, expected: RailState) -> None:
    assert rails.rail_states(text, RAILS, {"rail0": ("10.0.0.0",)}, "gpu01") == (expected,)


def test_who_answers_packets_of_the_whole_mtu_is_reported() -> None:
    text = printed().replace("rail0 10.0.0.0\n", "rail0 10.0.0.0 whole\nrail0 10.0.0.2\n")
    expected = replace(WELL, answers=("10.0.0.0", "10.0.0.2"), whole=("10.0.0.0",))
    assert rails.rail_states(text, RAILS, {"rail0": ("10.0.0.0", "10.0.0.2")}, "gpu01") == (expected,)


Broken = Callable[[str], str]


@pytest.mark.parametrize("broken", [lambda _text: "", lambda text: text[:-5], lambda text: text.replace("{", "<", 1)])
def test_garbage_from_a_host_is_reported(broken: Broken) -> None:
    with pytest.raises(DeviceError, match="gpu01: the state of its rails cannot be read"):
        rails.rail_states(broken(printed()), RAILS, {}, "gpu01")
