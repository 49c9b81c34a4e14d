"""EOS: NAPALM's own driver over HTTP on a loopback port."""

import base64
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from netkit.lab.personalities.eos import Eos
from tests.lab.personalities.eos_node import RecordedNode, config_of, eos_fabric, switch_on
from tests.lab.running import until

napalm = pytest.importorskip("napalm", reason="NAPALM is not installed")
CREDENTIALS = base64.b64encode(b"netkit:secret").decode()
PATIENCE_S = 120


@contextmanager
def served(eos: Eos) -> Iterator[int]:
    """Serve a switch's eAPI and yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = 401, b"Unauthorized\n"
            headers: Mapping[str, str] = {}
            if self.headers["Authorization"] == f"Basic {CREDENTIALS}":
                status, headers, answer = eos.https("POST", self.path, dict(self.headers), body, "netkit")
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def driver(eos: Eos, password: str = "secret") -> Iterator[Any]:  # noqa: S107 - a test's own
    """Yield an open NAPALM driver."""
    with served(eos) as port:
        options = {"transport": "http", "port": port}
        kind = napalm.get_network_driver("eos")
        device = kind("127.0.0.1", "netkit", password, timeout=PATIENCE_S, optional_args=options)
        device.open()
        try:
            yield device
        finally:
            device.close()


def renamed(text: str) -> str:
    return text.replace("hostname leaf01", "hostname renamed")


def test_a_replacement_is_compared_committed_and_rolled_back(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    text = config_of(eos_fabric(), "leaf01")
    with driver(eos) as device:
        device.load_replace_candidate(config=renamed(text))
        diff = [line for line in device.compare_config().splitlines() if line[:1] in {"+", "-"}]
        assert diff == ["-hostname leaf01", "+hostname renamed"]
        device.commit_config()
        assert node.state.hostname == "renamed"
        assert "hostname renamed" in eos.machine.flash.startup
        device.rollback()
        assert node.state.hostname == "leaf01"


def test_a_second_replacement_changes_nothing(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    with driver(eos) as device:
        device.load_replace_candidate(config=config_of(eos_fabric(), "leaf01"))
        assert device.compare_config() == ""
        device.discard_config()
    assert eos.machine.sessions == {}


def test_a_factory_fresh_switch_accepts_the_whole_configuration(tmp_path: Path) -> None:
    node = RecordedNode(eos_fabric().switch("leaf01"), tmp_path)
    eos = Eos(node)
    eos.boot()
    with driver(eos) as device:
        device.load_replace_candidate(config=config_of(eos_fabric(), "leaf01"))
        device.commit_config()
    provisioned, other = switch_on(tmp_path)
    assert node.state == other.state
    assert provisioned.machine.running == eos.machine.running


def test_a_timed_commit_is_confirmed(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    with driver(eos) as device:
        device.load_merge_candidate(config="hostname renamed")
        assert not device.has_pending_commit()
        device.commit_config(revert_in=120)
        assert device.has_pending_commit()
        device.confirm_commit()
        assert not device.has_pending_commit()
    assert node.state.hostname == "renamed"
    assert "hostname renamed" in eos.machine.flash.startup


def test_a_timed_commit_reverts_by_itself(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    with driver(eos) as device:
        device.load_merge_candidate(config="hostname renamed")
        device.commit_config(revert_in=2)
        until(lambda: not device.has_pending_commit(), "the commit has come back")
        device.config_session = None
    assert node.state.hostname == "leaf01"
    assert "hostname leaf01" in eos.machine.flash.startup


def test_a_timed_commit_is_rolled_back(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    with driver(eos) as device:
        device.load_merge_candidate(config="hostname renamed")
        device.commit_config(revert_in=120)
        device.rollback()
        assert not device.has_pending_commit()
    assert node.state.hostname == "leaf01"


def test_a_wrong_line_is_named_and_the_session_is_gone(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    with (
        driver(eos) as device,
        pytest.raises(napalm.base.exceptions.MergeConfigException, match=r"'bogus' failed.*Invalid input"),
    ):
        device.load_merge_candidate(config="hostname renamed\nbogus")
    assert eos.machine.sessions == {}


def test_a_session_of_another_user_blocks(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    eos.machine.enter("someone")
    with driver(eos) as device, pytest.raises(napalm.base.exceptions.SessionLockedException):
        device._lock()  # noqa: SLF001 - the public way waits ten seconds for the same answer


def test_a_wrong_password_is_refused(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    with pytest.raises(Exception, match=r"(?i)unauthorized"), driver(eos, "wrong"):
        pass


def test_configurations_are_returned(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    with driver(eos) as device:
        found = device.get_config()
        assert "router bgp 4200010000" in found["running"]
        assert "router bgp 4200010000" in found["startup"]
        device.load_merge_candidate(config="hostname renamed")
        assert "hostname renamed" in device.get_config(retrieve="candidate")["candidate"]


def test_getters_match_the_output_of_the_switch(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    with driver(eos) as device:
        facts = device.get_facts()
        assert (facts["hostname"], facts["model"], facts["vendor"]) == ("leaf01", "DCS-7060X6-64PE", "Arista")
        assert "Ethernet1/1" in facts["interface_list"]
        ports = device.get_interfaces()
        assert (ports["Ethernet1/1"]["mtu"], ports["Ethernet1/1"]["speed"], ports["Ethernet1/1"]["is_up"]) == (
            9214,
            400_000.0,
            True,
        )
        counters = device.get_interfaces_counters()["Ethernet1/1"]
        assert (counters["rx_octets"], counters["tx_octets"], counters["rx_discards"]) == (1000, 2000, 1)
        optics = device.get_optics()["Ethernet1/1"]["physical_channels"]["channel"][0]["state"]
        assert optics["input_power"]["instant"] == -1.0
        assert device.get_lldp_neighbors() == {}
        assert device.get_lldp_neighbors_detail() == {}
        assert device.get_users()["netkit"]["level"] == 15
        assert device.get_vlans() == {}
        assert device.is_alive() == {"is_alive": True}
