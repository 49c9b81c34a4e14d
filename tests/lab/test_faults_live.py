"""Every fault of the catalogue on a running lab: it can be injected, is visible where expected, and heals."""

from collections.abc import Iterator

import pytest

from netkit.lab.faults import CATALOG
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric
from tests.lanes import daily

pytestmark = needs_lab

CNP_SENT, CNP_HANDLED = "np_cnp_sent", "rp_cnp_handled"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    values = intent(units=[{"unit": 1, "hosts": 4}])
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), values)) as found:
        yield found


@pytest.fixture(autouse=True)
def healthy_after(lab: RunningLab) -> Iterator[None]:
    yield
    healed = lab.lab("heal", "--all")
    assert healed.returncode == 0, healed.stderr
    lab.lab("calm")
    until(lambda: lab.lab("check").returncode == 0, f"the lab is healthy again: {lab.lab('check').stderr}")


PLACES = {
    "switch": "leaf01",
    "switch port": "leaf01:swp1s0",
    "host": "gpu02",
    "host NIC": "gpu02:rail1",
}
BETWEEN_SWITCHES = "leaf02:swp33s0"
"""Where a fault needs a session, or optical power."""
NEEDS_PEER = {"bgp-session-down", "adaptive-routing-half-on"}


@pytest.mark.parametrize("name", daily(CATALOG, "pause-storm", "wrong-cable", "apply-fails-quietly"))
def test_every_fault_can_be_injected_at_its_places_and_healed(lab: RunningLab, name: str) -> None:
    for target in CATALOG[name].targets:
        place = BETWEEN_SWITCHES if name in NEEDS_PEER and target == "switch port" else PLACES[target]
        made = lab.lab("break", name, place)
        assert (made.returncode, made.stdout) == (0, f"{name} at {place}\n"), made.stderr
        assert f"active: {name} at {place}\n" in lab.lab("break", "--list").stdout
        again = lab.lab("break", name, place)
        assert again.returncode == 3
        assert again.stderr == f"error: {name} at {place} is active already; heal it first\n"
        healed = lab.lab("heal", place, name)
        assert (healed.returncode, healed.stdout) == (0, f"{name} at {place} is healed\n"), healed.stderr


def test_an_unknown_or_misplaced_fault_is_refused_with_the_valid_ones(lab: RunningLab) -> None:
    said = {
        ("dim-optics", "leaf01:swp1s0"): "no fault 'dim-optics'; did you mean dim-optic? there are pause-storm,",
        ("dim-optic", "leaf01"): "dim-optic does not apply to a switch; name switch port or host NIC",
        ("dim-optic", "leaf09:swp1s0"): "no device 'leaf09'; did you mean leaf0",
        ("slow", "leaf01 seconds=long"): "slow: seconds is 'long'; give a number; it is how much longer",
    }
    for (name, place), text in said.items():
        done = lab.lab("break", name, *place.split())
        assert done.returncode == 3
        assert done.stderr.startswith(f"error: {text}"), done.stderr


def test_congestion_is_marked_answered_and_slows_senders_down(lab: RunningLab) -> None:
    before = counters(lab)
    assert lab.lab("incast", "gpu01:rail0", "--senders", "3", "--seconds", "120").returncode == 0
    until(lambda: gained(lab, before, "gpu01", CNP_SENT) > 5, "gpu01 has sent CNPs")
    until(lambda: sum(gained(lab, before, f"gpu0{n}", CNP_HANDLED) for n in (2, 3, 4)) > 5, "senders have heard CNPs")


def test_cnps_lost_at_a_nic_are_sent_and_never_handled(lab: RunningLab) -> None:
    for host in ("gpu02", "gpu03", "gpu04"):
        assert lab.lab("break", "cnp-loss", f"{host}:rail0").returncode == 0
    before = counters(lab)
    assert lab.lab("incast", "gpu01:rail0", "--senders", "3", "--seconds", "120").returncode == 0
    until(lambda: gained(lab, before, "gpu01", CNP_SENT) > 20, "gpu01 has sent CNPs")
    assert sum(gained(lab, before, f"gpu0{n}", CNP_HANDLED) for n in (2, 3, 4)) == 0


def test_a_switch_that_does_not_mark_causes_no_cnps(lab: RunningLab) -> None:
    for switch in ("leaf01", "leaf02", "spine01", "spine02"):
        assert lab.lab("break", "ecn-unmarked", switch).returncode == 0
    until(lambda: counters(lab) == counters(lab), "no CNP is on its way any more")
    before = counters(lab)
    assert lab.lab("incast", "gpu01:rail0", "--senders", "3", "--seconds", "120").returncode == 0
    arrived = packets(lab)
    until(lambda: packets(lab) - arrived > 500, "the incast has gone on for a while")
    assert gained(lab, before, "gpu01", CNP_SENT) == 0


def test_a_wrong_mtu_loses_large_packets_only(lab: RunningLab) -> None:
    assert lab.lab("break", "wrong-mtu", "leaf01:swp1s0", "bytes=1500").returncode == 0
    (address,) = [a for a in lab.run("gpu01", "hostname", "-I").split() if a in lab.run("leaf01", "ip", "neigh")] or [
        ""
    ]
    target = address or lab.run("gpu01", "hostname", "-I").split()[0]
    for size, expected in ((56, 0), (4000, 1)):
        done = lab.lab("exec", "leaf01", "--", "ping", "-c", "2", "-W", "2", "-M", "do", "-s", str(size), target)
        assert done.returncode == expected, (size, done.stdout, done.stderr)


def test_a_session_that_is_down_is_named_by_status(lab: RunningLab) -> None:
    assert lab.lab("break", "bgp-session-down", BETWEEN_SWITCHES).returncode == 0
    until(lambda: "leaf02" in not_ready(lab), "the session has fallen")
    assert not_ready(lab)["leaf02"].startswith("swp33s0: session to spine01 is ")


def not_ready(lab: RunningLab) -> dict[str, str]:
    rows = [line.split(maxsplit=3) for line in lab.lab("status").stdout.splitlines()[1:]]
    return {row[0]: row[3] for row in rows if row[3] != "ready"}


def counters(lab: RunningLab) -> dict[tuple[str, str], int]:
    found = {}
    for host in ("gpu01", "gpu02", "gpu03", "gpu04"):
        for name in (CNP_SENT, CNP_HANDLED):
            found[host, name] = counter(lab, host, name)
    return found


def counter(lab: RunningLab, host: str, name: str) -> int:
    text = lab.shell(host, f"cat /sys/class/infiniband/*/ports/1/hw_counters/{name}")
    return sum(map(int, text.split()))


def gained(lab: RunningLab, before: dict[tuple[str, str], int], host: str, name: str) -> int:
    return counter(lab, host, name) - before[host, name]


def packets(lab: RunningLab) -> int:
    return int(lab.shell("gpu01", "cat /sys/class/net/rail0/statistics/rx_packets"))
