"""The configuration that makes a switch of the lab serve gNMI."""

from pathlib import Path

import pytest

from netkit.lab.state import GnmiState
from tests.lab.personalities.eos_node import result, switch_on
from tests.lab.personalities.nvue.bench import desk
from tests.lab.personalities.sonic.bench import Bench, fabric

TRANSPORT = ("configure", "management api gnmi", "transport grpc default")
CERTIFICATES = {"server_crt": "/etc/s.crt", "server_key": "/etc/s.key"}


def test_eos_serves_on_the_management_interface(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    assert node.state.gnmi is None
    result(eos, *TRANSPORT)
    assert node.state.gnmi is None
    result(eos, *TRANSPORT, "vrf MGMT")
    assert node.state.gnmi == GnmiState(6030, has_tls=False)
    result(eos, *TRANSPORT, "ssl profile GNMI", "port 6031")
    assert node.state.gnmi == GnmiState(6031)
    result(eos, *TRANSPORT, "shutdown")
    assert node.state.gnmi is None


@pytest.mark.parametrize(("version", "table"), [("202305", "TELEMETRY"), ("202411", "GNMI")])
def test_sonic_serves_with_a_configuration_row(version: str, table: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, fabric(version))
    row = {"port": "8081", "user_auth": "password"}
    code, *_ = bench.patch({"op": "add", "path": f"/{table}", "value": {"gnmi": row}})
    assert (code, bench.node.states[-1].gnmi) == (0, GnmiState(8081, has_tls=False))
    code, *_ = bench.patch({"op": "add", "path": f"/{table}/certs", "value": CERTIFICATES})
    assert (code, bench.node.states[-1].gnmi) == (0, GnmiState(8081))
    code, *_ = bench.patch({"op": "remove", "path": f"/{table}/gnmi/user_auth"})
    assert (code, bench.node.states[-1].gnmi) == (0, GnmiState(8081, has_authentication=False))


def test_cumulus_serves_with_a_configured_address(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.type("nv set system gnmi-server state enabled")
    made.type("nv config apply -y")
    assert made.node.reported[-1].gnmi is None
    made.type("nv set system gnmi-server listening-address 192.0.2.10")
    made.type("nv config apply -y")
    assert made.node.reported[-1].gnmi == GnmiState(9339, is_cumulus=True)


def test_cumulus_before_gnmi_refuses_it(tmp_path: Path) -> None:
    made = desk(tmp_path, "5.9.2")
    code, _ = made.type("nv set system gnmi-server state enabled")
    assert code != 0
