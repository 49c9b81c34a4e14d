"""`systemctl`: the verbs people, playbooks and netplan use, about the units of a host."""

from collections.abc import Callable, Mapping

from netkit.lab.personalities.linux_host import systemctl_views as views
from netkit.lab.personalities.linux_host.systemctl_views import NOT_ACTIVE
from netkit.lab.personalities.linux_host.systemctl_words import Arguments, matching
from netkit.lab.personalities.linux_host.unit_file import UnitError
from netkit.lab.personalities.linux_host.units import State, Units, full_name
from netkit.lab.personality import Call


def systemctl(units: Units, call: Call) -> int:
    """Answer one command line."""
    if "--version" in call.arguments:
        call.out("systemd 252 (252.38-1~deb12u1)\n")
        return 0
    arguments = Arguments(call.arguments)
    if arguments.unknown:
        call.err(f"systemctl: unrecognized option '{arguments.unknown}'\n")
        return 1
    verb = VERBS.get(arguments.verb)
    if verb is None:
        call.err(f"Unknown command verb {arguments.verb}.\n")
        return 1
    if arguments.verb in NEEDS_NAME and not arguments.names:
        call.err("Too few arguments.\n")
        return 1
    return verb(units, arguments, call)


def _each(act: Callable[[Units, str], State]) -> Callable[[Units, Arguments, Call], int]:
    def verb(units: Units, arguments: Arguments, call: Call) -> int:
        code = 0
        for name in matching(units, arguments.names):
            try:
                state = act(units, name)
            except UnitError as error:
                call.err(f"Failed to {arguments.verb} {name}: {error}\n")
                code = 5
                continue
            if state.active == "failed":
                call.err(
                    f"Job for {name} failed because the control process exited with error code.\n"
                    f'See "systemctl status {name}" and "journalctl -xeu {name}" for details.\n'
                )
                code = code or 1
        return code

    return verb


def _start(units: Units, name: str) -> State:
    return units.start(name)


def _restart(units: Units, name: str) -> State:
    return units.restart(name)


def _reload(units: Units, name: str) -> State:
    return units.reload_unit(name)


def _try_restart(units: Units, name: str) -> State:
    state = units.state(name)
    return units.restart(name) if state.active == "active" else state


def _stop(units: Units, name: str) -> State:
    units.stop(name)
    return State()


def _enable(units: Units, arguments: Arguments, call: Call) -> int:
    is_enabled = arguments.verb in {"enable", "unmask"}
    for name in map(full_name, arguments.names):
        if not units.is_known(name):
            call.err(f"Failed to {arguments.verb} unit: Unit file {name} does not exist.\n")
            return 1
        units.enable(name, is_enabled=is_enabled)
    if "--now" in arguments.flags:
        return _each(_start if is_enabled else _stop)(units, arguments, call)
    return 0


def _is_active(units: Units, arguments: Arguments, call: Call) -> int:
    states = [units.state(full_name(name)).active for name in arguments.names]
    if not arguments.is_quiet:
        call.out("".join(f"{state}\n" for state in states))
    return 0 if "active" in states else NOT_ACTIVE


def _is_failed(units: Units, arguments: Arguments, call: Call) -> int:
    states = [units.state(full_name(name)).active for name in arguments.names]
    if not arguments.is_quiet:
        call.out("".join(f"{state}\n" for state in states))
    return 0 if "failed" in states else 1


def _is_enabled(units: Units, arguments: Arguments, call: Call) -> int:
    code = 0
    for name in map(full_name, arguments.names):
        if not units.is_known(name):
            call.err(f"Failed to get unit file state for {name}: No such file or directory\n")
            code = 1
            continue
        word = units.is_enabled(name)
        code = code or int(word == "disabled")
        if not arguments.is_quiet:
            call.out(f"{word}\n")
    return code


def _daemon_reload(units: Units, _arguments: Arguments, _call: Call) -> int:
    units.reload()
    return 0


def _reset_failed(units: Units, arguments: Arguments, _call: Call) -> int:
    for name in arguments.names or [""]:
        units.forget_failure(full_name(name) if name else "")
    return 0


def _is_system_running(_units: Units, _arguments: Arguments, call: Call) -> int:
    call.out("running\n")
    return 0


VERBS: Mapping[str, Callable[[Units, Arguments, Call], int]] = {
    "start": _each(_start),
    "restart": _each(_restart),
    "try-restart": _each(_try_restart),
    "reload": _each(_reload),
    "reload-or-restart": _each(_reload),
    "stop": _each(_stop),
    "enable": _enable,
    "disable": _enable,
    "mask": _enable,
    "unmask": _enable,
    "is-active": _is_active,
    "is-failed": _is_failed,
    "is-enabled": _is_enabled,
    "show": views.show,
    "status": views.status,
    "cat": views.cat,
    "list-units": views.list_units,
    "list-timers": views.list_units,
    "list-unit-files": views.list_unit_files,
    "daemon-reload": _daemon_reload,
    "daemon-reexec": _daemon_reload,
    "reset-failed": _reset_failed,
    "is-system-running": _is_system_running,
}
NEEDS_NAME = frozenset(
    [
        "start",
        "restart",
        "try-restart",
        "reload",
        "reload-or-restart",
        "stop",
        "enable",
        "disable",
        "mask",
        "unmask",
        "is-active",
        "is-failed",
        "is-enabled",
        "cat",
    ]
)
