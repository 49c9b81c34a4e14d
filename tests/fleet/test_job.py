"""Signed jobs: everything that a coordinator did not write for this site and this time is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from netkit import __version__
from netkit.deploy import Options
from netkit.fleet.job import (
    LONGEST_S,
    MOST_BYTES,
    SKEW_S,
    VERBS,
    BackupWork,
    CheckWork,
    DeployWork,
    HistoryWork,
    JobWork,
    MessageError,
    PlanWork,
    RehearseWork,
    ResumeWork,
    RollbackWork,
    SiteJob,
    SnapshotWork,
    StopWork,
    WatchWork,
    canonical,
    open_job,
    sign_job,
)
from netkit.fleet.settings import FleetError
from netkit.fleet.signing import LINE_BYTES, private_pem, public_text, read_key, signed
from tests.fleet.jobs import COORDINATOR, OSAKA, TOKYO, a_job

KEYS = (public_text(COORDINATOR),)
WORKS: list[JobWork] = [
    CheckWork(names=("links.*", "optics.rx_power"), window_s=0.5, source="snmp", is_light=True),
    SnapshotWork(),
    PlanWork(),
    BackupWork(),
    WatchWork(length_s=3600),
    HistoryWork(run="20261127T055337-d717"),
    DeployWork(plan="ab" * 16, asked_by="anna@mgmt01", options=Options(limit=("leaf01",), max_fail=2)),
    RehearseWork(plan="ab" * 16, asked_by="anna@mgmt01", signature="deploy x"),
    ResumeWork(asked_by="anna@mgmt01", goes_on=True),
    RollbackWork(run="20261127T055337-d717", plan="ab" * 16, asked_by="anna@mgmt01", reason="CHG-1"),
    StopWork(job="cd" * 16),
]


def refusal(message: bytes, job: SiteJob, *, site: str = "tokyo", late_s: float = 1) -> MessageError:
    with pytest.raises(MessageError) as caught:
        open_job(message, KEYS, site, job.issued_s + late_s)
    return caught.value


def resigned(job: SiteJob, **changes: Any) -> bytes:
    """Return a job with other content, signed by the coordinator."""
    body = canonical({**job.model_dump(mode="json"), **changes})
    return signed(body, "job", COORDINATOR)


@pytest.mark.parametrize("work", WORKS, ids=VERBS)
def test_a_signed_job_arrives_as_it_was(work: Any) -> None:
    job = a_job(work=work)
    assert open_job(sign_job(job, COORDINATOR), KEYS, "tokyo", job.issued_s) == job
    assert job.verb == work.verb
    assert job.is_read_only is (work.verb not in {"deploy", "resume", "rollback"})


def test_every_verb_is_tried() -> None:
    assert [work.verb for work in WORKS] == list(VERBS)


def test_a_shard_is_a_limit() -> None:
    assert a_job().limit == "leaf01,leaf02"
    assert a_job(devices=(), units=(1, 3)).limit == "unit=1,unit=3"
    assert a_job(devices=()).limit == ""


@given(st.data())
def test_no_other_byte_is_accepted(data: st.DataObject) -> None:
    job = a_job()
    message = bytearray(sign_job(job, COORDINATOR))
    at = data.draw(st.integers(0, len(message) - 1))
    message[at] ^= data.draw(st.integers(1, 255))
    refused = refusal(bytes(message), job)
    assert (str(refused), refused.job) == ("no coordinator of fleet.yaml signed it", None)


@given(st.integers(0, 700))
def test_no_part_of_a_message_is_accepted(length: int) -> None:
    job = a_job()
    message = sign_job(job, COORDINATOR)
    assert refusal(message[: min(length, len(message) - 1)], job).job is None


@given(st.binary(max_size=2000))
def test_nothing_unsigned_is_accepted(message: bytes) -> None:
    job = a_job()
    for forged in (message, sign_job(job, COORDINATOR)[: LINE_BYTES + 1] + message):
        assert refusal(forged, job).job is None


@pytest.mark.parametrize("key", [OSAKA, TOKYO, Ed25519PrivateKey.from_private_bytes(bytes([9]) * 32)])
def test_a_job_of_another_key_is_refused(key: Ed25519PrivateKey) -> None:
    job = a_job()
    assert str(refusal(sign_job(job, key), job)) == "no coordinator of fleet.yaml signed it"


def test_what_the_coordinator_signed_for_another_purpose_is_refused() -> None:
    job = a_job()
    body = canonical(job.model_dump(mode="json"))
    assert str(refusal(signed(body, "answer", COORDINATOR), job)) == "no coordinator of fleet.yaml signed it"


def test_each_of_several_keys_is_accepted() -> None:
    job = a_job()
    keys = (public_text(OSAKA), *KEYS)
    assert open_job(sign_job(job, COORDINATOR), keys, "tokyo", job.issued_s) == job
    assert open_job(sign_job(job, OSAKA), keys, "tokyo", job.issued_s) == job


def test_an_oversized_message_is_refused_unread() -> None:
    job = a_job()
    message = signed(b" " * MOST_BYTES, "job", COORDINATOR)
    assert str(refusal(message, job)) == f"it has {MOST_BYTES + 89:,} bytes; a job has at most {MOST_BYTES:,}"


def test_a_job_of_another_site_is_refused_and_not_answered() -> None:
    job = a_job()
    refused = refusal(sign_job(job, COORDINATOR), job, site="osaka")
    assert (str(refused), refused.job) == ("it is for the site tokyo", None)


@pytest.mark.parametrize(
    ("late_s", "reason"),
    [
        (600, "its deadline passed 0 s ago by this machine's clock"),
        (3600, "its deadline passed 3000 s ago by this machine's clock"),
        (-3600, "it was issued 3600 s in the future by this machine's clock"),
        (-SKEW_S - 1, f"it was issued {SKEW_S + 1} s in the future by this machine's clock"),
    ],
)
def test_a_job_out_of_time_is_refused_and_answered(late_s: float, reason: str) -> None:
    job = a_job()
    refused = refusal(sign_job(job, COORDINATOR), job, late_s=late_s)
    assert (str(refused), refused.job) == (reason, job)


@pytest.mark.parametrize("late_s", [-SKEW_S, 0, 599])
def test_a_job_in_time_is_accepted(late_s: float) -> None:
    job = a_job()
    assert open_job(sign_job(job, COORDINATOR), KEYS, "tokyo", job.issued_s + late_s) == job


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"command": "reboot"}, "command: Extra inputs are not permitted"),
        ({"format": 2}, "format: Input should be 1"),
        ({"work": {"verb": "reboot"}}, "work: Input tag 'reboot' found using 'verb' does not match"),
        ({"work": {"verb": "backup", "hook": "x"}}, "work.backup.hook: Extra inputs are not permitted"),
        ({"work": {"verb": "check", "window_s": 1e9}}, "work.check.window_s: Input should be less than or equal to 3"),
        ({"work": {"verb": "check", "names": ["a;b"]}}, "work.check.names.0: String should match pattern"),
        (
            {"work": {"verb": "deploy", "asked_by": "a", "plan": "last"}},
            "work.deploy.plan: String should match pattern",
        ),
        ({"commit": "main"}, "commit: String should match pattern"),
        ({"commit": "a" * 40 + "\n"}, "commit: String should match pattern"),
        ({"commit": "-" * 40}, "commit: String should match pattern"),
        ({"fabric": "../etc"}, "fabric: Value error, '../etc' is not a folder in the repository"),
        ({"fabric": "/etc"}, "fabric: Value error, '/etc' is not a folder in the repository"),
        ({"fabric": ".git/hooks"}, "fabric: Value error, '.git/hooks' is not a folder in the repository"),
        ({"site": "Tokyo"}, "site: Value error, 'Tokyo' cannot name a site"),
        ({"devices": ["--yes x"]}, "devices.0: String should match pattern"),
        ({"devices": ["x"] * 10_001}, "devices: Tuple should have at most 10000 items"),
        ({"devices": "leaf01"}, "devices: Input should be a valid array"),
        ({"units": [1]}, ": Value error, its shard is devices or units, not both"),
        ({"units": ["1"]}, "units.0: Input should be a valid integer"),
        ({"nonce": "1"}, "nonce: String should match pattern"),
        ({"nonce": "0" * 32 + "\n"}, "nonce: String should match pattern"),
        ({"issued_s": "1"}, "issued_s: Input should be a valid integer"),
        ({"deadline_s": 0}, ": Value error, its deadline is not within 24 h of its issue"),
        ({"deadline_s": 2**40}, ": Value error, its deadline is not within 24 h of its issue"),
    ],
)
def test_what_is_signed_but_not_a_job_is_refused(changes: dict[str, Any], place: str) -> None:
    job = a_job()
    refused = refusal(resigned(job, **changes), job)
    assert str(refused).startswith(f"it is not a job of netkit {__version__}: {place}")
    is_addressed = not changes.keys() & {"site", "nonce", "issued_s", "deadline_s"}
    assert (refused.job is not None) == is_addressed
    if refused.job is not None:
        assert (refused.job.nonce, refused.job.reply, refused.job.site) == (job.nonce, job.reply, job.site)


def test_a_job_may_take_a_day_and_no_longer() -> None:
    job = a_job()
    longest = a_job(deadline_s=job.issued_s + LONGEST_S, issued_s=job.issued_s)
    assert open_job(sign_job(longest, COORDINATOR), KEYS, "tokyo", job.issued_s) == longest
    assert "24 h" in str(refusal(resigned(job, deadline_s=job.issued_s + LONGEST_S + 1), job))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\x80\x04\x95N.",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"nonce":' + b"1" * 10_000 + b"}",
        b"NaN",
    ],
)
def test_what_is_signed_but_not_json_of_a_job_is_refused(body: bytes) -> None:
    job = a_job()
    refused = refusal(signed(body, "job", COORDINATOR), job)
    assert str(refused).startswith(f"it is not a job of netkit {__version__}: ")


@pytest.mark.parametrize(
    "changed",
    [
        lambda body: body.replace(b":", b": ", 1),
        lambda body: body + b"\n",
        lambda body: body.replace(b'"units":[]', b'"units":[],"units":[]'),
        lambda body: body.replace(b"leaf01", b"\\u006ceaf01"),
        lambda body: b'{"site":"osaka",' + body[1:],
        lambda body: json.dumps(dict(reversed(json.loads(body).items())), separators=(",", ":")).encode(),
    ],
)
def test_a_job_in_other_words_is_refused(changed: Any) -> None:
    job = a_job()
    body = canonical(job.model_dump(mode="json"))
    assert changed(body) != body
    assert str(refusal(signed(changed(body), "job", COORDINATOR), job)) == "its text is not canonical"


def test_a_private_key_is_read_only_if_it_is_private(tmp_path: Path) -> None:
    file = tmp_path / "signing.key"
    file.write_bytes(private_pem(TOKYO))
    file.chmod(0o640)
    with pytest.raises(FleetError, match=f"is a private key that others can access; chmod 600 {file}"):
        read_key(file)
    file.chmod(0o600)
    assert public_text(read_key(file)) == public_text(TOKYO)
    file.write_bytes(b"no key")
    with pytest.raises(FleetError, match="is not an Ed25519 private key"):
        read_key(file)
    with pytest.raises(FleetError, match="cannot be read: no such file"):
        read_key(tmp_path / "other")


def test_a_signature_ends_with_a_line() -> None:
    job = a_job()
    message = sign_job(job, COORDINATOR)
    for between in (b" ", b"", b"\n\n"):
        forged = message[:LINE_BYTES] + between + message[LINE_BYTES + 1 :]
        assert str(refusal(forged, job)) == "no coordinator of fleet.yaml signed it"
