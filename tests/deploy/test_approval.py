"""Approval by a second person, signed and verified by the real ssh-keygen."""

import base64
import errno
import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from netkit.deploy import Approval, Journal, Provenance
from netkit.deploy import approval as approving
from netkit.deploy.approval import NAMESPACE, Deployer, Signer, principal_of, sign, signer_of, statement, verified
from netkit.deploy.journal import Orders
from netkit.deploy.model import Options
from netkit.deploy.policy import ApprovalSettings
from netkit.errors import DeployError
from netkit.plan import Plan, UnreadDevice
from netkit.plan.model import approval as digest_of
from tests.deploy.scene import scene

NOW_S = 1_795_000_000.0
BOB, CAROL, MALLORY = "bob@example.net", "carol@example.net", "mallory@example.net"


@dataclass(frozen=True)
class Keys:
    """Keys of several people, and an allowed_signers file with those of Bob and Carol."""

    folder: Path

    def key(self, name: str) -> Path:
        file = self.folder / name
        if not file.exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(file)], check=True)
        return file

    def public(self, name: str) -> str:
        return " ".join(self.key(name).with_suffix(".pub").read_text(encoding="utf-8").split()[:2])

    @property
    def signers(self) -> Path:
        return self.folder / "allowed_signers"

    def allow(self, *lines: str) -> None:
        self.signers.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def fingerprint(self, name: str) -> str:
        words = ["ssh-keygen", "-l", "-f", str(self.key(name))]
        return subprocess.run(words, check=True, capture_output=True, encoding="utf-8").stdout.split()[1]


@pytest.fixture(name="keys")
def made(tmp_path: Path) -> Keys:
    keys = Keys(tmp_path)
    keys.allow("# those who approve", f"{BOB},bobby {keys.public('bob')}", f"{CAROL} {keys.public('carol')}")
    return keys


@pytest.fixture(name="plan", scope="module")
def of_words() -> Plan:
    with scene("words") as found:
        return found.plan


def approved(keys: Keys, plan: Plan, key: str = "bob", approver: str = BOB, lab: str = "", hours: float = 24) -> str:
    said = statement(plan, lab, approver, NOW_S, hours)
    return said + sign(said, keys.key(key), NAMESPACE)


def judged(keys: Keys, text: str, plan: Plan, **changes: Any) -> Approval:
    asked: dict[str, Any] = {
        "lab": "",
        "settings": ApprovalSettings(),
        "signers": keys.signers,
        "deployer": Deployer(frozenset({"alice"})),
        "now_s": NOW_S + 60,
    }
    return verified(text, plan, **{**asked, **changes})


def refused(keys: Keys, text: str, plan: Plan, **changes: Any) -> str:
    with pytest.raises(DeployError) as error:
        judged(keys, text, plan, **changes)
    assert error.value.exit_code == 3
    return str(error.value)


def test_an_approval_by_another_person_is_valid_for_its_plan(keys: Keys, plan: Plan) -> None:
    text = approved(keys, plan)
    found = judged(keys, text, plan)
    assert (found.approver, found.at_s, found.expires_s) == (BOB, NOW_S, NOW_S + 24 * 3600)
    assert (found.key, found.text) == (keys.fingerprint("bob"), text)
    assert judged(keys, approved(keys, plan, lab="t"), plan, lab="t").approver == BOB


def edited(text: str, **changes: Any) -> str:
    """Change the signed content, and keep the signature."""
    said, begin, rest = text.partition(approving.BEGIN)
    return json.dumps({**json.loads(said), **changes}) + "\n" + begin + rest


FORGERIES: dict[str, Callable[[str], str]] = {
    "another plan": lambda text: edited(text, plan="0" * 32),
    "a later end": lambda text: edited(text, expires_s=int(NOW_S) + 999_999),
    "another name of one use": lambda text: edited(text, id="0" * 32),
    "a space more": lambda text: " " + text,
    "other line ends": lambda text: text.replace("\n", "\r\n", 9),
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_an_edited_approval_is_refused(keys: Keys, plan: Plan, change: Callable[[str], str]) -> None:
    assert "is forged, damaged, or signed with a key that is no longer valid" in refused(
        keys, change(approved(keys, plan)), plan
    )


@pytest.mark.parametrize(
    "text",
    ["", "yes\n", "{}\n", '{"format": 1}\n', "[" * 60_000, "{\n}\n-----BEGIN SSH SIGNATURE-----\n"],
)
def test_a_malformed_approval_is_refused(keys: Keys, plan: Plan, text: str) -> None:
    assert "the approval cannot be parsed" in refused(keys, text, plan)


def test_an_id_cannot_point_to_another_file(keys: Keys, plan: Plan) -> None:
    assert "the approval cannot be parsed" in refused(keys, edited(approved(keys, plan), id="../" * 9 + "x" * 5), plan)


def test_an_approval_without_a_signature_or_with_garbage_is_refused(keys: Keys, plan: Plan) -> None:
    said, begin, rest = approved(keys, plan).partition(approving.BEGIN)
    for text in (said, said + begin, said + begin + "\nAAAA\n-----END SSH SIGNATURE-----\n", said + begin + rest[:99]):
        assert "is not signed with a key of" in refused(keys, text, plan)


def test_only_keys_in_allowed_signers_count(keys: Keys, plan: Plan) -> None:
    by_mallory = approved(keys, plan, "mallory", BOB)
    assert "is not signed with a key of" in refused(keys, by_mallory, plan)
    as_carol = approved(keys, plan, "bob", CAROL)
    assert f"the approval is by {CAROL}, but its key belongs to {BOB}, bobby" in refused(keys, as_carol, plan)
    text = approved(keys, plan)
    for options in ('namespaces="git"', 'valid-before="20200101"'):
        keys.allow(f"{BOB} {options} {keys.public('bob')}")
        with pytest.raises(DeployError, match=r"is not signed with a key of|no longer valid"):
            judged(keys, text, plan)
    keys.allow(f"*@example.net {keys.public('bob')}")
    assert "*@example.net in" in refused(keys, text, plan)
    keys.allow("")
    assert "is not signed with a key of" in refused(keys, text, plan)
    assert "cannot be read" in refused(keys, text, plan, signers=keys.folder / "nowhere")


def test_a_signature_for_another_namespace_is_refused(keys: Keys, plan: Plan) -> None:
    said = statement(plan, "", BOB, NOW_S, 24)
    assert "is forged" in refused(keys, said + sign(said, keys.key("bob"), "git"), plan)


def test_an_outdated_approval_is_refused(keys: Keys, plan: Plan) -> None:
    text = approved(keys, plan)
    moved = replace(plan, devices=(replace(plan.changed[0], running_digest="0"), *plan.devices[1:]))
    for other in (moved, replace(plan, fabric="other")):
        assert f"the plan that was approved is {digest_of(plan)}" in refused(keys, text, other)
    riskier = replace(plan, devices=(replace(plan.devices[0], risk=plan.risk.__class__.PORT), *plan.devices[1:]))
    assert "the plan was approved with risk none, but has risk port" in refused(keys, text, riskier)
    missed = replace(plan, unreachable=(UnreadDevice("leaf99", "no answer"),))
    assert "leaf99: could not be read" in refused(keys, text, missed)
    assert "is for the real devices, not the lab t" in refused(keys, text, plan, lab="t")
    assert "is for the lab t, not the real devices" in refused(keys, approved(keys, plan, lab="t"), plan)


def test_an_approval_expires(keys: Keys, plan: Plan) -> None:
    text, day_s = approved(keys, plan), 24 * 3600
    assert judged(keys, text, plan, now_s=NOW_S + day_s - 1)
    assert "the approval has expired" in refused(keys, text, plan, now_s=NOW_S + day_s)
    assert judged(keys, text, plan, now_s=NOW_S - 200)
    assert "is dated in the future" in refused(keys, text, plan, now_s=NOW_S - 301)
    long = approved(keys, plan, hours=720)
    assert "is older than the 24 h" in refused(keys, long, plan, now_s=NOW_S + day_s)
    assert "is older than" in refused(keys, approved(keys, plan, hours=-1), plan, now_s=NOW_S - 7200 + 3500)


@pytest.mark.parametrize(
    ("names", "is_same"),
    [
        ({"alice"}, False),
        ({"bobb"}, False),
        ({"example.net"}, False),
        ({"bob"}, True),
        ({"root", "Bob"}, True),
        ({"root", "BOB@Example.net"}, True),
        ({"bob@other.example"}, True),
        ({"bobby"}, True),
    ],
)
def test_nobody_approves_their_own_deploy(keys: Keys, plan: Plan, names: set[str], is_same: bool) -> None:
    text, deployer = approved(keys, plan), Deployer(frozenset(names))
    if is_same:
        assert "no one may approve their own deploy" in refused(keys, text, plan, deployer=deployer)
    else:
        assert judged(keys, text, plan, deployer=deployer).approver == BOB


@pytest.mark.parametrize("is_first", [True, False])
def test_a_key_on_two_lines_belongs_to_both_names(keys: Keys, plan: Plan, *, is_first: bool) -> None:
    lines = [f"{BOB} {keys.public('bob')}", f"rob@example.net {keys.public('bob')}", f"{CAROL} {keys.public('carol')}"]
    keys.allow(*(lines if is_first else reversed(lines)))
    text = approved(keys, plan)
    assert judged(keys, text, plan).approver == BOB
    for name in (BOB, "rob@example.net"):
        deployer = Deployer(frozenset({name}))
        assert "no one may approve their own deploy" in refused(keys, text, plan, deployer=deployer)


@pytest.mark.parametrize("more", ["A\n", "-----BEGIN SSH SIGNATURE-----\n", "a second statement\n"])
@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_what_follows_a_signature_hides_no_name_of_its_key(keys: Keys, plan: Plan, kind: str, more: str) -> None:
    """ssh-keygen ignores it. The base64 of an RSA signature has no padding, so it goes on with what follows."""
    words = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(keys.folder / "rob")]
    subprocess.run(words, check=True)
    keys.allow(f"{BOB} {keys.public('rob')}", f"rob@example.net {keys.public('rob')}")
    text = approved(keys, plan, key="rob")
    assert judged(keys, text, plan).approver == BOB
    deployer = Deployer(frozenset({"rob@example.net"}))
    assert "no one may approve their own deploy" in refused(keys, text, plan, deployer=deployer)
    assert "its signature is damaged" in refused(keys, text + more, plan, deployer=deployer)


def test_leading_zeros_in_an_rsa_key_hide_none_of_its_names(keys: Keys, plan: Plan) -> None:
    """ssh-keygen reads the same key with and without them, and the signature is not over the key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", str(keys.folder / "rob")], check=True)
    keys.allow(f"{BOB} {keys.public('rob')}", f"rob@example.net {keys.public('rob')}")
    said, begin, rest = approved(keys, plan, key="rob").partition(approving.BEGIN)
    body, end, _ = rest.partition("-----END")
    data = base64.b64decode(body)
    longer = (int.from_bytes(data[10:14], "big") + 1).to_bytes(4, "big")
    exponent, padded = bytes.fromhex("00000003010001"), bytes.fromhex("0000000400010001")
    assert exponent in data
    data = data[:10] + longer + data[14:].replace(exponent, padded, 1)
    text = f"{said}{begin}\n{base64.b64encode(data).decode()}\n{end} SSH SIGNATURE-----\n"
    assert "forged, damaged" in refused(keys, text, plan, deployer=Deployer(frozenset({"rob@example.net"})))


def test_a_deployer_known_by_key_is_recognised_by_key_and_by_name(keys: Keys, plan: Plan) -> None:
    text, root = approved(keys, plan), frozenset({"root"})
    carol = Signer((CAROL,), keys.fingerprint("carol"))
    assert judged(keys, text, plan, deployer=Deployer(root, carol)).approver == BOB
    for signer in (Signer((MALLORY,), keys.fingerprint("bob")), Signer((BOB,), keys.fingerprint("carol"))):
        assert "no one may approve" in refused(keys, text, plan, deployer=Deployer(root, signer))


def test_a_key_is_known_by_its_first_name(keys: Keys) -> None:
    assert principal_of(keys.key("bob"), keys.signers) == BOB
    assert principal_of(keys.key("carol").with_suffix(".pub"), keys.signers) == CAROL
    assert principal_of(keys.key("mallory"), keys.signers) == ""
    assert principal_of(keys.folder / "nowhere", keys.signers) == ""
    keys.allow(f'"bob smith@example.net,b" namespaces="netkit-plan" {keys.public("bob")}')
    assert principal_of(keys.key("bob"), keys.signers) == "bob smith@example.net"
    said = "words\n"
    found = signer_of(said, sign(said, keys.key("bob"), NAMESPACE), keys.signers, "b", NAMESPACE, "it")
    assert found == Signer(("bob smith@example.net", "b"), keys.fingerprint("bob"))


def test_a_certificate_of_an_authority_counts_for_its_principal(keys: Keys, plan: Plan) -> None:
    keys.key("bob")
    words = ["ssh-keygen", "-q", "-s", str(keys.key("ca")), "-I", "bob", "-n", BOB]
    subprocess.run([*words, str(keys.folder / "bob.pub")], check=True)
    keys.allow(f"*@example.net cert-authority {keys.public('ca')}")
    said = statement(plan, "", BOB, NOW_S, 24)
    certificate = keys.folder / "bob-cert.pub"
    # The private half lies beside it, where ssh-keygen finds it without ssh-agent.
    assert judged(keys, said + sign(said, certificate, NAMESPACE), plan).approver == BOB
    as_carol = statement(plan, "", CAROL, NOW_S, 24)
    assert "its key belongs to" in refused(keys, as_carol + sign(as_carol, certificate, NAMESPACE), plan)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_all_names_of_a_certificate_and_its_key_are_one_person(keys: Keys, plan: Plan, kind: str) -> None:
    key = keys.folder / "dual"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(key)], check=True)
    words = ["ssh-keygen", "-q", "-s", str(keys.key("ca")), "-I", "dual", "-n", f"{BOB},alice@example.net"]
    subprocess.run([*words, f"{key}.pub"], check=True)
    authority = f"{BOB} cert-authority {keys.public('ca')}"
    said = statement(plan, "", BOB, NOW_S, 24)
    text = said + sign(said, keys.folder / "dual-cert.pub", NAMESPACE)
    keys.allow(authority)
    assert "no one may approve their own deploy" in refused(keys, text, plan)
    carol = {"deployer": Deployer(frozenset({"carol"}))}
    assert judged(keys, text, plan, **carol).approver == BOB
    keys.allow(authority, f"{CAROL} {keys.public('dual')}")
    assert "no one may approve their own deploy" in refused(keys, text, plan, **carol)


def test_a_comment_that_is_not_utf_8_hides_no_name_of_a_key(keys: Keys, plan: Plan) -> None:
    lines = f"{BOB} {keys.public('bob')}\nalice {keys.public('bob')}\n# caf\xe9\n"
    keys.signers.write_text(lines, encoding="latin-1")
    assert "no one may approve their own deploy" in refused(keys, approved(keys, plan), plan)


def test_a_forged_approval_is_refused_where_exit_codes_of_programs_are_lost(keys: Keys, plan: Plan) -> None:
    text = approved(keys, plan)
    forged = text.replace(json.loads(text.partition(approving.BEGIN)[0])["id"], "0" * 32)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert "is forged" in refused(keys, forged, plan)
        assert judged(keys, text, plan).approver == BOB
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_signers_that_are_a_pipe_are_refused_without_waiting(keys: Keys, plan: Plan) -> None:
    text = approved(keys, plan)
    keys.signers.unlink()
    os.mkfifo(keys.signers)
    assert "cannot be read" in refused(keys, text, plan)
    assert principal_of(keys.key("bob"), keys.signers) == ""


def test_a_key_that_cannot_sign_is_reported(keys: Keys, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DeployError, match=r"cannot sign with .*nowhere; name your own key"):
        sign("words\n", keys.folder / "nowhere", NAMESPACE)
    assert "Signing data" not in capfd.readouterr().err


def test_an_approval_is_for_one_run(keys: Keys, plan: Plan, tmp_path: Path) -> None:
    given = judged(keys, approved(keys, plan), plan)
    provenance = Provenance("deploy", NOW_S, "alice", 1000, "bastion", approval=given)
    orders = Orders(plan, {}, None, Options())
    first, second = Journal(tmp_path / "runs" / "1"), Journal(tmp_path / "runs" / "2")
    first.start(orders, provenance)
    assert first.provenance() == (provenance,)
    with pytest.raises(DeployError, match=f"the approval of {BOB} was used by run 1; an approval is for one run"):
        second.start(orders, provenance)
    assert not second.folder.exists()
    for file in first.folder.iterdir():
        if file.is_file():
            file.unlink()
    with pytest.raises(DeployError, match="was used by run 1"):
        second.start(orders, provenance)
    again = judged(keys, approved(keys, plan), plan)
    second.start(orders, replace(provenance, approval=again))


def test_a_run_that_finds_the_disk_full_uses_no_approval(
    keys: Keys, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = judged(keys, approved(keys, plan), plan)
    provenance = Provenance("deploy", NOW_S, "alice", 1000, "bastion", approval=given)
    orders, fsync = Orders(plan, {}, None, Options()), os.fsync

    def full(handle: int) -> None:
        if str(Path(f"/proc/self/fd/{handle}").readlink()).endswith(given.id):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DeployError, match="no space left on device"):
        Journal(tmp_path / "runs" / "1").start(orders, provenance)
    monkeypatch.undo()
    second = Journal(tmp_path / "runs" / "2")
    second.start(orders, provenance)
    assert second.provenance() == (provenance,)
