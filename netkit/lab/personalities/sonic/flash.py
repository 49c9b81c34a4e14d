"""The files of /etc/sonic, which outlive a restart: the saved configuration, the routing file and checkpoints."""

import json
from collections.abc import Mapping
from pathlib import Path

from netkit.lab.node import Node, RefusedError
from netkit.lab.personalities.sonic.tables import Tables, View, dump, parse

FOLDER = "/etc/sonic"
CONFIG = f"{FOLDER}/config_db.json"
GOLDEN = f"{FOLDER}/golden_config_db.json"
FRR = f"{FOLDER}/frr/frr.conf"
CHECKPOINTS = f"{FOLDER}/checkpoints"
CHECKPOINT_SUFFIX = ".cp.json"


class Flash:
    """What of a SONiC switch is on disk."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def prepare(self) -> None:
        """Make the folders, and bring back what the node's own store holds when they are not there."""
        for folder in (f"{FOLDER}/frr", CHECKPOINTS):
            self._node.file(folder).mkdir(parents=True, exist_ok=True)
        for name in (CONFIG, FRR):
            kept, file = self._node.saved / Path(name).name, self._node.file(name)
            if kept.exists() and not file.exists():
                file.write_bytes(kept.read_bytes())

    def install(self, files: Mapping[str, str]) -> None:
        """Write rendered files where the image looks for them, and keep them in the node's own store."""
        self.prepare()
        for name in (CONFIG, FRR):
            short = Path(name).name
            if short in files:
                self._node.file(name).write_text(files[short], encoding="utf-8")
                (self._node.saved / short).write_text(files[short], encoding="utf-8")

    def has_config(self) -> bool:
        """Whether a configuration was ever saved."""
        return self._node.file(CONFIG).exists()

    def frr_conf(self) -> str:
        """Return the routing file, empty when there is none."""
        file = self._node.file(FRR)
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def save(self, tables: View) -> None:
        """Make tables the saved configuration."""
        self._node.file(CONFIG).write_text(dump(tables), encoding="utf-8")
        (self._node.saved / Path(CONFIG).name).write_text(dump(tables), encoding="utf-8")

    def golden_mode(self) -> str:
        """Return the routing mode golden_config_db.json insists on; empty when it does not."""
        file = self._node.file(GOLDEN)
        if not file.exists():
            return ""
        try:
            found = json.loads(file.read_text(encoding="utf-8"))["DEVICE_METADATA"]["localhost"]
            return str(found.get("docker_routing_config_mode", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            return ""

    def checkpoints(self) -> tuple[str, ...]:
        """Return the names of the checkpoints, the oldest first."""
        files = self._node.file(CHECKPOINTS).glob(f"*{CHECKPOINT_SUFFIX}")
        by_age = sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))
        return tuple(file.name.removesuffix(CHECKPOINT_SUFFIX) for file in by_age)

    def checkpoint(self, name: str) -> Tables:
        """Return the tables of a checkpoint."""
        file = self._checkpoint_file(name)
        if not file.exists():
            raise RefusedError(f"Checkpoint '{name}' does not exist")
        return parse(file.read_text(encoding="utf-8"), f"checkpoint {name}")

    def keep_checkpoint(self, name: str, tables: View) -> None:
        """Write a checkpoint; one of the same name is replaced."""
        self._checkpoint_file(name).write_text(dump(tables), encoding="utf-8")

    def drop_checkpoint(self, name: str) -> None:
        """Delete a checkpoint."""
        file = self._checkpoint_file(name)
        if not file.exists():
            raise RefusedError(f"Checkpoint '{name}' does not exist")
        file.unlink()

    def _checkpoint_file(self, name: str) -> Path:
        if not name or "/" in name or name.startswith("."):
            raise RefusedError(f"{name!r} is no name for a checkpoint")
        return self._node.file(f"{CHECKPOINTS}/{name}{CHECKPOINT_SUFFIX}")
