"""A replacement for lldpcli where it may not be executed: Debian lets only one account of the machine run it.

It runs as a script inside the node, on lldpcli's own library, and implements the few commands the lab uses.
"""

import ctypes
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator

Json = dict[str, object]

LIBRARY = "liblldpctl.so.4"
SOCKET = "/run/lldpd.socket"
PLATFORM, HOSTNAME, PAUSED, TX_INTERVAL, PORT_ID_KIND = 6, 7, 10, 0, 4009
INTERFACE_NAME = 1000
NEIGHBORS, AGE, PORT_KIND, PORT_ID, PORT_DESCRIPTION, PORT_CHASSIS, TTL = 1200, 1202, 1203, 1204, 1205, 1208, 1209
CHASSIS_KIND, CHASSIS_ID, CHASSIS_NAME, CHASSIS_DESCRIPTION = 1801, 1802, 1803, 1804
IS_ABLE, IS_ENABLED, MANAGEMENT, ADDRESS = 1805, 1806, 1807, 3000
ABILITIES = {"Bridge": 0x04, "Wlan": 0x08, "Router": 0x10, "Station": 0x80}
IS_IFNAME = 5
KINDS = {"MAC": "mac", "IFNAME": "ifname", "IFALIAS": "ifalias", "LOCAL": "local", "IP": "ip"}
POINTERS = (
    "new_name",
    "get_configuration",
    "get_interfaces",
    "get_local_chassis",
    "get_port",
    "atom_get",
    "atom_set_str",
    "atom_set_int",
    "atom_iter",
    "atom_iter_next",
    "atom_iter_value",
)


class LldpdClient:
    """A connection to lldpd. The process is short-lived, so liblldpctl objects are not released."""

    def __init__(self, socket: str) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        for name in POINTERS:
            getattr(self._library, f"lldpctl_{name}").restype = ctypes.c_void_p
        self._library.lldpctl_atom_get_str.restype = ctypes.c_char_p
        self._library.lldpctl_atom_get_int.restype = ctypes.c_long
        self._connection = self._call("new_name", socket.encode(), None, None, None)

    def set(self, key: int, value: str | int, port: str = "") -> None:
        """Set an attribute of a port, or of the daemon."""
        atom = self._port(port) if port else self._root("get_configuration")
        name = "atom_set_int" if isinstance(value, int) else "atom_set_str"
        argument = ctypes.c_long(value) if isinstance(value, int) else value.encode()
        if not self._call(name, atom, key, argument):
            raise OSError(f"lldpd rejects {value!r}")

    def configuration(self) -> Json:
        """The part of `show configuration` that the lab reads."""
        atom = self._root("get_configuration")
        return {"configuration": [{"config": [{"platform": _listed(self._text(atom, PLATFORM))}]}]}

    def chassis(self) -> Json:
        atom = self._root("get_local_chassis")
        return {"local-chassis": [{"chassis": [self._chassis(atom)]}]}

    def interfaces(self) -> Json:
        """The port identifier each interface announces."""
        found = []
        for interface in self._each(self._root("get_interfaces")):
            port = [{"id": self._identity(self._call("get_port", interface), PORT_KIND, PORT_ID)}]
            found.append({"name": self._text(interface, INTERFACE_NAME), "port": port})
        return {"lldp": [{"interface": found}]}

    def neighbors(self) -> Json:
        interfaces = self._root("get_interfaces")
        found = [
            self._neighbor(self._text(interface, INTERFACE_NAME), remote)
            for interface in self._each(interfaces)
            for remote in self._each(self._call("atom_get", self._call("get_port", interface), NEIGHBORS))
        ]
        return {"lldp": [{"interface": found}]}

    def _neighbor(self, interface: str, remote: int | None) -> Json:
        minutes, seconds = divmod(max(0, int(time.time()) - self._number(remote, AGE)), 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        return {
            "name": interface,
            "via": "LLDP",
            "age": f"{days} day{'s' * (days > 1)}, {hours:02}:{minutes:02}:{seconds:02}",
            "chassis": [self._chassis(self._call("atom_get", remote, PORT_CHASSIS))],
            "port": [
                {
                    "id": self._identity(remote, PORT_KIND, PORT_ID),
                    "descr": _listed(self._text(remote, PORT_DESCRIPTION)),
                    "ttl": _listed(str(self._number(remote, TTL))),
                }
            ],
        }

    def _chassis(self, atom: int | None) -> Json:
        return {
            "id": self._identity(atom, CHASSIS_KIND, CHASSIS_ID),
            "name": _listed(self._text(atom, CHASSIS_NAME)),
            "descr": _listed(self._text(atom, CHASSIS_DESCRIPTION)),
            "mgmt-ip": [
                {"value": self._text(one, ADDRESS)} for one in self._each(self._call("atom_get", atom, MANAGEMENT))
            ],
            "capability": [
                {"type": name, "enabled": bool(self._number(atom, IS_ENABLED) & bit)}
                for name, bit in ABILITIES.items()
                if self._number(atom, IS_ABLE) & bit
            ],
        }

    def _identity(self, atom: int | None, kind: int, value: int) -> list[dict[str, str]]:
        name = self._text(atom, kind)
        return [{"type": KINDS.get(name.upper(), name), "value": self._text(atom, value)}]

    def _port(self, name: str) -> int | None:
        for interface in self._each(self._root("get_interfaces")):
            if self._text(interface, INTERFACE_NAME) == name:
                return self._call("get_port", interface)
        raise OSError(f"lldpd does not know the port {name}")

    def _each(self, atom: int | None) -> Iterator[int | None]:
        at = self._call("atom_iter", atom) if atom else None
        while at:
            yield self._call("atom_iter_value", atom, ctypes.c_void_p(at))
            at = self._call("atom_iter_next", atom, ctypes.c_void_p(at))

    def _text(self, atom: int | None, key: int) -> str:
        found: bytes | None = self._library.lldpctl_atom_get_str(ctypes.c_void_p(atom), key)
        return (found or b"").decode(errors="replace")

    def _root(self, name: str) -> int:
        atom = self._call(name, self._connection)
        if atom is None:
            raise OSError("lldpd does not answer")
        return atom

    def _number(self, atom: int | None, key: int) -> int:
        return int(self._library.lldpctl_atom_get_int(ctypes.c_void_p(atom), key))

    def _call(self, name: str, first: object, *others: object) -> int | None:
        """Call a library function whose first argument and result are pointers."""
        subject = ctypes.c_void_p(first) if isinstance(first, int) else first
        answer: int | None = getattr(self._library, f"lldpctl_{name}")(subject, *others)
        return answer


def _listed(value: str) -> list[dict[str, str]]:
    return [{"value": value}]


def obey(daemon: LldpdClient, words: list[str]) -> bool:
    """Execute one command; return False if it is unknown."""
    match words:
        case ["resume"]:
            daemon.set(PAUSED, 0)
        case ["configure", "system", "hostname", name]:
            daemon.set(HOSTNAME, name)
        case ["configure", "system", "platform", name]:
            daemon.set(PLATFORM, name)
        case ["configure", "lldp", "tx-interval", seconds]:
            daemon.set(TX_INTERVAL, int(seconds))
        case ["configure", "lldp", "portidsubtype", "ifname"]:
            daemon.set(PORT_ID_KIND, IS_IFNAME)
        case ["configure", "ports", port, "lldp", "portidsubtype", "local", name]:
            daemon.set(PORT_ID, name, port)
        case ["configure", "ports", port, "lldp", "portdescription", text]:
            daemon.set(PORT_DESCRIPTION, text, port)
        case ["show", what, *_]:
            commands: dict[str, Callable[[], Json]] = {
                "neighbors": daemon.neighbors,
                "chassis": daemon.chassis,
                "interfaces": daemon.interfaces,
                "configuration": daemon.configuration,
            }
            if what not in commands:
                return False
            print(json.dumps(commands[what](), indent=2))
        case _:
            return False
    return True


def main(arguments: list[str]) -> int:
    """Parse lldpcli's command line: options, command files, one command."""
    socket, files, rest = SOCKET, [], list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-u":
            socket = rest.pop(0)
        elif option in {"-c", "-C"}:
            files.append(rest.pop(0))
        elif option == "-f":
            rest.pop(0)
    commands = []
    for file in files:
        with open(file, encoding="utf-8") as lines:  # noqa: PTH123 - starts sooner without pathlib
            commands += [words for line in lines if (words := shlex.split(line, comments=True))]
    commands += [rest] if rest else []
    status = 0
    try:
        daemon = LldpdClient(socket)
        for words in commands:
            if not obey(daemon, words):
                print(f"lldpcli: unknown command: {' '.join(words)}", file=sys.stderr)
                status = 1
    except (OSError, ValueError) as error:
        print(f"lldpcli: {error}", file=sys.stderr)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
