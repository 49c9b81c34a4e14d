"""The hook before a deploy, with real programs and a real server: only a complete, timely yes allows it."""

import json
import os
import signal
import ssl
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.deploy import Options, Provenance, hook
from netkit.deploy.hook import HookError, ask, question
from netkit.deploy.policy import HookSettings
from netkit.plan.model import ReachabilityLoss, Step
from tests.deploy.scene import scene
from tests.notify.certificate import made

ASKED = {"plan": "0" * 32, "words": "x" * 300_000}
NO = "nothing was changed"


def program(folder: Path, body: str) -> HookSettings:
    """A hook that is a program with this body."""
    file = folder / "gate"
    file.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return HookSettings(command=("./gate", "an argument"), timeout_s=20)


def refusal(settings: HookSettings, folder: Path) -> str:
    """The error of a hook that does not allow the deploy."""
    with pytest.raises(HookError) as error:
        ask(settings, ASKED, folder)
    assert error.value.exit_code == 1
    (problem,) = error.value.problems
    assert NO in str(problem)
    assert "\n" not in str(problem)
    return str(problem)


def test_a_program_gets_the_request_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETKIT_SECRET_SNMP", "of a test")
    monkeypatch.setenv("NETKIT_PASSWORD", "of a test")
    monkeypatch.setenv("TICKETS", "here")
    body = 'cat >asked; env >env; pwd >pwd; echo "$1" >argument; echo talk >&2\n'
    body += 'printf \'{"allow": true, "reason": "a b"}\''
    assert ask(program(tmp_path, body), ASKED, tmp_path) == "a b"
    assert json.loads((tmp_path / "asked").read_text(encoding="utf-8")) == ASKED
    environment = (tmp_path / "env").read_text(encoding="utf-8")
    assert "TICKETS=here" in environment
    assert "of a test" not in environment
    assert (tmp_path / "pwd").read_text(encoding="utf-8").strip() == str(tmp_path)
    assert (tmp_path / "argument").read_text(encoding="utf-8") == "an argument\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('echo \'{"allow": false, "reason": "freeze until Monday"}\'', "the hook refuses: freeze until Monday"),
        ("echo '{\"allow\": false}'", "the hook refuses: no reason given"),
        ('printf \'{"allow": false, "reason": "a\\\\u001b[2Jb"}\'', r"refuses: a\x1b[2Jb"),
        ("", "does not answer with JSON"),
        ("echo yes", "does not answer with JSON"),
        ("head -c 100 /dev/urandom", "does not answer with JSON"),
        ('echo \'{"allow": true} {"allow": true}\'', "does not answer with JSON"),
        ('echo \'{"allow": false, "allow": true}\'', "does not answer with JSON"),
        ("python3 -c 'print(\"[\" * 50000)'", "does not answer with JSON"),
        ('echo \'{"allow": "true"}\'', "does not answer"),
        ("echo '{\"allow\": 1}'", "does not answer"),
        ("echo '{\"alow\": true}'", "does not answer"),
        ('echo \'{"allow": true, "reason": 1}\'', "does not answer"),
        ("echo true", "does not answer"),
        ("echo '{\"allow\": true}'; echo why >&2; exit 3", "ended with exit code 3 (why)"),
        ("echo '{\"allow\": true}'; kill -9 $$", "ended with signal 9"),
        (
            "printf '{\"allow\": true'; head -c 70000 /dev/zero | tr '\\0' ' '; echo '}'",
            "answers more than 65,536 bytes",
        ),
        ("cat /dev/zero", "answers more than 65,536 bytes"),
    ],
)
def test_every_answer_but_a_yes_refuses(tmp_path: Path, body: str, said: str) -> None:
    assert said in refusal(program(tmp_path, body), tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        "sleep 1000",
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        "exec >&- 2>&-; sleep 1000",
        "cat /dev/zero >&2",
        "kill -STOP $$",
    ],
)
def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path, body: str) -> None:
    settings = program(tmp_path, f"sleep 1000 & echo $! >child; echo $$ >pid\n{body}")
    assert "gives no answer within 0.7 s" in refusal(settings.model_copy(update={"timeout_s": 0.7}), tmp_path)
    for name in ("pid", "child"):
        assert is_gone(int((tmp_path / name).read_text(encoding="utf-8")))


def test_children_that_outlive_a_program_are_killed_without_delay(tmp_path: Path) -> None:
    settings = program(tmp_path, "sleep 1000 & echo $! >child\necho '{\"allow\": true}'")
    assert ask(settings, ASKED, tmp_path) == ""
    assert is_gone(int((tmp_path / "child").read_text(encoding="utf-8")))


def test_a_program_is_asked_where_pidfd_open_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert ask(program(tmp_path, "sleep 0.2\necho '{\"allow\": true}'"), ASKED, tmp_path) == ""


def test_a_program_whose_exit_code_is_lost_refuses(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert "ended with an unknown exit code" in refusal(
            program(tmp_path, "echo '{\"allow\": true}'; exit 3"), tmp_path
        )
    finally:
        signal.signal(signal.SIGCHLD, before)


def is_gone(pid: int) -> bool:
    """Whether a process has ended or is ending; an orphan is a zombie until it is reaped."""
    for _ in range(500):
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            return True
        if text.rpartition(") ")[2][:1] in {"Z", "X"}:
            return True
        time.sleep(0.02)
    return False


def test_a_program_that_cannot_be_run_refuses(tmp_path: Path) -> None:
    assert "./gate cannot be run" in refusal(HookSettings(command=("./gate",)), tmp_path)
    (tmp_path / "gate").write_text("words\n", encoding="utf-8")
    assert "cannot be run (Permission denied)" in refusal(HookSettings(command=("./gate",)), tmp_path)
    os.chmod(tmp_path / "gate", 0o700)  # noqa: PTH101 (as above)
    assert "cannot be run (Exec format error)" in refusal(HookSettings(command=("./gate",)), tmp_path)
    assert "cannot be run" in refusal(HookSettings(command=("no-such-gate\0",)), tmp_path)


@given(st.binary(max_size=200))
def test_garbage_never_allows(data: bytes) -> None:
    with pytest.raises(HookError):
        hook._reason(data)  # noqa: SLF001 (the whole judgement of an answer)


@dataclass
class Service:
    """A web service that is called, and its answer."""

    url: str = ""
    status: int = 200
    body: bytes = b'{"allow": true, "reason": "open"}'
    headers: dict[str, str] = field(default_factory=dict)
    trickle_s: float = 0
    asked: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)


@contextmanager
def service(tls: tuple[Path, Path] | None = None) -> Iterator[Service]:
    """Run a service on loopback for the length of a block."""
    here = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            here.asked.append((dict(self.headers), data))
            self.send_response(here.status)
            for name, value in {"Content-Length": str(len(here.body)), **here.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for at in range(len(here.body)) if here.trickle_s else ():
                self.wfile.write(here.body[at : at + 1])
                if here.release.wait(here.trickle_s):
                    return
            self.wfile.write(b"" if here.trickle_s else here.body)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    here.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/gate"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield here
    finally:
        here.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_service_gets_the_request_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with service() as found:
        assert ask(HookSettings(url=found.url), ASKED, tmp_path, "a token") == "open"
        ((headers, data),) = found.asked
    assert json.loads(data) == ASKED
    assert (headers["Authorization"], headers["Content-Type"]) == ("Bearer a token", "application/json")


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (302, {"Location": "/other"}, "answers with a redirect (302)"),
        (307, {"Location": "/other"}, "answers with a redirect (307)"),
        (201, {}, "answers with status 201"),
        (403, {}, "answers with status 403"),
        (500, {}, "answers with status 500"),
    ],
)
def test_only_a_plain_answer_of_a_service_counts(
    tmp_path: Path, status: int, headers: dict[str, str], said: str
) -> None:
    with service() as found:
        found.status, found.headers = status, headers
        assert said in refusal(HookSettings(url=found.url), tmp_path)
        assert len(found.asked) == 1


def test_a_service_that_refuses_or_answers_garbage_or_too_much_refuses(tmp_path: Path) -> None:
    with service() as found:
        settings = HookSettings(url=found.url)
        for body, said in (
            (b'{"allow": false, "reason": "freeze"}', "the hook refuses: freeze"),
            (b"<html>", "does not answer with JSON"),
            (b"\xff\xfe", "does not answer with JSON"),
            (b" " * 70_000 + b'{"allow": true}', "answers more than 65,536 bytes"),
        ):
            found.body = body
            assert said in refusal(settings, tmp_path)
        found.headers = {"Content-Length": "5000"}
        for body in (b'{"allow": true', b'{"allow": true}'):
            found.body = body
            assert "closes the connection in the middle of its answer" in refusal(settings, tmp_path)


def test_spaces_after_a_length_are_no_part_of_it(tmp_path: Path) -> None:
    with service() as found:
        found.headers = {"Content-Length": f"{len(found.body)} \t"}
        assert ask(HookSettings(url=found.url), ASKED, tmp_path) == "open"


@pytest.mark.parametrize(
    "length", ["-5", "five", "+33", "3_3", "0x21", "33, 33", "", "9" * 5000, "33\r\nContent-Length: 5"]
)
def test_a_service_that_gives_no_proper_length_of_its_answer_refuses(tmp_path: Path, length: str) -> None:
    with service() as found:
        found.headers = {"Content-Length": length}
        said = length.replace("\r\nContent-Length:", ",")[: hook.MOST_REASON]
        wanted = f"the hook answers with Content-Length {said!r}, not a number of bytes, so nothing was changed"
        assert wanted in refusal(HookSettings(url=found.url), tmp_path)


def test_a_service_that_trickles_or_is_down_refuses(tmp_path: Path) -> None:
    with service() as found:
        found.trickle_s = 0.3
        settings = HookSettings(url=found.url, timeout_s=1)
        assert "gives no answer within 1 s" in refusal(settings, tmp_path)
    assert "cannot be reached: Connection refused" in refusal(settings, tmp_path)


def test_a_service_with_an_untrusted_certificate_refuses(tmp_path: Path) -> None:
    certificate, key = made(tmp_path)
    with service((certificate, key)) as found:
        assert "its certificate is not trusted" in refusal(HookSettings(url=found.url), tmp_path)
        assert found.asked == []
        assert ask(HookSettings(url=found.url, ca_file="server.pem"), ASKED, tmp_path) == "open"
        assert "cannot be reached" in refusal(HookSettings(url=found.url, ca_file="nowhere.pem"), tmp_path)


def test_the_request_has_what_a_gate_decides_by() -> None:
    began = Provenance("deploy", 1.0, "alice", 1000, "bastion", reason="CHG-1", commit="c" * 40, hook="allowed")
    with scene("asn") as found:
        limit = (found.plan.changed[0].name,)
        worst = ReachabilityLoss(2, ("gpu01",), ("0",), 15, (("0", "0"),))
        plan = replace(found.plan, steps=(Step(1, limit), Step(2, limit, during=worst)), gone=ReachabilityLoss(3))
        asked = question(plan, "t", "a run", began, Options(limit=limit))
    assert (asked["fabric"], asked["lab"], asked["verb"], asked["risk"]) == (
        found.plan.fabric,
        "t",
        "deploy",
        "session",
    )
    assert [one["name"] for one in asked["devices"]] == [*limit]
    assert (asked["user"], asked["reason"], asked["worst_state"]["pairs"]) == ("alice", "CHG-1", 2)
    assert asked["worst_state"] == {
        "pairs": 2,
        "hosts": ("gpu01",),
        "rail_pairs": (("0", "0"),),
        "is_only_ipv6": False,
        "rails": ("0",),
        "seconds": 15,
        "gone_pairs": 3,
    }
    assert set(asked["touches"]) == {"sessions", "links", "rails", "hosts", "gpus"}
    assert "hook" not in asked
    assert json.loads(json.dumps(asked))["options"]["limit"] == [*limit]
