"""Text of messages: groups by cause, the worst first, and within the limits of each receiver."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.judge import Verdict
from netkit.notify import receiver
from netkit.notify.event import event_of, plain
from netkit.notify.message import digest, groups, lines, text
from netkit.notify.receiver import LONGEST_SUBJECT, mail
from netkit.notify.settings import Email
from tests.conftest import Golden
from tests.lanes import examples
from tests.notify.events import event, message

WELL, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
RECEIVER = Email(name="m", kind="email", host="h", sender="netkit@example.net", to=("noc@example.net",))
SCENE = [
    event("leaf02", "swp9", before=FAIL, now=WELL, text="no light"),
    event("leaf01", "swp1", check="bgp.sessions", text="Idle", cause="links.up[leaf01] swp1"),
    event("leaf01", "swp1"),
    event("spine01", "swp1", check="bgp.sessions", text="Idle", cause="links.up[leaf01] swp1"),
    *(event(f"gpu{number}", "", check="reached", text="no answer", remedy="") for number in range(1, 6)),
    event("leaf03", "swp2", check="optics.light", before=FAIL, now=WARN, text="dim"),
    event("leaf04", "swp4", kind="flapping"),
    event("leaf05", "swp5", kind="settled", before=FAIL, now=WELL),
    event("leaf06", "swp1", check="bgp.sessions", text="Idle", cause="links.up[leaf06] swp1"),
]


def test_a_message_as_text(golden: Golden) -> None:
    golden("notify/message.txt", text(message(SCENE), most=20))


def test_causes_beyond_the_limit_are_counted() -> None:
    shown = text(message(SCENE), most=2).splitlines()
    assert "… and 5 groups more with 5 events" in shown


def test_a_digest_counts_changes_of_causes() -> None:
    assert digest(message(SCENE, lab="t")) == (
        "small (lab t): 3 new, 1 better, 1 flapping, 2 gone; 13 causes open: 13 fail"
    )


def test_a_partly_resolved_cause_is_one_group() -> None:
    events = (
        event(),
        event(check="bgp.sessions", before=FAIL, now=WELL, cause="links.up[leaf01] swp1"),
        event("spine01", check="bgp.sessions", cause="links.up[leaf01] swp1"),
    )
    (group,) = groups([replace(one, change="worse") for one in events])
    assert (group.change, group.word) == ("worse", "fail")
    assert list(lines(group))[1:] == [
        "with it: bgp.sessions[spine01] swp1",
        "passes again: bgp.sessions[leaf01] swp1",
        "do: see the cable",
    ]


def test_one_cause_stands_above_its_symptoms() -> None:
    found = groups(SCENE)
    together = next(one for one in found if one.head.key.device == "leaf01")
    assert [one.key.check for one in together.events] == ["links.up", "bgp.sessions", "bgp.sessions"]
    assert [one.word for one in found] == ["fail", "fail", "fail", "warn", "flapping", "well", "well"]


TEXTS = st.text(max_size=40) | st.just("<!channel> & *x*" * 250) | st.just("\u202e\x1b[2J\n")
EVENTS = st.lists(
    st.builds(
        event,
        TEXTS,
        TEXTS,
        check=st.sampled_from(["a.b", "c.d"]),
        before=st.sampled_from([WELL, WARN, FAIL]),
        now=st.sampled_from([WELL, WARN, FAIL, Verdict.ERROR]),
        kind=st.sampled_from(["changed", "flapping", "settled"]),
        text=TEXTS,
        remedy=TEXTS,
        cause=st.sampled_from(["", "links.up[leaf01] swp1"]),
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=examples(30))
@given(EVENTS, st.integers(1, 40), TEXTS)
def test_slack_accepts_every_message(events: list[object], most: int, fabric: str) -> None:
    reported = message(events, fabric)  # type: ignore[arg-type]
    found = receiver.slack_payload(reported, most)
    assert 1 <= len(found["blocks"]) <= 50
    assert 0 < len(found["text"]) <= 4000
    assert "<" not in found["text"]
    for block in found["blocks"]:
        parts = block["elements"] if block["type"] == "context" else [block["text"]]
        longest = 150 if block["type"] == "header" else 3000
        assert block["type"] == "header" or all("<" not in part["text"] for part in parts)
        assert all(0 < len(part["text"]) <= longest for part in parts)


def test_slack_gets_no_more_text_than_it_accepts_at_once() -> None:
    long = [event(f"leaf{number:02}", check=f"c.{number}", text="x" * 5000, remedy="y" * 5000) for number in range(40)]
    found = receiver.slack_payload(message(long), most=40)["blocks"]
    texts = [part["text"] for block in found for part in block.get("elements", [block.get("text")])]
    groups_told = len(found) - 3
    assert sum(map(len, texts)) <= receiver.MOST_TEXT
    assert 10 < groups_told < 40
    assert texts[-1].startswith(f"… and {40 - groups_told} groups more")


@settings(max_examples=examples(30))
@given(EVENTS, TEXTS)
def test_every_message_is_a_valid_mail(events: list[object], fabric: str) -> None:
    found = mail(message(events, fabric), RECEIVER)  # type: ignore[arg-type]
    assert len(found["Subject"]) <= LONGEST_SUBJECT
    assert found["Message-ID"] == "<m1@example.net>"
    assert b"\x1b" not in found.as_bytes()


@settings(max_examples=examples(30))
@given(EVENTS)
def test_an_event_survives_the_outbox(events: list[object]) -> None:
    assert [event_of(plain(one)) for one in events] == events  # type: ignore[arg-type]
