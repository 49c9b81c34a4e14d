"""NVUE by its command line, over SSH."""

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
# One command, so that the file is gone whatever happens; only its owner can read it meanwhile.
STAGE = (
    'umask 077; f=$(mktemp --suffix=.yaml) || exit 74; cat > "$f" || {{ rm -f "$f"; exit 74; }}; '
    'nv config {verb} "$f"; code=$?; rm -f "$f"; exit $code'
)
NOT_WRITTEN = 74
MISSING = "does not exist"


class ShellTransport(SshShell):
    """`nv` on the switch."""

    def __init__(self, target: SshTarget) -> None:
        super().__init__(target)
        self.guard = RevertTimer(target.device, self.line)

    def config(self, revision: str = "applied") -> str:
        """Return a revision as JSON text."""
        chosen = "" if revision == "applied" else f" -r {shlex.quote(revision)}"
        return self._config_in(self._run(f"nv config show{chosen} -o json"))

    def _config_in(self, done: Done) -> str:
        if not isinstance(self._objects(done.stdout), list):
            raise self._garbled()
        return done.stdout

    def config_and(self, path: str, view: str = "") -> tuple[str, dict[str, Any] | None]:
        """Return what is applied, and an object of the running switch beside it; None where that cannot be told."""
        commands = "nv config show -o json", _show_command(path, view)
        first, *others = shell_batch.run(self.line, [shell_batch.ShellStep(one, self.timeout_s) for one in commands])
        text = self._config_in(self._checked(first))
        try:
            return text, self._object_in(others[0]) if others else None
        except AccessError:
            return text, None

    def show(self, path: str, view: str = "") -> dict[str, Any]:
        """Return an object of the running switch; empty where there is none."""
        return self._object_in(self.line.run(_show_command(path, view)))

    def _object_in(self, done: Done) -> dict[str, Any]:
        if done.exit_code != 0 and MISSING in done.output:
            return {}
        found = self._objects(self._checked(done).stdout)
        if not isinstance(found, dict):
            raise self._garbled()
        return found

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return the answer to each command, in order; one that fails is an answer with a failure."""
        return ask(self.line, commands)

    def stage(self, document: NvuePatch, *, replaces: bool = False) -> str:
        """Make a revision of what is applied and a document, or of the document alone; return its name."""
        # JSON is YAML, and leaves no doubt about what is text.
        return self.stage_text(json.dumps(document.items()), replaces=replaces)

    def stage_text(self, text: str, *, replaces: bool = False) -> str:
        """Make a revision of a file; what this user had staged before is forgotten."""
        command = STAGE.format(verb="replace" if replaces else "patch")
        done = self._staged(command, text)
        if "created" not in done.stdout:  # it went into a revision that was begun before
            self.discard()
            done = self._staged(command, text)
        revision = transport.revision_in(done.stdout)
        if not revision:
            raise self._garbled("no revision")
        return revision

    def add(self, revision: str, text: str) -> None:
        """Add to a staged revision what a file says; DeviceError when it is refused, and the revision is as before."""
        if "created" in self._staged(STAGE.format(verb="patch"), text).stdout:
            what = f"{self.device}: what is added to revision {revision} went into another"
            raise DeviceError(Problem(what, "see nv config history"))

    def _staged(self, command: str, text: str) -> Done:
        done = self.line.run(command, max(self.timeout_s, APPLYING_S), text)
        if done.exit_code == NOT_WRITTEN:
            raise self._refused("no file can be written", done, "see whether its disk is full")
        if done.exit_code != 0 or transport.FAILED.search(done.output):
            raise self._refused("refuses the configuration", done, "nothing was changed")
        return done

    def difference(self, running: str, intended: str) -> Any:
        """Return what differs between two revisions, as a list of `set` and `unset`."""
        return self._items(self._run(_diff_command(running, intended)))

    def apply(self, revision: str, message: str, confirm_s: int | None) -> Any:
        """Apply a revision, for some seconds or for good; return how what runs then differs from it.

        DeviceError when the switch says that it failed.
        """
        return self._apply(_apply_command(revision, message, confirm_s), revision)

    def apply_guarded(self, revision: str, message: str) -> Any:
        """Apply a revision as `apply` does while the timer runs; DeviceError when its time is up."""
        return self._apply(self.guard.within(_apply_command(revision, message, None)), revision)

    def _apply(self, command: str, revision: str) -> Any:
        applying = shell_batch.ShellStep(command, max(self.timeout_s, APPLYING_S))
        comparing = shell_batch.ShellStep(_diff_command("applied", revision), self.timeout_s)
        done, *compared = shell_batch.run(self.line, (applying, comparing))
        if done.exit_code == LATE:
            what = f"{self.device}: the time was up before all of the change was applied, and it was taken back"
            raise DeviceError(Problem(what, "give it more time"))
        if done.exit_code != 0 or transport.FAILED.search(done.output):
            raise self._refused("the change was not applied", done, "the switch runs what it ran before")
        if not compared:
            raise self._garbled("no end of the apply")
        return self._items(self._checked(compared[0]))

    def is_waiting(self) -> bool:
        """Whether an applied revision waits to be confirmed."""
        done = self.line.run(UNLESS_ARMED + "nv config apply --confirm-status")
        if done.exit_code == TAKEN:
            return True
        return done.exit_code == 0 and bool(done.output) and not transport.NOT_WAITING.search(done.output)

    def confirm(self) -> ConfirmedState:
        """Keep what waits; return what became of it."""
        done = self.line.run(UNLESS_ARMED + "nv config apply --confirm-yes", max(self.timeout_s, APPLYING_S))
        if done.exit_code == TAKEN:
            self.guard.disarm()
            return ConfirmedState.UNSAVED_ON_PURPOSE
        if done.exit_code != 0 or transport.FAILED.search(done.output):
            raise self._refused("the change was not confirmed", done, "it goes back by itself, if it has not already")
        return ConfirmedState.SAVED if transport.SAVED.search(done.output) else ConfirmedState.UNSAVED

    def abort(self) -> None:
        """Take back what waits."""
        done = self.line.run(UNLESS_ARMED + "nv config apply --confirm-no", max(self.timeout_s, APPLYING_S))
        if done.exit_code == TAKEN:
            self.guard.fire(max(self.timeout_s, APPLYING_S))
        elif done.exit_code != 0:
            raise self._refused("the change was not taken back", done, "it goes back when its time is up")

    def save(self) -> None:
        """Save what is applied to startup."""
        done = self.line.run("nv config save", max(self.timeout_s, APPLYING_S))
        if done.exit_code != 0 or not transport.SAVED.search(done.output):
            raise self._refused("the configuration runs but was not saved", done, "nv config save, once it can")

    def discard(self) -> None:
        """Forget what is staged."""
        self.line.run("nv config detach")

    def applied(self) -> str:
        """Return the name of the revision that runs."""
        found = transport.applied_in(self._run("nv config revision").stdout)
        same = (name for name in found if transport.is_empty_difference(self.difference(name, "applied")))
        return next(same, "")

    def printed(self, command: str) -> str:
        """Return what a command of any kind prints, errors included."""
        done = self.line.run(command, APPLYING_S)
        return done.stdout + done.stderr

    def _run(self, command: str) -> Done:
        return self._checked(self.line.run(command))

    def _checked(self, done: Done) -> Done:
        if done.exit_code != 0:
            raise AccessError(Problem(f"{self.device}: nv fails: {_line(done)}", "see whether nvued runs"))
        return done

    def _items(self, done: Done) -> Any:
        return self._objects(done.stdout.strip() or "[]")

    def _objects(self, text: str) -> Any:
        try:
            return transport.objects(text)
        except (ValueError, RecursionError):
            raise self._garbled() from None

    def _garbled(self, what: str = "what is not JSON") -> AccessError:
        return AccessError(Problem(f"{self.device}: nv answers with {what}", "see whether nvued runs"))

    def _refused(self, what: str, done: Done, remedy: str) -> DeviceError:
        return DeviceError(Problem(f"{self.device}: {what}: {_line(done)}", remedy))


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


def _line(done: Done) -> str:
    """Return what was said in one line, as far as a message may be long."""
    said = "; ".join(line.strip() for line in done.output.splitlines() if line.strip())
    return said[:400] or f"exit code {done.exit_code}"


FILE = "~/.netkit-revert"
LOCK = "~/.netkit-revert.lock"
TAKEN, BUSY, LATE = 77, 75, 76
MESSAGE = "netkit: not confirmed in time"
IS_ARMED = f"[ -e {FILE} ] && read -r group revision < {FILE} && kill -s 0 -- -$group 2>/dev/null"
# Before a command of NVUE's own: exit with TAKEN when the change is one of these.
UNLESS_ARMED = f"if {IS_ARMED}; then exit {TAKEN}; fi; "
DISARM = f"mv {FILE} {FILE}.taken 2>/dev/null || exit 1; read -r group revision < {FILE}.taken; rm -f {FILE}.taken"


class RevertTimer:
    """The timer of one switch."""

    def __init__(self, device: str, line: SshLine) -> None:
        self.device = device
        self.line = line

    def arm(self, revision: str, seconds: int) -> None:
        """Go back to a revision after some seconds."""
        revision = shlex.quote(revision)
        back = f"mv {FILE} {FILE}.late && nv config apply {revision} -y -m '{MESSAGE}'; rm -f {FILE}.late"
        timer = f"umask 077; echo $$ {revision} > {FILE} && sleep {seconds} && flock {LOCK} sh -c {shlex.quote(back)}"
        wait = f"for i in $(seq 100); do [ -s {FILE} ] && exit 0; sleep 0.1; done; exit 1"
        begin = f"setsid sh -c {shlex.quote(timer)} </dev/null >/dev/null 2>&1 &"
        done = self.line.run(f"if {IS_ARMED}; then exit {BUSY}; fi; rm -f {FILE}; {begin} {wait}")
        if done.exit_code == BUSY:
            raise DeviceError(Problem(f"{self.device}: a change waits to be confirmed", "confirm it, or wait"))
        if done.exit_code != 0:
            what = f"{self.device}: no timer can be set that would take the change back"
            raise DeviceError(Problem(what, "see whether its disk is full"))

    def within(self, command: str) -> str:
        """Return a command that runs only while the timer does, else exits with LATE."""
        return f"flock {LOCK} sh -c {shlex.quote(f'[ -e {FILE} ] || exit {LATE}; {command}')}"

    def disarm(self) -> None:
        """Keep what was applied."""
        self._end("kill -s TERM -- -$group")

    def fire(self, timeout_s: float) -> None:
        """Go back now."""
        self._end(f"kill -s TERM -- -$group; nv config apply $revision -y -m '{MESSAGE}'", timeout_s)

    def _end(self, command: str, timeout_s: float | None = None) -> None:
        done = self.line.run(f"{DISARM}; {command}", timeout_s)
        if done.exit_code != 0:
            what = f"{self.device}: the change was taken back before it was confirmed"
            raise DeviceError(Problem(what, "see what took so long, and apply it again"))


MOST_STREAMS = 4
"""As many as others poll a switch with and leave its control CPU alive; sshd takes up to ten."""
WORTH = 32
"""Below as many commands a stream of its own costs more than it saves."""
PACE_S = 0.5
"""What each command beyond that adds to the time a stream may take."""
NVUE = "nv "


def ask(line: SshLine, commands: Sequence[str]) -> tuple[Reply, ...]:
    """Return the answer to each command, in order. AccessError only when the connection is gone."""
    # What needs no nvued comes first, to be told even where nvued hangs.
    wanted = sorted(dict.fromkeys(commands), key=lambda command: command.startswith(NVUE))
    count = max(1, min(MOST_STREAMS, len(wanted) // WORTH))
    hands = [wanted[at::count] for at in range(count)]
    with ThreadPoolExecutor(count) as pool:
        answered = list(pool.map(lambda hand: _stream(line, hand), hands))
    lost = [one for one in answered if isinstance(one, AccessError)]
    if len(lost) == count:
        raise lost[0]
    told = {
        command: reply
        for hand, one in zip(hands, answered, strict=True)
        for command, reply in zip(hand, _replies(one, len(hand)), strict=True)
    }
    return tuple(told[command] for command in commands)


def _stream(line: SshLine, hand: Sequence[str]) -> tuple[Reply, ...] | AccessError:
    """Return the answers of one stream, or why there are none: the others may have theirs."""
    limit_s = line.target.timeout_s + PACE_S * max(0, len(hand) - WORTH)
    try:
        return shell_batch.ask(line, hand, timeout_s=limit_s)
    except AccessError as error:
        return error


def _replies(answered: tuple[Reply, ...] | AccessError, count: int) -> tuple[Reply, ...]:
    if isinstance(answered, AccessError):
        return (Reply("", f"not answered: {answered.problems[0].message}"),) * count
    return answered
