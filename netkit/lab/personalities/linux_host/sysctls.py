"""Kernel settings of a host: what its files say, over what a kernel that just booted has."""

from collections.abc import Iterator, Mapping

from netkit.lab.node import Node

FOLDER = "/etc/sysctl.d"
FRESH: Mapping[str, str] = {"arp_ignore": "0", "arp_announce": "0", "rp_filter": "0"}


def apply_sysctls(node: Node) -> None:
    """Set the kernel as it is after a boot."""
    names = ("all", "default", *node.kernel_names.values())
    fresh = [f"net.ipv4.conf.{name}.{key}={value}" for name in names for key, value in FRESH.items()]
    files = [f"{FOLDER}/{path.name}" for path in sorted(node.file(FOLDER).glob("*.conf"))]
    script = 'sysctl -qw "$@" || true; for file in $FILES; do sysctl -qp "$file"; done'
    done = node.run("env", f"FILES={' '.join(files)}", "sh", "-c", script, "sysctl", *fresh)
    if done.stderr:
        node.log(f"sysctl: {done.stderr.strip()}")


def parse(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield key, value and whether a failure matters; a line that is none has an empty key."""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        key, equals, value = line.partition("=")
        name = key.strip()
        yield (name.removeprefix("-"), value.strip(), not name.startswith("-")) if equals else ("", line, True)
