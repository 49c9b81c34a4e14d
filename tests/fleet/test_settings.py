from pathlib import Path

import pytest

from netkit.fleet import settings
from netkit.fleet.settings import FleetError
from netkit.fleet.signing import public_text
from tests.fleet.jobs import COORDINATOR, TEXT, fleet

KEY = public_text(COORDINATOR)


def test_reads_the_file(tmp_path: Path) -> None:
    found = fleet(tmp_path)
    assert {name: {path: part.units for path, part in site.fabrics.items()} for name, site in found.sites.items()} == {
        "tokyo": {"inventory/tokyo": (), "inventory/large": (1, 2)},
        "osaka": {"inventory/large": (3,)},
    }
    assert (found.virtual_host("tokyo"), found.user("coordinator")) == ("netkit.tokyo", "netkit.coordinator")
    assert (found.broker.port, found.broker.password.env, found.repository.branches) == (
        5671,
        "NETKIT_SECRET_BROKER",
        ("main",),
    )


NO_KEY = "copy the line that `netkit fleet init` printed"


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("host:", "hots:", "1: broker.host: is missing; add host (name or address, as in the broker's certificate)"),
        ("localhost}", "h, port: tls}", "1: broker.port: 'tls' is not a whole number; write digits only"),
        ("localhost}", "h, password: hunter2}", "1: broker.password: must not be written into this file; "),
        ("localhost}", "h, password: {file: x}}", "1: broker.password.file: unknown key 'file'; known keys here: comm"),
        (".git}", ".git, branches: [a..b]}", "2: repository.branches: 'a..b' is not the name of a branch; "),
        ("git@git", "ext::sh -c git", "2: repository.url: 'ext::sh -c git.example.net:net/fabrics.git' is not acc"),
        ("git@git", "https://me:secret@git", "2: repository.url: holds a password; use an SSH key or a crede"),
        (f'["{KEY}"]', '["abc"]', f"3: coordinator.keys[0]: 'abc' is not an Ed25519 public key; {NO_KEY}"),
        (f'["{KEY}"]', "[]", "3: coordinator.keys: is empty; give at least one entry"),
        ("tokyo:\n", "Tokyo:\n", "5: sites.Tokyo: 'Tokyo' cannot name a site; use lower-case letters, digits"),
        ("tokyo:\n", "coordinator:\n", "5: sites.coordinator: 'coordinator' cannot name a site; use lower-case"),
        ("inventory/tokyo:", "../tokyo:", "8: sites.tokyo.fabrics.../tokyo: '../tokyo' is not a folder in the repo"),
        ("inventory/tokyo:", "/tokyo:", "8: sites.tokyo.fabrics./tokyo: '/tokyo' is not a folder in the repository"),
        ("[1, 2]}", "[1, 2], rack: 3}", "9: sites.tokyo.fabrics.inventory/large.rack: unknown key 'rack'; known keys"),
        ("[1, 2]", "[1, 3]", "4: sites: unit 3 of inventory/large is listed twice; a unit is at one site"),
        ("{units: [1, 2]}", "{}", "4: sites: inventory/large is at several sites; give `units` at each, also at tokyo"),
        ("sites:", "sites: {}\nplaces:", "4: sites: is empty; give at least one entry"),
        ("sites:", "places:", "1: sites: is missing; add sites (name → site)"),
    ],
)
def test_refuses_with_line_and_remedy(old: str, new: str, wanted: str, tmp_path: Path) -> None:
    with pytest.raises(FleetError) as caught:
        fleet(tmp_path, TEXT.replace(old, new, 1))
    first = str(caught.value.problems[0])
    assert first.startswith(f"{tmp_path}/fleet.yaml:{wanted}")
    assert "hunter2" not in str(caught.value)


def test_names_what_a_missing_file_begins_with(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"fleet\.yaml: does not exist; begin with `netkit fleet init`"):
        settings.load(tmp_path)


def test_names_the_known_sites(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"no site 'kyoto' in fleet\.yaml; use one of tokyo, osaka"):
        fleet(tmp_path).site("kyoto")
