"""The script that configures the rail NICs, run by dash with stand-ins for the NIC tools and a folder for /sys."""

import copy
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from netkit.platforms.linux.view import views as host_views
from netkit.render import Engine
from tests import nic_shims
from tests.intents import fabric, values

PCI = {"rail0": "0000:18:00.0", "rail1": "0000:40:00.0"}
RDMA = {"rail0": "mlx5_0", "rail1": "mlx5_3"}
SCRIPT = "netkit-nic-qos"
MAP = "0:0 1:0 2:0 3:3 4:0 5:0 6:6 7:0"
USED = "0:ets:10 3:ets:90 6:strict:0"
pytestmark = pytest.mark.skipif(not shutil.which("dash"), reason="dash is not installed")


def script(changes: dict[str, Any] | None = None) -> str:
    built = fabric(values(changes))
    artifacts = {artifact.file: artifact for artifact in host_views(built)(built.hosts[0])}
    return Engine().render(artifacts[SCRIPT].template, artifacts[SCRIPT].context, "gpu01")


@cache
def usual() -> str:
    return script()


@dataclass
class Machine:
    """A host made of folders: /sys for the script, the NIC tools, and a log of their changes."""

    folder: Path
    tool: str
    state: nic_shims.State
    changed: list[str] = field(default_factory=list)
    """What the last run changed."""

    @property
    def sys(self) -> Path:
        return self.folder / "root" / "sys"

    def run(self, *args: str, changes: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        return self.run_text(script(changes) if changes else usual(), *args)

    def run_text(self, text: str, *args: str) -> subprocess.CompletedProcess[str]:
        (self.folder / SCRIPT).write_text(text, encoding="utf-8")
        self.changed.clear()
        environment = {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "NETKIT_SYSROOT": str(self.folder / "root"),
            "SHIM_FOLDER": str(self.folder),
        }
        with nic_shims.answering(self.folder, self.state, self.changed):
            return subprocess.run(
                ["dash", str(self.folder / SCRIPT), *args],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.sys)): path.read_text() for path in sorted(self.sys.rglob("*")) if path.is_file()
        }


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def add_nic(machine: Machine, name: str, pci: str, rdma: str) -> None:
    """Create the files that the driver of the tool's kind exposes for a NIC."""
    sys_, device = machine.sys, machine.sys / "devices" / pci
    (device / "infiniband" / rdma).mkdir(parents=True)
    (sys_ / "class" / "net" / name).mkdir(parents=True)
    (sys_ / "class" / "net" / name / "device").symlink_to(device)
    if machine.tool == "mlnx_qos":
        ecn = sys_ / "class" / "net" / name / "ecn"
        for side in ("roce_np", "roce_rp"):
            for priority in range(8):
                put(ecn / side / "enable" / str(priority), "0\n")
        put(ecn / "roce_np" / "cnp_dscp", "0\n")
        put(ecn / "roce_np" / "cnp_802p_prio", "0\n")
        put(sys_ / "class" / "infiniband" / rdma / "tc" / "1" / "traffic_class", "")
    else:
        put(sys_ / "kernel" / "debug" / "mlx5" / pci / "cc_params" / "np_cnp_dscp", "0\n")
        put(sys_ / "kernel" / "debug" / "mlx5" / pci / "cc_params" / "np_cnp_prio", "0\n")
    machine.state[name] = copy.deepcopy(nic_shims.FRESH)


# configfs fills a new folder with its files; here a stand-in does.
MKDIR = """#!/bin/sh
for folder in "$@"; do :; done
[ ! -d "$folder" ] || exit 0
/bin/mkdir -p "$folder/ports/1"
echo 0 >"$folder/ports/1/default_roce_tos"
echo 'IB/RoCE v1' >"$folder/ports/1/default_roce_mode"
"""


MLXREG = """#!/bin/sh
file=$(dirname "$0")/../forced-$2
case $* in
*'--reg_name ROCE_ACCL --get')
    printf 'Field Name | Data\n%-45s | 0x%08x\n' adaptive_routing_forced_en "$(cat "$file" 2>/dev/null || echo 0)" ;;
*'--reg_name ROCE_ACCL --set adaptive_routing_forced_en=0x00000001 --yes')
    echo 1 >"$file"
    echo "$2" >>"$SHIM_FOLDER/forced" ;;
*) exit 1 ;;
esac
"""


@pytest.fixture(params=["mlnx_qos", "dcb"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, request.param, {})
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in ((request.param, nic_shims.SHIM), ("ethtool", nic_shims.SHIM), ("mkdir", MKDIR)):
        (tools / name).write_text(text, encoding="utf-8")
        (tools / name).chmod(0o755)
    for name, pci in PCI.items():
        add_nic(machine, name, pci, RDMA[name])
    add_nic(machine, "storage0", "0000:29:00.0", "mlx5_1")
    (machine.sys / "kernel" / "config" / "rdma_cm").mkdir(parents=True)
    return machine


def wanted_state(fresh: dict[str, Any]) -> dict[str, Any]:
    return {
        **fresh,
        "dcbx": "OS controlled",
        "trust": "dscp",
        "pfc": [0, 0, 0, 1, 0, 0, 0, 0],
        "buffer": [0, 0, 0, 1, 0, 0, 0, 0],
        "prio_tc": [0, 0, 0, 3, 0, 0, 6, 0],
        "tsa": ["ets", "ets", "ets", "ets", "ets", "ets", "strict", "ets"],
        "bw": [10, 0, 0, 90, 0, 0, 0, 0],
        "pause": {"rx": "off", "tx": "off"},
    }


def wanted_files(machine: Machine) -> dict[str, str]:
    wanted = {name: text for name, text in machine.files().items() if not name.startswith("kernel/config")}
    for rail, rdma in RDMA.items():
        if machine.tool == "mlnx_qos":
            wanted[f"class/net/{rail}/ecn/roce_np/enable/3"] = "1\n"
            wanted[f"class/net/{rail}/ecn/roce_rp/enable/3"] = "1\n"
            wanted[f"class/net/{rail}/ecn/roce_np/cnp_dscp"] = "48\n"
            wanted[f"class/net/{rail}/ecn/roce_np/cnp_802p_prio"] = "6\n"
            wanted[f"class/infiniband/{rdma}/tc/1/traffic_class"] = "106\n"
        else:
            wanted[f"kernel/debug/mlx5/{PCI[rail]}/cc_params/np_cnp_dscp"] = "48\n"
            wanted[f"kernel/debug/mlx5/{PCI[rail]}/cc_params/np_cnp_prio"] = "6\n"
        wanted[f"kernel/config/rdma_cm/{rdma}/ports/1/default_roce_tos"] = "106\n"
        wanted[f"kernel/config/rdma_cm/{rdma}/ports/1/default_roce_mode"] = "RoCE v2\n"
    return dict(sorted(wanted.items()))


def test_the_first_run_applies_the_profile_to_every_rail_and_nothing_else(machine: Machine) -> None:
    files = wanted_files(machine)
    done = machine.run()
    assert done.returncode == 0, done.stdout + done.stderr
    fresh = nic_shims.FRESH
    assert machine.state == {"rail0": wanted_state(fresh), "rail1": wanted_state(fresh), "storage0": fresh}
    assert machine.files() == files


def test_the_second_run_changes_nothing_and_prints_only_what_it_cannot_read(machine: Machine) -> None:
    machine.run()
    state, files = copy.deepcopy(machine.state), machine.files()
    done = machine.run()
    assert (done.returncode, machine.changed) == (0, [])
    assert (machine.state, machine.files()) == (state, files)
    unseen = ["ECN per priority is not exposed by this driver", "traffic-class is not exposed by this driver or tool"]
    expected = [] if machine.tool == "mlnx_qos" else [f"{rail}: {text}" for rail in PCI for text in unseen]
    assert done.stdout.splitlines() == expected
    assert machine.run("--check").returncode == 0


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The options of each call of mlnx_qos, without the interface."""
    calls: list[list[str]] = []
    answer = nic_shims.mlnx_qos

    def recorded(nic: nic_shims.Nic, args: list[str]) -> None:
        calls.append(args[::2])
        answer(nic, args)

    monkeypatch.setattr(nic_shims, "mlnx_qos", recorded)
    return calls


OPTIONS = {"dcbx": ["-d"], "trust": ["--trust"], "pfc": ["--pfc"], "bw": ["-p", "-s", "-t"]}
"""By what differs, the options that write it."""


@pytest.mark.parametrize("different", [[], ["dcbx"], ["pfc"], ["bw"], ["trust"], ["pfc", "bw"], list(OPTIONS)])
@pytest.mark.parametrize("machine", ["mlnx_qos"], indirect=True)
def test_one_call_of_mlnx_qos_writes_all_of_a_rail_that_differs(
    machine: Machine, different: list[str], calls: list[list[str]]
) -> None:
    """A host that is as intended is read once a rail; a call takes long on a real NIC."""
    machine.run()
    state = copy.deepcopy(machine.state)
    machine.state["rail0"] |= {key: nic_shims.FRESH[key] for key in different}
    calls.clear()
    assert machine.run().returncode == 0
    assert machine.state == state
    assert [one for one in calls if one] == [[option for key in different for option in OPTIONS[key]]] * bool(different)
    assert calls.count([]) == len(PCI) + bool(different)


def test_adaptive_routing_is_forced_where_switches_use_it(machine: Machine) -> None:
    """Without forcing, the firmware uses it only where both ends of a queue pair negotiated it."""
    adaptive = {"adaptive_routing": True}
    (machine.folder / "bin" / "mlxreg").write_text(MLXREG, encoding="utf-8")
    (machine.folder / "bin" / "mlxreg").chmod(0o755)
    machine.run()
    reported = machine.run("--check", changes=adaptive)
    forced = machine.folder / "forced"
    assert (reported.returncode, machine.changed, forced.exists()) == (1, [], False)
    line = "adaptive-routing is 0x00000000, should be 0x00000001"
    assert [said for said in reported.stdout.splitlines() if line in said] == [f"{rail}: {line}" for rail in PCI]
    assert machine.run(changes=adaptive).returncode == 0
    assert (machine.changed, len(forced.read_text().splitlines())) == ([], 2)
    assert machine.run("--check", changes=adaptive).returncode == 0


def test_adaptive_routing_that_cannot_be_forced_is_reported(machine: Machine) -> None:
    machine.run()
    reported = machine.run(changes={"adaptive_routing": True})
    assert reported.returncode == 0
    assert "rail0: adaptive-routing is not exposed by this driver or tool" in reported.stdout.splitlines()


def test_check_reports_every_difference_and_changes_nothing(machine: Machine) -> None:
    files, state = machine.files(), copy.deepcopy(machine.state)
    done = machine.run("--check", "rail1")
    assert (done.returncode, machine.changed) == (1, [])
    assert (machine.state, machine.files()) == (state, files)
    named = [line.split()[1] for line in done.stdout.splitlines() if "should be" in line]
    ecn = ["ecn-notify", "ecn-react"] if machine.tool == "mlnx_qos" else []
    trust = ["trust"] if machine.tool == "mlnx_qos" else []
    mark = ["traffic-class"] if machine.tool == "mlnx_qos" else []
    assert named == [
        *("global-pause", "dcbx", *trust, "dscp-map", "pfc", "ets"),
        *(*ecn, "cnp-dscp", "cnp-priority", *mark, "cm-tos", "cm-mode"),
    ]
    assert {line.split(":")[0] for line in done.stdout.splitlines()} == {"rail1"}


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        (
            "pfc",
            [0, 0, 0, 1, 1, 0, 0, 0],
            "rail0: pfc is 0:0 1:0 2:0 3:1 4:1 5:0 6:0 7:0, should be 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0",
        ),
        ("pause", {"rx": "on", "tx": "off"}, "rail0: global-pause is rx on tx off, should be rx off tx off"),
        (
            "prio_tc",
            [0, 0, 0, 3, 0, 0, 3, 0],
            f"rail0: ets is {MAP.replace('6:6', '6:3')} by {USED}, should be {MAP} by {USED}",
        ),
        (
            "bw",
            [20, 0, 0, 80, 0, 0, 0, 0],
            f"rail0: ets is {MAP} by 0:ets:20 3:ets:80 6:strict:0, should be {MAP} by {USED}",
        ),
    ],
)
def test_check_names_a_setting_that_drifted_and_the_next_run_fixes_it(
    machine: Machine, key: str, value: Any, line: str
) -> None:
    machine.run("rail0")
    before = copy.deepcopy(machine.state)
    machine.state["rail0"][key] = value
    done = machine.run("--check", "rail0")
    assert done.returncode == 1
    assert [text for text in done.stdout.splitlines() if "should be" in text] == [line]
    assert machine.run("rail0").returncode == 0
    assert machine.state == before


def test_only_the_dscps_that_differ_are_mapped_again(machine: Machine, calls: list[list[str]]) -> None:
    machine.run("rail0")
    machine.state["rail0"]["dscp"][26] = 0
    machine.state["rail0"]["dscp"][48] = 0
    assert "rail0: dscp-map is without 26:3 48:6, should be complete" in machine.run("--check", "rail0").stdout
    calls.clear()
    assert machine.run("rail0").returncode == 0
    assert machine.state["rail0"]["dscp"] == nic_shims.FRESH["dscp"]
    assert calls == ([[], ["--dscp2prio", "--dscp2prio"], []] if machine.tool == "mlnx_qos" else [])


def test_a_setting_that_was_not_applied_is_reported_although_the_tool_printed_nothing(machine: Machine) -> None:
    machine.state["rail0"]["stuck"] = ["pfc"]
    done = machine.run("rail0")
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if "DID NOT TAKE" in line] == [
        "rail0: pfc DID NOT TAKE: is 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0, should be 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0"
    ]
    assert machine.state["rail0"]["tsa"][6] == "strict"


def test_a_shared_headroom_buffer_is_noted(machine: Machine) -> None:
    machine.state["rail0"]["stuck"] = ["buffer"]
    done = machine.run("rail0")
    assert (
        done.returncode,
        "rail0: note: priority 3 shares receive buffer 0 with 7 lossy priorities" in done.stdout,
    ) == (0, True)


@pytest.mark.parametrize("name", ["storage0", "eno1", "rail7"])
def test_an_interface_that_is_not_a_rail_is_left_alone(machine: Machine, name: str) -> None:
    state, files = copy.deepcopy(machine.state), machine.files()
    done = machine.run(name)
    assert (done.returncode, machine.changed) == (2, [])
    assert f"{name}: is not a rail of this host" in done.stderr
    assert (machine.state, machine.files()) == (state, files)


def test_a_rail_name_at_another_pci_address_is_left_alone(machine: Machine) -> None:
    device = machine.sys / "class" / "net" / "rail0" / "device"
    device.unlink()
    device.symlink_to(machine.sys / "devices" / "0000:29:00.0")
    done = machine.run("rail0")
    assert (done.returncode, machine.changed) == (2, [])


def test_a_missing_rdma_device_is_not_an_error_yet(machine: Machine) -> None:
    shutil.rmtree(machine.sys / "devices" / PCI["rail0"] / "infiniband")
    done = machine.run("rail0")
    assert done.returncode == 0
    assert "rail0: no RDMA device yet; udev runs this again when it appears" in done.stdout


def test_an_unreadable_nic_fails(machine: Machine) -> None:
    (machine.folder / "bin" / machine.tool).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    done = machine.run("--check", "rail0")
    assert done.returncode == 1
    assert "rail0: pfc is not exposed by this driver or tool" in done.stdout


def test_without_a_tool_or_with_an_unknown_option_it_stops_at_once(machine: Machine) -> None:
    strange = machine.run("--force")
    assert (strange.returncode, strange.stderr) == (2, "usage: netkit-nic-qos [--check] [RAIL...]\n")
    (machine.folder / "bin" / machine.tool).unlink()
    bare = machine.run("rail0")
    assert (bare.returncode, bare.stderr) == (2, "netkit-nic-qos: neither mlnx_qos nor dcb is installed\n")


def test_every_value_follows_the_profile(machine: Machine) -> None:
    lossless = {
        "roce": {"priority": 5, "dscp": [34], "weight": 70},
        "cnp": {"priority": 7, "dscp": 40},
        "best_effort": {"priority": 1, "weight": 30},
    }
    done = machine.run("rail0", changes={"lossless": lossless})
    assert done.returncode == 0, done.stdout + done.stderr
    nic = machine.state["rail0"]
    assert nic["pfc"] == [0, 0, 0, 0, 0, 1, 0, 0]
    assert nic["prio_tc"] == [1, 1, 1, 1, 1, 5, 1, 7]
    assert (nic["tsa"][7], nic["bw"]) == ("strict", [0, 30, 0, 0, 0, 70, 0, 0])
    assert (nic["dscp"][34], nic["dscp"][40]) == (5, 7)
    assert machine.files()["kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos"] == "138\n"


def test_the_script_is_shellcheck_clean(tmp_path: Path) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    (tmp_path / SCRIPT).write_text(script(), encoding="utf-8")
    done = subprocess.run(["shellcheck", str(tmp_path / SCRIPT)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
