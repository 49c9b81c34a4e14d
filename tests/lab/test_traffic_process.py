"""The traffic process: refused input, when flows and the process end, and hosts that are attached and detached."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from netkit.errors import LabError
from netkit.lab.model.wiring import NicTraffic
from netkit.lab.traffic import nic
from netkit.lab.traffic.engine import TrafficProcess, serve
from netkit.lab.traffic.flow import FlowEnd, NicAddress, NicConfig, TrafficFlow
from netkit.lab.traffic.nic import bound, source_port
from netkit.lab.traffic.nic import inside as inside_namespace
from tests.lab.traffic_scene import NIC, RAIL, Scene, inside, namespace, needs_root, scene, until

H1, H2 = FlowEnd("h1", RAIL), FlowEnd("h2", RAIL)


@pytest.fixture
def process() -> Iterator[TrafficProcess]:
    with TrafficProcess() as made:
        yield made


@pytest.fixture
def lab() -> Iterator[Scene]:
    with scene() as made:
        yield made


@pytest.mark.parametrize(
    ("flow", "why"),
    [
        (TrafficFlow("f", H1, H2, rate_pps=0), "rate_pps: Input should be greater than 0"),
        (TrafficFlow("f", H1, H2, rate_pps=1001), "rate_pps: Input should be less than or equal to 1000"),
        (TrafficFlow("f", H1, H2, size_bytes=5000), "size_bytes: Input should be less than or equal to 4096"),
        (TrafficFlow("f", H1, H2, duration_s=1e6), "duration_s: Input should be less than or equal to 86400"),
        (TrafficFlow("f", H1, H2), "h1:rail0 is not attached"),
    ],
)
def test_a_flow_out_of_bounds_is_refused(process: TrafficProcess, flow: TrafficFlow, why: str) -> None:
    with pytest.raises(LabError, match=why):
        process.start([flow])


def test_an_unknown_nic_cannot_be_configured(process: TrafficProcess) -> None:
    with pytest.raises(LabError, match="h1:rail0 is not attached"):
        process.configure(H1, NIC)


def test_an_unknown_namespace_is_refused(process: TrafficProcess, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="h1: cannot attach: No such file"):
        process.attach("h1", str(tmp_path / "none"), [])


@needs_root
def test_an_unknown_interface_is_refused(process: TrafficProcess) -> None:
    with namespace() as where, pytest.raises(LabError, match="h1: cannot attach: No such device"):
        process.attach("h1", where, [NicAddress(RAIL, "10.7.1.1")])


@needs_root
def test_excess_load_is_refused_and_nothing_of_it_starts(lab: Scene) -> None:
    with pytest.raises(LabError, match="12000 packets a second together are more than 10000"):
        lab.traffic.start([replace(lab.flow("h1", "h2", 1000), name=str(number)) for number in range(12)])
    with pytest.raises(LabError, match="5000 flows are more than the 4096"):
        lab.traffic.start([replace(lab.flow("h1", "h2", 1), name=str(number)) for number in range(5000)])
    assert lab.traffic.flows() == {}


@needs_root
def test_flows_that_cannot_all_start_leave_none_behind(lab: Scene) -> None:
    inside(lab.hosts["h2"], "ip", "link", "set", RAIL, "name", "gone")
    with pytest.raises(LabError, match="h2: cannot start a flow: No such device"):
        lab.traffic.start([lab.flow("h1", "h2", 1), lab.flow("h2", "h1", 1)])
    assert lab.traffic.flows() == {}


@needs_root
def test_a_source_port_in_use_is_not_taken(lab: Scene) -> None:
    with inside_namespace(lab.hosts["h1"]):
        taken = [bound(lab.addresses["h1"], source_port(2 * number + 1), RAIL) for number in range(1, 5)]
    lab.traffic.start([lab.flow("h1", "h2", 50)])
    until("packets", lambda: lab.count("h2", "rx_roce_packets") >= 5)
    for one in taken:
        one.close()


@needs_root
def test_a_flow_ends_by_itself(lab: Scene) -> None:
    lab.traffic.start([lab.flow("h1", "h2", 50, duration_s=0.5)])
    until("the end of the flow", lambda: not lab.traffic.flows())
    until("every packet", lambda: lab.count("h2", "rx_roce_packets") == lab.count("h1", "tx_roce_packets"))
    assert 0 < lab.count("h1", "tx_roce_packets") <= 50 * 0.5 + 1


@needs_root
def test_a_flow_of_the_same_name_replaces_the_first(lab: Scene) -> None:
    lab.traffic.start([lab.flow("h1", "h2", 50)])
    lab.traffic.start([replace(lab.flow("h1", "h2", 20), name="other"), lab.flow("h1", "h2", 40)])
    assert {name: report.rate_pps for name, report in lab.traffic.flows().items()} == {"h1-h2": 40, "other": 20}
    lab.traffic.stop(["h1-h2", "nobody"])
    assert set(lab.traffic.flows()) == {"other"}
    lab.traffic.stop([])
    assert set(lab.traffic.flows()) == {"other"}


@needs_root
def test_counts_agree_at_both_ends(lab: Scene) -> None:
    lab.traffic.start([lab.flow("h1", "h2", 200), replace(lab.flow("h1", "h2", 200), name="two", size_bytes=1024)])
    until("packets", lambda: lab.count("h2", "rx_roce_packets") >= 50)
    lab.traffic.stop_all()
    sent = lab.traffic.all_traffic()[H1]
    until("every packet", lambda: lab.count("h2", "rx_roce_packets") == sent.tx_roce_packets)
    got = lab.traffic.traffic("h2")[RAIL]
    assert got.rx_roce_bytes == sent.tx_roce_bytes > 0
    assert got.rx_priority_packets == sent.tx_priority_packets == (0, 0, 0, sent.tx_roce_packets, 0, 0, 0, 0)
    assert got.out_of_sequence == got.duplicate_requests == sent.packet_seq_err == 0


@needs_root
def test_a_host_that_does_not_trust_the_dscp_uses_one_priority(lab: Scene) -> None:
    lab.configure(NicConfig(replace(NIC.settings, priority_of_dscp=())))
    lab.traffic.start([lab.flow("h1", "h2", 100)])
    until("packets", lambda: lab.count("h2", "rx_roce_packets") >= 10)
    lab.traffic.stop_all()
    counted = lab.traffic.traffic("h1")[RAIL]
    assert counted.tx_priority_packets == (counted.tx_roce_packets, 0, 0, 0, 0, 0, 0, 0)


@needs_root
def test_a_packet_over_the_mtu_is_not_sent_and_the_flow_reports_it(lab: Scene) -> None:
    lab.traffic.start([replace(lab.flow("h1", "h2", 100), size_bytes=4096)])
    until("a failure", lambda: lab.traffic.flows()["h1-h2"].failure == "Message too long")
    assert lab.count("h1", "tx_roce_packets") == 0


@needs_root
def test_a_nic_without_a_route_sends_to_itself_and_loses_everything(lab: Scene) -> None:
    inside(lab.hosts["h1"], "ip", "route", "del", "default")
    lab.traffic.start([lab.flow("h1", "h2", 100)])
    until("packets", lambda: lab.traffic.flows()["h1-h2"].sent >= 20)
    assert lab.count("h2", "rx_roce_packets") == 0


@needs_root
def test_a_host_attached_again_continues(lab: Scene) -> None:
    lab.traffic.start([lab.flow("h1", "h2", 100), lab.flow("h2", "h1", 100)])
    until("packets", lambda: lab.count("h1", "rx_roce_packets") >= 5)
    for host in ("h1", "h2"):
        lab.traffic.attach(host, lab.hosts[host], [NicAddress(RAIL, lab.addresses[host])])
    before = {host: lab.count(host, "rx_roce_packets") for host in ("h1", "h2")}
    assert before["h1"] >= 5
    until("more packets", lambda: all(lab.count(host, "rx_roce_packets") > before[host] + 5 for host in before))


def test_every_count_has_a_name_the_model_knows() -> None:
    source = Path(nic.__file__).read_text(encoding="utf-8")
    names = {part.split('"')[0] for part in source.split('.counts["')[1:]}
    assert len(names) > 5
    assert names <= {field.name for field in fields(NicTraffic)}


def test_a_closed_process_reports_that() -> None:
    process = TrafficProcess()
    process.close()
    with pytest.raises(LabError, match="the traffic process has ended"):
        process.flows()


def test_a_killed_process_reports_that() -> None:
    process = TrafficProcess()
    os.kill(process.pid, signal.SIGKILL)
    until("its end", lambda: not is_running(process.pid))
    with pytest.raises(LabError, match="bring the lab down and up again"):
        process.flows()
    process.close()


def test_the_process_ends_with_its_parent() -> None:
    script = "\n".join(
        [
            "import sys, time",
            "from netkit.lab.traffic.engine import TrafficProcess",
            "process = TrafficProcess()",
            "process.flows()",
            "print(process.pid, flush=True)",
            "time.sleep(600)",
        ]
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    orphan = int(parent.stdout.readline())
    assert is_running(orphan)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until("the end of the orphan", lambda: not is_running(orphan))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("line", [b"\n", b"nonsense\n", b"[]\n", b'{"op": "dance"}\n', b'{"op": "stop", "names": 3}\n'])
def test_an_invalid_line_is_answered_with_an_error(line: bytes) -> None:
    (commands, commands_write), (replies, replies_write) = os.pipe(), os.pipe()
    with os.fdopen(commands_write, "wb") as asking, os.fdopen(replies, "rb") as answers:
        asking.write(line + b'{"op": "report"}\n')
        asking.close()
        serve(commands, replies_write)
        os.close(commands)
        os.close(replies_write)
        refused, reported = answers.read().splitlines()
    assert b'"error":""' not in refused
    assert reported == b'{"error":"","nics":[],"flows":[]}'
