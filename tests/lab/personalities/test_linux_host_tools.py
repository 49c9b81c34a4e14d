"""The NIC tools of a host: settings, refusals, and output like that of the real tools."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.design.fabric import Fabric
from netkit.lab.node import ProgramResult
from netkit.lab.personalities.linux_host import TOOLS, mft, qos_tools
from netkit.lab.personalities.linux_host.ethtool import active_mtu
from netkit.lab.personalities.linux_host.machine import HostMachine, VolatileNicSettings
from tests.lab.personalities.linux_host_desk import COPPER, Desk, Typed, rendered, small, type_at
from tests.lanes import examples

FULL_QOS = Path(__file__).with_name("linux_host").joinpath("mlnx_qos.txt").read_text(encoding="utf-8")


@pytest.fixture
def machine(tmp_path: Path) -> HostMachine:
    return HostMachine(Desk(small().hosts[0], tmp_path))


def ask(machine: HostMachine, line: str) -> str:
    code, call = type_at(machine, line)
    assert (code, call.complained) == (0, ""), call.complained
    return call.printed


def refusal(machine: HostMachine, line: str) -> str:
    before = {name: card.state for name, card in machine.cards.items()}
    code, call = type_at(machine, line)
    assert code != 0
    assert {name: card.state for name, card in machine.cards.items()} == before
    return call.complained


def test_mlnx_qos_applies_settings_and_prints_the_whole_state(machine: HostMachine) -> None:
    ask(machine, "mlnx_qos -i rail0 -d os")
    ask(machine, "mlnx_qos -i rail0 --trust dscp --pfc 0,0,0,1,0,0,0,0")
    reported = ask(
        machine, "mlnx_qos -i rail0 -p 0,0,0,3,0,0,6,0 -s ets,ets,ets,ets,ets,ets,strict,ets -t 10,0,0,90,0,0,0,0"
    )
    assert reported == FULL_QOS
    assert ask(machine, "mlnx_qos -i rail0") == FULL_QOS
    assert machine.cards["rail1"].state == VolatileNicSettings()


def test_mlnx_qos_maps_single_code_points_and_resets_the_map_with_the_trust(machine: HostMachine) -> None:
    ask(machine, "mlnx_qos -i rail0 --dscp2prio set,30,2 --dscp2prio set,31,7")
    state = machine.cards["rail0"].state
    assert (state.trust, state.priority_of_dscp[30], state.priority_of_dscp[31]) == ("dscp", 2, 7)
    ask(machine, "mlnx_qos -i rail0 --dscp2prio flush")
    assert machine.cards["rail0"].state == VolatileNicSettings()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("-i rail0 --trust dscp --dscp2prio set,26,3", "cannot be used at the same time"),
        ("-i rail0 --ets 1", "no such option: --ets"),
        ("-i rail0 --pfc 0,0,1", "expected 8 numbers"),
        ("-i rail0 --pfc 0,0,0,2,0,0,0,0", "expected 8 numbers of 0..1"),
        ("-i rail0 --pfc", "requires 1 argument"),
        ("-i rail0 -s ets,ets,ets,ets,ets,ets,strict,ets -t 10,0,0,80,0,0,0,0", "total 100"),
        ("-i rail0 -s ets,ets,ets,ets,ets,ets,strict,ets -t 10,0,0,80,0,0,10,0", "must have no bandwidth"),
        ("-i rail0 --dscp2prio set,64,3", "dscp is 0..63"),
        ("-i rail0 --dscp2prio set,26,8", "priority is 0..7"),
        ("-i rail0 --trust l3", "pcp or dscp"),
        ("-i rail9", "does not exist"),
        ("--pfc 0,0,0,1,0,0,0,0", "Interface name is required"),
    ],
)
def test_mlnx_qos_refuses_what_the_real_one_refuses(machine: HostMachine, arguments: str, complaint: str) -> None:
    assert complaint in refusal(machine, f"mlnx_qos {arguments}")


OPTIONS = sorted(qos_tools.SPELLINGS)
WORDS = st.one_of(st.sampled_from(OPTIONS), st.from_regex(r"[0-9a-z:,=-]{0,20}", fullmatch=True))


@given(st.lists(WORDS, max_size=8))
@settings(max_examples=examples(300))
def test_no_arguments_break_mlnx_qos(words: list[str]) -> None:
    try:
        state = qos_tools.change(VolatileNicSettings(), qos_tools.parse(words).settings)
    except qos_tools.MlnxQosUsageError:
        return
    assert qos_tools.show(state).startswith("DCBX mode: ")


class DeskWithRealTools(Desk):
    """A desk on which calls of real programs fail instead of raising."""

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult:
        return ProgramResult(exit_code=1, stdout="", stderr=f"{command} {stdin} {timeout_s}")


@given(st.sampled_from(sorted(TOOLS)), st.lists(st.text(max_size=12), max_size=6))
@settings(max_examples=examples(400))
def test_no_arguments_break_a_tool(tmp_path_factory: pytest.TempPathFactory, program: str, words: list[str]) -> None:
    machine = HostMachine(DeskWithRealTools(small().hosts[0], tmp_path_factory.mktemp("desk")))
    known = ["rail0" if word.startswith("r") else word for word in words]
    call = Typed(program, tuple(known), root=tmp_path_factory.getbasetemp())
    assert isinstance(TOOLS[program](machine, call), int)


def test_dcb_and_mlnx_qos_show_the_same_nic(machine: HostMachine) -> None:
    ask(machine, "dcb dcbx set dev rail0 host ieee")
    ask(machine, "dcb app replace dev rail0 dscp-prio 26:3 48:6")
    ask(machine, "dcb pfc set dev rail0 prio-pfc all:off 3:on")
    ask(
        machine,
        "dcb ets set dev rail0 prio-tc all:0 3:3 6:6 tc-tsa all:ets 6:strict tc-bw all:0 0:10 3:90",
    )
    assert ask(machine, "mlnx_qos -i rail0") == FULL_QOS
    assert ask(machine, "dcb -N pfc show dev rail0").splitlines() == [
        "pfc-cap 8 macsec-bypass off delay 4096 ",
        "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off ",
    ]
    assert "26:3" in ask(machine, "dcb -N app show dev rail0").split()
    assert refusal(machine, "dcb ets set dev rail0 tc-tsa all:ets tc-bw all:1")
    assert refusal(machine, "dcb pfc set dev rail0 prio-pfc 9:on")


def test_ethtool_pause_reads_back_and_refuses_autonegotiation(machine: HostMachine) -> None:
    assert (
        ask(machine, "ethtool -a rail0") == "Pause parameters for rail0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\ton\n\n"
    )
    ask(machine, "mlnx_qos -i rail1 --pfc 0,0,0,1,0,0,0,0")
    ask(machine, "ethtool -A rail0 rx off tx off")
    assert "RX:\t\toff" in ask(machine, "ethtool -a rail0")
    assert "unmodified" in refusal(machine, "ethtool -A rail0 rx off tx off")
    assert "not supported" in refusal(machine, "ethtool -A rail0 autoneg on")
    assert "bad command line" in refusal(machine, "ethtool -A rail0 rx maybe")
    ask(machine, "ethtool -A rail1 rx off tx on")
    assert machine.cards["rail1"].state.pfc == (0,) * 8


def test_ethtool_prints_counters_as_indented_names_and_numbers(machine: HostMachine) -> None:
    assert ask(machine, "ethtool -S rail0") == (
        "NIC statistics:\n     rx_prio3_pause: 3\n     rx_bits_phy: 4000000000\n     rx_err_lane_0_phy: 1\n"
    )
    assert ask(machine, "ethtool -I --show-fec rail0") == (
        "FEC parameters for rail0:\nSupported/Configured FEC encodings: Auto\nActive FEC encoding: RS\n"
        "Statistics:\n  corrected_blocks: 8\n  uncorrectable_blocks: 0\n"
    )


def test_ethtool_shows_a_module_with_its_lanes_flags_and_thresholds(machine: HostMachine) -> None:
    rows = [re.split(r" +: ", line.strip(), maxsplit=1) for line in ask(machine, "ethtool -m rail0").splitlines()]
    shown = dict(rows)
    assert len(shown) == len(rows)
    assert shown["Identifier"] == "0x19 (OSFP 8X Pluggable Transceiver)"
    assert shown["Vendor SN"] == "MT2445JF9A2U4B"
    assert shown["Module temperature"] == "54.00 degrees C / 129.20 degrees F"
    assert shown["Rcvr signal avg optical power (Channel 1)"] == "1.1220 mW / 0.50 dBm"
    assert shown["Laser rx power low alarm threshold"] == "0.1288 mW / -8.90 dBm"
    assert shown["Laser rx power low alarm (Channel 4)"] == "Off"
    assert shown["Laser bias current high warning threshold"] == "125.000 mA"


def test_copper_shows_no_optical_power_and_an_empty_cage_is_an_error(tmp_path: Path) -> None:
    copper = HostMachine(Desk(small().hosts[0], tmp_path, module=COPPER))
    text = ask(copper, "ethtool -m rail0")
    assert "Copper cable" in text
    assert "dBm" not in text
    assert "Passive copper cable" in ask(copper, "mlxlink -d mlx5_0 -m")
    empty = HostMachine(Desk(small().hosts[0], tmp_path, module=None))
    assert "Input/output error" in refusal(empty, "ethtool -m rail0")


def test_mlxreg_reports_only_how_long_the_link_took(machine: HostMachine) -> None:
    asked = "--reg_name PDDR --get --indexes local_port=1,page_select=8"
    reported = ask(machine, f"mlxreg -d {machine.cards['rail0'].pci} {asked}")
    assert re.search(r"^time_to_link_up +\| 0x00001068$", reported, re.MULTILINE)
    assert reported == ask(machine, f"mstreg -d mlx5_0 {asked}")
    for line in (
        f"-d mlx5_9 {asked}",
        f"-d mlx5_0 {asked.replace('=8', '=1')}",
        f"-d mlx5_0 {asked.replace('--get', '')}",
    ):
        assert refusal(machine, f"mlxreg {line}").startswith("-E- ")


def test_mlxreg_forces_adaptive_routing_until_the_nic_is_reset(machine: HostMachine) -> None:
    asked, card = "--reg_name ROCE_ACCL", machine.cards["rail0"]
    field = "adaptive_routing_forced_en"
    assert re.search(rf"^{field} +\| 0x00000000$", ask(machine, f"mlxreg -d {card.pci} {asked} --get"), re.MULTILINE)
    ask(machine, f"mlxreg -d {card.pci} {asked} --set {field}=0x00000001 --yes")
    assert re.search(rf"^{field} +\| 0x00000001$", ask(machine, f"mstreg -d mlx5_0 {asked} --get"), re.MULTILINE)
    assert not machine.cards["rail1"].state.adaptive_routing_forced
    card.power_up()
    assert not card.state.adaptive_routing_forced
    for line in (f"{asked} --set {field}=1", f"{asked} --set other=1 --yes", f"{asked} --set {field}=2 --yes", asked):
        assert refusal(machine, f"mlxreg -d {card.pci} {line}").startswith("-E- ")


def test_mlxlink_json_has_the_structure_of_the_real_one(machine: HostMachine) -> None:
    text = ask(machine, "mlxlink -d mlx5_0 -m -c --rx_fec_histogram --show_histogram --json")
    document = json.loads(text)
    assert document["status"] == {"code": 0, "message": "success"}
    output = document["result"]["output"]
    assert output["Operational Info"]["Speed"] == "400G"
    module = output["Module Info"]
    assert module["Rx Power Current [dBm]"] == "0.500,1.500,2.500,3.500 [-8.900..5.000]"
    assert module["Temperature [C]"] == "54 [-10..80]"
    assert module["Voltage [mV]"] == "3300.0 [2970..3630]"
    assert module["Rx LOS [per lane]"] == {"values": ["0"] * 4}
    counters = output["Physical Counters and BER Info"]
    assert (counters["Raw Physical BER"], counters["Effective Physical BER"]) == ("5E-10", "15E-255")
    assert counters["Raw Physical BER Per Lane"] == {"values": ["1E-9", *["15E-255"] * 3]}
    assert output["Histogram of FEC Errors"]["Bin 1"] == {"values": ["[1]", "7"]}
    code, call = type_at(machine, "mlxlink -d mlx5_9 --json")
    assert code == 1
    assert json.loads(call.printed)["status"]["code"] == 1


@given(st.floats(1e-30, 0.1))
def test_mlxlink_error_rates_can_be_parsed(rate: float) -> None:
    assert float(mft.scientific(rate)) == pytest.approx(rate, rel=0.5)


def test_mlxconfig_values_take_effect_after_a_reset(machine: HostMachine) -> None:
    machine.power_up()
    reported = ask(machine, "mlxconfig -d 0000:18:00.0 -y set CNP_DSCP_P1=4 LINK_TYPE_P1=IB")
    assert reported.rstrip().endswith("-I- Please reboot machine to load new configurations.")
    row = next(line for line in ask(machine, "mlxconfig -d mlx5_0 -e q").splitlines() if "CNP_DSCP_P1" in line)
    assert row.split() == ["*", "CNP_DSCP_P1", "48", "48", "4"]
    again = HostMachine(machine.node)
    again.power_up()
    assert again.firmware.current("0000:18:00.0", "CNP_DSCP_P1") == 4
    assert again.firmware.current("0000:40:00.0", "CNP_DSCP_P1") == 48


def test_mlxconfig_asks_first_and_refuses_unknown_settings(machine: HostMachine) -> None:
    machine.power_up()
    code, _ = type_at(machine, "mlxconfig -d mlx5_0 set CNP_DSCP_P1=4", answer="n")
    assert (code, machine.firmware.next("0000:18:00.0", "CNP_DSCP_P1")) == (3, 48)
    code, _ = type_at(machine, "mlxconfig -d mlx5_0 set CNP_DSCP_P1=4", answer="y")
    assert (code, machine.firmware.next("0000:18:00.0", "CNP_DSCP_P1")) == (0, 4)
    assert "doesn't support NICKEL" in refusal(machine, "mlxconfig -d mlx5_0 -y set NICKEL=1")
    assert "Failed to parse" in refusal(machine, "mlxconfig -d mlx5_0 -y set CNP_DSCP_P1=64")
    assert "Failed to parse" in refusal(machine, "mlxconfig -d mlx5_0 -y set LINK_TYPE_P1=0")


def test_ibv_devinfo_prints_the_mtu_of_a_device(machine: HostMachine) -> None:
    assert "active_mtu:\t\t4096 (5)" in ask(machine, "ibv_devinfo -d mlx5_0")
    assert refusal(machine, "ibv_devinfo -d mlx5_7")


@pytest.mark.parametrize(("mtu_bytes", "mtu"), [(9000, 4096), (4192, 4096), (4191, 2048), (1500, 1024)])
def test_the_roce_mtu_is_the_largest_that_fits(mtu_bytes: int, mtu: int) -> None:
    assert active_mtu(mtu_bytes) == mtu


def test_mlxlink_prints_its_version(machine: HostMachine) -> None:
    assert ask(machine, "mlxlink --version").startswith("mlxlink, mft 4.34.1-10, built on ")


def test_setpci_changes_what_lspci_shows(machine: HostMachine) -> None:
    assert "MaxReadReq 4096 bytes" in ask(machine, "lspci -s 18:00.0 -vvv")
    assert ask(machine, "setpci -s 18:00.0 CAP_EXP+08.w") == "5936\n"
    ask(machine, "setpci -s 18:00.0 CAP_EXP+08.w=2000:F000")
    assert "MaxReadReq 512 bytes" in ask(machine, "lspci -s 18:00.0 -vvv")
    assert "MaxReadReq 4096 bytes" in ask(machine, "lspci -s 40:00.0 -vvv")
    assert "ACSCtl:\tSrcValid- TransBlk- ReqRedir-" in ask(machine, "lspci -s 17:00.0 -vvv")
    ask(machine, "setpci -s 17:00.0 ECAP_ACS+6.w=001d")
    assert "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+" in ask(machine, "lspci -s 17:00.0 -vvv")
    assert refusal(machine, "setpci -s 18:00.0 CAP_EXP+10.w")
    assert refusal(machine, "setpci -s 99:00.0 CAP_EXP+08.w")


def of_model(model: str, folder: Path) -> HostMachine:
    return HostMachine(Desk(with_model(model).hosts[0], folder))


def with_model(model: str) -> Fabric:
    return small({"hosts": {"model": model, "pci": ["0000:18:00.0", "0000:40:00.0"]}})


def test_broadcom_nics_have_three_classes_and_accept_the_priority_of_a_port(tmp_path: Path) -> None:
    machine = of_model("mi300x-thor2", tmp_path)
    ask(machine, "dcb ets set dev rail0 prio-tc 3:1 6:2 tc-tsa 0:ets 1:ets 2:strict tc-bw 0:10 1:90 2:0")
    ask(machine, "dcb app replace dev rail0 dgram-port-prio 4791:3")
    shown = ask(machine, "dcb -N ets show dev rail0").splitlines()
    assert shown[:2] + shown[3:4] == [
        "willing off ets-cap 3 cbs off ",
        "tc-bw 0:10 1:90 2:0 ",
        "tc-tsa 0:ets 1:ets 2:strict ",
    ]
    assert ask(machine, "dcb -N app show dev rail0") == "dgram-port-prio 4791:3 \n"
    assert refusal(machine, "dcb ets set dev rail0 tc-tsa 3:ets") == "Error: the NIC has 3 traffic classes\n"
    rows = ask(machine, "ethtool -S rail0")
    assert "rx_pfc_ena_frames_pri3: 3\n" in rows
    assert "prio3_pause" not in rows
    assert "Broadcom Inc. and subsidiaries BCM57608" in ask(machine, "lspci")


def test_amd_nics_are_configured_with_nicctl_and_then_answer_marks(tmp_path: Path) -> None:
    machine = of_model("mi355x-pollara", tmp_path)
    assert refusal(machine, "dcb pfc show dev rail0") == "RTNETLINK answers: Operation not supported\n"
    fabric = with_model("mi355x-pollara")
    for line in rendered(fabric, fabric.hosts[0])["nicctl.conf"].splitlines():
        if line.startswith("nicctl "):
            ask(machine, line)
    state = machine.cards["rail0"].state
    assert (state.trust, state.pfc, state.cnp_dscp) == ("dscp", (0, 0, 0, 1, 0, 0, 0, 0), 48)
    assert (state.priority_of_dscp[26], state.priority_of_dscp[48]) == (3, 6)
    assert state.weights_percent[:4] == (10, 0, 0, 90)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("nicctl show dcqcn", "unknown command: show dcqcn"),
        ("nicctl update dcqcn -r mlx5_0 -i 1 --cnp-dscp 48", "no such RDMA device: mlx5_0"),
        ("nicctl update dcqcn -i 1 --cnp-dscp 64", "64 is not 0..63"),
        ("nicctl update qos pfc --priority 8 --no-drop enable", "8 is not 0..7"),
        ("nicctl update qos dscp-to-priority --dscp 60-64 --priority 1", "60-64 is not a range of DSCPs"),
        ("nicctl update qos scheduling --priority 0,3 --dwrr 10,80", "the shares are 90, not 100"),
        ("nicctl update qos pfc --priority 3 4", "bad argument 4"),
    ],
)
def test_nicctl_refuses_what_a_nic_would(tmp_path: Path, line: str, text: str) -> None:
    assert refusal(of_model("mi355x-pollara", tmp_path), line) == f"Error: {text}\n"


def test_only_nics_with_two_ports_have_parameters_of_the_second(tmp_path: Path, machine: HostMachine) -> None:
    pci = ["0000:18:00.0", "0000:18:00.1"]
    two = HostMachine(Desk(small({"hosts": {"model": "hgx-b300-2x400g", "pci": pci}}).hosts[0], tmp_path))
    ask(two, "mlxconfig -d 0000:18:00.1 -y set CNP_DSCP_P2=4")
    assert (two.firmware.next(pci[1], "CNP_DSCP_P2"), two.firmware.next(pci[1], "CNP_DSCP_P1")) == (4, 48)
    assert "doesn't support CNP_DSCP_P2" in refusal(machine, "mlxconfig -d 0000:18:00.0 -y set CNP_DSCP_P2=4")
    assert "_P2" not in ask(machine, "mlxconfig -d 0000:18:00.0 -e q")
