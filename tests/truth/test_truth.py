"""netkit truth diff: against a stand-in for NetBox, read through the real pynetbox."""

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from netkit import design
from netkit.access.settings import TruthAccess
from netkit.design import Fabric
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.project.project import Project
from netkit.truth import reading, source
from netkit.truth.difference import DeviceRecord, TruthRecords, differences, of_fabric
from tests.command import ROOT, Done, run
from tests.lanes import examples
from tests.random_intents import Values, intents
from tests.truth.stand_in import TOKEN, NetBox, filled, served

CATALOG = Catalog()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "inventory/brownfield", tmp_path / "fabric")
    return tmp_path / "fabric"


@pytest.fixture
def netbox(folder: Path) -> Iterator[NetBox]:
    with served(filled(Project.open(folder).fabric)) as one:
        (folder / "access.yaml").write_text(
            f"truth: {{kind: netbox, url: '{one.url}', token: {{env: TRUTH_TOKEN}}}}\n", encoding="utf-8"
        )
        yield one


def diff(folder: Path, *arguments: str, token: str = TOKEN) -> Done:
    return run("truth", "diff", "--fabric", folder, *arguments, TRUTH_TOKEN=token)


@settings(max_examples=examples(40), deadline=None)
@given(intents())
def test_a_filled_source_agrees_with_its_fabric(values: Values) -> None:
    fabric = design.build(Intent.model_validate(values), CATALOG)
    with served(filled(fabric)) as one:
        found = reading.read(source.TruthApi(_access(one), TOKEN))
    assert found == of_fabric(fabric)


def _access(one: NetBox) -> TruthAccess:
    return TruthAccess.model_validate({"kind": "netbox", "url": one.url, "token": {"env": "TRUTH_TOKEN"}})


def test_agreement_is_reported(folder: Path, netbox: NetBox) -> None:
    done = diff(folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "netbox and the intent of brownfield agree\n", "")
    assert netbox.asked


def test_each_difference_is_a_row(folder: Path, netbox: NetBox) -> None:
    netbox.devices[0] |= {"serial": "OTHER\x1b[2J", "position": 12.5}
    netbox.devices[1]["rack"] = None
    gone = netbox.devices.pop()
    netbox.devices.append({"id": 9999, "name": "printer", "serial": "", "rack": None, "position": None})
    netbox.interfaces = [one for one in netbox.interfaces if one["device"]["id"] != gone["id"]]
    cable = next(one for one in netbox.interfaces if one["device"]["name"] == "b01-agg-1")["cable"]["id"]
    ends = [one for one in netbox.interfaces if one["cable"]["id"] == cable]
    for one in ends:
        one["cable"] = None
    done = diff(folder, "--format", "json")
    assert done.returncode == 1, done.stderr
    rows = [tuple(row.values()) for row in json.loads(done.stdout)]
    fabric = Project.open(folder).fabric
    expected = [
        ("a07-tor-1", "", "serial", "OTHER\x1b[2J", "MT2341X10420"),
        ("a07-tor-1", "", "rack_unit", "12.5", "40"),
        ("a07-tor-2", "", "rack", "", "A07"),
        (gone["name"], "", "device", "", gone["name"]),
        *sorted(_missing_cables(fabric, gone["name"], {(one["device"]["name"], one["name"]) for one in ends})),
    ]
    assert rows == expected
    text = diff(folder)
    assert "\x1b" not in text.stdout
    assert "OTHER\\x1b[2J" in text.stdout


def _missing_cables(fabric: Fabric, gone: str, ends: set[tuple[str, str]]) -> Iterator[tuple[str, ...]]:
    peers = of_fabric(fabric).peers
    for (device, port), (peer, peer_port) in peers.items():
        if peer == gone or (device, port) in ends:
            yield (device, port, "cable", "", f"{peer}:{peer_port}")


def test_a_value_that_only_the_source_has_is_not_a_difference() -> None:
    intent = TruthRecords({"a": DeviceRecord("a")}, {})
    assert differences(TruthRecords({"a": DeviceRecord("a", "SN1", "R1", "3")}, {}), intent) == []


def test_a_large_fabric_takes_one_request_per_page(folder: Path, netbox: NetBox) -> None:
    for number in range(4600):
        netbox.devices.append(
            {"id": 10_000 + number, "name": f"x{number}", "serial": "", "rack": None, "position": None}
        )
    assert diff(folder).returncode == 0
    pages = math.ceil(len(netbox.devices) / source.PAGE) + math.ceil(len(netbox.interfaces) / source.PAGE)
    assert len(netbox.asked) == pages


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"status": 500}, "cannot be read: HTTP status 500"),
        ({"devices": [{"id": 1, "name": "a"}]}, "answers in an unknown form"),
        (
            {"devices": [{"id": 1, "name": "a", "serial": "", "rack": 7, "position": None}]},
            "answers in an unknown form",
        ),
        ({"interfaces": [{"id": 1, "name": "a", "device": None, "cable": None}]}, "answers in an unknown form"),
    ],
)
def test_a_malformed_answer_is_refused(folder: Path, netbox: NetBox, broken: dict[str, Any], words: str) -> None:
    for key, value in broken.items():
        setattr(netbox, key, value)
    _assert_error(diff(folder), words)


def test_two_devices_of_one_name_are_refused(folder: Path, netbox: NetBox) -> None:
    twin = {**netbox.devices[0], "id": 9000}
    netbox.devices.append(twin)
    done = diff(folder)
    remedy = "set truth.site in access.yaml to read those of one site"
    said = f"error: {netbox.url} has two devices called {twin['name']}; {remedy}\n"
    assert (done.returncode, done.stdout, done.stderr) == (4, "", said)


def test_a_refused_token_is_not_printed(folder: Path, netbox: NetBox) -> None:
    assert netbox.url
    done = diff(folder, token="topsecret99")  # noqa: S106 (what must not be shown)
    _assert_error(done, "refuses the token (403)")
    assert "topsecret99" not in done.stdout + done.stderr


def test_a_server_that_is_down_is_an_error(folder: Path) -> None:
    (folder / "access.yaml").write_text(
        "truth: {kind: netbox, url: 'http://127.0.0.1:9', token: {env: TRUTH_TOKEN}}\n", encoding="utf-8"
    )
    _assert_error(diff(folder), "http://127.0.0.1:9 cannot be read: ConnectionError")
    access = (folder / "access.yaml").read_text(encoding="utf-8").replace("127.0.0.1:9'", "127.0.0.1:99999'")
    (folder / "access.yaml").write_text(access, encoding="utf-8")
    _assert_error(diff(folder), "http://127.0.0.1:99999 cannot be read: InvalidURL")


def _assert_error(done: Done, words: str) -> None:
    assert done.returncode == 4, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert TOKEN not in done.stderr


def test_the_token_is_not_sent_in_clear_text_to_other_machines(folder: Path) -> None:
    (folder / "access.yaml").write_text(
        "truth: {kind: netbox, url: 'http://netbox.example.net', token: {env: TRUTH_TOKEN}}\n", encoding="utf-8"
    )
    done = diff(folder)
    assert (done.returncode, done.stdout) == (3, "")
    assert "truth.url: would send the token to netbox.example.net in clear text; write https://" in done.stderr


def test_the_token_is_not_sent_to_other_servers(folder: Path, netbox: NetBox) -> None:
    with served(NetBox()) as other:
        netbox.moved_to = other.url
        done = diff(folder)
    assert other.asked == []
    _assert_error(done, f"{netbox.url} refers to http://127.0.0.1, which does not get the token")


@pytest.mark.parametrize("after", [None, "1"])
def test_a_server_that_limits_requests_is_asked_again(folder: Path, after: str | None) -> None:
    methods: list[str] = []

    def limit(method: str) -> bool:
        methods.append(method)
        return methods.count(method) in {1, 3}

    fabric = Project.open(folder).fabric
    with served(NetBox(limit=limit, retry_after=after)) as one:
        source.exported(source.TruthApi(_access(one), TOKEN), fabric, writes=True)
        assert methods.count("POST") > 3
        assert reading.read(source.TruthApi(_access(one), TOKEN)) == of_fabric(fabric)


def test_a_server_that_takes_no_more_requests_is_an_error(folder: Path, netbox: NetBox) -> None:
    netbox.limit, netbox.retry_after = lambda _: True, "0"
    _assert_error(diff(folder), "cannot be read: HTTP status 429")


def test_a_token_in_the_file_is_refused_without_printing_it(folder: Path) -> None:
    (folder / "access.yaml").write_text(
        "truth: {kind: netbox, url: 'http://127.0.0.1:9', token: topsecret99}\n", encoding="utf-8"
    )
    done = diff(folder)
    assert done.returncode == 3
    assert "must not be written into this file" in done.stderr
    assert "topsecret99" not in done.stderr


def test_without_settings_the_error_shows_what_to_write(folder: Path) -> None:
    done = diff(folder)
    assert done.returncode == 3
    assert "access.yaml: names no source of truth; add `truth:" in done.stderr
