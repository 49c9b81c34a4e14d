"""SNMP of a whole lab, read as a manager does: its LLDP neighbors are the cabling of the design."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from netkit.design.fabric import Fabric, Host
from tests import intents
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = [
    needs_lab,
    pytest.mark.skipif(not shutil.which("snmpwalk"), reason="snmpwalk is not installed"),
]

LEAF = {"model": "SN5600", "platform": "sonic", "version": "202411"}
SPINE = {"model": "DCS-7060X6-64PE", "platform": "eos", "version": "4.35.1F"}
VALUES = intent(
    switches={
        "leaf": {**LEAF, "host_breakout": "2x400G", "uplink_breakout": "2x400G"},
        "spine": {**SPINE, "breakout": "2x400G", "slots": 2},
    }
)
IF_NAME, IF_ALIAS, HC_IN = (f".1.3.6.1.2.1.31.1.1.1.{column}" for column in (1, 18, 6))
REMOTE_PORT_TEXT, REMOTE_SYSTEM = ".1.0.8802.1.1.2.1.4.1.1.8", ".1.0.8802.1.1.2.1.4.1.1.9"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), VALUES)) as made:
        yield made


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return intents.fabric(VALUES)


def walk(lab: RunningLab, device: str, root: str, auth: str = "@secret:SNMP_AUTH@") -> dict[str, str]:
    """The values below an object, by the rest of the OID."""
    where = json.loads((lab.home / lab.name / "lab.json").read_text(encoding="utf-8"))["devices"][device]
    who = ["-v3", "-u", "watcher", "-l", "authPriv", "-a", "SHA", "-A", auth, "-x", "AES", "-X", "@secret:SNMP_PRIV@"]
    done = subprocess.run(
        [
            "snmpbulkwalk",
            *who,
            "-m",
            "",
            "-On",
            "-t",
            "60",
            "-r",
            "1",
            f"{where['address']}:{where['snmp_port']}",
            root,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return {
        name.removeprefix(f"{root}."): value.strip('"')
        for name, value in re.findall(r"^(\.[\d.]+) = \w+: (.*)$", done.stdout, re.MULTILINE)
    }


def heard(lab: RunningLab, device: str) -> dict[str, tuple[str, str]]:
    """System and port name of the neighbor of each port, by the port's description."""
    descriptions = walk(lab, device, IF_ALIAS)
    texts = walk(lab, device, REMOTE_PORT_TEXT)
    return {
        descriptions.get(at.split(".")[1], at): (system, texts.get(at, ""))
        for at, system in walk(lab, device, REMOTE_SYSTEM).items()
    }


def test_every_switch_has_the_designed_neighbor_on_every_port(lab: RunningLab, fabric: Fabric) -> None:
    for switch in fabric.switches:
        wanted = {}
        for port in switch.ports:
            is_host = isinstance(fabric.device(port.peer), Host)
            wanted[port.description] = (port.peer, port.peer_port if is_host else f"{switch.name}:{port.name}")
        until(lambda name=switch.name, wanted=wanted: heard(lab, name) == wanted, f"{switch.name} hears {wanted}")  # type: ignore[misc]


def test_octets_are_those_the_kernel_counts(lab: RunningLab, fabric: Fabric) -> None:
    spine = fabric.tier("spine")[0]

    def counted() -> int:
        shown = json.loads(lab.run(spine.name, "ip", "-j", "-s", "link", "show", "et1_1"))
        return int(shown[0]["stats64"]["rx"]["bytes"])

    before = counted()
    assert before > 0
    index = next(at for at, name in walk(lab, spine.name, IF_NAME).items() if name == "Ethernet1/1")
    until(lambda: int(walk(lab, spine.name, HC_IN)[index]) >= before, "SNMP counts what the kernel counted")
    assert int(walk(lab, spine.name, HC_IN)[index]) <= counted()


def test_a_manager_with_a_wrong_secret_gets_nothing(lab: RunningLab, fabric: Fabric) -> None:
    name = fabric.tier("leaf")[0].name
    assert walk(lab, name, IF_NAME, auth="something-else") == {}
    assert len(walk(lab, name, IF_NAME)) == len(fabric.switch(name).ports)


def test_a_switch_answers_again_after_a_power_cut(lab: RunningLab, fabric: Fabric) -> None:
    leaf = fabric.tier("leaf")[0]
    assert lab.lab("restart", leaf.name).returncode == 0
    until(lambda: len(heard(lab, leaf.name)) == len(leaf.ports), f"{leaf.name} hears all its neighbours")
