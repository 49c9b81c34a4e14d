"""How devices are reached: those of a fabric, or those of a lab only."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from netkit import design
from netkit.access.connect import arguments, connect
from netkit.access.endpoints import endpoint_of, endpoints, lab_endpoints
from netkit.access.settings import AccessSettings, Endpoint, GnmiEndpoint
from netkit.design import Fabric
from netkit.errors import AccessError
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms.nvue.driver import NvueDriver
from tests import intents

FABRIC: Fabric = design.build(Intent.model_validate(intents.BASE), Catalog())
WORD = "a-word-of-ours"
RECORD = {
    "devices": {
        "leaf01": {"address": "127.64.0.1", "port": 22, "https_port": 8765, "certificate": "ab", "personality": "nvue"},
        "spine01": {
            "address": "127.64.0.2",
            "port": 2222,
            "https_port": 443,
            "certificate": "cd",
            "personality": "eos",
        },
        "gpu01": {"address": "127.64.0.3", "port": 22, "https_port": 0, "certificate": "", "personality": "linux-host"},
    }
}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "password").write_text(f"{WORD}\n", encoding="utf-8")
    for entry in RECORD["devices"].values():
        entry["login"] = "someone"
    return tmp_path


def settings(**values: object) -> AccessSettings:
    return AccessSettings.model_validate(values)


def test_a_fabric_is_reached_as_intended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NETKIT_PASSWORD", raising=False)
    found = endpoints(FABRIC, settings(), tmp_path)
    assert tuple(found) == FABRIC.names
    leaf = FABRIC.switch("leaf01")
    assert leaf.management is not None
    assert found["leaf01"] == Endpoint(
        "leaf01",
        "nvue",
        leaf.management.address,
        22,
        "netkit",
        known_hosts=tmp_path / "known_hosts",
        gnmi=GnmiEndpoint(9339),
    )
    host = FABRIC.hosts[0].name
    assert (found[host].platform, found[host].host, found[host].user) == ("linux", host, "root")


def test_settings_override_the_intent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FABRIC_WORD", WORD)
    host = FABRIC.hosts[0].name
    (tmp_path / "known_certificates").write_text("# ours\n198.51.100.9 8000 ABCD\n", encoding="utf-8")
    found = endpoints(
        FABRIC,
        settings(
            user="ops",
            key_file="keys/id",
            password={"env": "FABRIC_WORD"},
            known_hosts="/etc/hosts-of-ours",
            ssh_config="ssh.conf",
            addresses={host: "198.51.100.7", "leaf01": "198.51.100.9"},
            platforms={"nvue": {"transport": "nvue-rest", "port": 8000}, "linux": {"user": "ubuntu"}},
        ),
        tmp_path,
    )
    leaf = found["leaf01"]
    assert (leaf.transport, leaf.host, leaf.port, leaf.user) == ("nvue-rest", "198.51.100.9", 8000, "ops")
    assert (leaf.key_file, leaf.ssh_config) == (tmp_path / "keys/id", tmp_path / "ssh.conf")
    assert leaf.known_hosts == Path("/etc/hosts-of-ours")
    assert [leaf.password, found[host].password] == [WORD, WORD]
    assert WORD not in repr(leaf)
    assert (found[host].host, found[host].user, found[host].port) == ("198.51.100.7", "ubuntu", 22)


def test_certificates_are_those_beside_the_known_hosts(tmp_path: Path) -> None:
    leaf = FABRIC.switch("leaf01")
    assert leaf.management is not None
    (tmp_path / "known_certificates").write_text(f"{leaf.management.address} 8765 ABCD\n", encoding="utf-8")
    found = endpoints(FABRIC, settings(platforms={"nvue": {"transport": "nvue-rest"}}), tmp_path)
    assert (found["leaf01"].certificate, found["leaf02"].certificate) == ("abcd", "")


def test_gnmi_has_its_own_port_and_certificate(tmp_path: Path) -> None:
    leaf = FABRIC.switch("leaf01")
    assert leaf.management is not None
    (tmp_path / "known_certificates").write_text(f"{leaf.management.address} 9340 ABCD\n", encoding="utf-8")
    found = endpoints(FABRIC, settings(platforms={"nvue": {"gnmi": {"port": 9340}}}), tmp_path)
    assert found["leaf01"].gnmi == GnmiEndpoint(9340, "abcd", is_wanted=True)
    in_the_clear = settings(facts="gnmi", gnmi={"shield": "none"})
    assert endpoints(FABRIC, in_the_clear, tmp_path)["leaf01"].gnmi == GnmiEndpoint(9339)
    assert endpoints(FABRIC, settings(facts="gnmi"), tmp_path)[FABRIC.hosts[0].name].gnmi == GnmiEndpoint()


def test_gnmi_of_a_lab_takes_the_password_of_the_lab(lab: Path) -> None:
    entry = {**RECORD["devices"]["leaf01"], "gnmi_port": 8080, "gnmi_certificate": "ef"}
    found = lab_endpoints({"devices": {"leaf01": entry}}, lab)["leaf01"]
    assert found.gnmi == GnmiEndpoint(8080, "ef", password=WORD)
    assert WORD not in repr(found.gnmi)


def test_a_lab_is_reached_by_its_own_record_and_nothing_else(lab: Path) -> None:
    found = lab_endpoints(RECORD, lab)
    key, hosts = lab / "key", lab / "known_hosts"
    assert dict(found) == {
        "leaf01": Endpoint(
            "leaf01", "nvue", "127.64.0.1", 22, "someone", key_file=key, known_hosts=hosts, certificate="ab"
        ),
        "spine01": Endpoint(
            "spine01",
            "eos",
            "127.64.0.2",
            443,
            "someone",
            "eapi",
            WORD,
            key_file=key,
            known_hosts=hosts,
            certificate="cd",
        ),
        "gpu01": Endpoint("gpu01", "linux", "127.64.0.3", 22, "someone", key_file=key, known_hosts=hosts),
    }
    with pytest.raises(AccessError, match="leaf02: the lab small has no such device"):
        endpoint_of(found, "leaf02", "small")


def test_in_a_lab_only_transports_and_time_limits_of_the_settings_apply(lab: Path) -> None:
    chosen = settings(user="ops", timeout_s=7, platforms={"nvue": {"transport": "nvue-rest", "port": 1}})
    leaf = lab_endpoints(RECORD, lab, chosen)["leaf01"]
    assert (leaf.transport, leaf.port, leaf.user, leaf.timeout_s) == ("nvue-rest", 8765, "someone", 7)
    assert leaf.password == WORD


def test_a_driver_is_made_for_an_endpoint_and_sends_nothing(lab: Path) -> None:
    leaf = lab_endpoints(RECORD, lab)["leaf01"]
    driver = connect(leaf, str)
    assert isinstance(driver, NvueDriver)
    assert driver.is_alive() == {"is_alive": False}
    assert json.loads(json.dumps(arguments(leaf, str), default=repr))["known_hosts"] == str(lab / "known_hosts")
    assert "ssh_config_file" not in arguments(replace(leaf, ssh_config=None), str)
