"""Sources of facts: from the command line or access.yaml, and the credentials for SNMP."""

import json
from pathlib import Path

import pytest

from netkit.access.secrets import SecretStore
from netkit.access.settings import AccessSettings, Endpoint, FactSource, SecretSource
from netkit.access.source import NATIVE, Origin, credentials, origin, viewer
from netkit.errors import AccessError
from netkit.platforms.napalm.driver import GetterViewer
from netkit.platforms.nvue.driver import NvueDriver
from netkit.platforms.snmp import Community, User
from netkit.platforms.snmp.driver import SnmpViewer
from tests import intents

FABRIC = intents.fabric(intents.values())
SWITCH = Endpoint("leaf01", "nvue", "127.0.0.1", 22, "ops")


def settings(**values: object) -> AccessSettings:
    return AccessSettings.model_validate(values)


def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETKIT_SECRET_SNMP_AUTH", "auth-word-1")
    monkeypatch.setenv("NETKIT_SECRET_SNMP_PRIV", "priv-word-1")


@pytest.mark.parametrize(
    ("said", "asked", "found"),
    [
        ({}, None, "native"),
        ({"facts": "snmp"}, None, "snmp"),
        ({"facts": "snmp", "platforms": {"nvue": {"facts": "native"}}}, None, "native"),
        ({"facts": "snmp"}, "native", "native"),
        ({}, "napalm", "napalm"),
    ],
)
def test_the_command_line_overrides_the_platform_and_that_the_file(
    said: dict[str, object], asked: FactSource | None, found: str
) -> None:
    assert origin(FABRIC, settings(**said), "nvue", asked).source == found


def test_hosts_are_always_native() -> None:
    assert origin(FABRIC, settings(facts="snmp"), "linux", "snmp") == NATIVE


def test_each_source_has_its_viewer_and_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch)
    assert isinstance(viewer(SWITCH, SecretStore(), NATIVE), NvueDriver)
    assert isinstance(viewer(SWITCH, SecretStore(), origin(FABRIC, settings(), "nvue", "snmp")), SnmpViewer)


def test_getters_are_those_of_the_netkit_driver_or_a_users_driver() -> None:
    own = origin(FABRIC, settings(platforms={"nvue": {"facts": "napalm", "napalm": "eos"}}), "nvue", None)
    assert isinstance(viewer(SWITCH, SecretStore(), origin(FABRIC, settings(), "nvue", "napalm")), GetterViewer)
    assert isinstance(viewer(SWITCH, SecretStore(), own), GetterViewer)
    with pytest.raises(
        AccessError, match=r"the NAPALM driver nothing cannot be loaded: .*; pip install napalm-nothing"
    ):
        viewer(SWITCH, SecretStore(), Origin("napalm", napalm="nothing"))


def test_without_settings_the_user_of_the_intent_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch)
    found = credentials("leaf01", SecretStore(), origin(FABRIC, settings(), "nvue", "snmp"))
    assert found == (User("watcher", "auth-word-1", priv="priv-word-1"),)


def test_a_lab_has_its_own_user_with_the_secrets_it_was_booted_with(monkeypatch: pytest.MonkeyPatch) -> None:
    booted = User("watcher", "@secret:SNMP_AUTH@", priv="@secret:SNMP_PRIV@")
    chosen = settings(snmp={"community": {"env": "NOWHERE"}})
    where = origin(FABRIC, chosen, "nvue", "snmp", is_lab=True)
    monkeypatch.delenv("NETKIT_SECRET_SNMP_AUTH", raising=False)
    assert credentials("leaf01", SecretStore(), where) == (booted,)
    known(monkeypatch)
    assert credentials("leaf01", SecretStore(), where) == (User("watcher", "auth-word-1", priv="priv-word-1"), booted)


def test_secrets_of_access_yaml_are_fetched_once_for_all_devices(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"sh -c 'echo $1 >> {log}; echo word-of-$1' sh {{name}}"
    secrets = SecretStore()
    two = origin(FABRIC, settings(snmp={"community": {"command": command}}), "nvue", "snmp")
    three = origin(
        FABRIC,
        settings(snmp={"user": "ops", "auth": {"command": command}, "auth_protocol": "sha256"}),
        "nvue",
        "snmp",
    )
    for device in ("leaf01", "leaf02"):
        assert credentials(device, secrets, two) == (Community("word-of-community"),)
        assert credentials(device, secrets, three) == (User("ops", "word-of-ops", "sha256"),)
    assert log.read_text(encoding="utf-8") == "community\nops\n"


def test_a_secret_that_is_not_found_is_named() -> None:
    where = Origin("snmp", settings(snmp={"community": {"env": "NOT_SET"}}).snmp)
    with pytest.raises(AccessError, match="the SNMP community is not available: NOT_SET is not set"):
        credentials("leaf01", SecretStore(), where)


def test_without_any_community_or_user_a_remedy_is_reported() -> None:
    with pytest.raises(AccessError, match="leaf01: no SNMP community or user is configured; name a community"):
        credentials("leaf01", SecretStore(), Origin("snmp"))


def test_the_repr_of_an_origin_has_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch)
    where = origin(FABRIC, settings(snmp={"community": {"env": "A"}}), "nvue", "snmp")
    assert "word" not in repr((where, SecretSource(env="A"), SecretStore())) + json.dumps(SWITCH.snmp_port)
