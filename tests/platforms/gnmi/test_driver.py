"""Requests and subscriptions to the lab's own gNMI server over gRPC, in the dialect of each platform."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from netkit.errors import AccessError
from netkit.facts import Sample
from netkit.lab.agents import gnmi as agent
from netkit.lab.state import GnmiState, SwitchState
from netkit.observe.assemble import sample
from netkit.platforms.gnmi import driver
from netkit.platforms.gnmi.facts import views
from netkit.platforms.view import View
from tests.lab.gnmi_bed import Served, needs_gnmi, served
from tests.lab.running import until

pytestmark = needs_gnmi


@pytest.fixture(params=["eos", "sonic", "nvue"])
def switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    with served(request.param, tmp_path) as made:
        yield made


@pytest.fixture(params=["eos", "sonic"])
def asked_switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    with served(request.param, tmp_path) as made:
        yield made


def problem(switch: Served, **changes: Any) -> str:
    viewer = switch.viewer(**changes)
    with pytest.raises(AccessError) as caught:
        viewer.open()
    viewer.close()
    return caught.value.problems[0].message


def asked(switch: Served) -> Sample:
    counting: tuple[View, ...] = tuple(view for view in views(switch.subject) if view.counts)
    commands = [command for view in counting for command in view.commands]
    viewer = switch.viewer()
    viewer.open()
    found = sample(counting, dict(zip(commands, viewer.ask(commands), strict=True)))
    viewer.close()
    assert found is not None
    return found


class Listening:
    """A subscription with its own thread."""

    def __init__(self, switch: Served, **changes: Any) -> None:
        self.samples: list[Sample] = []
        self.failure = ""
        self.stop = threading.Event()
        self._viewer = switch.viewer(**changes)
        self._subject = switch.subject
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        try:
            self._viewer.open()
            self._viewer.stream(self._subject, 1.0, self.samples.append, self.stop)
        except AccessError as error:
            self.failure = error.problems[0].message
        finally:
            self._viewer.close()


def test_a_stream_reports_the_same_as_a_get_request(asked_switch: Served) -> None:
    switch = asked_switch
    once = asked(switch)
    listening = Listening(switch)
    until(lambda: len(listening.samples) > 1, "two samples")
    listening.stop.set()
    listening.thread.join()
    first, second = listening.samples[:2]
    asked_only = {"carrier_changes"} if switch.subject.platform == "sonic" else set()
    assert first.counters == {name: at for name, at in once.counters.items() if name not in asked_only}
    assert second.at_s > first.at_s
    assert listening.failure == ""


def test_counters_move_with_the_hardware(tmp_path: Path) -> None:
    with served("sonic", tmp_path) as switch:
        listening = Listening(switch)
        until(lambda: bool(listening.samples), "a sample")
        node = switch.node
        node.readings = tuple(
            replace(one, traffic=replace(one.traffic, rx_bytes=one.traffic.rx_bytes + 5000)) for one in node.readings
        )
        first = listening.samples[0].counters["rx_bytes"]
        moved = {port: total + 5000 for port, total in first.items()}
        until(lambda: listening.samples[-1].counters["rx_bytes"] == moved, "the counts to move")
        listening.stop.set()
        listening.thread.join()


def test_a_server_that_goes_away_ends_the_stream_with_a_reason(switch: Served) -> None:
    listening = Listening(switch)
    until(lambda: bool(listening.samples), "a sample")
    switch.agent.end()
    listening.thread.join(60)
    assert listening.failure.startswith(f"leaf01: gNMI at 127.93.12.1 port {switch.agent.port}: ")
    again = problem(switch)
    assert again.endswith("connection refused")


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("unreachable", "the connection was lost"),
        ("refuses-auth", driver.NO_LOGIN),
        ("garbage", "gRPC reports DATA_LOSS"),
        ("hangs", "no update for 6 s"),
    ],
)
def test_a_switch_that_fails_ends_the_stream_with_a_reason(fault: str, why: str, tmp_path: Path) -> None:
    with served("eos", tmp_path) as switch:
        listening = Listening(switch, patience_s=6)
        until(lambda: bool(listening.samples), "a sample")
        switch.gate.fault = fault
        listening.thread.join(60)
        assert listening.failure.endswith(f": {why}")


def test_cumulus_streams_and_serves_no_get_requests(tmp_path: Path) -> None:
    with served("nvue", tmp_path) as switch:
        listening = Listening(switch)
        until(lambda: bool(listening.samples), "a sample")
        listening.stop.set()
        listening.thread.join()
        (reading, *_) = switch.node.ports()
        reported = listening.samples[0].counters
        found = {name: places[reading.name] for name, places in reported.items() if reading.name in places}
        assert found == {
            "rx_bytes": reading.traffic.rx_bytes,
            "tx_bytes": reading.traffic.tx_bytes,
            "rx_packets": reading.traffic.rx_packets,
            "tx_packets": reading.traffic.tx_packets,
            "rx_errors": reading.traffic.rx_errors,
            "tx_errors": reading.traffic.tx_errors,
            "rx_drops": reading.traffic.rx_dropped,
            "tx_drops": reading.traffic.tx_dropped,
            "carrier_changes": reading.carrier_changes,
            "fec_uncorrectable": reading.fec.uncorrectable_codewords,
        }
        assert reported["tx_pause"][f"{reading.name}/3"] == reading.priorities[3].tx_pause
        assert reported["queue_ecn_marked"][f"{reading.name}/3"] == reading.queues[3].ecn_marked_packets
        assert reported["queue_drops"][f"{reading.name}/3"] == reading.queues[3].dropped_packets
        viewer = switch.viewer()
        viewer.open()
        (reply,) = viewer.ask(["once /interfaces/interface/state"])
        assert reply.failure == f"{driver.MISSING}: only streams are supported"
        viewer.close()


def test_closing_ends_a_request(switch: Served) -> None:
    viewer = switch.viewer()
    viewer.open()
    viewer.close()
    assert [reply.failure for reply in viewer.ask(["once /interfaces/interface/state"])] == [driver.ENDED]


def test_a_refused_login_is_reported(switch: Served) -> None:
    for changes in ({"user": "mallory"}, {"password": "guessed"}):
        assert problem(switch, **changes).endswith(f": {driver.NO_LOGIN}")


def test_another_certificate_is_refused(switch: Served) -> None:
    assert "its certificate is not the trusted one" in problem(switch, certificate="0" * 64)
    assert "its certificate is not trusted yet" in problem(switch, certificate="")
    assert "the TLS handshake failed" in problem(switch, shield="authorities")


def test_a_plaintext_server_is_accepted_only_on_request(tmp_path: Path) -> None:
    with served("sonic", tmp_path, GnmiState(0, has_tls=False, has_authentication=False)) as switch:
        assert "the server does not use TLS" in problem(switch)
        viewer = switch.viewer(password="", shield="none")
        viewer.open()
        viewer.close()


def test_paths_that_the_server_lacks_are_reported_by_query(asked_switch: Served) -> None:
    switch = asked_switch
    viewer = switch.viewer()
    viewer.open()
    replies = viewer.ask(["once OTHER_DB:/nothing", "show version", "capabilities"])
    viewer.close()
    lacks, *others = (reply.failure for reply in replies)
    assert lacks.startswith(f"{driver.MISSING}: ")
    assert others == ["not a gNMI query", ""]


def test_proxies_of_the_environment_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.93.12.9:1")
    with served("eos", tmp_path) as switch:
        viewer = switch.viewer()
        viewer.open()
        viewer.close()


def test_a_missing_library_is_reported_with_what_to_install(switch: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LIBRARY", ("no_such_module_of_grpc",))
    viewer = switch.viewer()
    with pytest.raises(AccessError) as caught:
        viewer.open()
    remedy = "install netkit with its extra gnmi: pip install '.[gnmi]' in its checkout"
    assert caught.value.problems[0].remedy == remedy


def test_a_lab_without_the_library_reports_that_it_serves_no_gnmi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "LIBRARY", ("no_such_module_of_grpc",))
    with served("eos", tmp_path) as switch:
        assert (switch.agent.state, switch.agent.lack) == (None, agent.MISSING)
        assert agent.MISSING in switch.node.logged
        switch.agent.apply(SwitchState("leaf01"))
        assert switch.agent.lack == ""


def test_a_server_is_there_again_after_a_power_cut(switch: Served) -> None:
    before, state = switch.agent.port, switch.agent.state
    assert state is not None
    switch.agent.end()
    switch.agent.apply(SwitchState("leaf01", gnmi=replace(state, port=before)))
    viewer = switch.viewer()
    viewer.open()
    viewer.close()


def test_another_service_on_the_port_is_reported_in_one_line(tmp_path: Path) -> None:
    with served("eos", tmp_path) as switch, socket.create_server(("127.93.12.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        assert problem(switch, port=port, patience_s=0.3).endswith(f": {driver.NO_ANSWER}")
        assert problem(switch, port=port, patience_s=0.3, shield="none").endswith(f": {driver.NO_ANSWER}")


def test_a_configuration_that_ends_gnmi_ends_the_server(switch: Served) -> None:
    switch.agent.apply(SwitchState("leaf01"))
    assert switch.agent.state is None
    assert problem(switch).endswith("connection refused")
