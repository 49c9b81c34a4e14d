"""`netkit approve`."""

import sys
import time
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.deploy import approval, policy
from netkit.deploy.approval import NAMESPACE, SUFFIX
from netkit.deploy.policy import ApprovalSettings
from netkit.deploy.preflight import Task, compared
from netkit.errors import PlanError, Problem, UsageError
from netkit.plan import Running
from netkit.project.control import signers_file
from netkit.project.planning import plan_of_file
from netkit.project.revision import configured
from netkit.report.plan_text import text
from netkit.report.plan_view import counted
from netkit.terminal.output import is_agreed, write_named

DECLINED = 1


def run(
    folder: Path,
    file: Path,
    *,
    key: Path | None,
    approver: str,
    valid_hours: float | None,
    out: Path | None,
    lab: str,
    yes: bool,
) -> int:
    """Show a plan, and sign an approval to deploy it."""
    project = open_project(folder, lab)
    warn(project)
    settings = policy.load(project.folder).approval or ApprovalSettings()
    hours = settings.valid_hours if valid_hours is None else valid_hours
    if not 0 < hours <= settings.valid_hours:
        remedy = f"use more than 0 and at most {settings.valid_hours:g}"
        raise UsageError(Problem(f"--valid-hours {hours:g} is out of range", remedy))
    signers = signers_file(project, settings)
    signing = _key(folder, key)
    name = approver or approval.principal_of(signing, signers)
    if not name:
        remedy = f"add the key to {signers}, or give your name in it with --as"
        raise UsageError(Problem(f"the owner of the key {signing} is unknown", remedy))
    planned = plan_of_file(project, file)
    plan = planned.plan
    if not plan.changed:
        raise PlanError(Problem("the plan changes nothing", "there is nothing to approve", file=str(file)))
    for device in plan.changed:
        files = planned.intended.get(device.name, {})
        found = compared(Running(dict(files), device.version), Task(device, files)).comparison
        if not device.not_read and found.running_digest != device.intended_digest:
            what = f"{device.name}: the intent in {folder} differs from the one the plan was made for"
            raise PlanError(Problem(what, "check out the commit of the plan, or make the plan again"))
    sys.stdout.write(text(plan))
    question = f"Approve this for {counted(len(plan.changed), 'device')} of {plan.fabric} as {name}?"
    if not is_agreed(question, yes=yes):
        sys.stderr.write("nothing was approved\n")
        return DECLINED
    statement = approval.statement(plan, project.lab, name, time.time(), hours)
    whole = statement + approval.sign(statement, signing, NAMESPACE)
    given = approval.verified(
        whole, plan, project.lab, settings=settings, signers=signers, deployer=None, now_s=time.time()
    )
    target = out or file.with_name(file.name + SUFFIX)
    write_named(target, whole)
    until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(given.expires_s))
    sys.stdout.write(f"{target}: approved by {name} for one deploy until {until}\n")
    return 0


def _key(folder: Path, key: Path | None) -> Path:
    """The key to sign with: by default the one git signs with."""
    if key is not None:
        return key
    known = configured(folder, "user.signingkey")
    path = Path(known).expanduser()
    if not known or not path.is_file():
        raise UsageError(Problem("no key to sign with", "give --key FILE, or set git's user.signingkey"))
    return path
