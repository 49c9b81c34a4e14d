"""Each way in which a filled-in secret could be printed, or act as more than a value."""

import itertools
import json
import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import AccessError, DeviceError, NetkitError, Problem
from netkit.platforms import ssh
from netkit.platforms.change import Change
from netkit.platforms.compare import MODELS, compare
from netkit.platforms.driver import Candidate
from netkit.platforms.eos.session import commands
from netkit.platforms.nvue.driver import NvueDriver
from netkit.platforms.nvue.patch import filled
from netkit.platforms.ownership import leaving
from netkit.platforms.secrets import SECRET, SecretResolver
from netkit.platforms.sonic.driver import SonicDriver
from netkit.platforms.sonic.reader import SonicState

WORDS = {
    "ONE": "a'b: #c",
    "TWO": "a'b",
    "JSON": 'a "word" é\\x',
    "POINTER": "~ab/cd",
    "SPACES": "two  words",
    "LONG": "hidden-9184-hidden",
}


def resolver(*names: str) -> SecretResolver:
    """A resolver that has filled in some secrets, or all of them."""
    found = SecretResolver(WORDS.__getitem__)
    for name in names or WORDS:
        assert found.text(f"@secret:{name}@") == WORDS[name]
    return found


def test_secrets_are_filled_into_keys_and_values_of_trees() -> None:
    found = SecretResolver(WORDS.__getitem__)
    tree = {"a": {"@secret:ONE@": {"b": "x@secret:TWO@y", "mtu": 9216, "l": ["@secret:LONG@", None]}}}
    assert found.tree(tree) == {"a": {"a'b: #c": {"b": "xa'by", "mtu": 9216, "l": ["hidden-9184-hidden", None]}}}
    assert repr(found) == "SecretResolver()"
    assert found.values == frozenset({"a'b: #c", "a'b", "hidden-9184-hidden"})


def test_secrets_are_quoted_in_commands_and_in_yaml() -> None:
    text = "# note\nnv set a b '@secret:ONE@ z'\nnv set c d\n"
    assert filled(text, SecretResolver(WORDS.__getitem__)) == "# note\nnv set a b 'a'\"'\"'b: #c z'\nnv set c d\n"
    found = filled("- set: {a: {b: '@secret:ONE@', c: '5'}}\n", SecretResolver(WORDS.__getitem__))
    assert json.loads(found) == [{"set": {"a": {"b": "a'b: #c", "c": "5"}}}]


@pytest.mark.parametrize("value", ["", "a\nnv set b", "a\r", "a\tb", "a\x00", "a\x1b[2J", "a\u2028b", "a\u202eb"])
def test_a_multi_line_or_untypable_secret_is_refused(value: str) -> None:
    found = SecretResolver({"X": value}.__getitem__)
    uses: tuple[Callable[[], Any], ...] = (
        lambda: found.text("@secret:X@"),
        lambda: found.command("nv set a @secret:X@"),
        lambda: found.tree({"a": ["@secret:X@"]}),
        lambda: filled("- set: {a: '@secret:X@'}\n", found),
    )
    for use in uses:
        with pytest.raises(AccessError, match="@secret:X@ is not a single printable line") as caught:
            use()
        assert not value or value not in str(caught.value)
    assert found.values == frozenset()


ESCAPED: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": json.dumps,
    "JSON with its own letters": lambda value: json.dumps(value, ensure_ascii=False),
    "YAML": lambda value: yaml.safe_dump({"a": value}),
    "YAML in single quotes": lambda value: yaml.safe_dump({"a": value}, default_style="'", width=1000),
    "YAML in double quotes": lambda value: yaml.safe_dump({"a": value}, default_style='"', width=1000),
    "YAML in folded lines": lambda value: yaml.safe_dump({"a": value}, width=1),
    "a shell": shlex.quote,
    "a shell, by backslashes": lambda value: re.sub(r"(\W)", r"\\\1", value),
    "a repr": repr,
    "a JSON pointer": lambda value: value.replace("~", "~0").replace("/", "~1"),
    "a message on one line": lambda value: " ".join(value.split()),
    "a diff": lambda value: f"-key {value}\n+key {value}2\n",
}


@pytest.mark.parametrize("escape", ESCAPED)
@pytest.mark.parametrize("name", WORDS)
def test_a_secret_is_masked_however_it_is_escaped(escape: str, name: str) -> None:
    shown = resolver().hidden(f"key {ESCAPED[escape](WORDS[name])} more")
    assert SECRET in shown
    assert WORDS[name].strip("\"'") not in shown
    assert not any(part in shown for part in ("word", "9184", "ab~1cd", "two", "b: #c"))


TYPED = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=6, max_size=30)


@given(TYPED, st.sampled_from(sorted(ESCAPED)))
def test_any_secret_is_masked_in_any_form(value: str, escape: str) -> None:
    found = SecretResolver(lambda _name: value)
    found.text("@secret:X@")
    assert value not in found.hidden(ESCAPED[escape](value))


def test_the_longer_of_two_secrets_is_masked_completely() -> None:
    assert resolver("ONE", "TWO").hidden("bad value a'b: #c and a'b") == f"bad value {SECRET} and {SECRET}"


def test_a_truncated_message_does_not_end_in_half_a_secret() -> None:
    assert resolver("LONG").hidden("bad value hidden-91") == f"bad value {SECRET}"
    assert resolver("LONG").hidden("bad value hid") == "bad value hid"


def test_errors_hide_secrets_in_message_and_hint() -> None:
    found = resolver("ONE", "TWO")

    def refuse() -> None:
        with found.hiding():
            raise DeviceError((Problem("bad value a'b: #c", "not a'b"), Problem("a'b twice")))

    with pytest.raises(DeviceError) as caught:
        refuse()
    assert "a'b" not in f"{caught.value}{caught.value.problems!r}"
    assert caught.value.__suppress_context__


def test_without_a_source_a_secret_is_not_found() -> None:
    with pytest.raises(AccessError, match="the secret ONE is not found"):
        SecretResolver(None).text("@secret:ONE@")
    assert issubclass(AccessError, NetkitError)


class Repeating:
    """A switch that accepts what is staged, and repeats it in everything it prints later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.staged = ""
        monkeypatch.setattr(ssh.SshLine, "run", lambda _line, command, *more, **_named: self.run(command, *more))

    def run(self, command: str, _timeout_s: float | None = None, stdin: str = "") -> ssh.Done:
        """Answer as a switch that creates a revision, and refuses to apply it."""
        if WORDS["LONG"] in stdin:
            self.staged = " ".join(stdin.split())
        if "mktemp" in command:
            return ssh.Done(0, "created [rev_id: 7]", "")
        if "nv config diff" in command and "apply" not in command:
            return ssh.Done(0, self.staged, "")
        return ssh.Done(1, "", f"error: {self.staged}")


def test_nvue_hides_secrets_in_a_diff_and_in_a_refused_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    Repeating(monkeypatch)
    driver = NvueDriver("leaf01", "cumulus", "", optional_args={"secrets": WORDS.__getitem__})
    driver.load_merge_candidate(config="- set: {system: {hostname: 'x @secret:LONG@'}}\n")
    assert json.loads(driver.compare_config()) == [{"set": {"system": {"hostname": f"x {SECRET}"}}}]
    for act in (driver.commit_config, driver.confirm_commit):
        with pytest.raises(NetkitError, match=SECRET) as caught:
            act()
        assert WORDS["LONG"] not in str(caught.value)


def test_sonic_hides_secrets_whatever_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = SonicDriver("leaf01", "admin", "", optional_args={"secrets": WORDS.__getitem__})
    monkeypatch.setattr(driver, "_before", lambda: SonicState({"SNMP_USER": {}}, None))
    monkeypatch.setattr(driver, "os_version", lambda: "202505")
    Repeating(monkeypatch)
    change = Change(("SNMP_USER", "u", "name"), None, SECRET)
    files = {"config_db.json": json.dumps({"SNMP_USER": {"u": {"name": "@secret:LONG@"}}})}
    acts: tuple[Callable[[], None], ...] = (
        lambda: driver.load_candidate(Candidate(files, (change,), "patch")),
        driver.confirm_commit,
        driver.rollback,
        driver.drain,
        driver.undrain,
    )
    for act in acts:
        with pytest.raises(DeviceError, match=SECRET) as caught:
            act()
        assert WORDS["LONG"] not in str(caught.value)


BY_HAND = {
    "eos": (
        "snmp-server user noc G v3 auth sha hunter2",
        "snmp-server user noc G v3 localized 8000 auth sha hunter2",
        "snmp-server user noc G v3 auth sha hunter2 priv aes hunter2 access ACL",
        "snmp-server user noc G remote 192.0.2.1 udp-port 162 v3 localized 80 auth md5 hunter2 priv des hunter2",
        "snmp-server host 192.0.2.1 version 2c hunter2",
        "snmp-server host 192.0.2.1 vrf MGMT traps version 2c hunter2 udp-port 162",
        "interface Ethernet1\n   vrrp 1 ipv4 authentication md5 key-string 7 hunter2",
    ),
    "frr": (
        "rocommunity  hunter2 default",
        "com2sec -Cn ctx noc default hunter2",
        "com2secunix noc /run/x hunter2",
        "trap2sink 192.0.2.1 hunter2 162",
        "trapcommunity hunter2",
        "trapsess -v 3 -u noc -a SHA -A hunter2 192.0.2.1",
        "createUser noc MD5 hunter2",
        "createUser -e 0x80 noc SHA -l 0xhunter2",
        "authcommunity log hunter2",
        "proxy -v 2c -c hunter2 192.0.2.1 .1.3",
        "usmUser 1 3 0x80 0x75 0x75 NULL .1.3 0xhunter2 .1.4 0xhunter2",
        "defAuthPassphrase hunter2",
        "com2sec  notConfigUser\tdefault       hunter2",
        "COM2SEC noc default hunter2",
        "rocommunity\thunter2",
        'rwcommunity "far hunter2" default',
        "authcommunity  log  hunter2 default",
        "createUser  noc  MD5  hunter2  DES  hunter2",
        'createUser noc SHA "far hunter2" AES "hunter2 far"',
        "trapsess -v2c -chunter2 192.0.2.1",
        'trapsess -v 3 -A "far hunter2" -X hunter2 192.0.2.1',
        "proxy -v 3 -u noc -a SHA -A hunter2 --defPrivPassphrase=hunter2 192.0.2.1 .1.3",
    ),
    "nvue": (
        "- set: {service: {ntp: {mgmt: {key: {'1': {value: hunter2, type: md5}}}}}}",
        "- set: {system: {snmp-server: {trap-destination: {192.0.2.1: {community-password: {hunter2: {}}}}}}}",
    ),
}
FILES = {"eos": "eos.cfg", "frr": "snmpd.conf", "nvue": "startup.yaml"}


@pytest.mark.parametrize(("platform", "text"), [(platform, text) for platform in BY_HAND for text in BY_HAND[platform]])
def test_secrets_of_lines_by_hand_are_masked_where_a_plan_reads_them(platform: str, text: str) -> None:
    """A plan shows what it removes: netkit owns everything about SNMP and time."""
    file, wanted = FILES[platform], "sysContact noc\n" if platform == "frr" else ""
    found = compare(MODELS[platform], {file: f"{text}\n{wanted}"}, {file: wanted})
    assert found.changes
    assert SECRET in str(found.changes)
    assert "hunter2" not in str(found.changes)


BESIDE_SECRETS = {
    "eos": (
        "snmp-server user noc G v3 auth sha {}",
        "snmp-server user noc G v3 auth sha {} priv aes {}",
        "snmp-server user noc G v3 auth sha {} priv aes {} access ACL",
    ),
    "frr": (
        "createUser noc SHA {}",
        "createUser noc SHA {} AES {}",
        'createUser noc SHA "{}" DES "{}"',
        'trapsess -v 3 -u noc -A "{}" 192.0.2.1',
        "trapsess -v 3 -u noc -A {} 192.0.2.2",
        "com2sec noc  default  {}",
        "com2sec noc  192.0.2.1  {}",
    ),
}


@pytest.mark.parametrize(("platform", "texts"), BESIDE_SECRETS.items())
def test_lines_that_differ_beside_their_secrets_are_changes(platform: str, texts: tuple[str, ...]) -> None:
    """A user without privacy counted as one with it: the last secret of the one stood for the rest of the other."""
    file, model = FILES[platform], MODELS[platform]
    for one, other in itertools.product(texts, texts):
        running, intended = one.replace("{}", "hunter2"), other.replace("{}", "@secret:snmp@")
        found = compare(model, {file: f"sysContact noc\n{running}\n"}, {file: f"sysContact noc\n{intended}\n"})
        assert bool(found.changes) is (one != other), (running, intended)


def test_eos_removes_a_line_whose_secret_is_masked_as_the_switch_has_it() -> None:
    line = "snmp-server host 192.0.2.1 version 2c hunter2"
    changes = compare(MODELS["eos"], {"eos.cfg": f"{line}\n"}, {"eos.cfg": ""}).changes
    assert commands(changes, f"{line}\n", "") == [f"no {line}"]


@pytest.mark.parametrize("name", [SECRET, "*"])
def test_leave_names_a_line_by_the_mask_of_its_secret(name: str) -> None:
    line = "snmp-server host 192.0.2.1 version 2c"
    rules = leaving({"eos.cfg": ""}, [f"{line} {name}"])
    found = compare(MODELS["eos"], {"eos.cfg": f"{line} hunter2\n"}, rules)
    assert (found.changes, found.left) == ((), ((f"{line} {SECRET}",),))
