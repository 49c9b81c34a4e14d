"""A real Nautobot for tests: its own venv, PostgreSQL, Redis and folder, on 127.0.0.1, ended with the tests."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import requests

from bench.measure import free_port
from tests.store import postgres

VERSION = "3.2.7"
TOKEN = "f00dfeed" * 5
SUPERUSER = """
from django.contrib.auth import get_user_model
from nautobot.users.models import Token
user = get_user_model().objects.create_superuser("admin", "admin@example.net", "unused")
Token.objects.create(user=user, key={token!r})
"""
START_S = 300
STEP_S = 3600
"""Five minutes on an idle machine, many more on a busy one."""


def lacks() -> str:
    """Why it cannot run here; empty if it can."""
    return postgres.lacks() or ("" if shutil.which("redis-server") else "Redis is not installed (Debian: redis-server)")


@contextmanager
def nautobot() -> Iterator[str]:
    """Install, migrate (five minutes) and serve it for the length of a block; yield its URL."""
    with tempfile.TemporaryDirectory(prefix="nknb") as name, postgres.server() as database, _redis(Path(name)) as redis:
        folder = Path(name)
        program = _installed(folder / "venv")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": name,
            "NAUTOBOT_ROOT": name,
            "NAUTOBOT_CONFIG": str(_settings(folder, database, redis)),
        }
        _run(program, "migrate", "--no-input", environment=environment)
        _run(program, "shell", "--command", SUPERUSER.format(token=TOKEN), environment=environment)
        url = f"http://127.0.0.1:{(port := free_port())}"
        command = [program, "runserver", "--noreload", "--insecure", f"127.0.0.1:{port}"]
        with (
            (folder / "log").open("w") as log,
            subprocess.Popen(command, env=environment, cwd=name, stdout=log, stderr=log) as served,
        ):
            try:
                _wait(url, served, folder / "log")
                yield url
            finally:
                served.terminate()


def _installed(venv: Path) -> str:
    """Its program in a venv, which NETKIT_NAUTOBOT names if one exists."""
    if known := os.environ.get("NETKIT_NAUTOBOT"):
        return f"{known}/bin/nautobot-server"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=120)
    subprocess.run([venv / "bin/pip", "install", "--quiet", f"nautobot=={VERSION}"], check=True, timeout=STEP_S)
    return f"{venv}/bin/nautobot-server"


@contextmanager
def _redis(folder: Path) -> Iterator[Path]:
    socket = folder / "redis"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder), "--loglevel", "warning"]
    with subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL) as server:
        try:
            yield socket
        finally:
            server.terminate()


def _settings(folder: Path, database: postgres.Server, redis: Path) -> Path:
    """Write what differs from Nautobot's own defaults: sockets instead of ports, no telemetry."""
    name = database.database().partition("@/")[2].partition("?")[0]
    file = folder / "nautobot_config.py"
    file.write_text(
        f"""from nautobot.core.settings import *
ALLOWED_HOSTS = ["127.0.0.1"]
SECRET_KEY = "of-a-test-and-nothing-else"
DATABASES = {{"default": {{
    "ENGINE": "django.db.backends.postgresql", "NAME": {name!r}, "USER": {postgres.UNPRIVILEGED!r},
    "HOST": {str(database.folder)!r}, "PORT": "", "PASSWORD": "",
}}}}
CACHES["default"]["LOCATION"] = "unix://{redis}?db=0"
CELERY_BROKER_URL = "redis+socket://{redis}?virtual_host=1"
INSTALLATION_METRICS_ENABLED = False
""",
        encoding="utf-8",
    )
    return file


def _run(*command: str, environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STEP_S, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def _wait(url: str, served: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and served.poll() is None:
        with suppress(requests.RequestException):
            answer = requests.get(f"{url}/api/status/", headers={"Authorization": f"Token {TOKEN}"}, timeout=30)
            if answer.ok:
                return
        time.sleep(0.5)
    raise AssertionError(log.read_text(encoding="utf-8")[-4000:])
