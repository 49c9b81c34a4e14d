"""EOS: sessions, timed commits, checkpoints, eAPI and the CLI."""

import json
from pathlib import Path

import pytest

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.eos import Eos
from netkit.lab.personalities.eos.configuration import body
from tests.lab.personalities.eos_node import RecordedNode, ask, config_of, eos_fabric, errors, result, switch_on, texts
from tests.lab.running import until


class TypedCall:
    """A command line without a terminal."""

    def __init__(self, program: str, *arguments: str, lines: tuple[str, ...] = ()) -> None:
        self.program = program
        self.arguments = arguments
        self.user = "admin"
        self.folder = "/root"
        self.printed: list[str] = []
        self.wrong: list[str] = []
        self._lines = list(lines)

    def out(self, text: str) -> None:
        self.printed.append(text)

    def err(self, text: str) -> None:
        self.wrong.append(text)

    def ask(self, prompt: str) -> str:
        self.printed.append(prompt)
        return self._lines.pop(0) if self._lines else ""

    def stdin(self) -> str:
        return ""

    def file(self, path: str) -> Path:
        return Path(path)


def running(eos: Eos) -> str:
    return body(eos.machine.running)


def edit(eos: Eos, session: str, *lines: str) -> None:
    result(eos, f"configure session {session}", *lines, "end")


@pytest.mark.parametrize("attachment", ["p2p", "vlan"])
@pytest.mark.parametrize("version", ["4.32.3F", "4.33.0F", "4.35.1F"])
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_rendered_configurations_are_accepted_and_realised(
    tmp_path: Path, name: str, version: str, attachment: str
) -> None:
    fabric = eos_fabric(attachment, version)
    _, node = switch_on(tmp_path, name, fabric)
    switch = fabric.switch(name)
    assert node.state.hostname == name
    assert [port.name for port in node.state.ports] == [port.name for port in switch.ports]
    assert node.state.loopback_addresses == (f"{switch.loopback}/32",)
    assert f"router bgp {switch.asn}" in node.state.frr
    assert {port.name for port in node.state.ports if port.qos.pfc_priorities == {3}} == {p.name for p in switch.ports}


@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_the_route_maps_of_a_drain_outlast_it(tmp_path: Path, name: str) -> None:
    states = []
    for number, drained in enumerate((False, True)):
        (folder := tmp_path / str(number)).mkdir()
        _, node = switch_on(folder, name, eos_fabric(drained=drained))
        states.append([line for line in node.state.frr.splitlines() if "DRAINED" in line])
    undrained, drained_lines = states
    assert undrained == [line for line in drained_lines if line.startswith("route-map ")] != []
    assert any(line.startswith("  neighbor ") for line in drained_lines)


def test_printed_configurations_equal_rendered_ones(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    text = running(eos)
    again = eos.machine.parse(text)
    assert body(again) == text
    eos.machine.restore(text)
    assert node.states[0] == node.states[-1]


def test_the_order_of_sections_does_not_matter(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    sections = running(eos).removesuffix("!\nend\n").split("!\n")
    whole = [part for part in sections if not part.startswith("   ")]
    assert len(whole) > 10
    nested = running(eos).replace("\n   !\n", "\n")
    turned = "!\n".join(reversed(nested.removesuffix("!\nend\n").split("!\n")))
    assert body(eos.machine.parse(turned)) == running(eos)


def test_a_session_takes_effect_only_when_it_is_committed(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    edit(eos, "job", "interface Ethernet1/1", "mtu 4000")
    (diff,) = texts(eos, "show session-config named job diffs")
    assert diff.splitlines()[:2] == ["--- system:/running-config", "+++ session:/job-session-config"]
    assert [line for line in diff.splitlines()[2:] if line[0] in "+-"] == ["-   mtu 9214", "+   mtu 4000"]
    assert node.state.ports[0].mtu_bytes == 9214
    result(eos, "configure session job commit")
    assert node.state.ports[0].mtu_bytes == 4000
    assert texts(eos, "show session-config named job diffs") == [""]


def test_a_session_from_clean_config_removes_what_it_omits(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    edit(eos, "job", "rollback clean-config", "hostname bare")
    result(eos, "configure session job commit")
    assert running(eos) == "hostname bare\n!\nend\n"
    assert (node.state.hostname, node.state.loopback_addresses) == ("bare", ())


def test_an_unconfirmed_commit_reverts(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    before = running(eos)
    edit(eos, "job", "hostname other")
    result(eos, "configure session job commit timer 00:00:01")
    assert node.states[1].hostname == "other"
    until(lambda: eos.machine.timer is None and node.state.hostname == "leaf01", "the commit has come back")
    with eos.machine.lock:
        assert running(eos) == before
    assert node.logged[-1].startswith("%SYS-5-CONFIG_SESSION_COMMIT_TIMER_CANCELED")


def test_a_confirmed_commit_stays(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    edit(eos, "job", "hostname other")
    result(eos, "configure session job commit timer 00:02:00")
    result(eos, "configure session job commit")
    eos.machine.expire("job")
    assert (eos.machine.timer, node.state.hostname) == (None, "other")


def test_an_aborted_timed_commit_reverts_at_once(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    edit(eos, "job", "hostname other")
    result(eos, "configure session job commit timer 00:02:00", "configure session job abort")
    assert node.state.hostname == "leaf01"


def test_no_other_session_commits_while_a_timer_runs(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    edit(eos, "one", "hostname one")
    edit(eos, "two", "hostname two")
    result(eos, "configure session one commit timer 00:02:00")
    assert errors(eos, "configure session two commit") == (
        1000,
        ["Cannot commit: session one waits for its commit timer"],
    )


def test_a_restart_loses_unsaved_changes(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    edit(eos, "job", "hostname other")
    result(eos, "configure session job commit timer 00:02:00")
    eos.stop()
    eos.boot()
    assert node.state.hostname == "leaf01"
    assert result(eos, "show configuration sessions")[0]["sessions"] == {}


@pytest.mark.parametrize("save", ["write memory", "copy running-config startup-config"])
def test_a_restart_keeps_saved_changes(tmp_path: Path, save: str) -> None:
    eos, node = switch_on(tmp_path)
    edit(eos, "job", "hostname other")
    result(eos, "configure session job commit", save)
    eos.boot()
    assert node.state.hostname == "other"


def test_sessions_are_listed_as_the_release_lists_them(tmp_path: Path) -> None:
    for version, state in (("4.35.1F", "completed"), ("4.31.2F", "pendingCommitTimer")):
        folder = tmp_path / version
        folder.mkdir()
        fabric = eos_fabric("p2p", "4.35.1F")
        eos, _ = switch_on(folder, "leaf01", fabric)
        eos.machine.release = tuple(map(int, version.rstrip("F").split(".")))
        edit(eos, "job", "hostname other")
        assert "commitTimerSessionName" not in result(eos, "show configuration sessions detail")[0]
        result(eos, "configure session job commit timer 00:05:00")
        (found,) = result(eos, "show configuration sessions detail")
        assert found["sessions"]["job"]["state"] == state
        assert (found.get("commitTimerSessionName") == "job") == (version == "4.35.1F")
        assert (found["sessions"]["job"]["commitBy"] > 0) == (version == "4.31.2F")


def test_at_most_five_sessions_are_open(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    for number in range(5):
        edit(eos, f"job{number}")
    assert errors(eos, "configure session job5") == (1000, ["Maximum number of pending sessions has been reached"])
    result(eos, "configure session job0 abort", "configure session job5")


def test_a_checkpoint_restores_the_configuration(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    result(eos, "configure checkpoint save before")
    edit(eos, "job", "hostname other")
    result(eos, "configure session job commit")
    assert list(result(eos, "show configuration checkpoints")[0]["checkpoints"]) == ["before"]
    result(eos, "configure checkpoint restore before")
    assert node.state.hostname == "leaf01"


def test_a_file_replaces_the_configuration(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    result(eos, "copy startup-config flash:rollback-0")
    edit(eos, "job", "hostname other")
    result(eos, "configure session job commit")
    result(eos, "configure replace flash:rollback-0", "write memory")
    assert node.state.hostname == "leaf01"
    assert errors(eos, "configure replace flash:none")[1] == ["Error opening flash:/none (No such file or directory)"]


def test_an_invalid_line_ends_the_batch_and_keeps_the_session(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    found = ask(eos, "enable", "configure session job", "hostname other", "interface Ethernet1/1", "mtu 99999")["error"]
    assert found == {
        "code": 1002,
        "message": "CLI command 5 of 5 'mtu 99999' failed: invalid command",
        "data": [{}, {}, {}, {}, {"errors": ["Invalid input (at token 1: '99999')"]}],
    }
    assert result(eos, "show configuration sessions")[0]["sessions"]["job"]["state"] == "pending"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("bogus", "Invalid input (at token 0: 'bogus')"),
        ("interface Ethernet99/1", "Invalid input (at token 1: 'Ethernet99/1')"),
        ("router bgp", "Incomplete command (at token 1: 'bgp')"),
        ("router bgp 1", "BGP is already running with AS number 4200010000"),
        ("qos map dscp 64 to traffic-class 3", "Invalid input (at token 3: '64')"),
        ("priority-flow-control pause watchdog action no-drop", "Invalid input (at token 4: 'no-drop')"),
        ("no interface Ethernet99/1", "Invalid input (at token 2: 'Ethernet99/1')"),
    ],
)
def test_unknown_commands_are_refused(tmp_path: Path, line: str, complaint: str) -> None:
    eos, _ = switch_on(tmp_path)
    assert errors(eos, "configure session job", line)[1] == [complaint]


def test_a_port_may_be_abbreviated(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    edit(eos, "job", "interface et1/1", "shutdown")
    result(eos, "configure session job commit")
    assert not node.state.ports[0].is_enabled


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (("router bgp 4200010000", "no neighbor SPINES peer group"), "Peer group SPINES is not defined"),
        (
            ("interface Ethernet1/5", "ip address 10.128.0.0/30"),
            "Invalid input (at token 2: '10.128.0.0/30')",
        ),
        (
            ("interface Ethernet1/5", "ip address 10.128.0.1/31"),
            "Address 10.128.0.1/31 of Ethernet1/5 overlaps with a subnet of Ethernet1/1",
        ),
    ],
)
def test_a_contradictory_configuration_is_not_committed(tmp_path: Path, lines: tuple[str, ...], complaint: str) -> None:
    eos, node = switch_on(tmp_path)
    code, found = errors(eos, "configure session job", *lines, "commit")
    assert complaint in found
    assert code in {1000, 1002}
    assert len(node.states) == 1


def test_a_refusal_of_the_node_changes_nothing(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    before = running(eos)
    edit(eos, "job", "hostname other")
    node.refuses = "no room"
    with pytest.raises(ConfigRefusedError, match="no room"):
        eos.machine.apply(eos.machine.session("job").config)
    node.refuses = ""
    assert running(eos) == before


def test_a_switch_may_lose_a_commit_by_fault(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    eos.fail_apply_quietly = True
    edit(eos, "job", "hostname other")
    result(eos, "configure session job commit")
    assert node.state.hostname == "leaf01"


def test_commands_outside_a_session_take_effect_at_once(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    result(eos, "configure", "interface Ethernet1/1", "shutdown")
    assert not node.state.ports[0].is_enabled
    result(eos, "configure", "interface Ethernet1/1", "no shutdown", "end")
    assert node.state.ports[0].is_enabled


def test_a_command_line_answers_like_a_switch(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    call = TypedCall("Cli", "-p", "15", "-c", "show hostname\nshow nothing")
    assert eos.run(call) == 1
    assert call.printed == ["Hostname: leaf01\nFQDN:     leaf01\n", "% Invalid input (at token 1: 'nothing')\n"]
    piped = TypedCall("FastCli", "-c", "show hostname | json")
    assert eos.run(piped) == 0
    assert json.loads("".join(piped.printed)) == {"hostname": "leaf01", "fqdn": "leaf01"}


def test_a_terminal_remembers_its_mode(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    lines = ("configure session job", "interface Ethernet1/1", "exit", "exit", "exit")
    call = TypedCall("Cli", lines=lines)
    assert eos.run(call) == 0
    prompts = [text for text in call.printed if text]
    assert prompts == ["leaf01#", "leaf01(config-s-job)#", "leaf01(config-s-job)#", "leaf01(config-s-job)#", "leaf01#"]


def test_without_authorization_a_login_must_enable(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    edit(eos, "job", "no aaa authorization exec default")
    result(eos, "configure session job commit")
    refused = ask(eos, "show running-config")["error"]
    assert refused["data"][-1]["errors"] == ["Invalid input (privileged mode required) (at token 1: 'running-config')"]
    assert "error" not in ask(eos, "enable", "show running-config")


def test_the_api_can_be_disabled(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    assert eos.https("POST", "/command-api", {}, b"{}")[0] == 200
    assert eos.https("GET", "/command-api", {}, b"")[0] == 405
    assert eos.https("POST", "/elsewhere", {}, b"")[0] == 404
    edit(eos, "job", "management api http-commands", "vrf MGMT", "shutdown")
    result(eos, "configure session job commit")
    assert not eos.serves_https
    assert eos.https("POST", "/command-api", {}, b"{}")[0] == 503


@pytest.mark.parametrize(
    ("request_body", "code"),
    [
        (b"", -32700),
        (b"\xff{", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "method": "other", "id": 1}', -32601),
        (b'{"jsonrpc": "2.0", "method": "runCmds", "id": 1}', -32602),
        (b'{"jsonrpc": "2.0", "method": "runCmds", "params": {"cmds": [3]}, "id": 1}', -32602),
        (b'{"jsonrpc": "2.0", "method": "runCmds", "params": {"cmds": [], "format": "xml"}, "id": 1}', -32602),
    ],
)
def test_a_malformed_request_is_reported(tmp_path: Path, request_body: bytes, code: int) -> None:
    eos, _ = switch_on(tmp_path)
    assert json.loads(eos.eapi(request_body))["error"]["code"] == code


def test_a_factory_fresh_switch_is_reachable(tmp_path: Path) -> None:
    node = RecordedNode(eos_fabric().switch("leaf01"), tmp_path)
    eos = Eos(node)
    eos.boot()
    assert (node.state.hostname, node.state.loopback_addresses, eos.serves_https) == ("localhost", (), True)


def test_paths_outside_its_file_systems_are_refused(tmp_path: Path) -> None:
    node = RecordedNode(eos_fabric().switch("leaf01"), tmp_path)
    with pytest.raises(ConfigRefusedError, match=r"eos\.cfg"):
        Eos(node).provision({"startup.yaml": ""})
    wrong = config_of(eos_fabric(), "leaf01").replace("mtu 9214", "mtu lots")
    with pytest.raises(ConfigRefusedError, match="line 76: mtu lots: Invalid input"):
        Eos(node).provision({"eos.cfg": wrong})
