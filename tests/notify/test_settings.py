"""notify.yaml: every error at its line, with a remedy, and without repeating a secret."""

import re
from pathlib import Path

import pytest

from netkit.errors import NotifyError
from netkit.notify.settings import load
from tests.command import ROOT
from tests.notify.events import event

HEAD = "receivers:\n"


def refused(folder: Path, text: str) -> list[str]:
    (folder / "notify.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(NotifyError) as error:
        load(folder)
    return [str(one).removeprefix(f"{folder}/notify.yaml:") for one in error.value.problems]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1: holds no settings; write `key: value` lines"),
        ("receivers: []\n", "1: receivers: there is no receiver; list receivers"),
        (
            "recievers: []\n",
            "1: recievers: unknown key 'recievers'; known keys here: flapping, keep_hours, link, receivers",
        ),
        (
            HEAD + "  - name: a\n    kind: pager\n",
            "2: receivers[0]: has no known kind; give kind: one of webhook, slack, alertmanager, email",
        ),
        (
            HEAD + "  - noc\n",
            "2: receivers[0]: has no known kind; give kind: one of webhook, slack, alertmanager, email",
        ),
        (HEAD + "  - {name: a, kind: webhook}\n", "2: receivers[0]: needs one address; give url or url_secret"),
        (
            HEAD + "  - name: a\n    kind: webhook\n    url: ftp://h/x\n",
            "4: receivers[0].url: is not a URL; write http://HOST/PATH or https://HOST/PATH",
        ),
        (
            HEAD + "  - name: a\n    kind: slack\n    url: https://u:hush@h/x\n",
            "4: receivers[0].url: holds a password; name a secret with url_secret, or use token_secret",
        ),
        (
            HEAD + "  - name: a\n    kind: slack\n    url: https://hooks.slack.com/services/T/B/hush\n",
            "4: receivers[0].url: is itself a secret; name it with url_secret",
        ),
        (
            HEAD + "  - name: a\n    kind: slack\n    url_secret: hush hush\n",
            (
                "4: receivers[0].url_secret: is not the name of a secret; "
                "write a name, such as NOC_HOOK for NETKIT_SECRET_NOC_HOOK"
            ),
        ),
        (
            HEAD + "  - {name: a, kind: webhook, url: 'http://h', minimum: bad}\n",
            "2: receivers[0].minimum: 'bad' is not known here; use warn or fail",
        ),
        (
            HEAD + "  - {name: a, kind: email, host: h, sender: a@b, to: [c@d], user: u}\n",
            "2: receivers[0]: has only one of user and password_secret; give both, or none",
        ),
        (
            HEAD + "  - {name: a, kind: email, host: h, sender: a@b, to: [c@d], user: u, password_secret: P, "
            "security: none}\n",
            "2: receivers[0]: would send a password unencrypted; use security: starttls or tls",
        ),
        (
            HEAD + "  - &x {name: a, kind: webhook, url: 'http://h'}\n",
            "2: uses an anchor or alias; write the value out",
        ),
        (
            HEAD + "  - {name: a, kind: webhook, url: 'http://h'}\n  - {name: a, kind: slack, url: 'http://h'}\n",
            "1: receivers: two receivers are called a; give each its own name",
        ),
        (
            HEAD + "  - {name: a, kind: webhook, url: 'http://h'}\nflapping: {changes: 0}\n",
            "3: flapping.changes: 0 is too small; use 1 or more",
        ),
    ],
)
def test_an_error_is_reported_at_its_line(tmp_path: Path, text: str, problem: str) -> None:
    assert refused(tmp_path, text) == [problem]


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    text = HEAD + "  - {name: 'a b', kind: webhook, url: 'http://h', mind: 1}\nkeep_hours: soon\n"
    found = refused(tmp_path, text)
    assert [one.partition(":")[0] for one in found] == ["2", "2", "3"]


def test_the_file_in_the_docs_is_valid(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "notify.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "notify.yaml").write_text(example, encoding="utf-8")
    assert [one.kind for one in load(tmp_path).receivers] == ["slack", "alertmanager", "email", "webhook"]


def test_a_filter_selects_checks_and_devices(tmp_path: Path) -> None:
    text = HEAD + "  - {name: a, kind: webhook, url: 'http://h', checks: ['bgp.*'], devices: ['leaf0?', fabric]}\n"
    (tmp_path / "notify.yaml").write_text(text, encoding="utf-8")
    (receiver,) = load(tmp_path).receivers
    wanted = [
        receiver.wants(event(device, check=check)) for check in ("bgp.x", "links.up") for device in ("leaf01", "x")
    ]
    assert wanted == [True, False, False, False]
