"""A lab whose switches were configured by hand: adopted, planned empty, then one number changes and nothing else."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.design import Fabric
from netkit.design.fabric import Switch
from netkit.lab.folder import LabFolder, ask_keeper
from tests import intents
from tests.cli.site import Site
from tests.command import run
from tests.deploy.rolling import INTERVAL_S, addresses, pair_call
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric

pytestmark = needs_lab
VALUES = on_platform("frr", intent(purpose="lab", host_routes="supernet"), version="8.4.4")
PREFIXES = ("10.255.0.0/24 ge 32", "10.128.0.0/16 ge 24 le 30")


def by_hand(switch: Switch) -> str:
    """Write frr.conf as an engineer would: one peer group, filters for both directions, other names and defaults."""
    group = "UP" if switch.role == "leaf" else "DOWN"
    lines = ["frr defaults datacenter", f"hostname {switch.name}", "log syslog informational"]
    lines += ["service integrated-vtysh-config", "no zebra nexthop kernel enable", "!"]
    for port in switch.ports:
        what = "server" if port.role == "host" else "link to"
        lines += [f"interface {port.name}", f" description {what} {port.peer} port {port.peer_port}", "exit", "!"]
    lines += [f"router bgp {switch.asn}", f" bgp router-id {switch.loopback}", " no bgp default ipv4-unicast"]
    lines += [" bgp bestpath as-path multipath-relax", f" neighbor {group} peer-group"]
    lines += [f" neighbor {group} remote-as external", f" neighbor {group} timers connect 5"]
    lines += [f" neighbor {port.name} interface peer-group {group}" for port in switch.fabric_ports]
    lines += [" !", " address-family ipv4 unicast", f"  network {switch.loopback}/32"]
    lines += [f"  aggregate-address {prefix} summary-only" for prefix in switch.aggregates]
    lines += ["  redistribute connected"] if switch.role == "leaf" else []
    lines += [f"  neighbor {group} activate", f"  neighbor {group} route-map OURS in"]
    lines += [f"  neighbor {group} route-map OURS out", "  maximum-paths 16", " exit-address-family", "exit", "!"]
    lines += [f"ip prefix-list OURS seq {5 * place} permit {one}" for place, one in enumerate(PREFIXES, 1)]
    return "\n".join([*lines, "!", "route-map OURS permit 10", " match ip address prefix-list OURS", "exit", "!", ""])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot a small fabric, and put configurations made by hand in the place of netkit's."""
    fabric = intents.fabric(VALUES)
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), VALUES), name="h") as booted:
        for switch in fabric.switches:
            booted.run(switch.name, "tee", "/etc/frr/frr.conf", stdin=by_hand(switch))
            booted.run(switch.name, "/usr/lib/frr/frr-reload.py", "--reload", "/etc/frr/frr.conf")
        far = fabric.hosts[-1].nics[1].address

        def is_converged() -> bool:
            done = booted.lab("exec", fabric.hosts[0].name, "--", "ping", "-c", "1", "-W", "1", "-I", "rail0", far)
            return done.returncode == 0

        until(is_converged, "a ping across rails")
        yield booted


def configurations(lab: RunningLab, fabric: Fabric) -> Mapping[str, list[str]]:
    return {one.name: lab.run(one.name, "vtysh", "-c", "show running-config").splitlines() for one in fabric.switches}


def test_one_number_changes_and_nothing_else(lab: RunningLab, tmp_path: Path) -> None:
    site, fabric = Site(lab, tmp_path), intents.fabric(VALUES)
    saved, own = tmp_path / "saved", tmp_path / "own"
    assert site.netkit("backup", "--out", saved).returncode == 0
    done = run("adopt", saved, "--out", own)
    assert done.returncode == 0, done.stderr
    assert "a plan against these configurations is empty\n" in done.stdout

    on_lab = f"--lab={lab.name}"
    planned = site.real(own, "plan", on_lab)
    assert planned.stdout.splitlines()[0] == f"own: nothing to change on {len(fabric.names)} devices", planned.stdout

    values: dict[str, Any] = yaml.safe_load((own / "fabric.yaml").read_text(encoding="utf-8"))
    assert values["routing"]["max_paths"] == 16
    values["routing"]["max_paths"] = 24
    write_fabric(own, values)
    before = configurations(lab, fabric)
    calls = {pair: pair_call(pair) for pair in addresses(fabric)}
    keeper = LabFolder(lab.home / lab.name)
    ask_keeper(keeper, "begin-calls", interval_s=INTERVAL_S, calls=[asdict(call) for call in calls.values()])
    try:
        time.sleep(1)
        deployed = site.real(own, "deploy", on_lab, "--yes", "--watch", "1")
    finally:
        heard = ask_keeper(keeper, "end-calls")["heard"]
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    for name, lines in configurations(lab, fabric).items():
        assert lines == [line.replace("maximum-paths 16", "maximum-paths 24") for line in before[name]]
        assert lines != before[name]
    assert len(heard) == len(calls) > 1
    assert [one for one in heard if one["problem"] or one["gaps"]] == []
