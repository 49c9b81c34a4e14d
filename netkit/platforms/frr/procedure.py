"""Files to stage on a switch, and the shell script of a commit: try the files, then keep or revert them.

New files are in place only while the services read them: until they are kept, a reboot finds the old ones. A unit puts
these back if the switch goes down in between. Otherwise the script and its state are below /run, which a reboot
empties. The timer and the confirmation race to rename a marker.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netkit.platforms.change import Change
from netkit.platforms.compare import apply
from netkit.platforms.config import Files
from netkit.platforms.config_lines import lines
from netkit.platforms.frr.files import DAEMONS, FRR_CONF, NETPLAN, PLACES, RELOAD, SYSCTL, in_order
from netkit.platforms.frr.model import DATACENTER_GRAMMAR, GRAMMAR, MODEL
from netkit.platforms.ownership import LEFT, Ownership

KINDS = ("ethernets", "bridges")
MTU, ADDRESSES = "mtu", "addresses"
OURS = re.compile(r"lo|swp[\w.-]*", re.ASCII)


def left(running: str, intended: str) -> list[str]:
    """List the ports that only the first netplan file has."""
    return sorted(port for port in _ports(running) - _ports(intended) if OURS.fullmatch(port))


def _ports(text: str) -> set[str]:
    found = MODEL.parse({NETPLAN: text}) if text else {}
    return {path[3] for path in found if path[1:3] == ("network", KINDS[0]) and len(path) > 3}


def differing(changes: Iterable[Change], links: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield changes of addresses and MTUs that the interfaces do not reflect; those without a carrier are skipped."""
    up = {str(link.get("ifname", "")): link for link in links if "LOWER_UP" in link.get("flags", [])}
    for change in changes:
        file, _, kind, name, key, item = (*change.path, *[""] * 5)[:6]
        if file != NETPLAN or kind not in KINDS or name not in up:
            continue
        link, is_applied = up[name], True
        if key == MTU:
            is_applied = change.intended is None or str(link.get("mtu")) == change.intended
        elif key == ADDRESSES and item:
            addresses = {f"{one.get('local')}/{one.get('prefixlen')}" for one in link.get("addr_info", [])}
            is_applied = (item.removeprefix("- ") in addresses) != change.is_removal
        if not is_applied:
            yield f"{name} {key}"


# State of FRR and the kernel that FRR prints among its configuration.
STATE = ("frr version", "frr defaults", "ip forwarding", "ipv6 forwarding", "no ip forwarding", "no ipv6 forwarding")
CLOSERS = {"address-family": "exit-address-family", "vrf": "exit-vrf"}


def merged(changes: Iterable[Change], running: Files, intended: Files) -> dict[str, str | None]:
    """Build the complete text of each file that changes; None for a file to remove."""
    changes = tuple(changes)
    changed = {change.path[0] for change in changes}
    if DAEMONS in changed:  # FRR restarts, from its file
        changed.add(FRR_CONF)
    ownership = MODEL.ownership.on(intended)
    files: dict[str, str | None] = {file: intended.get(file) for file in changed}
    for file in files:
        if file == FRR_CONF:
            routing = without_left(intended.get(file, ""), ownership)
            files[file] = routing + "".join(foreign(running.get(file, ""), routing, ownership))
        else:
            have, want = (MODEL.parse({file: side[file]} if file in side else {}) for side in (running, intended))
            ours = ownership.restrict(have, ownership.claims(want))
            left = {path for path in want if ownership.precedence(path) == LEFT}
            # Entries that netkit neither owns nor intends, or that are left though the intent has them.
            if left or have.keys() - ours.keys() - want.keys():
                only = apply(have, (one for one in changes if one.path[0] == file))
                files[file] = MODEL.text(only).get(file, "" if file in intended else None)
    return files


def without_left(intended: str, ownership: Ownership) -> str:
    """Drop the lines that `leave` of the intent keeps as they run, with the sections below them."""
    if not ownership.left:
        return intended
    left = {
        (*line.headers, line.text)
        for line in lines(intended, DATACENTER_GRAMMAR, (FRR_CONF,))  # with the lines that are defaults elsewhere
        for path in line.paths
        if LEFT in {ownership.precedence(path), ownership.precedence((*path[:-1], f"no {path[-1]}"))}
    }
    kept: list[str] = []
    above: list[tuple[int, str]] = []
    dropped: int | None = None
    """The depth of the dropped section that this line may still belong to."""
    for raw in intended.splitlines(keepends=True):
        text, depth = raw.strip(), len(raw) - len(raw.lstrip())
        if dropped is not None and (depth > dropped or (depth == dropped and text in GRAMMAR.closers)):
            dropped = None if depth == dropped else dropped
            continue
        dropped = None
        while above and above[-1][0] >= depth:
            above.pop()
        if (*(header for _, header in above), text) in left:
            dropped = depth
            continue
        if text and text not in GRAMMAR.closers and not text.startswith(GRAMMAR.comments):
            above.append((depth, text))
        kept.append(raw)
    return "".join(kept)


def foreign(running: str, intended: str, ownership: Ownership) -> Iterator[str]:
    """Yield the lines of a running configuration that netkit does not own, with their section headers."""
    wanted = {path for line in lines(intended, GRAMMAR, (FRR_CONF,)) for path in line.paths}
    every = tuple(lines(running, GRAMMAR, (FRR_CONF,)))
    sections = {line.headers for line in every}
    above: tuple[str, ...] = ()
    for line in every:
        is_ours = any(ownership.precedence(path) >= 0 or path in wanted for path in line.paths)
        is_header = (*line.headers, line.text) in sections
        if is_header or is_ours or not line.paths or line.text.startswith(STATE):
            continue
        yield from _moved(above, line.headers)
        yield f"{' ' * len(line.headers)}{line.text}\n"
        above = line.headers
    yield from _moved(above, ())


def _moved(above: tuple[str, ...], headers: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines that leave one section and enter another."""
    if above == headers:
        return
    for depth in reversed(range(len(above))):
        yield f"{' ' * depth}{CLOSERS.get(above[depth].split(' ')[0], 'exit')}\n"
    for depth, header in enumerate(headers):
        yield f"{' ' * depth}{header}\n"


WORDS = "bgp graceful-shutdown"
ROUTER = "router bgp "
NUMBER = re.compile(r"^router bgp \d+")


def drain_place(router: str) -> str:
    """Drop the AS number of a router line, which a change may replace during a drain."""
    return NUMBER.sub(ROUTER.rstrip(), router)


def drain_lines(running: str) -> str:
    """Write the lines that drain every router its configuration does not drain already."""
    routers: dict[str, bool] = {}
    for line in lines(running, GRAMMAR):
        if not line.headers and line.text.startswith(ROUTER):
            routers.setdefault(line.text, False)
        elif line.text == WORDS and len(line.headers) == 1:
            routers[line.headers[0]] = True
    return "".join(f"{router}\n {WORDS}\nexit\n" for router, is_drained in routers.items() if not is_drained)


def undrain_lines(own: str, intended: str) -> str:
    """Write the lines that end a drain; a router that its configuration drains by now stays drained."""
    found = list(lines(intended, GRAMMAR))
    now = {drain_place(line.text): line.text for line in found if not line.headers and line.text.startswith(ROUTER)}
    kept = {drain_place(line.headers[0]) for line in found if line.text == WORDS and line.headers}
    routers = [row for row in own.splitlines() if row.startswith(ROUTER) and drain_place(row) not in kept]
    return "".join(f"{now.get(drain_place(row), row)}\n no {WORDS}\nexit\n" for row in routers)


FOLDER = "/run/netkit-change"
DRAIN = "/run/netkit-drain"
SCRIPT = f"{FOLDER}/run"
WAITING, GOING_BACK = f"{FOLDER}/waiting", f"{FOLDER}/going-back"
BEFORE, SAVED, AFTER = f"{FOLDER}/before", f"{FOLDER}/saved", f"{FOLDER}/after"
GONE = f"{FOLDER}/gone"
"""Lists the files that the change removes."""
UNIT = "netkit-revert"
TOO_LATE = 75
UNDO = "/etc/netkit/undo"
"""What a boot needs that follows a change which was being applied."""
UNDO_UNIT = "netkit-undo.service"
UNITS = "/etc/systemd/system"
END_UNDO = (
    f"rm -rf {UNITS}/sysinit.target.wants/{UNDO_UNIT} {UNITS}/{UNDO_UNIT} {UNDO}; rmdir {UNDO.rpartition('/')[0]}"
)
BOOT_UNIT = f"""[Unit]
Description=Put back the files from before a change that was being applied
DefaultDependencies=no
After=systemd-remount-fs.service
Before=systemd-sysctl.service systemd-networkd.service network-pre.target shutdown.target
Wants=network-pre.target
Conflicts=shutdown.target

[Service]
Type=oneshot
ExecStart=/bin/sh {UNDO}/run boot

[Install]
WantedBy=sysinit.target
"""

# Up to 9.0 FRR has no `no` for BFD timers. frr-reload.py then shortens the command until vtysh accepts it, and reports
# success. So defaults are written out for timers that run and are missing in the file.
BFD_DEFAULTS = {
    "detect-multiplier": 3,
    "receive-interval": 300,
    "transmit-interval": 300,
    "echo receive-interval": 50,
    "echo transmit-interval": 50,
    "echo-interval": 50,
}
# frr-reload.py names a new route map at a neighbor before it defines it. Until FRR looks at it again, 5 s later, such a
# map denies all routes. So what has a new name is defined first.
TEXTS = f"""stated() {{  # what runs, a file: print the file as frr-reload.py has to be given it
    awk '
    function leave() {{
        for (i = 1; i <= count; i++) {{
            place = section " " names[i]
            if (side == 2 && place in running && !(place in wanted)) print "  " names[i] " " values[i]
        }}
        section = ""
    }}
    BEGIN {{
        count = split("{",".join(BFD_DEFAULTS)}", names, ",")
        split("{",".join(map(str, BFD_DEFAULTS.values()))}", values, ",")
    }}
    section != "" && !/^  / {{ leave() }}
    /^ (profile|peer) / {{ section = $0 }}
    section != "" && /^  [a-z]/ {{
        key = $0
        sub(/^ */, "", key)
        sub(/ [0-9]+ *$/, "", key)
        if (side == 1) running[section " " key]; else wanted[section " " key]
    }}
    END {{ leave() }}
    side == 2
    ' side=1 "$1" side=2 "$2"
}}
introduced() {{  # what runs, a file: print the lists and route maps of the file whose names do not run yet
    awk '
    /^[^ ]/ {{ key = "" }}
    /^(ip|ipv6) prefix-list / {{ key = $1 " prefix-list " $3 }}
    /^bgp (ext|large-)?community-list / {{ key = $2 " " ($3 ~ /^(standard|expanded)$/ ? $4 : $3) }}
    /^bgp as-path access-list / {{ key = "as-path " $4 }}
    /^route-map / {{ key = map = "route-map " $2 }}
    /^exit/ {{ key = map; map = "" }}
    side == 1 && key != "" {{ running[key] }}
    side == 2 && key != "" && !(key in running)
    ' side=1 "$1" side=2 "$2"
}}
"""

PATIENCE_S = 20
"""How long to wait for a daemon that has died; watchfrr notices at once."""
HEAD = """#!/bin/sh
# Try a change (try), keep it (keep), take it back (back), also when its time is up (late) or it was cut off (boot).
umask 077
cd "${{0%/*}}" || exit 1
exec 9>lock
flock 9
say() {{ echo "$1" >&2; code=1; }}
place() {{  # file, where it belongs, folder: put it there, or take away what is not in the folder
    if [ -e "$3/$1" ] || [ -L "$3/$1" ]; then
        hold "$@" && mv -f "$2.netkit" "$2"
    else
        rm -f "$2"
    fi
}}
hold() {{  # the same, but only beside its place: whether there is room for it
    [ ! -e "$3/$1" ] && [ ! -L "$3/$1" ] || {{ mkdir -p "${{2%/*}}" && cp -a "$3/$1" "$2.netkit"; }} && return
    rm -f "$2.netkit"
    say "$2 cannot be written"
    return 1
}}
drained() {{  # a file: print what drains its routers, by the AS numbers they have there
    [ -e {drain} ] && awk '/^router bgp / {{
        place = $0
        sub(/^router bgp [0-9]+/, "", place)
        if (NR == FNR) number[place] = $3
        else if (place in number) $0 = "router bgp " number[place] place
    }} NR != FNR' "$1" {drain}
}}
daemons() {{
    timeout 5 vtysh -c 'show daemons' 2>/dev/null
}}
all_run() {{  # whether the daemons run that ran before the change
    now=" $(daemons) "
    for daemon in $(cat running-daemons 2>/dev/null); do
        case $now in *" $daemon "*) ;; *) return 1 ;; esac
    done
}}
tries=0
complete() {{  # bgpd 8.4.4 may have died of what was done so far: watchfrr starts it again
    until all_run || [ $tries -ge {patience} ]; do
        sleep 1
        tries=$((tries + 1))
    done
}}
routing() {{
    mkdir -p reload && : >reload/vtysh.conf
    complete
    {{ cat "$1/frr.conf"; drained "$1/frr.conf"; }} >wanted.conf
    vtysh -c 'show running-config' >running.conf && stated running.conf wanted.conf >reload/frr.conf ||
        {{ say "FRR does not show its configuration"; return; }}
    introduced running.conf wanted.conf >new.conf
    [ ! -s new.conf ] || vtysh -f new.conf >/dev/null 2>&1
    # Were the file not frr.conf of the folder that is named, it would save what runs: a reboot has to find the old one.
    # It takes lines away once, and in its own order: one may bring back another, or fail because it went with another.
    for _ in 1 2 3; do
        complete
        {reload} --reload --stdout --confdir {folder}/reload {folder}/reload/frr.conf >reload.log 2>&1; done=$?
        [ $done -ne 0 ] || grep -q 'Executed "' reload.log || break
    done
    complete
    all_run || say "not all daemons of FRR run any more: $(daemons)"
    [ $done -ne 0 ] || return 0
    say "frr-reload.py fails: $(grep -E 'ERROR|WARN|rror:' reload.log | tail -n 3)"
}}
# A session ends while its port still carries what is on its way. With the port first, bgpd 8.4.4 keeps a trace of the
# neighbour it forgets, and dies when the port comes up again.
part() {{
    router=$(vtysh -c 'show running-config' </dev/null | grep -m 1 -E '^router bgp [0-9]+$')
    while read -r port; do
        [ -z "$router" ] || vtysh -c 'configure terminal' -c "$router" -c "no neighbor $port interface" </dev/null
    done <"$1.left" >/dev/null 2>&1
}}
leave() {{  # networkd lets a port be that it no longer knows: up, and with its addresses (systemd issue 20312)
    while read -r port; do
        [ ! -e "/run/systemd/network/10-netplan-$port.network" ] || continue
        ip address flush dev "$port" scope global 2>/dev/null
        [ "$port" = lo ] || ip link set "$port" down 2>/dev/null
    done <"$1.left"
}}
kernel() {{  # a key with a dash may be missing; every other one must be what the file says
    sysctl -e -q -p "$1" >/dev/null 2>&1
    while read -r key equals value; do
        case $key in
            [a-z]*) [ "$(sysctl -n "$key" 2>&1 | tr '\\t' ' ')" = "$value" ] || say "$key does not become $value" ;;
        esac
    done <"$1"
}}
service() {{  # without its file a service may refuse to start, as it did before it had one
    systemctl restart "$1" || [ ! -e "$2" ] || say "$1 does not start again"
}}
"""
TAIL = """
guard() {  # all of it is on the disk before the first new file is
    rm -rf UNDO && mkdir -p UNDO UNITS/sysinit.target.wants && cp -a saved run UNDO/ &&
        cp -a boot.service UNITS/UNDO_UNIT && ln -sf ../UNDO_UNIT UNITS/sysinit.target.wants/ && sync -f UNDO
}
act() {
    code=0
    guard || [ "$1" = before ] || say "a reboot could not put back the old files: is the disk full?"
    [ $code -ne 0 ] || put "$1"
    [ $code -ne 0 ] || take "$1"
    put saved
    END_UNDO 2>/dev/null
    return $code
}
back() {
    act before
    code=$?
    [ ! -e values ] || sysctl -q -e -p values >/dev/null 2>&1
    return $code
}
case $1 in
    try) act after ;;
    keep)
        code=0
        room
        [ $code -eq 0 ] || { rm -f HELD; exit 1; }
        mv waiting kept || exit 75
        put after
        exit $code
        ;;
    back)
        for marker in waiting kept failed; do
            [ ! -e $marker ] || mv $marker going-back
        done
        [ -e going-back ] || exit 0
        back && rm -f going-back || { mv going-back failed; exit 1; }
        ;;
    late)
        [ "$(cat waiting 2>/dev/null)" = "$2" ] && mv waiting going-back || exit 0
        logger -t netkit "a change was not confirmed in time: it is taken back" 2>/dev/null
        back && cd / && rm -rf FOLDER || mv going-back failed
        ;;
    boot)
        code=0
        put saved
        GENERATE
        [ $code -ne 0 ] || { cd / && sync -f /etc && END_UNDO; } 2>/dev/null
        exit $code
        ;;
esac
"""


def script(changed: frozenset[str]) -> str:
    """Write the script for a set of files."""
    files = in_order(changed)
    put = "\n".join(f'    place {file} {shlex.quote(PLACES[file].path)} "$1"' for file in files)
    room = put.replace("    place ", "    hold ").replace('"$1"', "after")
    take = "\n".join(f"    {step}" for step in _steps(files))
    held = " ".join(f"{PLACES[file].path}.netkit" for file in files)
    generate = "netplan generate || code=1" if NETPLAN in files else ":"  # netplan ran before the unit
    tail = TAIL.replace("FOLDER", FOLDER).replace("HELD", held).replace("GENERATE", generate)
    for name, value in (("END_UNDO", END_UNDO), ("UNDO_UNIT", UNDO_UNIT), ("UNDO", UNDO), ("UNITS", UNITS)):
        tail = tail.replace(name, value)
    head = HEAD.format(folder=FOLDER, drain=DRAIN, reload=RELOAD, patience=PATIENCE_S)
    return f"{head}{TEXTS}put() {{\n{put}\n}}\nroom() {{\n{room}\n}}\ntake() {{\n{take}\n}}{tail}"


def _steps(files: tuple[str, ...]) -> list[str]:
    """List the commands that make files take effect."""
    steps = ["[ -e running-daemons ] || daemons >running-daemons"] if FRR_CONF in files else []
    for file in files:
        if file == NETPLAN:
            steps += ['part "$1"'] if FRR_CONF in files else []
            steps.append('netplan apply 2>netplan.log || say "netplan apply fails: $(tail -n 2 netplan.log)"')
            steps.append('leave "$1"')
        elif file == SYSCTL:
            path = PLACES[SYSCTL].path
            steps.append(f"[ ! -e {path} ] || kernel {path}")
        elif file == DAEMONS:
            drained = f"[ ! -e {DRAIN} ] || vtysh -f {DRAIN} >/dev/null || say 'the drain is lost'"
            steps.append(f"service frr {PLACES[DAEMONS].path}; {drained}")
        elif file == FRR_CONF and DAEMONS not in files:
            steps.append('routing "$1"')
        elif PLACES[file].restart:
            steps.append(f"service {PLACES[file].restart} {PLACES[file].path}")
    return steps


def prepare(changed: frozenset[str]) -> str:
    """Write the commands that save the current files and kernel settings."""
    paths = [(file, PLACES[file].path) for file in in_order(changed)]
    saved = " && ".join(
        f"{{ [ ! -e {path} ] && [ ! -L {path} ] || cp -a {path} {SAVED}/{file}; }}" for file, path in paths
    )
    before = f"cp -a {SAVED}/. {BEFORE}/"
    keys = f"sed -n 's/^-\\{{0,1\\}}\\([a-z][^ =]*\\).*/\\1/p' {AFTER}/{SYSCTL} 2>/dev/null"
    show = f'for key in $({keys}); do value=$(sysctl -n "$key" 2>/dev/null) && echo "$key = $value"; done; true'
    values = f"{{ {show}; }} >{FOLDER}/values" if SYSCTL in changed else "true"
    owners = " ".join(
        f"chown {PLACES[file].owner} {AFTER}/{file} 2>/dev/null;" for file, _ in paths if PLACES[file].owner
    )
    return f"umask 077; {owners} {saved} && {before} && {values}"


def begin(revert_in: int, token: str) -> str:
    """Write the command that starts the timer and tries the files; the token ties the timer to this change."""
    late = f"sh {SCRIPT} late {token}"
    exact = "--timer-property=AccuracySec=1s"
    timed = f"systemd-run --quiet --collect --on-active={revert_in} {exact} --unit={UNIT} {late}"
    detached = f"setsid sh -c 'sleep {revert_in}; exec {late}' </dev/null >/dev/null 2>&1 &"
    return (
        f"echo {token} >{WAITING} || exit 1; systemctl stop {UNIT}.timer 2>/dev/null; "
        f"if command -v systemd-run >/dev/null; then {timed} || {{ rm -f {WAITING}; exit 1; }}; else {detached} fi; "
        f"sh {SCRIPT} try >{FOLDER}/try.log 2>&1; code=$?; cat {FOLDER}/try.log; exit $code"
    )


STOP = f"systemctl stop {UNIT}.timer >/dev/null 2>&1"
KEEP = f"sh {SCRIPT} keep; code=$?; [ -e {WAITING} ] || {STOP}; exit $code"
BACK = f"[ -e {SCRIPT} ] || exit 0; sh {SCRIPT} back; code=$?; {STOP}; exit $code"
CLEAN = f"rm -rf {FOLDER}"
IS_WAITING = f"[ -e {WAITING} ]"
IS_PENDING = f"{{ [ -e {WAITING} ] || [ -e {GOING_BACK} ]; }}"
"""Whether a change waits for its confirmation, or is being reverted."""
FRESH = f"! {IS_PENDING} || exit {TOO_LATE}; umask 077; rm -rf {FOLDER} && mkdir -p {BEFORE} {SAVED} {AFTER} {GONE}"
LOOK_AT_NETPLAN = (
    f"mkdir -p {FOLDER}/root/etc/netplan && cp {AFTER}/{NETPLAN} {FOLDER}/root/etc/netplan/ && "
    f"chmod 600 {FOLDER}/root/etc/netplan/{NETPLAN} && netplan generate --root-dir {FOLDER}/root"
)
