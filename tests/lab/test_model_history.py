"""Random sequences of events in a fabric: both ends of a cable agree, and counters never decrease."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.lab.faults import CATALOG, check
from netkit.lab.model.wiring import KernelPort
from netkit.lab.reading import SwitchPortReading
from tests.lab.model_bed import STARTED_S, Bed, pauses, small_fabric
from tests.lanes import examples

FABRIC = small_fabric()
TAMPERING = {"counter-reset", "counter-wrap", "counter-stuck"}
NAMES = [
    name
    for name, kind in CATALOG.items()
    if (kind.maker == "model" or name == "pfc-off") and "switch port" in kind.targets and name not in TAMPERING
]
PLACES = ["leaf01:swp33s0", "leaf03:swp33s1", "spine01:swp1s0", "spine02:swp2s1"]


@dataclass(frozen=True)
class Event:
    """An event after some seconds."""

    after_s: float
    name: str
    place: str
    is_healing: bool


EVENTS = st.lists(
    st.builds(
        Event,
        st.floats(min_value=0, max_value=300),
        st.sampled_from([*NAMES, "link"]),
        st.sampled_from(PLACES),
        st.booleans(),
    ),
    max_size=12,
)


def happen(bed: Bed, event: Event, now_s: float) -> None:
    device, _, port = event.place.partition(":")
    if event.name == "link":
        bed.kernel[device, port] = KernelPort(is_up=event.is_healing, mtu_bytes=9216)
        peer = next(each for each in FABRIC.switch(device).ports if each.name == port)
        bed.kernel[peer.peer, peer.peer_port] = bed.kernel[device, port]
        bed.ports(device, now_s)
    elif event.is_healing:
        bed.faults.heal(event.name, device, port, now_s=now_s)
    else:
        bed.faults.add(check(FABRIC, event.name, event.place, since_s=now_s))


def shown(bed: Bed, now_s: float) -> dict[str, dict[str, SwitchPortReading]]:
    return {switch.name: bed.ports(switch.name, now_s) for switch in FABRIC.switches}


def numbers(reading: SwitchPortReading) -> list[int]:
    row, watchdog = pauses(reading), reading.watchdogs[3]
    counted = [row.rx, row.tx, row.rx_us, row.tx_us, watchdog.storms_detected, watchdog.storms_restored]
    counted += [watchdog.dropped_packets, reading.buffers[3].dropped_packets, reading.queues[3].tx_packets]
    return [*counted, reading.queues[3].peak_bytes, reading.buffers[3].headroom_peak_bytes, *reading.fec.histogram]


@settings(max_examples=examples(30))
@given(EVENTS)
def test_cables_agree_and_counters_rise_through_any_history(events: list[Event]) -> None:
    bed, now_s = Bed(FABRIC), STARTED_S
    before = shown(bed, now_s)
    for event in events:
        now_s += event.after_s
        happen(bed, event, now_s)
        after = shown(bed, now_s)
        for link in FABRIC.links():
            if link.kind != "host":
                near, far = pauses(after[link.device][link.port]), pauses(after[link.peer][link.peer_port])
                assert (near.rx, near.tx) == (far.tx, far.rx)
        for device, readings in after.items():
            for name, reading in readings.items():
                earlier = before[device][name]
                assert all(was <= now for was, now in zip(numbers(earlier), numbers(reading), strict=True))
        before = after


@settings(max_examples=examples(30))
@given(EVENTS)
def test_when_everything_is_healed_only_counters_differ(events: list[Event]) -> None:
    bed, now_s = Bed(FABRIC), STARTED_S
    for event in events:
        now_s += event.after_s
        happen(bed, event, now_s)
    for event in events:
        happen(bed, Event(0, event.name, event.place, is_healing=True), now_s)
    late_s = now_s + 60
    first, second = shown(bed, late_s), shown(bed, late_s + 10)
    healthy = Bed(FABRIC)
    well, better = shown(healthy, late_s), shown(healthy, late_s + 10)

    for device, readings in second.items():
        for name, reading in readings.items():
            grown, usual = (
                [now - was for was, now in zip(numbers(one), numbers(other), strict=True)]
                for one, other in ((first[device][name], reading), (well[device][name], better[device][name]))
            )
            assert all(abs(one - other) <= 1 for one, other in zip(grown, usual, strict=True))
            assert reading.module == better[device][name].module
            assert (reading.link_up_s, reading.adaptive_routing) == (
                better[device][name].link_up_s,
                better[device][name].adaptive_routing,
            )
            assert not any(row.is_stormed for row in reading.watchdogs)
