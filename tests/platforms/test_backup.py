"""Backups: the same configuration without its secrets, in whatever order a device prints it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.platforms.backup import joined, separated, without_secrets
from netkit.platforms.compare import MODELS
from netkit.platforms.secrets import SECRET
from tests.platforms.samples import samples

WORD = "hunter2-hunter2"
PLACEHOLDER = re.compile(r"@secret:\w+@")


@pytest.mark.parametrize("platform", MODELS)
def test_a_backup_has_the_same_meaning_and_no_secret(platform: str) -> None:
    model = MODELS[platform]
    secrets = 0
    for files in samples(platform).values():
        running = {name: PLACEHOLDER.sub(WORD, text) for name, text in files.items() if model.reads(name)}
        secrets += sum(WORD in text for text in running.values())
        kept = joined(without_secrets(model, running, files))
        assert WORD not in kept
        again = {name: text for name, text in separated(kept).items() if text is not None}
        assert model.parse(again) == model.parse({name: text for name, text in files.items() if model.reads(name)})
        assert joined(without_secrets(model, again, files)) == kept
    assert secrets or platform == "linux"


def test_a_secret_that_only_the_intent_expects_is_masked_too() -> None:
    files = samples("eos")["spine01"] if "spine01" in samples("eos") else next(iter(samples("eos").values()))
    (name,) = (name for name in files if MODELS["eos"].reads(name))
    running = {name: f"{files[name]}\nbanner motd {WORD}\n"}
    intended = {name: f"{files[name]}\nbanner motd @secret:MOTD@\n"}
    assert WORD not in joined(without_secrets(MODELS["eos"], running, intended))


BY_HAND = {
    "eos": {
        "eos.cfg": """\
snmp-server host 192.0.2.5 version 2c hunter2
snmp-server host 192.0.2.6 vrf MGMT informs hunter2
ntp authentication-key 1 md5 7 hunter2
interface Ethernet1/1
   ip ospf authentication-key 7 hunter2
   ip ospf message-digest-key 1 md5 7 hunter2
mac security
   profile far
      key 0abc 7 hunter2 fallback
daemon TerminAttr
   exec /usr/bin/TerminAttr -cvauth=token,hunter2 -taillogs
"""
    },
    "frr": {
        "frr.conf": """\
interface swp1
 ip ospf message-digest-key 1 md5 hunter2
 ip rip authentication string hunter2
exit
key chain far
 key 1
  key-string hunter2
 exit
 key 2
  key-string hunter2
 exit
exit
""",
        "snmpd.conf": """\
com2sec noc default hunter2
trap2sink 192.0.2.1 hunter2
trapcommunity hunter2
trapsess -v 3 -u noc -a SHA -A hunter2 192.0.2.1
""",
        "netplan.yaml": "network: {wifis: {w: {access-points: {a: {password: hunter2}}}}}\n",
    },
    "nvue": {
        "startup.yaml": """\
- set:
    system:
      ntp: {key: {'1': {value: hunter2, type: md5}}}
      snmp-server: {trap-destination: {192.0.2.1: {community-password: {hunter2: {version: 2c}}}}}
      security: {certificate: {far: {uri-bundle: 'https://noc:hunter2@far/x'}}}
    vrf: {default: {router: {ospf: {message-digest-key: {'1': {md5: hunter2}}}}}}
"""
    },
    "sonic": {
        "config_db.json": """{
 "MACSEC_PROFILE": {"far": {"primary_cak": "hunter2", "primary_ckn": "6162"}},
 "NTP_KEY": {"1": {"type": "md5", "value": "hunter2"}},
 "SNMP": {"far": {"snmp_rocommunity": "hunter2", "snmp_rocommunities": ["hunter2"]}},
 "SNMP_TRAP_CONFIG": {"v2TrapDest": {"DestIp": "192.0.2.1", "Community": "hunter2"}},
 "USER": {"noc": {"password_hash": "hunter2"}}
}"""
    },
}


@pytest.mark.parametrize("platform", BY_HAND)
def test_secrets_of_features_that_netkit_never_renders_are_masked_too(platform: str) -> None:
    model, files = MODELS[platform], BY_HAND[platform]
    kept = without_secrets(model, files, {})
    text = joined(kept)
    assert "hunter2" not in text
    assert text.count(SECRET) == joined(files).count("hunter2")
    again = {name: found for name, found in kept.items() if found is not None}
    assert joined(without_secrets(model, again, {})) == text


def test_other_values_stay() -> None:
    lines = ["ntp server 192.0.2.7", "snmp-server host 192.0.2.5 vrf MGMT version 3 auth noc"]
    kept = without_secrets(MODELS["eos"], {"eos.cfg": "".join(f"{line}\n" for line in lines)}, {})
    assert sorted((kept["eos.cfg"] or "").splitlines()) == sorted(lines)
    frr = without_secrets(MODELS["frr"], {"frr.conf": "key chain far\n key 1\n exit\n key 2\n exit\nexit\n"}, {})
    assert [line for line in (frr["frr.conf"] or "").splitlines() if " key " in line] == [" key 1", " key 2"]


NAMES = st.text("abcz.-_019", min_size=1, max_size=12)
TEXTS = st.text("ab \n{}:#", max_size=40).map(lambda text: text if not text or text.endswith("\n") else f"{text}\n")


@given(st.dictionaries(NAMES, st.none() | TEXTS, min_size=1))
def test_joined_files_can_be_split_again(files: dict[str, str | None]) -> None:
    assert separated(joined(files)) == files


@given(st.text())
def test_any_other_text_is_not_a_backup(text: str) -> None:
    if not text.startswith("==> "):
        assert separated(text) == {}
