"""The emulated systemd and udev of a host."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.lab.node import ProgramResult
from netkit.lab.personalities.linux_host import udev, units
from netkit.lab.personalities.linux_host.systemctl import SpanError, seconds, systemctl, systemd_run
from netkit.lab.personalities.linux_host.units import EXITED, Units, UnitState
from tests.lab.personalities.linux_host_desk import Desk, Typed, small

UNIT = """[Unit]
Description=Says %I
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/say %i
"""


class Host:
    """Units of a host without namespaces, and the commands they ran."""

    def __init__(self, folder: Path) -> None:
        self.desk = Desk(small().hosts[0], folder)
        self.ran: list[list[str]] = []
        self.exit_code = 0
        self.units = Units(self.desk, self._run)
        self.write("say@.service", UNIT)

    def write(self, name: str, text: str) -> None:
        path = self.desk.file(f"/etc/systemd/system/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def type(self, line: str) -> tuple[int, str, str]:
        program, *words = line.split()
        call = Typed(program, tuple(words))
        answer = systemctl if program == "systemctl" else systemd_run
        return answer(self.units, call), call.printed, call.complained

    def _run(self, command: list[str]) -> ProgramResult:
        self.ran.append(command)
        return ProgramResult(self.exit_code, "said\n", "")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_oneshot_unit_runs_once_and_stays_active(host: Host) -> None:
    assert host.type("systemctl is-active say@a") == (3, "inactive\n", "")
    assert host.type("systemctl start say@a.service") == (0, "", "")
    assert host.type("systemctl start say@a") == (0, "", "")
    assert host.ran == [["/bin/say", "a"]]
    assert host.type("systemctl is-active say@a") == (0, "active\n", "")
    assert host.type("systemctl try-restart say@a say@b") == (0, "", "")
    assert host.ran == [["/bin/say", "a"]] * 2
    code, shown, _ = host.type("systemctl show say@a -p Description,ActiveState,SubState,Type")
    assert (code, shown) == (0, "Description=Says a\nActiveState=active\nSubState=exited\nType=oneshot\n")
    assert host.type("systemctl stop say@a")[0] == 0
    assert host.type("systemctl is-active -q say@a") == (3, "", "")


def test_restarting_a_unit_equals_systemctl_restart(host: Host) -> None:
    class Others(Units):
        def restart(self, name: str) -> UnitState:
            host.ran.append(["its", "own", name])
            return EXITED

    host.units = Others(host.desk, lambda _command: ProgramResult(1, "", ""))
    for verb in ("start", "restart", "reload", "reload-or-restart"):
        assert host.type(f"systemctl {verb} say@a") == (0, "", "")
    assert host.ran == [["its", "own", "say@a.service"]] * 4


def test_a_failed_unit_stays_failed_until_it_is_reset(host: Host) -> None:
    host.exit_code = 1
    code, _, complaint = host.type("systemctl restart say@a")
    assert code == 1
    assert complaint.startswith("Job for say@a.service failed because the control process exited with error code.")
    assert host.type("systemctl is-failed say@a") == (0, "failed\n", "")
    code, shown, _ = host.type("systemctl status say@a")
    assert code == 3
    assert "Active: failed (Result: exit-code)" in shown
    assert "said" in shown
    assert host.type("systemctl reset-failed")[0] == 0
    assert host.type("systemctl is-failed say@a") == (1, "inactive\n", "")


def test_a_changed_unit_file_takes_effect_after_a_reload(host: Host) -> None:
    host.type("systemctl start say@a")
    host.write("say@.service", UNIT.replace("/bin/say", "/bin/shout"))
    host.type("systemctl restart say@a")
    host.type("systemctl daemon-reload")
    host.type("systemctl restart say@a")
    assert host.ran == [["/bin/say", "a"], ["/bin/say", "a"], ["/bin/shout", "a"]]


def test_unknown_units_and_arguments_are_refused(host: Host) -> None:
    assert host.type("systemctl start nickel") == (
        5,
        "",
        "Failed to start nickel.service: Unit nickel.service not found.\n",
    )
    assert host.type("systemctl status nickel") == (4, "", "Unit nickel.service could not be found.\n")
    assert host.type("systemctl polish say@a")[0] == 1
    assert host.type("systemctl start")[0] == 1
    assert host.type("systemctl start --loudly say@a")[0] == 1
    assert host.type("systemctl is-enabled nickel")[0] == 1
    assert host.type("systemctl show nickel -p LoadState --value") == (0, "not-found\n", "")
    assert host.type("systemctl stop nickel-*")[0] == 0


def test_a_timer_waits_in_the_node_and_can_be_stopped(host: Host) -> None:
    code, _, reported = host.type("systemd-run --on-active=90s --unit=undo /bin/undo --all")
    assert (code, reported) == (0, "Running timer as unit: undo.timer\nWill run service as unit: undo.service\n")
    assert host.desk.spawned["undo.service"][-3:] == ("90", "/bin/undo", "--all")
    assert host.type("systemctl is-active undo.timer undo.service") == (0, "active\ninactive\n", "")
    assert host.type("systemd-run --on-active=5 --unit=undo true")[0] == 1
    assert "undo.timer" in host.type("systemctl list-timers")[1]
    assert host.type("systemctl stop undo.service")[0] == 0
    assert host.type("systemctl is-active undo.timer")[0] == 0
    assert host.type("systemctl stop undo.timer")[0] == 0
    assert host.desk.spawned == {}
    assert host.type("systemctl is-active undo.timer") == (3, "inactive\n", "")
    assert "undo.timer" not in host.type("systemctl list-timers")[1]


@pytest.mark.parametrize(
    ("text", "span_s"), [("90", 90), ("90s", 90), ("2min", 120), ("1min 30s", 90), ("1h5m", 3900), ("500ms", 0.5)]
)
def test_time_spans(text: str, span_s: float) -> None:
    assert seconds(text) == span_s


@given(st.text(max_size=20))
def test_no_time_span_breaks_it(text: str) -> None:
    with contextlib.suppress(SpanError):
        assert seconds(text) >= 0


def test_unknown_options_of_systemd_run_are_refused(host: Host) -> None:
    assert host.type("systemd-run --on-active=soon --unit=x true")[0] == 1
    assert host.type("systemd-run --on-fire true")[0] == 1
    assert host.type("systemd-run --on-active=5")[0] == 1
    assert host.desk.spawned == {}


@given(st.text(max_size=200))
def test_no_unit_file_breaks_the_parser(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("unit") / "x.service"
    path.write_bytes(text.encode("utf-8", "replace"))
    for is_strict in (True, False):
        with contextlib.suppress(units.UnitError):
            assert units.load("x.service", path, "/x.service", is_strict=is_strict).commands()


@given(st.text(max_size=200))
def test_no_rules_break_the_parser(text: str) -> None:
    try:
        found = udev.rules(text)
    except udev.RuleError:
        return
    assert isinstance(udev.apply(found, udev.network_device("rail0", "0000:18:00.0")), udev.UdevOutcome)


def test_rules_have_matches_and_jump_to_labels() -> None:
    text = (
        'SUBSYSTEM!="net", GOTO="end"\n'
        'KERNELS=="0000:18:00.0", NAME="rail0", ENV{SYSTEMD_WANTS}+="a@$env{NETKIT_RAIL}.service"\n'
        'ENV{NETKIT_RAIL}="x", ENV{SYSTEMD_WANTS}+="b.service"\n'
        'LABEL="end"\n'
        'RUN+="/bin/say %k"\n'
    )
    rules = udev.rules(text)
    found = udev.apply(rules, udev.network_device("eth0", "0000:18:00.0"))
    assert found == udev.UdevOutcome("rail0", "x", ("a@.service", "b.service"), ("/bin/say eth0",))
    assert udev.apply(rules, udev.rdma_device("mlx5_0", "0000:18:00.0")) == udev.UdevOutcome(
        "", "", (), ("/bin/say mlx5_0",)
    )
