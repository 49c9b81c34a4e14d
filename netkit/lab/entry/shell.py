"""SSH access to a node: an sshd on its loopback address, whose login shell enters the node's network."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from netkit.lab.system.namespace_holder import OWN, TOOLS
from netkit.private import without_secrets

KEY = "key"
LOGIN = f"""#!/bin/sh
# sshd runs in the machine's network, where the node's loopback address is; a session runs in the node's.
export PATH={TOOLS} ENV={OWN}/profile HISTFILE= LC_ALL=C.UTF-8
[ ! -e {OWN}/welcome ] || . {OWN}/welcome
exec nsenter --net={OWN}/net -- /bin/sh "$@"
"""
SUDO = """#!/bin/sh
# Every account of a node is root already.
while [ $# -gt 0 ]; do
  case "$1" in
    -u | -g | -p | -C | -h) shift 2 ;;
    -n | -E | -H | -S | -k | -i | -b) shift ;;
    --) shift; break ;;
    -*) shift ;;
    *=*) export "$1"; shift ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || exec /bin/sh
exec "$@"
"""
DF = """#!/bin/sh
# A node has its own file systems only where it writes: the rest of its tree is the machine's, whose usage does not
# concern the node. Folders there are replaced by /etc.
own= any= takes=
while read -r source place _; do
  case "$source $place" in
    "lab /sys"*) ;;
    "lab "* | "disk "*) [ ! -d "$place" ] || own="$own $place" ;;
  esac
done </proc/self/mounts
for word do
  shift
  if [ -n "$takes" ]; then
    takes=
  else
    case "$word" in
      -B | -t | -x | --block-size | --type | --exclude-type) takes=1 ;;
      -*) ;;
      *)
        any=1
        case "$word" in /*) ;; *) word="$PWD/$word" ;; esac
        found=/etc
        for place in $own; do
          case "$word" in "$place" | "$place"/*) found=$word ;; esac
        done
        word=$found
        ;;
    esac
  fi
  set -- "$@" "$word"
done
[ -n "$any" ] || set -- "$@" $own
exec /bin/df "$@"
"""


def make_key(folder: Path) -> None:
    """Create the key pair that opens every node of a lab."""
    if not (folder / KEY).exists():
        command = ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-C", "netkit-lab", "-f", str(folder / KEY)]
        subprocess.run(command, env=without_secrets(), check=True, stdin=subprocess.DEVNULL)  # noqa: S603


def furnish(root: Path, *, public_key: str, prompt: str, programs: Sequence[str], client: str) -> None:
    """Install login shell, prompt, tools and keys in a node."""
    own = root / OWN.lstrip("/")
    _script(own / "login", LOGIN)
    _script(own / "bin" / "sudo", SUDO)
    _script(own / "bin" / "df", DF)
    (own / "profile").write_text(f"PS1='{prompt}'\ncd\n", encoding="utf-8")
    (own / "authorized_keys").write_text(public_key, encoding="utf-8")
    _script(own / "bin" / ".client", client)
    for program in (*programs, ".refresh"):
        link = own / "bin" / program
        link.unlink(missing_ok=True)
        link.symlink_to(".client")


def host_key(root: Path, seed: Path) -> str:
    """Install the host key kept in a node's flash, created at its first boot; return the public key."""
    key = seed / "ssh_host_key"
    if not key.exists():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)]
        subprocess.run(command, env=without_secrets(), check=True, stdin=subprocess.DEVNULL)  # noqa: S603
    for suffix in ("", ".pub"):
        target = root / f"etc/ssh/ssh_host_ed25519_key{suffix}"
        target.write_bytes(key.with_name(key.name + suffix).read_bytes())
        target.chmod(0o600)
    return key.with_name("ssh_host_key.pub").read_text(encoding="utf-8").strip()


# For logins at a hundred nodes at once: sshd's default key exchange takes a third of the time of each.
KEY_EXCHANGES = "ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group16-sha512"


def sshd_config(address: str, port: int) -> str:
    return f"""ListenAddress {address}
Port {port}
KexAlgorithms {KEY_EXCHANGES}
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile {OWN}/authorized_keys
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserEnvironment no
StrictModes no
PrintMotd no
PrintLastLog no
UseDNS no
MaxStartups 200
MaxSessions 50
LoginGraceTime 60
AllowTcpForwarding no
X11Forwarding no
Subsystem sftp /usr/lib/openssh/sftp-server
"""


def _script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
