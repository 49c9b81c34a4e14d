"""A second person's approval of a plan: a statement of what is approved, signed with an SSH key.

The file is the statement as JSON, followed by the signature of exactly these bytes, as in a signed git tag. An OpenSSH
allowed_signers file lists the accepted keys, and `ssh-keygen -Y` does the cryptography.
"""

import base64
import hashlib
import os
import re
import secrets
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from netkit.access.settings import AccessModel
from netkit.deploy.model import LONGEST_S, WallTime
from netkit.deploy.policy import ApprovalSettings
from netkit.errors import DeployError, Problem
from netkit.plan import Plan
from netkit.plan.model import approval as digest_of
from netkit.private import read_text, regular, without_secrets


@dataclass(frozen=True, slots=True)
class Approval:
    """A second person's approval of a plan, verified."""

    approver: str
    """The principal in allowed_signers."""
    at_s: WallTime
    expires_s: WallTime
    id: str
    """Identifies this approval, which one run may use."""
    key: str
    """Fingerprint of the signing key."""
    text: str
    """The whole file, signature included."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """One start of a run: the deploy or rollback itself, or a resume."""

    verb: str
    at_s: WallTime
    user: str
    """Login name of the account."""
    uid: int
    host: str
    sudo_user: str = ""
    """The user who switched to that account with sudo, by sudo's environment."""
    commit: str = ""
    """The commit checked out around the fabric's folder; empty outside a git repository."""
    is_dirty: bool = False
    """Whether files of the fabric differ from that commit."""
    reason: str = ""
    undone: str = ""
    """The run that a rollback undoes."""
    hook: str = ""
    """`allowed` or `skipped`; empty when there is no hook."""
    hook_reason: str = ""
    approval: Approval | None = None
    signer: str = ""
    """The principal that the deployer proved with a key."""
    signature: str = ""
    job: str = ""
    """The job of a fleet that started the run at its site."""
    asked_by: str = ""
    """The person who requested that job, as named by the coordinator."""

    @property
    def who(self) -> str:
        account = f"{self.sudo_user} as {self.user}@{self.host}" if self.sudo_user else f"{self.user}@{self.host}"
        return f"{self.asked_by} through {account}" if self.asked_by else account

    @property
    def what(self) -> str:
        """The verb, with the run it concerns."""
        return f"{self.verb} of {self.undone}" if self.undone else self.verb

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def rolling_back(self, run: str, at_s: float) -> "Provenance":
        """The start of the automatic rollback of a run: by the same person, without hook, approval and signature."""
        reason = "; ".join(filter(None, [self.reason, AUTOMATIC]))
        unasked = replace(self, hook="", hook_reason="", approval=None, signer="", signature="")
        return replace(unasked, verb="rollback", at_s=at_s, reason=reason, undone=run)


AUTOMATIC = "automatic after a failure"
SUFFIX = ".approval"
NAMESPACE, DEPLOYER_NAMESPACE = "netkit-plan", "netkit-deploy"
BEGIN = "-----BEGIN SSH SIGNATURE-----"
SIGNATURE = re.compile(rf"{BEGIN}[A-Za-z0-9+/=\s]+-----END SSH SIGNATURE-----\s*")
MOST_BYTES = 65_536
HOUR_S = 3600
SKEW_S = 300
"""Tolerated difference between two people's clocks."""
TIMEOUT_S = 30
VALID = re.compile(r"Good .* (?P<key>SHA256:\S+)")
SSHSIG_BYTES = 10
"""The magic of an SSH signature and its version, before the public key."""
CERTIFICATE, SERIAL_AND_TYPE_BYTES = b"-cert-v01", 12
KEY_PARTS = {b"ssh-ed": 1, b"ssh-rsa": 2, b"ecdsa-": 2, b"ssh-dss": 4, b"sk-ssh-": 2, b"sk-ecdsa-": 3}
"""How many strings a public key has in a certificate, by the beginning of its type."""
PATTERN = re.compile(r"[*?!]")
AGAIN = "have it approved again with netkit approve"


class Statement(AccessModel):
    """What an approver signs."""

    format: Literal[1] = 1
    fabric: str
    lab: str
    plan: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    """The digest of a plan: what changes where, from what to what."""
    risk: str
    at_s: Annotated[int, Field(gt=-LONGEST_S, lt=LONGEST_S)]
    expires_s: Annotated[int, Field(gt=-LONGEST_S, lt=LONGEST_S)]
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    approver: str


@dataclass(frozen=True, slots=True)
class Signer:
    """The owner of a signing key."""

    principals: tuple[str, ...]
    key: str


@dataclass(frozen=True, slots=True)
class Deployer:
    """The known identity of the deployer."""

    names: frozenset[str]
    """Names of the account, and principals that belong to it."""
    signer: Signer | None = None
    """The identity they proved with a key."""

    def is_same(self, signer: Signer) -> bool:
        """Whether the signer is this person: by name, by the local part of an address, or by key."""
        mine = _people((*self.names, *(self.signer.principals if self.signer else ())))
        return bool(mine & _people(signer.principals)) or (self.signer is not None and self.signer.key == signer.key)


def _people(names: Iterable[str]) -> set[str]:
    return {part for name in map(str.casefold, names) for part in (name, name.partition("@")[0])}


def statement(plan: Plan, lab: str, approver: str, now_s: float, valid_hours: float) -> str:
    """The statement about a plan that the approver signs."""
    at_s = int(now_s)
    found = Statement(
        fabric=plan.fabric,
        lab=lab,
        plan=digest_of(plan),
        risk=plan.risk.word,
        at_s=at_s,
        expires_s=at_s + int(valid_hours * HOUR_S),
        id=secrets.token_hex(16),
        approver=approver,
    )
    return found.model_dump_json(indent=1) + "\n"


def sign(text: str, key: Path, namespace: str) -> str:
    """Sign a text; ssh-keygen itself asks for a passphrase or a touch."""
    done = _ssh_keygen("sign", "-q", "-n", namespace, "-f", str(key), text=text, is_asking=True)
    if done.returncode:
        raise DeployError(
            Problem(f"cannot sign with {key}", "name your own key with --key, or load it into the SSH agent")
        )
    return done.stdout


def signer_of(text: str, signature: str, signers: Path, principal: str | None, namespace: str, what: str) -> Signer:
    """Identify the signer; raise DeployError for a key that allowed_signers does not list, or for another person."""
    if not signers.is_file() or not os.access(signers, os.R_OK):
        raise DeployError(
            Problem("cannot be read", "list the accepted keys in it, see man ssh-keygen", file=str(signers))
        )
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".sig") as file:
        file.write(signature)
        file.flush()
        listed = _ssh_keygen("find-principals", "-s", file.name, "-f", str(signers))
        # It prints the first line that matches. Others may list the key as well, or a certificate more names.
        certified, key = _signing_key(signature)
        lines = read_text(signers, "replace").splitlines()
        names = [*listed.stdout.splitlines(), *certified, *_names(lines, base64.b64encode(key).decode())]
        principals = tuple(dict.fromkeys(names))
        is_whole = SIGNATURE.fullmatch(signature)  # ssh-keygen ignores what follows
        if listed.returncode or not principals or not is_whole:
            raise DeployError(
                Problem(
                    f"{what} is not signed with a key of {signers}, or its signature is damaged",
                    "add the key if it should be accepted",
                )
            )
        if loose := [one for one in principals if PATTERN.search(one)]:
            raise DeployError(Problem(f"{what}: {loose[0]} in {signers} is not one person", "list a name for each key"))
        principal = principals[0] if principal is None else principal
        if principal not in principals:
            mismatch = f"{what} is by {principal or 'no one'}, but its key belongs to {', '.join(principals)}"
            raise DeployError(Problem(mismatch, f"see {signers}"))
        words = ("-n", namespace, "-I", principal, "-s", file.name, "-f", str(signers))
        done = _ssh_keygen("verify", *words, text=text)
    verdict = VALID.match(done.stdout)  # where SIGCHLD is ignored, every program ends with 0
    # ssh-keygen reads an RSA key with leading zeros as the same key; its names were not found by those bytes.
    if done.returncode or verdict is None or verdict["key"] != _fingerprint(key):
        raise DeployError(Problem(f"{what} is forged, damaged, or signed with a key that is no longer valid", AGAIN))
    return Signer(principals, verdict["key"])


def principal_of(key: Path, signers: Path) -> str:
    """The first principal that allowed_signers lists for a key; empty if it cannot be determined."""
    public = key if key.suffix == ".pub" else key.with_name(f"{key.name}.pub")
    try:
        blob = read_text(public).split()[1]
        lines = read_text(signers).splitlines()
    except (OSError, ValueError, IndexError):
        return ""
    return next(_names(lines, blob), "")


def _signing_key(signature: str) -> tuple[list[str], bytes]:
    """The public key of a signature, and the principals that its certificate names."""
    try:
        signed = base64.b64decode("".join(line for line in signature.splitlines() if not line.startswith("-")))
    except ValueError:
        return [], b""
    key, _ = _string(signed[SSHSIG_BYTES:])
    return _of_certificate(key) if CERTIFICATE in _string(key)[0] else ([], key)


def _fingerprint(key: bytes) -> str:
    return f"SHA256:{base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip('=')}"


def _of_certificate(data: bytes) -> tuple[list[str], bytes]:
    """The principals of an SSH certificate, and the public key that it certifies (OpenSSH's PROTOCOL.certkeys)."""
    kind, rest = _string(data)
    _nonce, begin = _string(rest)
    rest = begin
    for _ in range(next((count for prefix, count in KEY_PARTS.items() if kind.startswith(prefix)), 0)):
        _, rest = _string(rest)
    key = begin[: len(begin) - len(rest)]
    _key_id, rest = _string(rest[SERIAL_AND_TYPE_BYTES:])
    listed, _ = _string(rest)
    names = []
    while listed:
        name, listed = _string(listed)
        names.append(name.decode(errors="replace"))
    plain = kind.replace(CERTIFICATE, b"").removesuffix(b"" if kind.startswith(b"sk-") else b"@openssh.com")
    return names, len(plain).to_bytes(4, "big") + plain + key


def _string(data: bytes) -> tuple[bytes, bytes]:
    """The first string of SSH's binary format, and what follows it."""
    end = 4 + int.from_bytes(data[:4], "big")
    return data[4:end], data[end:]


def _names(lines: Iterable[str], blob: str) -> Iterator[str]:
    """Yield the principals of the lines of allowed_signers with a public key."""
    for line in map(str.strip, lines):
        if blob in line.split() and not line.startswith("#"):
            names = line[1:].partition('"')[0] if line.startswith('"') else line.split()[0]
            yield from names.split(",")


def read(file: Path) -> str:
    try:
        with open(file, "rb", opener=regular) as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise DeployError(Problem("is too large for an approval", AGAIN, file=str(file)))
        return data.decode()
    except OSError as error:
        raise DeployError(Problem(f"cannot be read: {error.strerror}", AGAIN, file=str(file))) from None
    except UnicodeDecodeError:
        raise DeployError(Problem("is not an approval", AGAIN, file=str(file))) from None


def verified(
    text: str,
    plan: Plan,
    lab: str,
    *,
    settings: ApprovalSettings,
    signers: Path,
    deployer: Deployer | None,
    now_s: float,
) -> Approval:
    """Verify another person's approval of this plan; raise DeployError listing what is wrong with it.

    Without a deployer, only integrity and signature are checked: that is how the approver looks at their own approval.
    """
    signed_text, begin, rest = text.partition(BEGIN)
    try:
        found = Statement.model_validate_json(signed_text, strict=True)
    except ValidationError:
        raise DeployError(Problem("the approval cannot be parsed", AGAIN)) from None
    signer = signer_of(signed_text, begin + rest, signers, found.approver, NAMESPACE, "the approval")
    problems = list(_problems(found, plan, lab, settings, now_s))
    if deployer is not None and deployer.is_same(signer):
        problems.append(f"the approval is by {found.approver}, who also deploys; no one may approve their own deploy")
    if problems:
        raise DeployError(Problem(problem, AGAIN) for problem in problems)
    return Approval(found.approver, found.at_s, found.expires_s, found.id, signer.key, text)


def _problems(found: Statement, plan: Plan, lab: str, settings: ApprovalSettings, now_s: float) -> Iterable[str]:
    if found.fabric != plan.fabric:
        yield f"the approval is for fabric {found.fabric}, not {plan.fabric}"
    if found.lab != lab:
        yield f"the approval is for {_place(found.lab)}, not {_place(lab)}"
    if plan.unreachable:
        yield f"{plan.unreachable[0].name}: could not be read for the plan, so the plan is incomplete"
    if found.plan != digest_of(plan):
        yield f"the plan that was approved is {found.plan}, what would change now is {digest_of(plan)}"
    elif found.risk != plan.risk.word:
        yield f"the plan was approved with risk {found.risk}, but has risk {plan.risk.word}"
    if found.at_s > now_s + SKEW_S:
        yield "the approval is dated in the future; compare the clocks"
    if now_s >= found.expires_s:
        yield "the approval has expired"
    elif now_s >= found.at_s + settings.valid_hours * HOUR_S or found.expires_s <= found.at_s:
        yield f"the approval is older than the {settings.valid_hours:g} h that deploy.yaml allows"


def _place(lab: str) -> str:
    return f"the lab {lab}" if lab else "the real devices"


def _ssh_keygen(action: str, *words: str, text: str = "", is_asking: bool = False) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 (no shell)
            ["ssh-keygen", "-Y", action, *words],  # noqa: S607 (OpenSSH of the user's PATH)
            input=text,
            stdout=subprocess.PIPE,
            stderr=None if is_asking else subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=without_secrets(),
            timeout=None if is_asking else TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise DeployError(Problem("ssh-keygen is not installed", "install OpenSSH's client")) from None
    except subprocess.TimeoutExpired:
        raise DeployError(Problem(f"ssh-keygen takes longer than {TIMEOUT_S} s", "is the disk slow?")) from None
