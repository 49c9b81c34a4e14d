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
        """Make the folders."""
        for folder in (f"{FOLDER}/frr", CHECKPOINTS):
            self._node.file(folder).mkdir(parents=True, exist_ok=True)

    def install(self, files: Mapping[str, str]) -> None:
        """Write rendered files where the image looks for them."""
        self.prepare()
        for name in (CONFIG, FRR):
            if Path(name).name in files:
                write(self._node.file(name), files[Path(name).name])

    def has_config(self) -> bool:
        """Whether a configuration was ever saved."""
        return self._node.file(CONFIG).exists()

    def frr_conf(self) -> str:
        """Return the routing file, empty when there is none."""
        return self.text(FRR) if self._node.file(FRR).exists() else ""

    def text(self, path: str) -> str:
        """Return the text of a file of the node."""
        try:
            return self._node.file(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RefusedError(f"{path}: {_reason(error)}") from error

    def save(self, tables: View) -> None:
        """Make tables the saved configuration."""
        write(self._node.file(CONFIG), dump(tables))

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
        write(self._checkpoint_file(name), dump(tables))

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


def write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    draft = file.with_name(f".{file.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise RefusedError(f"{file.name}: {_reason(error)}") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or "cannot be read" if isinstance(error, OSError) else "not UTF-8"
