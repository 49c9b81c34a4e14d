"""`netkit fleet init`: everything is private, complete, consistent, and never overwritten."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from cryptography import x509

from netkit.fleet import settings
from netkit.fleet.installation import YEARS
from netkit.fleet.signing import public_text, read_key
from tests.command import Done, run

NEW = ("--broker", "mq.example.net", "--repository", "git@git.example.net:net/fabrics.git")
MACHINE = ["ca.pem", "client.key", "client.pem", "environment", "fleet.yaml", "signing.key"]


def init(folder: Path, *arguments: str) -> Done:
    return run("fleet", "init", "-o", folder, *arguments)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    folder = tmp_path / "fleet"
    done = init(folder, *NEW, "--site", "tokyo=inventory/tokyo", "--site", "osaka=inventory/large:1-2,4")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f'{folder}: 27 files written, for tokyo, osaka\nnext: docs/fleet.md, "Install"\n'
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_writes_what_each_machine_needs(fleet: Path) -> None:
    assert sorted(files(fleet)) == sorted(
        [
            *MACHINE,
            *(f"sites/{site}/{name}" for site in ("tokyo", "osaka") for name in (*MACHINE, "netkit-worker.service")),
            *(f"broker/{name}" for name in ("ca.pem", "definitions.json", "rabbitmq.conf", "server.key", "server.pem")),
            "authority/ca.key",
            "authority/ca.pem",
        ]
    )
    assert {path.stat().st_mode & 0o077 for path in (fleet, *fleet.rglob("*"))} == {0}


def test_the_settings_hold_the_keys_of_all_and_no_secret(fleet: Path) -> None:
    found = settings.load(fleet)
    assert found.coordinator.keys == (public_text(read_key(fleet / "signing.key")),)
    assert {name: site.keys for name, site in found.sites.items()} == {
        name: (public_text(read_key(fleet / "sites" / name / "signing.key")),) for name in ("tokyo", "osaka")
    }
    assert found.sites["osaka"].fabrics["inventory/large"].units == (1, 2, 4)
    text = (fleet / "fleet.yaml").read_bytes()
    for name in ("", "sites/tokyo/", "sites/osaka/"):
        assert (fleet / name / "fleet.yaml").read_bytes() == text
        assert (fleet / name / "environment").read_bytes().partition(b"=")[2].strip() not in text


def test_the_definitions_match_the_passwords(fleet: Path) -> None:
    found = json.loads((fleet / "broker" / "definitions.json").read_text(encoding="utf-8"))
    users = {user["name"]: base64.b64decode(user["password_hash"]) for user in found["users"]}
    folders = {"netkit.coordinator": fleet, **{f"netkit.{one}": fleet / "sites" / one for one in ("tokyo", "osaka")}}
    assert users.keys() == folders.keys()
    passwords = {
        name: (folder / "environment").read_text(encoding="utf-8").strip().removeprefix("NETKIT_SECRET_BROKER=")
        for name, folder in folders.items()
    }
    for name, digest in users.items():
        assert digest[4:] == hashlib.sha256(digest[:4] + passwords[name].encode()).digest()
    assert len(set(passwords.values())) == 3
    assert {user["hashing_algorithm"] for user in found["users"]} == {"rabbit_password_hashing_sha256"}
    assert [user["tags"] for user in found["users"]] == [[]] * 3


def test_the_certificates_are_of_one_authority(fleet: Path) -> None:
    authority = x509.load_pem_x509_certificate((fleet / "ca.pem").read_bytes())
    names = {}
    for file in [*fleet.rglob("client.pem"), *fleet.rglob("server.pem")]:
        found = x509.load_pem_x509_certificate(file.read_bytes())
        found.verify_directly_issued_by(authority)
        assert (found.not_valid_after_utc - found.not_valid_before_utc).days == 365 * YEARS
        names[str(file.parent.relative_to(fleet))] = found.subject.rfc4514_string()
    assert names == {
        ".": "CN=netkit.coordinator",
        "sites/tokyo": "CN=netkit.tokyo",
        "sites/osaka": "CN=netkit.osaka",
        "broker": "CN=mq.example.net",
    }


def test_the_unit_of_a_worker_names_its_site(fleet: Path) -> None:
    unit = (fleet / "sites" / "tokyo" / "netkit-worker.service").read_text(encoding="utf-8")
    assert re.findall(r"^(?:ExecStart|EnvironmentFile|User|Restart)=.*$", unit, re.MULTILINE) == [
        "User=netkit",
        "EnvironmentFile=/etc/netkit/fleet/environment",
        "EnvironmentFile=-/etc/netkit/environment",
        "ExecStart=/usr/bin/env netkit worker --site tokyo --fleet /etc/netkit/fleet --state /var/lib/netkit-worker",
        "Restart=always",
    ]


def test_a_site_is_added(fleet: Path) -> None:
    before = files(fleet)
    done = init(fleet, "--site", "kyoto=inventory/large:3", "--site", "kyoto=inventory/kyoto")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{fleet}: 9 files written, for kyoto\n")
    after = files(fleet)
    assert {name for name in before if before[name] != after[name]} == {"fleet.yaml"}
    assert after["fleet.yaml"].startswith(before["fleet.yaml"])
    found = settings.load(fleet)
    assert settings.load(fleet / "sites" / "kyoto") == found
    assert {path: part.units for path, part in found.sites["kyoto"].fabrics.items()} == {
        "inventory/large": (3,),
        "inventory/kyoto": (),
    }
    new = json.loads(after["broker/definitions-kyoto.json"])
    assert [user["name"] for user in new["users"]] == ["netkit.kyoto"]
    assert {row["vhost"] for kind in ("permissions", "queues", "exchanges", "bindings") for row in new[kind]} == {
        "netkit.kyoto"
    }


def test_a_site_is_shown_when_it_cannot_be_added(fleet: Path) -> None:
    text = (fleet / "fleet.yaml").read_text(encoding="utf-8")
    head, _, sites = text.partition("sites:\n")
    (fleet / "fleet.yaml").write_text(f"sites:\n{sites}{head}", encoding="utf-8")
    done = init(fleet, "--site", "kyoto=inventory/kyoto")
    shown = done.stdout.partition(f"add to `sites` in {fleet}/fleet.yaml:\n")[2].partition("next: ")[0]
    assert (fleet / "fleet.yaml").read_text(encoding="utf-8") == f"sites:\n{sites}{head}"
    (fleet / "fleet.yaml").write_text(f"sites:\n{sites}{shown}{head}", encoding="utf-8")
    assert settings.load(fleet) == settings.load(fleet / "sites" / "kyoto")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            (*NEW, "--site", "kyoto=inventory/kyoto"),
            "exists; --broker, --repository and --branch are only for a new fleet; ",
        ),
        (
            ("--site", "tokyo=inventory/kyoto"),
            "fleet.yaml: the site tokyo exists; remove it first, or use an",
        ),
        (("--site", "kyoto=inventory/large:1"), "unit 1 of inventory/large is listed twice; a unit is at one site"),
        (("--site", "Kyoto=inventory/kyoto"), "'Kyoto' cannot name a site; use lower-case letters, digits and hyphens"),
        (("--site", "kyoto=../kyoto"), "'../kyoto' is not a folder in the repository; write it as inventory/tokyo"),
        (("--site", "kyoto"), "--site 'kyoto' names no fabric; write it as tokyo=inventory/tokyo"),
        (("--site", "kyoto=inventory/kyoto:"), "names no fabric; write it as tokyo=inventory/tokyo"),
        (("--site", "kyoto=inventory/kyoto:3-1"), "3-1 runs backwards or past 65535; write the smaller number first"),
    ],
)
def test_what_is_wrong_changes_nothing(fleet: Path, arguments: tuple[str, ...], reason: str) -> None:
    before = files(fleet)
    done = init(fleet, *arguments)
    assert (done.returncode, done.stdout) == (3, "")
    assert reason in done.stderr
    assert files(fleet) == before


def test_nothing_is_overwritten(fleet: Path) -> None:
    place = fleet / "sites" / "kyoto"
    place.mkdir()
    (place / "signing.key").symlink_to("/nowhere")
    before = files(fleet)
    done = init(fleet, "--site", "kyoto=inventory/kyoto")
    assert done.returncode == 3
    assert done.stderr == f"error: {place}/signing.key: exists, and is not overwritten; move it away first\n"
    assert files(fleet) == before


def test_a_site_needs_the_authority(fleet: Path) -> None:
    (fleet / "authority" / "ca.key").rename(fleet / "elsewhere")
    done = init(fleet, "--site", "kyoto=inventory/kyoto")
    assert done.returncode == 3
    reason = "cannot be read, and signs the certificates of sites; restore it while this command runs"
    assert done.stderr == f"error: {fleet}/authority/ca.key: {reason}\n"


def test_a_new_fleet_needs_a_broker(tmp_path: Path) -> None:
    done = init(tmp_path / "fleet", "--site", "kyoto=inventory/kyoto")
    assert done.returncode == 3
    remedy = "give both, or name the folder with fleet.yaml"
    assert done.stderr == f"error: a new fleet needs --broker and --repository; {remedy}\n"
    assert not (tmp_path / "fleet").exists()
