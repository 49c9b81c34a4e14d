"""access.yaml: its fields, its defaults, and how errors in it are reported."""

import os
from pathlib import Path

import pytest

from netkit.access import settings
from netkit.access.secrets import SecretStore, read
from netkit.access.settings import AccessSettings, SecretSource, SnmpAccess
from netkit.errors import AccessError
from tests.command import ROOT

KNOWN_BELOW = "known keys here: facts, gnmi, key_file, napalm, password, port, snmp, timeout_s, transport, user"
KNOWN_ABOVE = (
    "known keys here: addresses, facts, gnmi, key_file, known_hosts, password, platforms, secrets, snmp, ssh_config, "
    "timeout_s, truth, user"
)
KNOWN_OF_SNMP = "known keys here: auth, auth_protocol, community, port, priv, priv_protocol, user"


def written(folder: Path, text: str) -> Path:
    (folder / "access.yaml").write_text(text, encoding="utf-8")
    return folder


def test_without_the_file_the_defaults_apply(tmp_path: Path) -> None:
    assert settings.load(tmp_path) == AccessSettings()
    assert settings.load(written(tmp_path, "")) == AccessSettings()


def test_a_platform_inherits_settings_of_the_whole_file(tmp_path: Path) -> None:
    text = "user: ops\nkey_file: id\ntimeout_s: 9\nplatforms:\n  nvue: {transport: nvue-rest, user: api}\n"
    found = settings.load(written(tmp_path, text))
    assert (found.platform("nvue").user, found.platform("sonic").user) == ("api", "ops")
    assert (found.platform("nvue").transport, found.platform("sonic").transport) == ("nvue-rest", None)
    assert found.platform("nvue").key_file == found.platform("linux").key_file == "id"
    assert found.platform("nvue").timeout_s == 9


def test_every_error_is_reported_at_its_line(tmp_path: Path) -> None:
    text = "user: ops\ntimeout: 3\npassword: {env: A, command: b}\nplatforms:\n  nvue: {prot: 1, port: 70000}\n"
    with pytest.raises(AccessError) as caught:
        settings.load(written(tmp_path, text))
    file = tmp_path / "access.yaml"
    assert [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems] == [
        "2: timeout: unknown key 'timeout'; " + KNOWN_ABOVE,
        "3: password: must name exactly one source: env, command or keyring",
        "5: platforms.nvue.port: 70000 is too large; use 65535 or less",
        "5: platforms.nvue.prot: unknown key 'prot'; " + KNOWN_BELOW,
    ]
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "user: ops\nuser: ops\n", "platforms: {cisco: {}}\n"])
def test_a_malformed_file_is_refused_without_a_traceback(tmp_path: Path, text: str) -> None:
    with pytest.raises(AccessError) as caught:
        settings.load(written(tmp_path, text))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("snmp", "why"),
    [
        ("{community: {env: A}, user: b}", "snmp: names a community and a user; use one of them"),
        ("{auth: {env: A}}", "snmp: has secrets but no user"),
        ("{user: a, priv: {env: A}}", "snmp: priv needs auth too"),
        ("{user: a, auth_protocol: md5}", "snmp.auth_protocol: 'md5'"),
        ("{usr: a}", "snmp.usr: unknown key 'usr'; " + KNOWN_OF_SNMP),
        ("{user: a, auth: {en: A}}", "snmp.auth.en: unknown key 'en'; known keys here: command, env, keyring"),
    ],
)
@pytest.mark.parametrize("head", ["", "platforms: {eos: {snmp: %s}}\n"])
def test_errors_about_snmp_are_reported(head: str, snmp: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(AccessError) as caught:
        settings.load(written(tmp_path, head % snmp if head else f"snmp: {snmp}\n"))
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("gnmi", "why"),
    [
        ("{prt: 1}", "gnmi.prt: unknown key 'prt'; known keys here: password, paths, port, shield, user"),
        ("{shield: tls}", "gnmi.shield: 'tls'"),
        ("{paths: [interfaces]}", "gnmi.paths: 'interfaces' is not a path"),
        ("{paths: ['A:/a', 'B:/b']}", "gnmi.paths: names paths of several databases"),
        ("{password: word-of-ours}", "gnmi.password: must not be written into this file"),
    ],
)
def test_errors_about_gnmi_are_reported(gnmi: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(AccessError) as caught:
        settings.load(written(tmp_path, f"gnmi: {gnmi}\n"))
    assert why in str(caught.value)
    assert "word-of-ours" not in str(caught.value)


def test_a_platform_may_have_its_own_source_of_facts(tmp_path: Path) -> None:
    text = "facts: snmp\nsnmp: {community: {env: A}}\nplatforms:\n  eos: {facts: napalm, snmp: {user: b, port: 1161}}\n"
    found = settings.load(written(tmp_path, text))
    assert (found.platform("eos").facts, found.platform("nvue").facts) == ("napalm", "snmp")
    assert found.platform("eos").snmp == SnmpAccess(user="b", port=1161)
    assert found.platform("nvue").snmp == SnmpAccess(community=SecretSource(env="A"))


@pytest.mark.parametrize(
    "text",
    [
        "password: word-of-ours\n",
        "secrets: [word-of-ours]\n",
        "snmp: {community: word-of-ours}\n",
        "platforms: {nvue: {snmp: {user: a, auth: word-of-ours}}}\n",
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    with pytest.raises(AccessError, match="must not be written into this file; name its source") as caught:
        settings.load(written(tmp_path, text))
    assert "word-of-ours" not in str(caught.value)


def test_a_transport_that_a_platform_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"access\.yaml:1: platforms: eos does not support ssh; use eapi"):
        settings.load(written(tmp_path, "platforms:\n  eos: {transport: ssh}\n"))


def test_a_secret_comes_from_the_environment_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETKIT_SECRET_SNMP_AUTH", "from here")
    assert SecretStore(SecretSource(command="false"))("SNMP_AUTH") == "from here"


def test_a_secret_comes_from_a_command_which_runs_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"sh -c 'echo ran >> {log}; echo \"value of $1\"' sh {{name}}"
    store = SecretStore(SecretSource(command=command))
    assert [store("SNMP_AUTH"), store("SNMP_AUTH")] == ["value of SNMP_AUTH"] * 2
    assert log.read_text(encoding="utf-8") == "ran\n"
    assert repr(store) == "SecretStore()"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (None, r"set NETKIT_SECRET_X, or set a source in access\.yaml"),
        (SecretSource(command="false"), r"`false` ends with 1; run it by hand"),
        (SecretSource(command="true"), "its command prints nothing"),
        (SecretSource(command="no-such-program-anywhere"), "cannot be run"),
        (SecretSource(command="sh -c 'unclosed"), "cannot be run"),
        (SecretSource(command="printf 'a\\nb'"), "contains a line break"),
        (SecretSource(env="NOT_SET_{name}"), "NOT_SET_{name} is not set"),
    ],
)
def test_a_secret_that_is_not_found_is_named(
    source: SecretSource | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NETKIT_SECRET_X", raising=False)
    with pytest.raises(AccessError, match=f"the secret X .*{why}"):
        SecretStore(source)("X")


def test_what_a_failing_command_prints_is_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AccessError) as caught:
        read(SecretSource(command="sh -c 'printf hidden-; echo word; exit 3'"), "the password of ops", "ops")
    assert "hidden-word" not in str(caught.value) + "".join(capfd.readouterr())
    assert str(caught.value).startswith("the password of ops is not available: `sh -c")


def test_an_installed_keyring_is_queried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def get_password(service, name):\n    return {('fabric', 'X'): 'kept'}.get((service, name))\n"
    (tmp_path / "keyring.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert SecretStore(SecretSource(keyring="fabric"))("X") == "kept"
    with pytest.raises(AccessError, match="the keyring has no Y"):
        SecretStore(SecretSource(keyring="fabric"))("Y")


def test_the_command_line_of_a_command_holds_no_secret(tmp_path: Path) -> None:
    """Only the name of the secret is an argument; the value comes back through a pipe."""
    shown = tmp_path / "arguments"
    store = SecretStore(
        SecretSource(command=f'sh -c \'tr "\\0" " " < /proc/$$/cmdline > {shown}; echo word\' sh {{name}}')
    )
    assert store("NAME") == "word"
    assert "NAME" in shown.read_text(encoding="utf-8")
    assert os.environ.get("NETKIT_SECRET_NAME") is None


def test_the_documented_example_is_accepted(tmp_path: Path) -> None:
    page = (ROOT / "docs/access.md").read_text(encoding="utf-8")
    found = settings.load(written(tmp_path, page.split("```yaml\n")[1].split("```")[0]))
    assert found.user == "ops"
    assert found.platform("nvue").transport == "nvue-rest"
    assert set(found.model_fields_set) == set(AccessSettings.model_fields)
