"""The schedule of rounds, its diary, sessions and queries: all of it without a server."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from netkit.errors import OutputError, UsageError
from netkit.judge import Verdict
from netkit.serve.guard import MOST_ADDRESSES, MOST_WRONG, SESSION_S, WRONG_S, Guesses, Token, is_own_name, token_of
from netkit.serve.query import Query, QueryError, sliced
from netkit.serve.rounds import KILLED, ScheduledRound
from netkit.serve.schedule import MOST_MISSED, MOST_ROUNDS, Agenda, Diary, DiaryFile, MissedRounds, jump_s, nightly
from tests.test_damage import swapped

QUARTER = Agenda(900.0)
NOON_S = 1_795_348_800.0
LONG = "x" * 40


def test_a_round_is_due_once_in_its_time() -> None:
    assert QUARTER.is_due(None, NOON_S)
    assert not QUARTER.is_due(NOON_S, NOON_S + 899)
    assert QUARTER.is_due(NOON_S, NOON_S + 900)
    assert QUARTER.next_s(NOON_S + 1) == NOON_S + 900


def test_past_rounds_are_missed_and_the_current_one_is_not() -> None:
    assert list(QUARTER.missed(None, NOON_S, has_current=False)) == []
    assert list(QUARTER.missed(NOON_S, NOON_S + 900, has_current=False)) == []
    assert len(QUARTER.missed(NOON_S + 5, NOON_S + 3600, has_current=False)) == 3
    assert len(QUARTER.missed(NOON_S + 5, NOON_S + 3600, has_current=True)) == 4
    assert list(QUARTER.missed(NOON_S, NOON_S - 7200, has_current=True)) == []


def test_a_clock_step_is_distinguished_from_elapsed_time() -> None:
    offset_s = NOON_S - 100.0
    assert jump_s(NOON_S + 3600, 3700.0, offset_s) == 0
    assert jump_s(NOON_S + 3600, 160.0, offset_s) == 3540
    assert jump_s(NOON_S - 3600, 160.0, offset_s) == -3660


def test_backups_are_due_at_night() -> None:
    due_s = nightly().next_s(NOON_S)
    assert (due_s - NOON_S) / 3600 == pytest.approx(15 + 17 / 60)


def test_a_diary_has_totals_and_the_latest_rounds_and_survives_a_restart(tmp_path: Path) -> None:
    diary = Diary()
    for number in range(MOST_ROUNDS + 5):
        diary = diary.begun(ScheduledRound("check", NOON_S + number)).ended(
            ScheduledRound("check", NOON_S + number, NOON_S, 3)
        )
        diary = diary.without(MissedRounds(NOON_S, NOON_S, 2, "busy"), NOON_S)
    assert (len(diary.rounds), diary.rounds_total, diary.failed_total) == (MOST_ROUNDS, 55, 55)
    assert (len(diary.missed), diary.missed_total) == (min(55, MOST_MISSED), 110)
    DiaryFile(tmp_path / "diary.json").write(diary)
    again = DiaryFile(tmp_path / "diary.json")
    assert (again.read(), again.diary) == ("", diary)
    assert (tmp_path / "diary.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', '{"format": 1}', '{"format": 1, "rounds": 5}'])
def test_a_damaged_diary_is_replaced_with_a_warning(tmp_path: Path, text: str) -> None:
    (tmp_path / "diary.json").write_text(text, encoding="utf-8")
    book = DiaryFile(tmp_path / "diary.json")
    assert "a new one starts without earlier rounds" in book.read()
    assert book.diary == Diary()
    assert (tmp_path / "diary.damaged").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("seed", range(60))
def test_a_diary_with_a_value_of_another_type_is_replaced_or_used(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "diary.json"
    book = DiaryFile(file)
    book.write(Diary().begun(ScheduledRound("check", NOON_S)).without(MissedRounds(NOON_S, NOON_S, 2, "busy"), NOON_S))
    chance = random.Random(seed)  # noqa: S311
    file.write_text(json.dumps(swapped(json.loads(file.read_bytes()), chance)), encoding="utf-8")
    book = DiaryFile(file)
    said = book.read()
    assert (book.diary == Diary()) == bool(said)
    later = book.diary.taken_up(NOON_S + 9).begun(ScheduledRound("check", NOON_S + 600))
    book.write(
        later.ended(ScheduledRound("check", NOON_S + 600, NOON_S + 601, 0)).without(
            MissedRounds(NOON_S, NOON_S, 1, ""), 1.0
        )
    )
    QUARTER.is_due(book.diary.settled_s, NOON_S)
    nightly().is_due(book.diary.saved_s, NOON_S)
    assert DiaryFile(file).read() == ""


def test_a_killed_round_is_reported_and_is_not_a_failure() -> None:
    diary = Diary().begun(ScheduledRound("check", NOON_S)).taken_up(NOON_S + 9)
    assert diary.rounds == (ScheduledRound("check", NOON_S, NOON_S + 9, text=KILLED),)
    assert diary.failed_total == 0
    assert diary.taken_up(NOON_S + 20) is diary


def test_a_failed_write_is_reported_and_remembered(tmp_path: Path) -> None:
    book = DiaryFile(tmp_path / "nowhere" / "diary.json")
    diary = Diary(rounds_total=7)
    with pytest.raises(OutputError, match="cannot be written"):
        book.write(diary)
    assert book.diary == diary


def test_only_the_token_is_the_token() -> None:
    token = Token(LONG)
    assert token.is_it(LONG)
    assert not any(token.is_it(given) for given in ("", LONG[:-1], LONG + "x", LONG.upper(), "\udcff"))
    assert LONG not in repr(token)


def test_a_session_expires_and_cannot_be_forged() -> None:
    token = Token(LONG)
    session = token.session(NOON_S)
    assert LONG not in session
    assert session != token.session(NOON_S)
    assert token.has_made(session, NOON_S + SESSION_S - 1)
    assert not token.has_made(session, NOON_S + SESSION_S)
    assert not Token(LONG + "y").has_made(session, NOON_S)
    later = str(int(NOON_S) + 10**9) + session[session.index(".") :]
    assert not any(token.has_made(given, NOON_S) for given in ("", ".", "..", "x.y.z", later, session + "0"))


def test_repeated_wrong_tokens_are_throttled_per_client() -> None:
    now = [1000.0]
    guesses = Guesses(lambda: now[0])
    for _ in range(MOST_WRONG):
        assert guesses.wait_s("127.0.0.1") == 0
        guesses.note("127.0.0.1")
    assert guesses.wait_s("127.0.0.1") == WRONG_S
    assert guesses.wait_s("::1") == 0
    now[0] += WRONG_S
    assert guesses.wait_s("127.0.0.1") == 0
    for number in range(2 * MOST_ADDRESSES):
        guesses.note(str(number))
    assert len(guesses.wrong) == MOST_ADDRESSES


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8400", "[::1]:8400", "10.0.0.1", "[fe80::1]", "fabric.example.net:443", "LOCALHOST"]
)
def test_a_server_answers_to_addresses_and_its_names(host: str) -> None:
    assert is_own_name(host, {"localhost", "fabric.example.net"})


@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.evil.example:8400", "[evil]:80", "127.0.0.1.evil", "a:b:c"]
)
def test_other_names_are_refused(host: str) -> None:
    assert not is_own_name(host, {"localhost"})


def test_a_token_is_created_once_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NETKIT_SECRET_SERVE_TOKEN", raising=False)
    made, where = token_of(None, tmp_path)
    assert token_of(None, tmp_path) == (made, where)
    assert (len(made.text), Path(where).stat().st_mode & 0o777) == (43, 0o600)


@pytest.mark.parametrize("text", ["short", "x" * 19, "with a blank in the middle", "ümläut-in-here-0123456789", ""])
def test_a_token_that_is_too_weak_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="a token has at least 20"):
        token_of(file, tmp_path)


def test_queries_filter_and_pages_are_consecutive() -> None:
    found = list(range(5))
    first = sliced(Query.of([("limit", "2")], "limit", "offset"), found, str)
    assert (first.items, first.total, first.following) == (["0", "1"], 5, "limit=2&offset=2")
    last = sliced(Query.of([("offset", "4"), ("limit", "2")], "limit", "offset"), found, str)
    assert (last.items, last.following) == (["4"], "")
    assert Query.of([("device", "leaf*")], "device").matches("device", "leaf01")
    assert Query.of([("verdict", "fail")], "verdict").verdict() is Verdict.FAIL


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([("nix", "1")], "unknown parameter 'nix'"),
        ([("limit", "1"), ("limit", "2")], "given twice"),
        ([("limit", "501")], "limit must be a number from 1 to 500"),
        ([("limit", "0")], "limit must be a number from 1 to 500"),
        ([("limit", "-1")], "limit must be a number"),
        ([("limit", "²")], "limit must be a number"),
        ([("verdict", "bad")], "unknown verdict 'bad'"),
        ([("device", "x" * 201)], "longer than 200"),
    ],
)
def test_an_invalid_query_is_refused(given: list[tuple[str, str]], words: str) -> None:
    def meaning() -> None:
        query = Query.of(given, "limit", "verdict", "device")
        query.size()
        query.verdict()

    with pytest.raises(QueryError, match=words):
        meaning()


def test_output_is_plain_json(tmp_path: Path) -> None:
    DiaryFile(tmp_path / "d").write(replace(Diary(), clock='set "forward"'))
    assert json.loads((tmp_path / "d").read_text(encoding="utf-8"))["format"] == 1
