"""NVUE through its command line, over SSH, and netkit's revert timer on the switch."""

import json
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from netkit.errors import AccessError, DeviceError, Problem
from netkit.platforms import shell_batch
from netkit.platforms.nvue import transport
from netkit.platforms.nvue.patch import NvuePatch
from netkit.platforms.nvue.transport import ConfirmedState
from netkit.platforms.ssh import Done, SshLine, SshShell, SshTarget
from netkit.platforms.view import Reply

APPLYING_S = 600
"""An apply may reload switchd and FRR, and wait two minutes for each."""
# One command, so that the file is always removed; only its owner can read it meanwhile.
STAGE = (
    'umask 077; f=$(mktemp --suffix=.yaml) || exit 74; cat > "$f" || {{ rm -f "$f"; exit 74; }}; '
    'nv config {verb} "$f"; code=$?; rm -f "$f"; exit $code'
)
NOT_WRITTEN = 74
MISSING = "does not exist"


class ShellTransport(SshShell):
    """Revisions and state through `nv` on the switch."""

    question = "nv config revision"  # nvued answers it during an apply, as it does over REST

    def __init__(self, target: SshTarget) -> None:
        super().__init__(target)
        self.guard = RevertTimer(target.device, self.line)

    def config(self, revision: str = "applied") -> str:
        chosen = "" if revision == "applied" else f" -r {shlex.quote(revision)}"
        return self._json_list(self._run(f"nv config show{chosen} -o json"))

    def _json_list(self, done: Done) -> str:
        if not isinstance(self._objects(done.stdout), list):
            raise self._garbled()
        return done.stdout

    def config_and(self, path: str, view: str = "") -> tuple[str, dict[str, Any] | None]:
        commands = "nv config show -o json", _show_command(path, view)
        first, *others = shell_batch.run(self.line, [shell_batch.ShellStep(one, self.timeout_s) for one in commands])
        text = self._json_list(self._checked(first))
        try:
            return text, self._json_object(others[0]) if others else None
        except AccessError:
            return text, None

    def show(self, path: str, view: str = "") -> dict[str, Any]:
        return self._json_object(self.line.run(_show_command(path, view)))

    def _json_object(self, done: Done) -> dict[str, Any]:
        if done.exit_code != 0 and MISSING in done.output:
            return {}
        found = self._objects(self._checked(done).stdout)
        if not isinstance(found, dict):
            raise self._garbled()
        return found

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        return ask(self.line, commands)

    def stage(self, document: NvuePatch, *, replaces: bool = False) -> str:
        # JSON is YAML, and marks what is text.
        return self.stage_text(json.dumps(document.items()), replaces=replaces)

    def stage_text(self, text: str, *, replaces: bool = False) -> str:
        """Stage a file as a new revision, and discard what this user had staged before."""
        verb = "replace" if replaces else "patch"
        done = self._staged(verb, text)
        if "created" not in done.stdout:  # it was added to a revision that was staged before
            self.discard()
            done = self._staged(verb, text)
        revision = transport.revision_in(done.stdout)
        if not revision:
            raise self._garbled("no revision")
        return revision

    def add(self, revision: str, text: str) -> None:
        if "created" in self._staged("patch", text).stdout:
            what = f"{self.device}: the switch added to another revision than {revision}"
            raise DeviceError(Problem(what, "check nv config history"))

    def _staged(self, verb: str, text: str) -> Done:
        name = f"nv config {verb}"
        done = self.line.run(STAGE.format(verb=verb), max(self.timeout_s, APPLYING_S), text, name=name)
        if done.exit_code == NOT_WRITTEN:
            raise self._refused("no file can be written", done, "check whether its disk is full")
        if done.exit_code != 0 or transport.FAILED.search(done.output):
            raise self._refused("refuses the configuration", done, "nothing was changed")
        return done

    def difference(self, running: str, intended: str) -> Any:
        return self._items(self._run(_diff_command(running, intended)))

    def apply(self, revision: str, message: str, confirm_s: int | None) -> Any:
        return self._apply(_apply_command(revision, message, confirm_s), revision)

    def apply_guarded(self, revision: str, message: str) -> Any:
        """Apply a revision while the revert timer runs; DeviceError if it has fired."""
        return self._apply(self.guard.within(_apply_command(revision, message, None)), revision)

    def _apply(self, command: str, revision: str) -> Any:
        applying = shell_batch.ShellStep(command, max(self.timeout_s, APPLYING_S))
        comparing = shell_batch.ShellStep(_diff_command("applied", revision), self.timeout_s)
        done, *compared = shell_batch.run(self.line, (applying, comparing))
        if done.exit_code == LATE:
            what = f"{self.device}: the revert timer fired before all of the change was applied, and it was reverted"
            raise DeviceError(Problem(what, "allow more time"))
        if done.exit_code != 0 or transport.FAILED.search(done.output):
            raise self._refused("the change was not applied", done, "the switch runs its earlier configuration")
        if not compared:
            raise self._garbled("no end of the apply")
        return self._items(self._checked(compared[0]))

    def is_waiting(self) -> bool:
        done = self._confirmation("status")
        if done.exit_code == TAKEN:
            return True
        return done.exit_code == 0 and bool(done.output) and not transport.NOT_WAITING.search(done.output)

    def confirm(self) -> ConfirmedState:
        done = self._confirmation("yes", max(self.timeout_s, APPLYING_S))
        if done.exit_code == TAKEN:
            self.guard.disarm()
            return ConfirmedState.UNSAVED_ON_PURPOSE
        if done.exit_code != 0 or transport.FAILED.search(done.output):
            raise self._refused("the change was not confirmed", done, "it reverts by itself, if it has not already")
        return ConfirmedState.SAVED if transport.SAVED.search(done.output) else ConfirmedState.UNSAVED

    def abort(self) -> None:
        done = self._confirmation("no", max(self.timeout_s, APPLYING_S))
        if done.exit_code == TAKEN:
            self.guard.fire(max(self.timeout_s, APPLYING_S))
        elif done.exit_code != 0:
            raise self._refused("the change was not reverted", done, "it reverts when its timer ends")

    def _confirmation(self, wanted: str, timeout_s: float | None = None) -> Done:
        """Run a command of NVUE's commit confirmation; exit code TAKEN if netkit's timer runs instead."""
        command = f"nv config apply --confirm-{wanted}"
        return self.line.run(UNLESS_ARMED + command, timeout_s, name=command)

    def save(self) -> None:
        done = self.line.run("nv config save", max(self.timeout_s, APPLYING_S))
        if done.exit_code != 0 or not transport.SAVED.search(done.output):
            raise self._refused(
                "the configuration runs but was not saved", done, "fix the cause, then run nv config save"
            )

    def discard(self) -> None:
        self.line.run("nv config detach")

    def applied(self) -> str:
        found = transport.applied_in(self._run("nv config revision").stdout)
        same = (name for name in found if transport.is_empty_difference(self.difference(name, "applied")))
        return next(same, "")

    def printed(self, command: str) -> str:
        """Run any command; the output includes errors."""
        done = self.line.run(command, APPLYING_S)
        return done.stdout + done.stderr

    def _run(self, command: str) -> Done:
        return self._checked(self.line.run(command))

    def _checked(self, done: Done) -> Done:
        if done.exit_code != 0:
            raise AccessError(Problem(f"{self.device}: nv fails: {_one_line(done)}", "check whether nvued runs"))
        return done

    def _items(self, done: Done) -> Any:
        return self._objects(done.stdout.strip() or "[]")

    def _objects(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self._garbled() from None

    def _garbled(self, what: str = "what is not JSON") -> AccessError:
        return AccessError(Problem(f"{self.device}: nv answers with {what}", "check whether nvued runs"))

    def _refused(self, what: str, done: Done, remedy: str) -> DeviceError:
        return DeviceError(Problem(f"{self.device}: {what}: {_one_line(done)}", remedy))


def _show_command(path: str, view: str) -> str:
    chosen = f" --view={view}" if view else ""
    return f"nv show {path}{chosen} -o json"


def _apply_command(revision: str, message: str, confirm_s: int | None) -> str:
    words = ["nv", "config", "apply", revision, "-y"]
    words += ["--confirm", f"{confirm_s}s"] if confirm_s else []
    words += ["-m", message] if message else []
    return shlex.join(words)


def _diff_command(running: str, intended: str) -> str:
    return shlex.join(["nv", "config", "diff", running, intended, "-o", "json"])


def _one_line(done: Done) -> str:
    """Join the output of a failed command to one line, truncated to a readable size."""
    output = "; ".join(line.strip() for line in done.output.splitlines() if line.strip())
    return output[:400] or f"exit code {done.exit_code}"


FILE = "~/.netkit-revert"
LOCK = "~/.netkit-revert.lock"
TAKEN, BUSY, LATE = 77, 75, 76
MESSAGE = "netkit: not confirmed in time"
IS_ARMED = f"[ -e {FILE} ] && read -r group revision < {FILE} && kill -s 0 -- -$group 2>/dev/null"
UNLESS_ARMED = f"if {IS_ARMED}; then exit {TAKEN}; fi; "
DISARM = f"mv {FILE} {FILE}.taken 2>/dev/null || exit 1; read -r group revision < {FILE}.taken; rm -f {FILE}.taken"


class RevertTimer:
    """A timer on the switch that reverts a change of several applies."""

    def __init__(self, device: str, line: SshLine) -> None:
        self.device = device
        self.line = line

    def arm(self, revision: str, seconds: int) -> None:
        """Revert to a revision after some seconds, unless disarmed."""
        revision = shlex.quote(revision)
        back = f"mv {FILE} {FILE}.late && nv config apply {revision} -y -m '{MESSAGE}'; rm -f {FILE}.late"
        timer = f"umask 077; echo $$ {revision} > {FILE} && sleep {seconds} && flock {LOCK} sh -c {shlex.quote(back)}"
        wait = f"for i in $(seq 100); do [ -s {FILE} ] && exit 0; sleep 0.1; done; exit 1"
        begin = f"setsid sh -c {shlex.quote(timer)} </dev/null >/dev/null 2>&1 &"
        done = self.line.run(f"if {IS_ARMED}; then exit {BUSY}; fi; rm -f {FILE}; {begin} {wait}")
        if done.exit_code == BUSY:
            raise DeviceError(Problem(f"{self.device}: a change waits to be confirmed", "confirm it, or wait"))
        if done.exit_code != 0:
            what = f"{self.device}: the revert timer cannot be started"
            raise DeviceError(Problem(what, "check whether its disk is full"))

    def within(self, command: str) -> str:
        """Wrap a command so that it exits with LATE if the timer has fired."""
        return f"flock {LOCK} sh -c {shlex.quote(f'[ -e {FILE} ] || exit {LATE}; {command}')}"

    def disarm(self) -> None:
        """Keep what is applied."""
        self._end("kill -s TERM -- -$group")

    def fire(self, timeout_s: float) -> None:
        """Revert now."""
        self._end(f"kill -s TERM -- -$group; nv config apply $revision -y -m '{MESSAGE}'", timeout_s)

    def _end(self, command: str, timeout_s: float | None = None) -> None:
        done = self.line.run(f"{DISARM}; {command}", timeout_s)
        if done.exit_code != 0:
            what = f"{self.device}: the change was reverted before it was confirmed"
            raise DeviceError(Problem(what, "find out what took too long, and apply it again"))


MOST_SESSIONS = 4
"""Concurrent sessions that leave the control CPU of a switch responsive; sshd accepts ten."""
PER_SESSION = 32
"""With fewer commands a separate session costs more than it saves."""
NVUE = "nv "


def ask(line: SshLine, commands: Sequence[str]) -> tuple[Reply, ...]:
    """Run commands, over several sessions if there are many. AccessError only if all of them are lost."""
    # Commands that do not need nvued come first: they succeed even if nvued hangs.
    unique = sorted(dict.fromkeys(commands), key=lambda command: command.startswith(NVUE))
    count = max(1, min(MOST_SESSIONS, len(unique) // PER_SESSION))
    batches = [unique[at::count] for at in range(count)]

    def run(batch: Sequence[str]) -> tuple[Reply, ...] | AccessError:
        try:
            return shell_batch.ask(line, batch)
        except AccessError as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        results = list(pool.map(run, batches))
    replies: dict[str, Reply] = {}
    errors: list[AccessError] = []
    for batch, result in zip(batches, results, strict=True):
        if isinstance(result, AccessError):
            errors.append(result)
            replies.update(dict.fromkeys(batch, Reply("", f"not answered: {result.problems[0].message}")))
        else:
            replies.update(zip(batch, result, strict=True))
    if len(errors) == count:
        raise errors[0]
    return tuple(replies[command] for command in commands)
