"""The rendered files of one host, with path and mode of each from install.txt."""

from pathlib import Path

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: netkit_files
short_description: Rendered files of a host
description: Reads install.txt in a folder that netkit rendered, and the files it names.
options:
  _terms:
    description: The folder of the host.
    required: true
"""


class LookupModule(LookupBase):
    """Ansible's way to a value on this machine."""

    def run(self, terms: list[str], variables: object = None, **kwargs: object) -> list[list[dict[str, str]]]:
        """Return, for each folder, its files."""
        del variables, kwargs
        return [_files(Path(term)) for term in terms]


def _files(folder: Path) -> list[dict[str, str]]:
    found = _read(folder)
    secret = [entry["path"] for entry in found if "@secret:" in entry["content"]]
    if secret:
        raise AnsibleLookupError(f"{', '.join(secret)} holds a secret, which only netkit deploy fills in")
    return found


def _read(folder: Path) -> list[dict[str, str]]:
    try:
        lines = (folder / "install.txt").read_text(encoding="utf-8").splitlines()
        words = [line.split() for line in lines if line and not line.startswith("#")]
        return [
            {"path": place, "mode": mode, "content": (folder / name).read_text(encoding="utf-8")}
            for mode, name, place in words
        ]
    except OSError as error:
        what = f"{error.filename}: {error.strerror}; run netkit render, and set netkit_configs"
        raise AnsibleLookupError(what) from None
    except ValueError:
        raise AnsibleLookupError(f"{folder}/install.txt is not what netkit renders; run netkit render") from None
