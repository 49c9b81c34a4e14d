"""`netkit serve` over HTTP: authentication, content, and hostile clients."""

import itertools
import json
import re
import shutil
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlencode

import pytest

from bench import measure
from bench.measure import free_port
from netkit.report.page.frame import digest
from netkit.serve.guard import MOST_WRONG
from netkit.serve.listening import MOST_CONNECTIONS
from netkit.serve.metrics import OWN
from tests.lab.running import until
from tests.serve.conftest import HOSTILE
from tests.serve.server import PATIENCE_S, TOKEN, Answer, Running

pytestmark = pytest.mark.daemon
PATHS = (
    *("/", "/?before=x", "/report", "/runs/latest", "/metrics", "/login?x", "/nothing", "/api/v1/nothing", "/static"),
    *(
        "/api/v1/status",
        "/api/v1/now",
        "/api/v1/causes",
        "/api/v1/deploys",
        "/api/v1/runs",
        "/api/v1/runs/latest",
        "/api/v1/findings",
        "/api/v1/states",
    ),
    *("/api/v1/devices", "/api/v1/devices/leaf01", "/api/v1/trends", "/api/v1/openapi.json"),
)
FORM = "application/x-www-form-urlencoded"
SECRETS = ("leaf01", "gpu01", "refused", "openapi", "netkit_serve", "2 fail", "2 causes")
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def test_without_the_token_nothing_is_disclosed(server: Running) -> None:
    made_up = f"netkit_{server.port}=9999999999.00.00"
    for number, path in enumerate(PATHS):
        for headers in ({}, {"Cookie": made_up}, {"Authorization": f"Bearer {TOKEN[:-1]}"}):
            answer = server.ask(path, token="", source=f"127.0.1.{number + 1}", **headers)
            wanted = {200} if path.startswith("/login") else {303, 401}
            assert answer.code in wanted, path
            assert not [word for word in SECRETS if word in answer.text], path


def test_health_discloses_nothing_but_ok(server: Running) -> None:
    answer = server.ask("/healthz", token="")
    assert (answer.code, answer.text) == (200, "ok\n")


def test_every_answer_has_strict_headers(server: Running) -> None:
    for path in ("/healthz", *PATHS):
        headers = server.ask(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] in {"no-store", "private, no-cache"}
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "server" not in headers


def login(server: Running, token: str, **headers: str) -> Answer:
    form = urlencode({"token": token})
    own = {"Content_Type": FORM, **headers}
    return server.ask("/login", method="POST", token="", body=form, source="127.0.0.2", **own)


def test_a_browser_gets_a_session_that_is_not_the_token(server: Running) -> None:
    assert server.ask("/", token="").headers["location"] == "/login"
    assert 'type="password"' in server.ask("/login", token="").text
    assert login(server, "wrong").code == 403
    answer = login(server, TOKEN)
    assert (answer.code, answer.headers["location"]) == (303, "/")
    reported = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(reported.split("; "))
    assert TOKEN not in reported
    cookie = reported.partition(";")[0]
    assert server.ask("/", token="", Cookie=cookie).code == 200
    assert server.ask("/api/v1/runs", token="", Cookie=cookie).code == 200
    ended = server.ask("/logout", method="POST", token="", Cookie=cookie)
    assert "Max-Age=0" in ended.headers["set-cookie"]


def test_a_cross_site_form_does_not_log_in(server: Running) -> None:
    assert login(server, TOKEN, Origin="http://evil.example").code == 400
    assert login(server, TOKEN, Origin=f"http://127.0.0.1:{server.port}").code == 303
    assert login(server, "x" * 10_000).code == 400


def test_repeated_wrong_tokens_are_throttled_per_client(server: Running) -> None:
    def guess(token: str) -> int:
        return server.ask("/api/v1/runs", token=token, source="127.0.0.3").code

    assert {guess("wrong") for _ in range(MOST_WRONG)} == {401}
    assert (guess("wrong"), guess(TOKEN)) == (429, 429)
    assert server.ask("/api/v1/runs").code == 200


def test_only_its_own_host_names_are_answered(server: Running) -> None:
    for host in ("evil.example", f"evil.example:{server.port}", "", "localhost.evil.example"):
        assert server.ask("/", Host=host).code == 421, host
        assert server.ask("/healthz", token="", Host=host).code == 421, host
    assert server.ask("/healthz", Host=f"localhost:{server.port}").code == 200


def test_uploads_are_refused(server: Running) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        for path in ("/", "/report", "/api/v1/runs", "/metrics"):
            assert server.ask(path, method=method).code == 405, (method, path)
    head = server.ask("/report", method="HEAD")
    assert (head.code, head.body, int(head.headers["content-length"]) > 10_000) == (200, b"", True)


def test_the_first_page_lists_open_causes_and_unknown_devices(server: Running) -> None:
    text = server.ask("/").text
    (run,) = server.get("runs")["items"]
    assert "2 causes open, 3 devices not reached</h1>" in text
    assert f'href="/runs/{run["run"]}#device/leaf02"' in text
    assert "BGP to spine01 is Idle" in text
    assert "see whether the link is up and both ends run what is intended: netkit plan" in text
    assert "connection refused" in text
    assert "the last check of the whole fabric is too old to rely on" in text, "the snapshot is of long ago"
    assert "every 1 d, 1 begun so far" in text


def test_the_first_page_reloads_without_a_script_and_runs_its_own_only(server: Running) -> None:
    answer = server.ask("/")
    assert '<noscript><meta http-equiv="refresh" content="60"></noscript>' in answer.text
    script = re.search(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    assert script is not None
    assert answer.text.count("<script") == 1
    reported = answer.headers["content-security-policy"]
    assert f"script-src {digest(script[1])}; connect-src 'self'" in reported
    assert "script-src" not in server.ask("/login").headers["content-security-policy"]


def test_device_texts_are_escaped(server: Running) -> None:
    for path in ("/", "/report", "/api/v1/findings", "/api/v1/states", "/api/v1/devices/spine02"):
        answer = server.ask(path)
        if path in {"/", "/report"}:
            assert "<script>alert" not in answer.text
            assert "<img src=x" not in answer.text
        assert "\x1b" not in answer.text
        assert "\u202e" not in answer.text
    assert HOSTILE[:20] in server.ask("/api/v1/states?check=reached").text
    missing = server.ask("/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert (missing.code, "<script>" in missing.text) == (404, False)


def test_the_report_is_the_page_of_netkit_report_with_a_link_back(server: Running) -> None:
    latest, named = server.ask("/report"), server.ask(f"/runs/{server.get('runs')['items'][0]['run']}")
    assert latest.body == named.body
    assert '<a href="/#runs">Runs</a>' in latest.text
    inside = re.search(r'Content-Security-Policy" content="([^"]+)"', latest.text)
    assert inside is not None
    policy = inside[1].replace("&#39;", "'")
    assert latest.headers["content-security-policy"] == f"{policy}; frame-ancestors 'none'"


def test_a_removed_report_is_made_again_from_the_store(server: Running) -> None:
    (file,) = server.state.glob("**/reports/*.json")
    before = json.loads(file.read_bytes())
    assert before["has_facts"]
    file.unlink()
    again = server.get("runs/latest")
    assert json.loads(file.read_bytes()) == again
    reported = ("run", "verdict", "causes", "trends")
    assert (again["has_facts"], [again[name] for name in reported]) == (False, [before[name] for name in reported])


@needs_promtool
def test_promtool_accepts_the_metrics(server: Running) -> None:
    text = server.ask("/metrics").text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert 'netkit_serve_round_exit_code{fabric="small"} 4\n' in text
    assert 'netkit_collector_up{fabric="small",node="leaf01"} 1\n' in text
    reported = set(re.findall(r"^netkit_serve_\w+", text, re.MULTILINE))
    assert reported == set(OWN) - {"netkit_serve_backup_timestamp_seconds"}


def test_slow_clients_and_crowds_are_bounded(server: Running) -> None:
    crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    for one in crowd:
        one.settimeout(PATIENCE_S)
    sent = sum(_sends(one, b"GET / HTTP/1.1\r\nX-Slow: ") for one in crowd)
    assert sent > 0
    assert _cut(crowd) == 200, "all that never asked are cut"
    until(lambda: server.ask("/api/v1/status").code == 200, "it answers as before")
    assert MOST_CONNECTIONS < 200


def _sends(one: socket.socket, data: bytes) -> bool:
    try:
        one.sendall(data)
    except OSError:
        return False
    return True


def _cut(crowd: list[socket.socket]) -> int:
    count = 0
    for one in crowd:
        try:
            count += one.recv(1) == b""
        except ConnectionError:
            count += 1
        one.close()
    return count


def test_a_malformed_request_is_refused(server: Running) -> None:
    for data in (b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 40_000, b"GET / HTTP/9.9\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port)) as one:
            one.settimeout(PATIENCE_S)
            _sends(one, data)
            assert _cut([one]) in {0, 1}
    assert server.ask("/healthz").code == 200
    assert "Traceback" not in server.output()


def test_unchanged_answers_are_not_sent_twice(server: Running) -> None:
    first = server.ask("/api/v1/findings")
    again = server.ask("/api/v1/findings", If_None_Match=f'"x", {first.headers["etag"]}')
    assert (again.code, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])


def test_a_port_is_reserved_once_and_can_be_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """A concurrent test run that starts its search at the same port gets another one before a server listens."""
    port = free_port()
    monkeypatch.setattr(measure, "PORTS", itertools.cycle(range(port, 32_000)))
    assert free_port() != port
    with socket.create_server(("127.0.0.1", port)) as first, socket.create_connection(("127.0.0.1", port)):
        first.accept()[0].close()
    socket.create_server(("127.0.0.1", port)).close()


def test_state_is_private_to_its_owner(server: Running) -> None:
    folder: Path = next(server.state.glob("**/serve"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert TOKEN not in "".join(file.read_text() for file in folder.glob("*") if file.is_file())
