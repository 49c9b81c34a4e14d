"""A Linux switch at work: files applied to the kernel, daemons started as the `daemons` file says."""

import shutil
from collections.abc import Iterator

from netkit.lab import routing
from netkit.lab.node import Done, Node, RefusedError
from netkit.lab.personalities.frr import files, told
from netkit.lab.personalities.frr.told import Told
from netkit.lab.system.namespace_holder import OWN

RELOAD = ("/usr/lib/frr/frr-reload.py", "--reload", files.FRR_CONF)
GENERATORS = ("/usr/libexec/netplan/generate", "/lib/netplan/generate")
HOSTNAME = "/etc/hostname"
REAL, STANDIN = f"{OWN}/frr-reload.py", f"{OWN}/frr-reload.sh"
QUIETLY = f"""#!/bin/sh
case " $* " in *" --test "*) exec python3 {REAL} "$@" ;; esac
echo 'ERROR: vtysh: the daemons took none of it'
"""
"""What stands in for frr-reload.py where a change fails and nothing but a line of output tells."""
HUNDREDTHS = 100
# What the lab and its daemons have below /run; all else there is gone after a power cut, as on a switch.
LASTING = frozenset({"netkit", "frr", "lock", "sshd", "lldpd", "snmpd", "agentx", "systemd", "udev", "dbus"})


class Engine:
    """Keeps what FRR began with: later its configuration is its own business, through vtysh and frr-reload.py."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.fails_quietly = False
        self._routing = ""

    @property
    def hostname(self) -> str:
        """Return the name the switch gives itself."""
        return files.read(self.node, HOSTNAME).strip() or self.node.name

    def boot(self) -> None:
        """Come up as the files say."""
        self._empty_volatile()
        self._routing = files.read(self.node, files.FRR_CONF)
        self.set_kernel()
        self.apply()
        # The lab slows BFD down in what it loads; the file stays as it was installed.
        self.node.file(files.FRR_CONF).write_text(self._routing, encoding="utf-8")
        self._choose_daemons(self.told())

    def _empty_volatile(self) -> None:
        folder = self.node.file("/run")
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.name.split(".")[0] not in LASTING:
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)

    def told(self) -> Told:
        """Return what the files say now."""
        return told.of_node(self.node, self.hostname, self._routing)

    def apply(self) -> None:
        """Give ports, bridges, loopback and SNMP what the files say; raises RefusedError."""
        wanted = self.told()
        self._set_link_local(wanted)
        self.node.realise(wanted.state)
        self.node.ip(_bridge_lines(wanted))

    def generate(self) -> Done:
        """Have the real netplan look at its files."""
        self.node.file("/run/systemd/network").mkdir(parents=True, exist_ok=True)
        generator = next((path for path in GENERATORS if self.node.file(path).exists()), GENERATORS[0])
        return self.node.run(generator)

    def set_kernel(self) -> None:
        """Set the kernel as sysctl.d says."""
        done = self.node.run("sysctl", "-q", "-p", files.SYSCTL) if files.read(self.node, files.SYSCTL) else None
        # Some keys belong to the whole machine and are missing in a network namespace.
        wrong = [line for line in (done.stderr if done else "").splitlines() if "No such file" not in line]
        for line in wrong:
            self.node.log(f"sysctl: {line}")

    def restart_routing(self) -> None:
        """Start FRR anew with what its file says."""
        wanted = told.daemons(files.read(self.node, files.DAEMONS))
        routing.stop(self.node)
        routing.start(self.node, [name for name in routing.DAEMONS if name in wanted])
        done = self.node.run("vtysh", "-b")
        if done.exit_code != 0:
            raise RefusedError((done.stderr or done.stdout).strip())

    def fail_quietly(self, *, is_wanted: bool) -> None:
        """Have frr-reload.py, netplan and restarts of services succeed without any effect, or work again."""
        if is_wanted and not self.fails_quietly:
            self.node.run("cp", RELOAD[0], REAL)
            self.node.file(STANDIN).write_text(QUIETLY, encoding="utf-8")
            self.node.file(STANDIN).chmod(0o755)
            self.node.run("mount", "--bind", STANDIN, RELOAD[0])
        elif self.fails_quietly and not is_wanted:
            self.node.run("umount", RELOAD[0])
        self.fails_quietly = is_wanted

    def stop_routing(self) -> None:
        """End FRR's daemons."""
        routing.stop(self.node)

    def reload_routing(self) -> Done:
        """Have frr-reload.py make FRR what its file says."""
        return self.node.run(*RELOAD, timeout_s=300)

    def _choose_daemons(self, wanted: Told) -> None:
        for daemon in told.CHOSEN:
            if daemon not in wanted.daemons:
                self.node.end(daemon)

    def _set_link_local(self, wanted: Told) -> None:
        """Let only those ports make themselves a link-local address that may: before they come up."""
        for interface in self.node.kernel_names.values():
            is_without = interface in wanted.without_link_local
            self.node.ip([f"link set dev {interface} addrgenmode {'none' if is_without else 'eui64'}"])
            if is_without:
                self.node.run("ip", "-6", "address", "flush", "dev", interface, "scope", "link")


def _bridge_lines(wanted: Told) -> Iterator[str]:
    for name, bridge in wanted.bridges.items():
        yield (
            f"link set dev {name} type bridge stp_state {int(bridge.has_stp)} "
            f"forward_delay {bridge.forward_delay_s * HUNDREDTHS} ageing_time {bridge.ageing_s * HUNDREDTHS}"
        )
