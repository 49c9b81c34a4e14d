"""A check that is killed during delivery: the next one delivers its messages, with the same ids."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from netkit.notify.delivery import Sender
from netkit.store import Source
from netkit.store.outbox import Outbox
from netkit.store.store import open_store
from tests.notify.site import Site, reported, webhook
from tests.notify.web import web

STATE = "load.errors[leaf01] swp1s0"
SEND = Sender.send


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after_sending(sender: Sender, name: str, bodies: Sequence[Mapping[str, Any]]) -> None:
    SEND(sender, name, bodies)
    die()


def before_claiming() -> None:
    Outbox.claim = die  # type: ignore[method-assign]


def before_sending() -> None:
    Sender.send = die  # type: ignore[method-assign]


def before_marking() -> None:
    Sender.send = die_after_sending  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize(("moment", "messages"), [(before_claiming, 1), (before_sending, 1), (before_marking, 2)])
def test_messages_of_a_killed_check_are_delivered_by_the_next(
    site: Site, monkeypatch: pytest.MonkeyPatch, moment: Callable[[], None], messages: int
) -> None:
    monkeypatch.setattr("netkit.notify.delivery.LEASE_S", 0.0)
    with web() as receiver:
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
        assert site.check(is_bad=True, before=moment).returncode == -signal.SIGKILL
        assert reported(site.check(is_bad=True)) == (1, "")
        assert reported(site.check(is_bad=False)) == (0, "")
    assert receiver.events() == [(STATE, "pass", "fail"), (STATE, "fail", "pass")]
    assert len({one.data for one in receiver.got}) == 2
    assert len(receiver.got) == messages + 1
    with open_store(str(site.fabric.parent / "state" / "store.db")) as store:
        assert len(store.runs(Source("small"))) == 4
        assert store.outbox_of(Source("small")).waiting() == ()


def test_a_message_possibly_in_delivery_is_not_sent_by_another_process(site: Site) -> None:
    with web() as receiver:
        site.write(webhook(receiver.url))
        site.check(is_bad=False)
        assert site.check(is_bad=True, before=before_marking).returncode == -signal.SIGKILL
        assert reported(site.check(is_bad=False)) == (0, "")
    assert len(receiver.got) == 1
