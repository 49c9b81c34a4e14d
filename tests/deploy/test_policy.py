"""deploy.yaml: its fields, and how errors in it are reported."""

from pathlib import Path

import pytest

from netkit.deploy.policy import ApprovalSettings, DeployPolicy, load
from netkit.errors import DeployError
from netkit.plan import Plan
from netkit.platforms.change import Risk
from tests.deploy.scene import scene

WHOLE = """\
hook:
  url: https://change.example.net/netkit
  token_secret: CHANGE_GATE
  timeout_s: 2.5
  may_skip: [rollback]
approval:
  required: session
  allowed_signers: keys/signers
  valid_hours: 8
  deployer: key
  logins: {asmith: [alice.smith@example.net]}
reason: required
on_lab: true
"""


def write(folder: Path, text: str) -> Path:
    (folder / "deploy.yaml").write_text(text, encoding="utf-8")
    return folder


def test_without_the_file_no_approval_is_needed(tmp_path: Path) -> None:
    assert load(tmp_path) == DeployPolicy(hook=None, approval=None, reason="optional", fleet="optional", on_lab=False)


def test_the_whole_file_is_read(tmp_path: Path) -> None:
    found = load(write(tmp_path, WHOLE))
    assert found.hook is not None
    assert (found.hook.timeout_s, found.hook.may_skip, found.reason) == (2.5, ("rollback",), "required")
    assert found.approval == ApprovalSettings(
        required="session",
        allowed_signers="keys/signers",
        valid_hours=8,
        deployer="key",
        logins={"asmith": ("alice.smith@example.net",)},
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("words\n", ":1: holds no settings"),
        ("hok: {}\n", ":1: hok: unknown key 'hok'; known keys here: approval, fleet, hook, on_lab, reason"),
        ("hook:\n  comand: [x]\n", ":2: hook.comand: unknown key 'comand'; known keys here: ca_file, command"),
        ("approval:\n  signers: x\n", ":2: approval.signers: unknown key 'signers'; known keys here: allowed_signers"),
        ("hook: {}\n", "needs exactly one of command and url"),
        ("hook: {command: [x], url: https://x/}\n", "needs exactly one of command and url"),
        ("hook: {command: x}\n", "'x' is not a list; write it as [first, second]"),
        ("hook: {command: [x], ca_file: y}\n", "they belong to url"),
        ("hook: {url: http://gate.example.net/}\n", "would let anyone on the network path answer; write https://"),
        ("hook: {url: 'http://127.0.0.1.example.net/'}\n", "would let anyone on the network path answer"),
        ("hook: {url: 'https://a:b@gate.example.net/'}\n", "holds a password; name it with token_secret"),
        ("hook: {url: 'ftp://127.0.0.1/'}\n", "cannot be used; write https://HOST/PATH"),
        ("hook: {url: 'https://[/'}\n", "cannot be used"),
        ("hook: {url: 'https://x:y/'}\n", "cannot be used"),
        ("hook: {command: [x], timeout_s: 0}\n", "is too small"),
        ("hook: {command: [x], may_skip: [plan]}\n", "'plan' is not known here"),
        ("approval: {required: often}\n", "'often' is not known here; use always, never, low, session, buffer"),
        ("approval: {deployer: email}\n", "'email' is not known here"),
        ("approval: {valid_hours: 9999}\n", "is too large"),
    ],
)
def test_errors_are_reported_at_their_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DeployError) as error:
        load(write(tmp_path, text))
    assert said in str(error.value)
    assert "deploy.yaml" in str(error.value)


def test_loopback_needs_no_certificate(tmp_path: Path) -> None:
    for host in ("127.0.0.1:8080", "localhost", "[::1]:80"):
        assert load(write(tmp_path, f"hook: {{url: 'http://{host}/gate'}}\n")).hook


def test_which_plans_need_an_approval() -> None:
    def needed(required: str, plan: Plan) -> bool:
        return ApprovalSettings(required=required).is_required(plan)

    with scene("words") as words, scene("asn") as asn:
        assert (words.plan.risk, asn.plan.risk) == (Risk.NONE, Risk.SESSION)
        assert [needed(one, words.plan) for one in ("always", "never", "low", "session")] == [True, False, False, False]
        found = [needed(one, asn.plan) for one in ("always", "never", "low", "session", "buffer")]
        assert found == [True, False, True, True, False]
