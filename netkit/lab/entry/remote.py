"""Asks the keeper of a running lab."""

import json
import socket
from collections.abc import Mapping
from typing import Any

from netkit.errors import LabError, Problem
from netkit.lab.folder import LabFolder

PATIENCE_S = 900.0
NO_WORD = '{"error": ["the lab ended while it was asked"]}'


def ask(folder: LabFolder, verb: str, **details: Any) -> Mapping[str, Any]:
    """Return the keeper's answer; its refusals are raised."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_S)
        try:
            line.connect(str(folder.control))
            with line.makefile("rw", encoding="utf-8") as stream:
                stream.write(json.dumps({"verb": verb, **details}) + "\n")
                stream.flush()
                answer = json.loads(stream.readline() or NO_WORD)
        except FileNotFoundError:
            raise LabError(
                Problem(f"the lab {folder.name} is not there yet", "netkit lab up waits until it is")
            ) from None
        except (OSError, ValueError) as error:
            raise LabError(
                Problem(f"the lab {folder.name} does not answer: {error}", "netkit lab down, then up")
            ) from None
    if "error" in answer:
        raise LabError([Problem(text) for text in answer["error"]])
    found: Mapping[str, Any] = answer
    return found
