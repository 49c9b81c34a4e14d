"""QoS of NICs of other vendors than NVIDIA: the script for Broadcom, the commands for AMD, and the counters of both."""

import copy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from netkit.facts.qos import Ecn
from netkit.judge.parity import is_read, rail_sum
from netkit.platforms.linux.facts import hardware, interface
from netkit.platforms.linux.model import parse, text
from netkit.platforms.linux.view import views
from netkit.platforms.linux.view_nic import nv_settings
from netkit.render import Engine
from tests import nic_shims
from tests.facts.linux.case import CARDS
from tests.facts.linux.case import tree as made
from tests.intents import fabric, values
from tests.nic_shims import SHIM
from tests.test_host_nic_qos import MKDIR, PCI, SCRIPT, Machine, put

RDMA = {"rail0": "bnxt_re0", "rail1": "bnxt_re1"}
CC = ("ecn_enable", "ecn_marking", "roce_prio", "roce_dscp", "cnp_prio", "cnp_dscp")
FRESH: dict[str, Any] = {**nic_shims.FRESH, "tsa": ["ets", "ets", "strict"], "bw": [50, 50, 0], "prio_tc": [0] * 8}
IN_EFFECT = """ecn status (ecn_enable)\t\t\t: {ecn_enable}
ecn marking (ecn_marking)\t\t\t: {ecn_marking}
congestion control mode (cc_mode)\t\t: Probabilistic
\t\troce prio (roce_prio)\t\t: {roce_prio}
\t\troce dscp (roce_dscp)\t\t: {roce_dscp}
\t\tcnp prio (cnp_prio)\t\t: {cnp_prio}
\t\tcnp dscp (cnp_dscp)\t\t: {cnp_dscp}
"""
# configfs shows effective values in `apply` after a write; the plain file here has to be filled in.
APPLY = f"""
import sys
from pathlib import Path
words = {{"ecn_enable": ["Disabled", "Enabled"], "ecn_marking": ["Not-ECT", "ECT(1)"]}}
file = Path(sys.argv[1])
numbers = {{key: int((file.parent / key).read_text(), 16) for key in {CC!r}}}
shown = {{key: words[key][number] if key in words else number for key, number in numbers.items()}}
file.write_text({IN_EFFECT!r}.format(**shown))
"""
SED = f"""#!/bin/dash
for file; do :; done
case $file in
*/cc/apply) [ ! -e "$file" ] || [ "$(cat "$file")" != 0x1 ] || {sys.executable} -IS "${{0%/*}}/apply.py" "$file" ;;
esac
exec /bin/sed "$@"
"""


def host_files(model: str) -> dict[str, str]:
    built = fabric(values({"hosts": {"model": model, "pci": list(PCI.values())}}))
    artifacts = views(built)(built.hosts[0])
    return {one.file: Engine().render(one.template, one.context, "gpu01") for one in artifacts}


class BroadcomMachine(Machine):
    def run(self, *args: str, changes: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        assert changes is None
        return self.run_text(host_files("mi300x-thor2")[SCRIPT], *args)


@pytest.fixture
def machine(tmp_path: Path) -> BroadcomMachine:
    if not shutil.which("dash"):
        pytest.skip("dash is not installed")
    machine = BroadcomMachine(tmp_path, "dcb", {})
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, body in (("dcb", SHIM), ("ethtool", SHIM), ("mkdir", MKDIR), ("sed", SED), ("apply.py", APPLY)):
        (tools / name).write_text(body, encoding="utf-8")
        (tools / name).chmod(0o755)
    for name, pci in PCI.items():
        device = machine.sys / "devices" / pci
        (device / "infiniband" / RDMA[name]).mkdir(parents=True)
        (machine.sys / "class" / "net" / name).mkdir(parents=True)
        (machine.sys / "class" / "net" / name / "device").symlink_to(device)
        cc = machine.sys / "kernel" / "config" / "bnxt_re" / RDMA[name] / "ports" / "1" / "cc"
        for key in CC:
            put(cc / key, "0x0\n")
        fresh = dict.fromkeys(CC, 0) | {"ecn_enable": "Disabled", "ecn_marking": "Not-ECT"}
        put(cc / "apply", IN_EFFECT.format(**fresh))
        machine.state[name] = copy.deepcopy(FRESH)
    (machine.sys / "kernel" / "config" / "rdma_cm").mkdir(parents=True)
    return machine


def in_effect(machine: Machine, rdma: str) -> dict[str, str]:
    """The congestion control settings by the files of the driver."""
    cc = machine.sys / "kernel" / "config" / "bnxt_re" / rdma / "ports" / "1" / "cc"
    return {key: (cc / key).read_text().strip() for key in CC}


WANTED_CC = {
    "ecn_enable": "0x1",
    "ecn_marking": "0x1",
    "roce_prio": "0x3",
    "roce_dscp": "0x1a",
    "cnp_prio": "0x6",
    "cnp_dscp": "0x30",
}


def test_broadcom_gets_the_profile_in_its_three_classes(machine: BroadcomMachine) -> None:
    done = machine.run()
    assert done.returncode == 0, done.stdout + done.stderr
    wanted = {
        **FRESH,
        "dcbx": "OS controlled",
        "trust": "dscp",
        "pfc": [0, 0, 0, 1, 0, 0, 0, 0],
        "buffer": [0, 0, 0, 1, 0, 0, 0, 0],
        "prio_tc": [0, 0, 0, 1, 0, 0, 2, 0],
        "tsa": ["ets", "ets", "strict"],
        "bw": [10, 90, 0],
        "ports": {"4791": "3"},
        "pause": {"rx": "off", "tx": "off"},
    }
    assert machine.state == {"rail0": wanted, "rail1": wanted}
    assert [in_effect(machine, rdma) for rdma in RDMA.values()] == [WANTED_CC, WANTED_CC]
    again = machine.run()
    unseen = "traffic-class is not exposed by this driver or tool"
    assert (again.returncode, machine.changed, again.stdout.splitlines()) == (
        0,
        [],
        [f"{rail}: {unseen}" for rail in PCI],
    )
    assert machine.run("--check").returncode == 0


def test_broadcom_check_names_a_difference_and_changes_nothing(machine: BroadcomMachine) -> None:
    before = machine.files()
    done = machine.run("--check")
    assert (done.returncode, machine.files(), machine.changed) == (1, before, [])
    assert "rail0: cnp-dscp is 0, should be 48" in done.stdout
    assert "rail0: ecn-marking is Not-ECT, should be ECT" in done.stdout


def test_without_broadcoms_own_driver_congestion_control_is_not_exposed(machine: BroadcomMachine) -> None:
    shutil.rmtree(machine.sys / "kernel" / "config" / "bnxt_re")
    done = machine.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rail0: congestion control is not exposed by this driver" in done.stdout


def test_pollara_gets_commands_and_no_classes_by_script() -> None:
    files = host_files("mi355x-pollara")
    commands = [line for line in files["nicctl.conf"].splitlines() if line and not line.startswith("#")]
    assert commands == [
        "nicctl update port --all --pause-type pfc --rx-pause enable --tx-pause enable",
        "nicctl update qos --classification-type dscp",
        *(
            f"nicctl update qos dscp-to-priority --dscp {8 * priority}-{8 * priority + 7} --priority {priority}"
            for priority in range(8)
        ),
        "nicctl update qos pfc --priority 3 --no-drop enable",
        "nicctl update qos scheduling --priority 0,3,6 --dwrr 10,90,0 --rate-limit 0,0,10",
        "nicctl update dcqcn -r rdma_rail0 -i 1 --cnp-dscp 48",
        "nicctl update dcqcn -r rdma_rail1 -i 1 --cnp-dscp 48",
    ]
    assert "mlxconfig.conf" not in files
    assert "0644 nicctl.conf /etc/netkit/nicctl.conf" in files["install.txt"].splitlines()
    assert "dcb " not in files[SCRIPT]
    assert parse(parse_back := {"nicctl.conf": files["nicctl.conf"]}) == parse(text(parse(parse_back)))


@pytest.mark.parametrize("model", ["mi300x-thor2", "mi355x-pollara"])
def test_each_script_is_shellcheck_clean(tmp_path: Path, model: str) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    (tmp_path / SCRIPT).write_text(host_files(model)[SCRIPT], encoding="utf-8")
    done = subprocess.run(["shellcheck", str(tmp_path / SCRIPT)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


MELLANOX, BROADCOM, AMD = CARDS
HW = {
    MELLANOX: {"np_cnp_sent": 100, "rp_cnp_handled": 70, "rp_cnp_ignored": 10, "np_ecn_marked_roce_packets": 400},
    BROADCOM: {"tx_cnp_pkts": 30, "rx_cnp_pkts": 60, "rx_ecn_marked_pkts": 90, "oos_drop_count": 2, "dup_req": 1},
    AMD: {"tx_rdma_cnp_pkts": 50, "rx_rdma_cnp_pkts": 40, "rx_rdma_ecn_pkts": 80, "req_rx_pkt_seq_err": 3},
}
STATISTICS = """#@ rail1
NIC statistics:
     rx_pfc_ena_frames_pri3: 7
     tx_pfc_ena_frames_pri3: 5
     pfc_pri3_rx_duration_us: 900
     pfc_pri3_tx_duration_us: 400
     rx_packets_pri6: 11
     tx_packets_pri6: 12
     link_down_events: 2
#= 0
"""


def counted() -> dict[str, dict[str, int]]:
    files = {f"{card.port}/hw_counters/{name}": str(count) for card, rows in HW.items() for name, count in rows.items()}
    found = interface.counters(made(files), CARDS, STATISTICS, "")
    assert isinstance(found, dict)
    return found


def test_each_family_counts_by_its_own_names() -> None:
    assert counted() == {
        "cnp_sent": {"rail0": 100, "rail1": 30, "rail2": 50},
        "cnp_handled": {"rail0": 70, "rail1": 60, "rail2": 40},
        "cnp_ignored": {"rail0": 10},
        "ecn_received": {"rail0": 400, "rail1": 90, "rail2": 80},
        "out_of_sequence": {"rail1": 2},
        "duplicate_requests": {"rail1": 1},
        "packet_seq_err": {"rail2": 3},
        "rx_pause": {"rail1/3": 7},
        "tx_pause": {"rail1/3": 5},
        "rx_pause_us": {"rail1/3": 900},
        "tx_pause_us": {"rail1/3": 400},
        "priority_rx_packets": {"rail1/6": 11},
        "priority_tx_packets": {"rail1/6": 12},
        "link_downs": {"rail1": 2},
    }


def test_cnps_of_three_families_on_a_rail_are_one_sum() -> None:
    """CNPs sent by NVIDIA's NICs reach Broadcom's and AMD's, which count received ones in a single counter."""
    rows = counted()

    class Count:
        def __init__(self, value: int | None) -> None:
            self.value, self.is_known = value or 0, value is not None

    nics = [lambda name, at=at: Count(rows.get(name, {}).get(at)) for at in ("rail0", "rail1", "rail2")]
    assert all(is_read(nic) for nic in nics)  # type: ignore[arg-type]
    found = rail_sum(nics)  # type: ignore[arg-type]
    assert (found.sent, found.heard, found.loss_percent) == (180, 180, 0)


def test_effective_settings_of_broadcom_are_read(machine: BroadcomMachine) -> None:
    machine.run()
    shown = IN_EFFECT.format(
        ecn_enable="Enabled", ecn_marking="ECT(1)", roce_prio=3, roce_dscp=26, cnp_prio=6, cnp_dscp=48
    )
    path = f"/sys/kernel/config/bnxt_re/{BROADCOM.rdma}/ports/1/cc/apply"
    dcb = "#@ rail1\ndscp-prio 26:3 48:6\nprio-pfc 0:off 3:on\ntc-tsa 0:ets 1:ets 2:strict\ntc-bw 0:10 1:90 2:0\n"
    dcb += "prio-tc 0:0 3:1 6:2\n#= 0\n"
    found = hardware.qos(made({path: shown}), CARDS, dcb, "")
    assert isinstance(found, dict)
    one = found["rail1"]
    assert (one.cnp_dscp, one.cnp_priority, one.ecn_notifies, one.ecn_reacts) == (48, 6, {3}, {3})
    assert one.ecn == {1: Ecn(is_on=True)}


def test_the_driver_version_of_a_nic_is_that_of_its_module() -> None:
    versions = {"mlx5_core": "24.10-1.1.4", "bnxt_en": "1.10.3-231.0.162.0"}
    files = {f"/sys/module/{driver}/version": version for driver, version in versions.items()}
    for card, driver in zip(CARDS, ("mlx5_core", "bnxt_en", "ionic"), strict=True):
        files[f"{card.folder}/uevent"] = f"DRIVER={driver}\nPCI_SLOT_NAME={card.pci}"
    found = hardware.nics(made(files), CARDS, {}, {}, {})
    assert isinstance(found, dict)
    assert {name: (nic.driver, nic.driver_version) for name, nic in found.items()} == {
        "rail0": ("mlx5_core", "24.10-1.1.4"),
        "rail1": ("bnxt_en", "1.10.3-231.0.162.0"),
        "rail2": ("ionic", ""),  # in-tree drivers have no version
    }


def test_the_firmware_of_a_nic_with_two_ports_is_set_for_both() -> None:
    one, two = (
        fabric(values({"hosts": {"model": "hgx-b300-2x400g", "pci": pci}}))
        for pci in (["0000:18:00.0", "0000:40:00.0"], ["0000:18:00.0", "0000:18:00.1"])
    )
    keys = [{setting.key: setting.value for setting in nv_settings(built, built.hosts[0])} for built in (one, two)]
    second = {"LINK_TYPE_P2": "2", "ROCE_CC_PRIO_MASK_P2": "8", "CNP_DSCP_P2": "48", "CNP_802P_PRIO_P2": "6"}
    assert keys[1] == keys[0] | second
    assert not {key for key in keys[0] if key.endswith("_P2")}
