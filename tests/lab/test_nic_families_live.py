"""One fabric whose hosts have NICs of three vendors: deployed, clean, and a fault of each vendor found where it is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.hardware.catalog import SHIPPED
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = needs_lab

MODELS = {"hgx-b200-bluefield3": "19", "mi300x-thor2": "1a", "mi355x-pollara": "1b"}
"""Model of a unit's host, after the first → bus of its first NIC."""
CONNECTX, BLUEFIELD, THOR, POLLARA = (f"gpu-u0{unit}-01" for unit in range(1, 5))
NICCTL = "/etc/netkit/nicctl.conf"


def write_models(folder: Path) -> None:
    """Write host models with the PCI map that the shipped ones lack."""
    folder.mkdir(parents=True)
    for name, bus in MODELS.items():
        text = (SHIPPED / "hosts" / f"{name}.yaml").read_text(encoding="utf-8")
        for rail in range(2):
            known = f'{{pci: "0000:{int(bus, 16) + 32 * rail:02x}:00.0", netdev: gpu{rail}, rdma: rdma_rail{rail},'
            text = text.replace("{pci: null, netdev: null, rdma: null,", known, 1)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    others = ({"unit": unit, "hosts": 1, "host_model": model} for unit, model in enumerate(MODELS, 2))
    values = intent(
        units=[{"unit": 1, "hosts": 1}, *others],
        ceilings={"units": 4, "hosts_per_unit": 2, "spines": 2},
        names={"leaf": "leaf{number:02}", "spine": "spine{slot:02}", "host": "gpu-u{unit:02}-{slot:02}"},
    )
    values["services"] = {}  # no secrets
    fabric = write_fabric(tmp_path_factory.mktemp("fabric"), values)
    write_models(fabric / "models" / "hosts")
    with running(fabric, "--bare") as found:
        done = found.netkit("deploy", "--fabric", fabric, "--lab", found.name, "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        yield found


@pytest.fixture
def incast(lab: RunningLab) -> Iterator[Any]:
    """A function that sends from all other hosts to one, until the test ends."""

    def send(host: str) -> None:
        assert lab.lab("incast", f"{host}:rail0", "--senders", "3", "--seconds", "300").returncode == 0

    yield send
    lab.lab("calm")
    lab.lab("heal", "--all")


def found(lab: RunningLab, *checks: str) -> set[tuple[str, str, str, str]]:
    """Check, device, place and remedy of each finding that is a cause."""
    done = lab.netkit("check", *checks, "--fabric", lab.fabric, "--lab", lab.name, "--window", "25", "--format", "json")
    content: dict[str, Any] = json.loads(done.stdout)
    heads = (cause["head"] for cause in content["causes"])
    seen = {(row["check"], row["device"], row["place"], row["remedy"]) for row in heads}
    print(*sorted(seen), sep="\n", end="\n\n")
    return seen


def test_a_fabric_of_four_nics_is_clean(lab: RunningLab) -> None:
    """Only each family's own tools are on its hosts, and no finding is about a feature of another family."""
    tools = {host: set(lab.run(host, "ls", "/run/netkit/bin").split()) for host in (BLUEFIELD, THOR, POLLARA)}
    seen = {host: tools[host] & {"mlnx_qos", "mlxconfig", "nicctl", "dcb"} for host in tools}
    assert seen == {BLUEFIELD: {"mlnx_qos", "mlxconfig", "dcb"}, THOR: {"dcb"}, POLLARA: {"nicctl", "dcb"}}
    assert "BCM57608" in lab.run(THOR, "lspci")
    lab.run(POLLARA, "sh", "-e", NICCTL)
    assert found(lab) == set()


@pytest.mark.parametrize(
    ("sender", "receiver"),
    [
        *(pytest.param(sender, THOR, marks=pytest.mark.whole) for sender in (CONNECTX, BLUEFIELD)),
        (THOR, CONNECTX),
    ],
)
def test_cnps_that_a_sender_drops_are_attributed_to_it(
    lab: RunningLab, incast: Any, sender: str, receiver: str
) -> None:
    lab.run(POLLARA, "sh", "-e", NICCTL)
    assert lab.lab("break", "cnp-loss", f"{sender}:rail0").returncode == 0
    incast(receiver)
    until(lambda: ("ecn-cnp.parity", sender, "rail0") in {row[:3] for row in found(lab, "ecn-cnp")}, "it is found")


def test_a_pollara_without_dcqcn_has_a_remedy(lab: RunningLab, incast: Any) -> None:
    """A restart clears what `nicctl` set, and nothing sets it again by itself."""
    assert lab.lab("restart", POLLARA).returncode == 0
    remedy = "its DCQCN is not set up: run the commands of /etc/netkit/nicctl.conf on the host, at each boot"

    def is_found() -> bool:
        incast(POLLARA)  # anew for each check: later ones see no marks any more
        is_one = found(lab, "ecn-cnp") == {("ecn-cnp.marks", POLLARA, "rail0", remedy)}
        if not is_one:
            lab.lab("calm")
        return is_one

    until(is_found, "it is found")
    lab.run(POLLARA, "sh", "-e", NICCTL)
    until(lambda: found(lab, "ecn-cnp") == set(), "it answers")
