"""`netkit check --notify` with real receivers on loopback: each change once, whatever fails during delivery."""

import hashlib
import hmac
import os
import sys
from pathlib import Path

import pytest

from tests.command import assert_refused, run
from tests.notify.certificate import made
from tests.notify.site import Site, reported, webhook
from tests.notify.web import web

STATE = "load.errors[leaf01] swp1s0"


def test_each_change_is_notified_once(site: Site) -> None:
    with web() as receiver:
        site.write(webhook(receiver.url))
        for is_bad in (False, False, True, True, False, False, True):
            done = site.check(is_bad=is_bad)
            assert reported(done) == (int(is_bad or site.rounds == 1), "")
    assert receiver.events() == [(STATE, "pass", "fail"), (STATE, "fail", "pass"), (STATE, "pass", "fail")]
    assert len(receiver.got) == 3
    first, well, _ = receiver.values()
    assert first["digest"] == "small: 1 new; 1 cause open: 1 fail"
    assert (well["digest"], well["open"]) == ("small: 1 gone; nothing is open", {})
    assert first["groups"][0]["where"] == "leaf01:swp1s0"
    assert first["look"] == "netkit history --checks last --fabric DIR"


def test_a_message_is_signed_and_carries_its_token(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETKIT_SECRET_SIGN", "a signing secret")
    monkeypatch.setenv("NETKIT_SECRET_TOKEN", "a token")
    with web() as receiver:
        monkeypatch.setenv("NETKIT_SECRET_HOOK", receiver.url)
        site.write(
            {"name": "n", "kind": "webhook", "url_secret": "HOOK", "hmac_secret": "SIGN", "token_secret": "TOKEN"}
        )
        site.check(is_bad=False)
        assert reported(site.check(is_bad=True)) == (1, "")
    (got,) = receiver.got
    signed = hmac.new(b"a signing secret", got.data, hashlib.sha256).hexdigest()
    assert got.headers["X-Netkit-Signature"] == f"sha256={signed}"
    assert got.headers["Authorization"] == "Bearer a token"
    assert got.headers["X-Netkit-Message"] == got.value["id"]


def test_missed_notifications_are_delivered_when_a_receiver_is_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netkit.notify.delivery.SHORTEST_S", 0.0)
    with web() as receiver:
        port = receiver.port
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
    for is_bad in (True, False, True):
        done = site.check(is_bad=is_bad)
        assert done.returncode == int(is_bad)
        why = "it cannot be reached: Connection refused; check its address, and whether it runs"
        assert done.stderr == f"warning: notify: noc was not notified: {why}; the next run tries again\n"
    with web(port) as receiver:
        assert reported(site.check(is_bad=True)) == (1, "")
    assert receiver.events() == [(STATE, "pass", "fail"), (STATE, "fail", "pass"), (STATE, "pass", "fail")]
    assert [one["rounds"] for one in receiver.values()] == [1, 2]


def test_a_message_with_a_lost_response_is_sent_again_with_the_same_id(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netkit.notify.delivery.SHORTEST_S", 0.0)
    statuses = iter([500, 200])
    with web() as receiver:
        receiver.answer = lambda _: next(statuses)
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
        done = site.check(is_bad=True)
        assert (
            "noc was not notified: it answers with status 500; see the receiver's log; the next run tries again"
            in done.stderr
        )
        assert reported(site.check(is_bad=True)) == (1, "")
    first, second = receiver.got
    assert first.data == second.data


def test_a_message_that_is_never_accepted_does_not_block_later_ones(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netkit.notify.delivery.SHORTEST_S", 0.0)
    statuses = iter([413, 413, 413, 200])
    with web() as receiver:
        receiver.answer = lambda _: next(statuses)
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
        for _ in range(2):
            assert (
                "it answers with status 413; see the receiver's log; the next run tries again"
                in site.check(is_bad=True).stderr
            )
        done = site.check(is_bad=False)
        lost = "noc was not notified of 1 round; these are dropped: it answers with status 413; see the receiver's log"
        assert done.stderr == f"warning: notify: {lost}\n"
    assert len({got.data for got in receiver.got}) == 2
    assert receiver.events()[-1] == (STATE, "fail", "pass")


def test_a_receiver_that_fails_in_any_way_does_not_affect_the_others(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netkit.notify.delivery.SHORTEST_S", 0.0)
    with web() as receiver:
        site.write({"name": "noc", "kind": "alertmanager", "url": "http://127.0.0.1:1"})
        site.check(is_bad=False)
        assert "Connection refused" in site.check(is_bad=True).stderr
        site.write(webhook(receiver.url), webhook(receiver.url, "other"))
        done = site.check(is_bad=False)
        why = "noc was not notified: KeyError; see notify.yaml; the next run tries again"
        assert (done.returncode, done.stderr) == (0, f"warning: notify: {why}\n")
        assert "these are dropped: KeyError" in site.check(is_bad=True).stderr
    assert receiver.events() == [(STATE, "fail", "pass"), (STATE, "pass", "fail")]


def _nobody_reads() -> None:
    """Close the read end of stdout."""
    reader, writer = os.pipe()
    os.close(reader)
    sys.stdout = os.fdopen(writer, "w", encoding="utf-8")


def test_a_run_whose_output_is_closed_is_stored_and_notified(site: Site) -> None:
    with web() as receiver:
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
        done = site.check("--metrics", site.fabric / "missing" / "file.prom", is_bad=True)
        assert (done.returncode, done.stderr.count("cannot be written")) == (3, 1)
        assert site.check(is_bad=False, before=_nobody_reads).stderr == ""
    assert receiver.events() == [(STATE, "pass", "fail"), (STATE, "fail", "pass")]
    runs = run("history", "--checks", "--fabric", site.fabric, "--store").stdout.splitlines()
    assert len(runs) == 1 + site.rounds


def test_a_receiver_that_is_down_is_not_retried_for_a_while(site: Site) -> None:
    with web() as receiver:
        receiver.answer = lambda _: 503
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
        assert "503" in site.check(is_bad=True).stderr
        assert reported(site.check(is_bad=False)) == (0, "")
    assert len(receiver.got) == 1
    done = run("notify", "--fabric", site.fabric, "--store")
    assert " ".join(done.stdout.splitlines()[1].split()) == "noc webhook warn * * 2 rounds, tried 1 times"


def test_no_redirect_is_followed(site: Site) -> None:
    with web() as other, web() as receiver:
        receiver.answer, receiver.location = lambda _: 307, other.url
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
        done = site.check(is_bad=True)
    assert "noc was not notified: it answers with a redirect (307)" in done.stderr
    assert other.got == []


def test_no_proxy_is_used_for_this_machine(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with web() as proxy, web() as receiver:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
        assert reported(site.check(is_bad=True)) == (1, "")
    assert (len(receiver.got), proxy.got) == (1, [])


def test_an_url_that_is_a_secret_is_in_no_error(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write({"name": "chat", "kind": "slack", "url_secret": "CHAT"})
    for url in (
        "http://127.0.0.1:1/T00/B00/hush",
        "no/address/hush",
        "ftp://127.0.0.1/hush",
        "http://u:hush@127.0.0.1/",
    ):
        monkeypatch.setenv("NETKIT_SECRET_CHAT", url)
        done = run("notify", "test", "--fabric", site.fabric)
        assert done.returncode == 1
        assert done.stdout.startswith("chat: ")
        assert "hush" not in done.stdout + done.stderr, done.stdout
    monkeypatch.delenv("NETKIT_SECRET_CHAT")
    done = run("notify", "test", "--fabric", site.fabric)
    assert "the secret CHAT is not available; set NETKIT_SECRET_CHAT" in done.stdout


def test_a_receiver_that_does_not_answer_times_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netkit.notify.request.SEND_S", 1.0)
    with web() as receiver:
        receiver.answer = lambda _: 0
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
        assert (
            "noc was not notified: no answer within 1 s; check whether it can be reached from here"
            in site.check(is_bad=True).stderr
        )
        receiver.release.set()


def test_an_unauthenticated_server_is_sent_nothing(site: Site, tmp_path: Path) -> None:
    certificate, key = made(tmp_path)
    with web(tls=(certificate, key)) as receiver:
        url = receiver.url.replace("http:", "https:")
        site.write(webhook(url, "stranger"), webhook(url, "known", ca_file=str(certificate)))
        site.check(is_bad=False)
        done = site.check(is_bad=True)
    why = "its certificate is not trusted: self-signed certificate; name the certificates to trust with ca_file"
    assert done.stderr.startswith(f"warning: notify: stranger was not notified: {why}")
    assert len(done.stderr.splitlines()) == len(receiver.got) == 1


def test_receivers_get_what_they_subscribed_to(site: Site) -> None:
    with web() as everything, web() as spines, web() as optics:
        site.write(
            webhook(everything.url, "everything", minimum="fail"),
            webhook(spines.url, "spines", devices=["spine*"]),
            webhook(optics.url, "optics", checks=["optics.*"]),
        )
        site.check(is_bad=False)
        assert reported(site.check(is_bad=True)) == (1, "")
    assert [len(one.got) for one in (everything, spines, optics)] == [1, 0, 0]


def test_a_flapping_state_is_notified_when_it_is_stable(site: Site) -> None:
    with web() as receiver:
        site.write(webhook(receiver.url), flapping={"changes": 2, "window_minutes": 120, "calm_minutes": 30})
        for is_bad in (False, True, False, True, False, True, True, True, True, True):
            site.check(is_bad=is_bad)
    kinds = [(one["kind"], one["before"], one["now"]) for value in receiver.values() for one in value["events"]]
    changed = [("changed", "pass", "fail"), ("changed", "fail", "pass")]
    assert kinds == [*changed, ("flapping", "pass", "fail"), ("settled", "fail", "fail")]


def test_a_sample_goes_to_each_receiver(site: Site) -> None:
    with web() as receiver:
        site.write(webhook(receiver.url), {"name": "chat", "kind": "slack", "url": receiver.url})
        done = run("notify", "test", "--fabric", site.fabric)
    assert (done.returncode, done.stdout) == (0, "noc: received the sample\nchat: received the sample\n")
    hook, chat = receiver.values()
    assert hook["events"][0]["text"] == "this is a test notification: nothing is wrong"
    assert "this is a test notification" in chat["blocks"][2]["text"]["text"]


def test_without_a_store_or_receivers_no_device_is_read(site: Site) -> None:
    assert_refused(run("check", "--fabric", site.fabric, "--notify"), "give --store")
    assert_refused(site.check(is_bad=False), "notify.yaml: does not exist")
    assert not (site.fabric.parent / "state").exists()
