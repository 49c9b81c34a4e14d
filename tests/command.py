"""The netkit command as a user runs it: `start` in a new interpreter, `run` in a faster fork of this one."""

import gc
import importlib
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel

import netkit
from netkit.hardware import Catalog
from netkit.platforms import PLATFORMS
from netkit.platforms.object_names import places
from netkit.platforms.ownership import shipped_templates
from netkit.render import Engine

ROOT = Path(__file__).parent.parent
NETKIT = (sys.executable, "-m", "netkit")
Done = subprocess.CompletedProcess[str]
RECURSION_LIMIT = 1000
"""The limit of a new interpreter, which a recursive template reaches; hypothesis may have raised this one's."""
PATIENCE_S = 120
"""Only what hangs takes this long: a machine may be busy."""
GIVEN, OUT, ERR = "3", "4", "5"
"""The streams that a script has for netkit when it calls `begin_in_place_of`."""


def environment(**changes: str) -> dict[str, str]:
    """An environment in which netkit is found wherever the command runs."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NETKIT_PROGRESS": "off", **changes}


def start(
    *arguments: str | Path, cwd: Path = ROOT, timeout_s: float = PATIENCE_S, stdin: str = "", **changes: str
) -> Done:
    """Run netkit in a new interpreter and return its output."""
    return subprocess.run(
        [*NETKIT, *map(str, arguments)],
        cwd=cwd,
        env=environment(**changes),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout_s,
        check=False,
    )


class Forked:
    """A fork of this process, used like the Popen of a new interpreter, which takes a second or two to import the same.

    Nothing else of this process may be open in it: it has no file but its three streams.
    """

    def __init__(self, act: Callable[[], object], output: IO[bytes], **changes: str) -> None:
        self.returncode: int | None = None
        with Path(os.devnull).open("rb") as nothing:
            self.pid = os.fork()
            if self.pid == 0:
                _become(act, ROOT, (nothing, output, output), changes, are_others_closed=True)

    def poll(self) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout_s: float) -> int:
        """Wait for its end; raise TimeoutExpired and let it run otherwise."""
        if self.returncode is None:
            handle = os.pidfd_open(self.pid)
            try:
                select.select([handle], [], [], timeout_s)
            finally:
                os.close(handle)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout_s)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Process = subprocess.Popen[bytes] | Forked


def begin(
    *arguments: str | Path, output: IO[bytes], before: Callable[[], None] | None = None, **changes: str
) -> Forked:
    """Start netkit in a fork, without input; `before` runs in that process first."""
    _prepare()
    return Forked(partial(_netkit, [*map(str, arguments)], before), output, **changes)


def run(
    *arguments: str | Path,
    cwd: Path = ROOT,
    timeout_s: float = PATIENCE_S,
    stdin: str = "",
    before: Callable[[], None] | None = None,
    **changes: str,
) -> Done:
    """Run netkit's entry point in a forked process and return its output; `before` runs in that process first."""
    _prepare()
    with tempfile.TemporaryFile() as reported, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        reported.write(stdin.encode())
        reported.seek(0)
        child = os.fork()
        if child == 0:
            _become(partial(_netkit, [*map(str, arguments)], before), cwd, (reported, out, err), changes)
        code = _ended(child, arguments, timeout_s)
        out.seek(0)
        err.seek(0)
        said, complained = (stream.read().decode(errors="replace") for stream in (out, err))
    return subprocess.CompletedProcess(arguments, code, said, complained)


def begin_in_place_of(process: int) -> int:
    """Run netkit in a fork with the arguments, folder, environment and streams of a script, and return its number."""
    _prepare()
    place = Path(f"/proc/{process}")
    _interpreter, _script, *arguments = place.joinpath("cmdline").read_text(encoding="utf-8").split("\0")[:-1]
    variables = place.joinpath("environ").read_text(encoding="utf-8").split("\0")[:-1]
    changes = dict(one.split("=", 1) for one in variables)
    fds = place / "fd"
    with (fds / GIVEN).open("rb") as given, (fds / OUT).open("wb") as out, (fds / ERR).open("wb") as err:
        child = os.fork()
        if child == 0:
            _become(partial(_netkit, arguments), place / "cwd", (given, out, err), changes)
    return child


def _ended(child: int, arguments: Sequence[object], timeout_s: float) -> int:
    """The exit code of a child."""
    handle = os.pidfd_open(child)
    try:
        is_ended, _, _ = select.select([handle], [], [], timeout_s)
    finally:
        os.close(handle)
    if not is_ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not is_ended:
        raise subprocess.TimeoutExpired([*map(str, arguments)], timeout_s)
    return os.waitstatus_to_exitcode(status)


@cache
def _prepare() -> None:
    """Do once what every forked command would do again: import netkit, build the verbs, load what it ships."""
    for codec in ("ascii", "utf_8_sig"):  # loaded while the process may still read Python's own folder
        importlib.import_module(f"encodings.{codec}")
    for found in pkgutil.walk_packages(netkit.__path__, "netkit."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    command_of = importlib.import_module("netkit.cli.app").command_of
    for verb in ("", *command_of("").commands):
        _build_parameters(command_of(verb))
    _build_models(BaseModel)
    hardware = Catalog()
    for read, kind in ((hardware.switch, "switches"), (hardware.host, "hosts")):
        for name in hardware.names(kind):
            read(name)
    hardware.media()
    for platform in PLATFORMS:
        places(platform)
    compiled, folder = Engine().environment, shipped_templates()
    for file in folder.rglob("*.j2"):
        compiled.get_template(str(file.relative_to(folder)))
    gc.freeze()  # a fork that frees nothing copies no pages


def _build_parameters(command: Any) -> None:
    """Build what typer and pydantic build at the first use of each option."""
    for parameter in command.params:
        parameter.get_runtime_param()
    for one in getattr(command, "commands", {}).values():
        _build_parameters(one)


def _build_models(base: type[BaseModel]) -> None:
    """Build the validators of netkit's models, which pydantic defers to the first use."""
    for model in base.__subclasses__():
        if model.__module__.startswith("netkit."):
            model.model_rebuild()
        _build_models(model)


def _netkit(arguments: list[str], before: Callable[[], None] | None = None) -> None:
    sys.argv = ["netkit", *arguments]
    if before:
        before()
    importlib.import_module("netkit.cli").main()


def _become(
    act: Callable[[], object],
    cwd: Path,
    streams: tuple[IO[bytes], IO[bytes], IO[bytes]],
    changes: Mapping[str, str],
    *,
    are_others_closed: bool = False,
) -> None:
    """Act in the forked child, and never return."""
    code = 70
    sys.setrecursionlimit(RECURSION_LIMIT)
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        if are_others_closed:
            os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (closed by the end of the process)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        os.environ.update({"NETKIT_PROGRESS": "off"} | (environment(**changes) if changes else {}))
        os.chdir(cwd)
        act()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def assert_refused(done: Done, *words: str, lines: int | None = 1) -> None:
    """Check that a command refused: exit code 3, plain lines on stderr, nothing else."""
    assert done.returncode == 3, (done.returncode, done.stdout, done.stderr)
    said = done.stderr.splitlines()
    assert said, "nothing was said"
    assert all(line.startswith("error: ") for line in said), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    if lines is not None:
        assert len(said) == lines, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
