"""What workers report about themselves, every twenty seconds, signed with the key of their site."""

from typing import Annotated, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from netkit.fleet import signing
from netkit.fleet.job import MessageError, canonical
from netkit.fleet.settings import PublicKeys, SiteName, verifiers

PURPOSE = "status"
MOST_BYTES = 4096
Text = Annotated[str, Field(max_length=200)]


class WorkerStatus(BaseModel):
    """A worker, and the job that it carries out; empty if none."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal[1] = 1
    site: SiteName
    worker: Annotated[str, Field(min_length=1, max_length=64)]
    version: Text
    at_s: int
    since_s: int
    done: int
    """Jobs since it started."""
    refused: int
    verb: Text = ""
    fabric: Text = ""
    shard: Text = ""
    deadline_s: int = 0


def sign_status(status: WorkerStatus, key: Ed25519PrivateKey) -> bytes:
    return signing.signed(canonical(status.model_dump(mode="json")), PURPOSE, key)


def open_status(message: bytes, keys: PublicKeys, site: str) -> WorkerStatus:
    """Return the status in a message; MessageError unless the site signed it."""
    body = signing.opened(message, PURPOSE, verifiers(keys)) if len(message) <= MOST_BYTES else None
    if body is None:
        raise MessageError(f"the site {site} did not sign it")
    try:
        status = WorkerStatus.model_validate_json(body)
    except ValidationError:
        raise MessageError("it is not a status that this version knows") from None
    if status.site != site:
        raise MessageError(f"it is of the site {status.site}")
    return status
