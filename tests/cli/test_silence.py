"""`netkit silence`, and silenced findings in `netkit check`, its store, its formats and its notifications."""

import json
import os
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from netkit.facts import serial
from netkit.project.control import who
from tests.cli.checked import checked
from tests.cli.test_check_store import BEGAN_S, seen
from tests.command import Done, assert_refused, run
from tests.notify.site import Site, site, webhook
from tests.notify.web import Web, web

__all__ = ["site"]
DAMAGED = ("load.errors", "leaf01:swp1s0")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    return checked(tmp_path)


def silence(fabric: Path, *words: str) -> Done:
    done = run("silence", *words, "--fabric", fabric)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done


def check(places: tuple[Path, Path], *options: str | Path) -> Done:
    return run("check", *options, "--fabric", places[0], "--from", places[1])


def data(places: tuple[Path, Path], *options: str) -> dict[str, Any]:
    done = check(places, *options, "--format", "json")
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == found["exit_code"]
    return found


def test_a_silence_is_shown_counted_and_ends(places: tuple[Path, Path]) -> None:
    fabric, _ = places
    only = ("load", "bgp", "--limit", "leaf*")
    assert data(places, *only)["exit_code"] == 1
    silence(fabric, "ack", "bgp.sessions", "leaf02:swp33s0", "--verdict", "fail", "--reason", "cable ordered")
    silence(fabric, "add", *DAMAGED, "--until", "2d", "--reason", "spare comes", "--ticket", "NOC-1")
    found = data(places, *only)
    assert (found["exit_code"], found["verdict"], found["counts"]["silenced"]) == (0, "clean but for 2 silenced", 2)
    assert found["counts"]["fail"] == 0
    assert [cause["is_silenced"] for cause in found["causes"]] == [True, True]
    marks = {one["head"]["check"]: one["head"]["silenced"] for one in found["causes"]}
    assert marks["load.errors"]["by"] == who()
    assert (marks["load.errors"]["why"], marks["load.errors"]["ticket"]) == ("spare comes", "NOC-1")
    assert marks["bgp.sessions"]["until_s"] is None
    assert {one["verdict"] for one in found["results"] if one["id"] == "load.errors[leaf01]"} == {"fail"}
    for output, word in (("text", "silenced until "), ("markdown", "| fail, silenced |")):
        assert word in check(places, *only, "--format", output).stdout
    suite = Xml.fromstring(check(places, *only, "--format", "junit").stdout)[0]  # noqa: S314 (ours)
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    skipped = [one.text or "" for one in suite.iter("skipped")]
    assert any("acknowledged by" in text and "cable ordered" in text for text in skipped)
    listed = json.loads(silence(fabric, "list", "--format", "json").stdout)
    assert [(one["kind"], one["state"]) for one in listed] == [("silence", "active"), ("acknowledgement", "active")]
    for one in listed:
        silence(fabric, "end", one["id"])
    assert data(places, *only)["exit_code"] == 1
    assert silence(fabric, "list").stdout == "small has no silences\n"


def test_an_expired_silence_has_no_effect_and_is_reported_for_removal(places: tuple[Path, Path]) -> None:
    fabric, _ = places
    text = f"silences:\n- {{check: load, where: leaf*, until: {stamp(time.time() - 9)}, by: al, why: x}}\n"
    (fabric / "silences.yaml").write_text(text, encoding="utf-8")
    plain = check(places, "load", "--limit", "leaf*")
    assert plain.returncode == 1
    assert "silenced" not in plain.stdout
    assert "To clean up, with netkit silence end:" in plain.stdout
    assert " of load on leaf* by al has expired\n" in plain.stdout
    assert run("validate", "--fabric", fabric).returncode == 0


def stamp(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def test_a_wrong_file_stops_check_and_validate(places: tuple[Path, Path]) -> None:
    fabric, _ = places
    text = "silences:\n- check: load.error\n  where: leaf01\n  until: 2030-01-01T00:00:00Z\n  by: al\n  why: x\n"
    (fabric / "silences.yaml").write_text(text, encoding="utf-8")
    reported = f"{fabric}/silences.yaml:2: silences[0].check: no check 'load.error'; did you mean load.errors?"
    assert_refused(check(places, "load"), reported)
    assert_refused(run("validate", "--fabric", fabric), reported)
    assert_refused(run("silence", "list", "--fabric", fabric), reported)


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("load.eror", "leaf01", "--until", "2d", "--reason", "x"), "no check 'load.eror'; did you mean load.errors?"),
        (("load", "leaf1", "--until", "2d", "--reason", "x"), "no device 'leaf1'; did you mean leaf01?"),
        (("*", "*", "--until", "2d", "--reason", "x"), "would silence every check on every device"),
        (("load", "leaf01", "--until", "2 days", "--reason", "x"), "--until '2 days' is not a time; write 30m, 2h"),
        (("load", "leaf01", "--until", "2030-01-01", "--reason", "x"), "--until '2030-01-01' has no time zone"),
        (("load", "leaf01", "--until", "2020-01-01T00:00:00Z", "--reason", "x"), "its time is over"),
        (("load", "leaf01", "--until", "2d", "--from", "3d", "--reason", "x"), "ends before it begins"),
        (("load", "leaf01", "--until", "2d"), "--reason"),
        (("load", "leaf01", "--reason", "x"), "--until"),
    ],
)
def test_what_cannot_be_silenced_is_refused(places: tuple[Path, Path], words: tuple[str, ...], reported: str) -> None:
    assert_refused(run("silence", "add", *words, "--fabric", places[0]), reported)
    assert not (places[0] / "silences.yaml").exists()


def test_unreachable_devices_can_be_silenced(places: tuple[Path, Path]) -> None:
    assert data(places, "bgp", "--limit", "spine02,leaf01")["exit_code"] == 4
    silence(places[0], "add", "reached", "spine*", "--until", "1h", "--reason", "rack moves")
    found = data(places, "bgp", "--limit", "spine02,leaf01")
    assert (found["exit_code"], found["unreached"][0]["silenced"]["why"]) == (0, "rack moves")


def test_silences_of_a_lab_are_separate_from_those_of_the_fabric(places: tuple[Path, Path]) -> None:
    silence(places[0], "add", *DAMAGED, "--until", "2d", "--reason", "x", "--lab")
    assert "lab: small\n" in (places[0] / "silences.yaml").read_text(encoding="utf-8")
    found = data(places, "load.errors", "--limit", "leaf01")
    assert (found["exit_code"], found["silences"]) == (1, [])
    assert silence(places[0], "list", "--lab=small").stdout.count("load.errors") == 1


def test_an_acknowledgement_ends_when_its_finding_resolves_and_the_next_one_counts(site: Site) -> None:
    def round_of(*, is_bad: bool) -> dict[str, Any]:
        site.rounds += 1
        site.errors += 900_000 if is_bad else 0
        file = site.fabric.parent / "snapshot.json"
        file.write_bytes(serial.dump(seen(BEGAN_S + site.rounds * 600, site.errors)))
        how = ("--from", file, "--limit", "leaf01", "--store", "--since=last", "--format", "json")
        found: dict[str, Any] = json.loads(run("check", "load.errors", "--fabric", site.fabric, *how).stdout)
        return found

    round_of(is_bad=False)
    assert round_of(is_bad=True)["exit_code"] == 1
    silence(site.fabric, "ack", "load.errors", "leaf01", "--reason", "known", "--store")
    text = (site.fabric / "silences.yaml").read_text(encoding="utf-8")
    assert "where: leaf01:swp1s0\n" in text
    again = round_of(is_bad=True)
    assert (again["exit_code"], again["counts"]["silenced"]) == (0, 1)
    assert round_of(is_bad=False)["exit_code"] == 0
    back = round_of(is_bad=True)
    assert (back["exit_code"], back["counts"]["silenced"], back["silences"][0]["state"]) == (1, 0, "healed")
    time.sleep(1.1)  # times have a resolution of one second: the next acknowledgement has to be a different one
    silence(site.fabric, "ack", "load.errors", "leaf01", "--reason", "known", "--store")
    assert round_of(is_bad=True)["exit_code"] == 0
    history = run("history", "--checks", "--fabric", site.fabric).stdout
    assert history.count("clean but for 1 silenced") == 2


def test_changes_and_receivers_get_the_end_and_nothing_that_is_silenced(site: Site) -> None:
    with web() as noc:
        told_of_silences(site, noc)


def told_of_silences(site: Site, noc: Web) -> None:
    site.write(webhook(noc.url))
    site.check(is_bad=False)
    assert "small: 1 new since the last run; 1 cause open: 1 fail\n" in site.check(is_bad=True).stdout
    assert noc.values()[-1]["groups"][0]["word"] == "fail"
    silence(site.fabric, "add", *DAMAGED, "--until", "1h", "--reason", "spare comes")
    assert site.check(is_bad=True).stdout.splitlines()[0] == (
        "small: 1 silenced since the last run; nothing is open; 1 silenced"
    )
    reported = noc.values()[-1]
    assert (reported["digest"], reported["groups"][0]["word"]) == ("small: 1 silenced; nothing is open", "silenced")
    assert "spare comes" in reported["events"][0]["silence"]
    number = len(noc.values())
    assert site.check(is_bad=True).stdout == ""
    assert len(noc.values()) == number
    (name,) = (one["id"] for one in json.loads(silence(site.fabric, "list", "--format", "json").stdout))
    silence(site.fabric, "end", name)
    lines = site.check(is_bad=True).stdout.splitlines()
    assert lines[0] == "small: 1 new, 1 silence ended since the last run; 1 cause open: 1 fail"
    ended = (
        f"silence {name} of load.errors on leaf01:swp1s0 by {who()}: it was removed or moved; 1 finding counts again"
    )
    assert lines[-1] == f"  ended   {ended}"
    last = noc.values()[-1]
    assert (last["silences_ended"], last["groups"][0]["word"]) == ([ended], "fail")
    assert site.check(is_bad=True).stdout == ""


def test_two_concurrent_writers_lose_nothing(places: tuple[Path, Path]) -> None:
    children = []
    for number in range(8):
        child = os.fork()
        if child == 0:
            place = f"leaf01:swp{number}"
            done = run("silence", "add", "load", place, "--until", "1h", "--reason", "x", "--fabric", places[0])
            os._exit(done.returncode)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    assert len(json.loads(silence(places[0], "list", "--format", "json").stdout)) == 8
