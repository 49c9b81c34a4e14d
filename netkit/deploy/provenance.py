"""Who started or resumed a run, from what, and why: kept with the run."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Approval:
    """A second person's approval of a plan, verified."""

    approver: str
    """The principal in allowed_signers."""
    at_s: float
    expires_s: float
    id: str
    """Names this approval: one run may use it."""
    key: str
    """Fingerprint of the key it is signed with."""
    text: str
    """The whole of it, signature included."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """One start of a run: the deploy or rollback itself, or a resume."""

    verb: str
    at_s: float
    user: str
    """Login name of the account."""
    uid: int
    host: str
    sudo_user: str = ""
    """Who became that account with sudo, as far as sudo's environment says."""
    commit: str = ""
    """The commit checked out around the fabric's folder; empty outside a git repository."""
    is_dirty: bool = False
    """Whether files of the fabric differ from that commit."""
    reason: str = ""
    undone: str = ""
    """Of a rollback, the run it takes back."""
    hook: str = ""
    """`allowed` or `skipped`; empty when there is no hook."""
    hook_reason: str = ""
    approval: Approval | None = None
    signer: str = ""
    """The principal the deployer proved to be with a key of their own."""
    signature: str = ""

    @property
    def who(self) -> str:
        """Return the user as people write it."""
        return f"{self.sudo_user} as {self.user}@{self.host}" if self.sudo_user else f"{self.user}@{self.host}"

    @property
    def what(self) -> str:
        """Return the verb, with the run it concerns."""
        return f"{self.verb} of {self.undone}" if self.undone else self.verb

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)
