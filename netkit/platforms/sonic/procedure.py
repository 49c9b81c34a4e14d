"""Scripts that run on the switch: making a change, and reverting it unless it is confirmed.

SONiC has neither a candidate nor commit confirmation. Both are shell scripts in a folder of /run, which systemd starts:
they need no session, and are gone after a reboot. Nothing is written to startup before the confirmation, so that a
reboot reverts the change too. The use of checkpoints and rollback follows SONiC's code; that frr-reload only needs
vtysh to be ready after a reload is unverified on a switch.
"""

from dataclasses import dataclass

from netkit.platforms.frr.procedure import TEXTS

HOME = "/run/lock/netkit"
STAGED, WAITING, GOING_BACK = f"{HOME}/staged", f"{HOME}/commit", f"{HOME}/going-back"
"""One folder that is renamed as a change is staged, waits for confirmation, or reverts; a rename has one winner."""
DRAINED = f"{HOME}/drained"
FRR = "/etc/sonic/frr"
CONF = f"{FRR}/frr.conf"
"""Also the startup configuration: written before the confirmation only if it is missing, as in modes that ignore it."""
NEXT_CONF, BEFORE_CONF = (f"{FRR}/netkit-{name}.conf" for name in ("next", "before"))
"""Beside frr.conf, because the BGP container sees no other folder of the switch; never read at startup."""
RELOAD = f"{FRR}/netkit-reload"
"""A folder with its own frr.conf for frr-reload.py, which saves the running configuration for any other file name."""
STARTUP, NEXT_STARTUP = "/etc/sonic/config_db.json", "/etc/sonic/netkit-startup.json"
CHECKPOINT = "netkit"
CHECKPOINT_FILE = f"/etc/sonic/checkpoints/{CHECKPOINT}.cp.json"
PATCH, TABLES = "patch.json", "golden-netkit.json"
"""Up to 202411 `config reload` validates a file before it stops anything only if its name contains golden."""
END_OF_FILE = "END-OF-NETKIT-FILE"
MOST_TRIES = 3
NOT_BEGUN, NOTHING_THERE, LOST = 73, 66, 70

LOCK = f"umask 077; mkdir -p {HOME}; exec 9>{HOME}/lock; flock 9"
FUNCTIONS = f"""
{TEXTS}draining() {{ [ -e {DRAINED} ]; }}
ready() {{
  tries=0
  until vtysh -c 'show version' >/dev/null 2>&1; do
    tries=$((tries + 1)); [ $tries -lt 300 ] || return 1; sleep 1
  done
}}
drain() {{
  shown=$(vtysh -c 'show running-config') || return 1
  asn=$(echo "$shown" | sed -n 's/^router bgp \\([0-9]*\\)$/\\1/p' | head -n 1)
  [ -z "$asn" ] || vtysh -c 'configure terminal' -c "router bgp $asn" -c "$1"
}}
place_first() {{ [ -s {CONF} ] || {{ touch placed && cat {NEXT_CONF} > {CONF}; }}; }}
keep_drained() {{ if draining; then ready && drain 'bgp graceful-shutdown'; fi; }}
routing() {{
  ready && rm -rf {RELOAD} && mkdir -p {RELOAD} && : > {RELOAD}/vtysh.conf || return 1
  vtysh -c 'show running-config' > {RELOAD}/running && stated {RELOAD}/running "$1" > {RELOAD}/frr.conf || return 1
  ! draining || sed -i '/^router bgp [0-9]*$/a \\ bgp graceful-shutdown' {RELOAD}/frr.conf || return 1
  own=/etc/frr/netkit-reload
  introduced {RELOAD}/running "$1" > {RELOAD}/new.conf
  [ ! -s {RELOAD}/new.conf ] || docker exec bgp vtysh -f $own/new.conf >/dev/null 2>&1
  for _ in 1 2; do  # one run removes lines in its own order, in which one may restore or block another
    docker exec bgp /usr/lib/frr/frr-reload.py --reload --confdir $own $own/frr.conf; code=$?
  done
  rm -rf {RELOAD}
  return $code
}}
forget() {{
  systemctl stop netkit-guard.timer >/dev/null 2>&1; systemctl stop netkit-revert.timer >/dev/null 2>&1
  config delete-checkpoint {CHECKPOINT} >/dev/null 2>&1
  rm -rf "$1" {NEXT_CONF} {BEFORE_CONF} {RELOAD} {NEXT_STARTUP}
}}
"""
WAITS = "waits"
PENDING = f"if [ -d {WAITING} ] || [ -d {GOING_BACK} ]; then echo {WAITS}; fi"
DISCARD = f"""rm -rf {STAGED}
if [ ! -d {WAITING} ] && [ ! -d {GOING_BACK} ]; then
  rm -rf {NEXT_CONF} {BEFORE_CONF} {RELOAD} {NEXT_STARTUP}
  [ ! -e {CHECKPOINT_FILE} ] || config delete-checkpoint {CHECKPOINT} >/dev/null 2>&1
fi
"""
"""Discards what is staged, and what a reboot during a change left behind."""
TAKE_BACK = f"""for place in {WAITING} {GOING_BACK}; do
  [ -d $place ] || continue
  rm -f $place/failed
  systemd-run --quiet --collect --unit=netkit-back sh $place/back.sh || exit {NOT_BEGUN}
  break
done
"""
"""Starts reverting now."""
AWAIT_BACK = f"""tries=0
while [ -d {WAITING} ] || {{ [ -d {GOING_BACK} ] && [ ! -e {GOING_BACK}/failed ]; }}; do
  [ $tries -lt 200 ] || {{ echo {WAITS}; exit; }}
  tries=$((tries + 1)); sleep 0.05
done
[ ! -d {GOING_BACK} ] || {{ cat {GOING_BACK}/log; exit 1; }}
"""
"""Waits some seconds for the end of reverting, and prints the log if it failed."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """How a change is made and reverted."""

    method: str
    """patch, reload, or empty if only FRR changes."""
    has_routing: bool = False
    """Whether the change loads a file of ours into FRR."""
    had_routing: bool = False
    """Whether reverting loads the previous file into FRR."""
    reloads_back: bool = False
    """Whether reverting takes a reload, as the updater refuses it."""
    longest_s: int = 120
    """Time limit in seconds."""


def staged(files: dict[str, str]) -> str:
    """Build the script that writes files readable by root only, all of them or none."""
    return f"{LOCK}\n{DISCARD}mkdir {STAGED} || exit {NOT_BEGUN}\n{added(files)}"


def added(files: dict[str, str]) -> str:
    """Build the script that adds files to what is staged."""
    fail = f"fail() {{ rm -rf {STAGED} {NEXT_CONF}; exit {NOT_BEGUN}; }}\n"
    writes = (
        f"cat > {place} <<'{END_OF_FILE}' || fail\n{text.rstrip()}\n{END_OF_FILE}\n" for place, text in files.items()
    )
    return f"umask 077\n{fail}{''.join(writes)}"


def tried(procedure: Procedure) -> str:
    """Build the script that validates what is staged."""
    lines = [f"cd {STAGED} || exit {NOTHING_THERE}"]
    if procedure.method == "patch":
        lines.append(f"config apply-patch --dry-run {PATCH} || exit")
    if procedure.has_routing:
        lines.append("docker exec bgp /usr/lib/frr/frr-reload.py --test /etc/frr/netkit-next.conf")
    return "\n".join(lines) + "\n"


def making(procedure: Procedure, revert_s: int | None) -> str:
    """Build the script that makes the change, then starts the revert timer."""
    steps = {"patch": f"config apply-patch {PATCH}", "reload": f"config reload -y {TABLES}"}
    lines = ["place_first"] if procedure.method == "reload" and procedure.has_routing else []
    lines += [steps[procedure.method]] if procedure.method else []
    lines += [f"routing {NEXT_CONF}"] if procedure.has_routing else []
    timer = f"{_timer('netkit-revert', revert_s)} && systemctl stop netkit-guard.timer" if revert_s else ":"
    return f"""umask 077
{FUNCTIONS}
cd {WAITING} || exit
make() {{
  {" && ".join(lines or [":"])} && keep_drained
}}
make >log 2>&1; code=$?
{{ {timer}; }} >>log 2>&1 || code=1
echo $code >code.new; mv code.new code
"""


def taking_back(procedure: Procedure) -> str:
    """Build the script that reverts the change; if it is started twice, the second run does nothing."""
    reload = "config reload -y -f before.json"
    updater = f"config rollback {CHECKPOINT} || {reload}"
    # The updater may refuse a rollback; a reload always works, at the price of an outage.
    lines = [] if not procedure.method else [reload if procedure.reloads_back else f"{{ {updater}; }}"]
    lines += [f"routing {BEFORE_CONF}"] if procedure.had_routing else []
    return f"""{LOCK}
{FUNCTIONS}
mv {WAITING} {GOING_BACK} 2>/dev/null || [ -d {GOING_BACK} ] || exit 0
cd {GOING_BACK} || exit
systemctl stop netkit-apply.service >/dev/null 2>&1
[ ! -e placed ] || rm -f {CONF}
back() {{
  {" && ".join(lines or [":"])} && keep_drained
}}
tries=1
until back >log 2>&1; do
  [ $tries -lt {MOST_TRIES} ] || {{ touch failed; exit 1; }}
  tries=$((tries + 1)); sleep 5
done
forget {GOING_BACK}
"""


def committed(procedure: Procedure, revert_s: int | None) -> str:
    """Build the script that saves the running state, sets a guard timer, starts the change and waits for it."""
    routing = f"vtysh -c 'show running-config' | sed '1,/^!$/d' > {BEFORE_CONF} && test -s {BEFORE_CONF} || fail"
    hidden = f"if [ -e {DRAINED} ]; then sed -i '/^ bgp graceful-shutdown$/d' {BEFORE_CONF} || fail; fi"
    guard = _timer("netkit-guard", procedure.longest_s + revert_s) + " || fail" if revert_s else ""
    return f"""umask 077
cd {STAGED} || exit {NOTHING_THERE}
fail() {{ config delete-checkpoint {CHECKPOINT} >/dev/null 2>&1; rm -f {BEFORE_CONF}; exit {NOT_BEGUN}; }}
config checkpoint {CHECKPOINT} || fail
config save -y {STAGED}/before.json || fail
{f"{routing}{chr(10)}{hidden}" if procedure.had_routing else ""}
{guard}
mv {STAGED} {WAITING} || fail
systemd-run --quiet --collect --unit=netkit-apply sh {WAITING}/make.sh || {{ sh {WAITING}/back.sh; exit {NOT_BEGUN}; }}
while [ -d {WAITING} ] && [ ! -e {WAITING}/code ]; do sleep 0.05; done
cat {WAITING}/log {WAITING}/code || exit {LOST}
exit "$(tail -n 1 {WAITING}/code)"
"""


def confirmed() -> str:
    """Build the script that saves the change, to another file first: a full disk must not damage startup."""
    return f"""{LOCK}
{FUNCTIONS}
[ -d {WAITING} ] || exit {NOTHING_THERE}
config save -y {NEXT_STARTUP} && test -s {NEXT_STARTUP} || {{ rm -f {NEXT_STARTUP}; exit {NOT_BEGUN}; }}
mv {WAITING} {HOME}/confirmed || exit {LOST}
chmod --reference={STARTUP} {NEXT_STARTUP} 2>/dev/null || chmod 640 {NEXT_STARTUP}
mv -f {NEXT_STARTUP} {STARTUP} || exit {LOST}
if [ -e {NEXT_CONF} ]; then
  chown --reference={CONF} {NEXT_CONF} 2>/dev/null; chmod 640 {NEXT_CONF}
  mv -f {NEXT_CONF} {CONF} || exit {LOST}
fi
forget {HOME}/confirmed
"""


def drained() -> str:
    """Build the script that drains the switch, unless it is drained by intent."""
    return f"""{LOCK}
{FUNCTIONS}
if vtysh -c 'show running-config' | grep -q '^ bgp graceful-shutdown$'; then exit 0; fi
touch {DRAINED} && drain 'bgp graceful-shutdown' && [ -n "$asn" ] || {{ rm -f {DRAINED}; exit 1; }}
"""


def undrained() -> str:
    """Build the script that ends netkit's own drain, unless a drain is intended by now."""
    return f"""{LOCK}
{FUNCTIONS}
draining || exit 0
file={CONF}
[ ! -d {WAITING} ] || [ ! -e {NEXT_CONF} ] || file={NEXT_CONF}
if [ "$(sonic-db-cli CONFIG_DB hget 'BGP_GLOBALS|default' graceful_shutdown)" != true ]; then
  case "$(sonic-db-cli CONFIG_DB hget 'DEVICE_METADATA|localhost' docker_routing_config_mode)" in
    split*) grep -q '^ bgp graceful-shutdown$' $file || drain 'no bgp graceful-shutdown' || exit 1 ;;
    *) drain 'no bgp graceful-shutdown' || exit 1 ;;
  esac
fi
rm -f {DRAINED}
"""


def _timer(unit: str, delay_s: int) -> str:
    return f"systemd-run --quiet --collect --unit={unit} --on-active={delay_s}s sh {WAITING}/back.sh"
