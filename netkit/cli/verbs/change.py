"""The verbs that plan and make changes."""

from pathlib import Path
from typing import Annotated

import typer

from netkit.cli.requests import DeployRequest, PlanRequest, RollbackRequest
from netkit.cli.verbs import complete
from netkit.cli.verbs.options import (
    Busy,
    Cluster,
    ConfirmWithin,
    Disruptive,
    Fabric,
    Fleet,
    Format,
    Key,
    Lab,
    Limit,
    MaxFail,
    NoCanary,
    NoDrain,
    OnDisconnect,
    Parallel,
    PlanFormat,
    Processes,
    Reason,
    Site,
    SkipHook,
    TakeOver,
    Together,
    Watch,
    Yes,
)
from netkit.cli.verbs.options import run as _run


def plan(
    fabric: Fabric,
    limit: Limit = "",
    lab: Lab = "",
    running: Annotated[
        Path | None,
        typer.Option("--running", help="Saved configurations, DIR/<device>/<file>; no device is read.", metavar="DIR"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the plan here too.", metavar="FILE")] = None,
    output: PlanFormat = "text",
    detailed: Annotated[bool, typer.Option("--detailed-exitcode", help="End with 2 when there are changes.")] = False,
    against: Annotated[
        str,
        typer.Option(
            "--against", help="For a pull request: git:REVISION (no device is read), or running.", metavar="X"
        ),
    ] = "",
    cluster: Cluster = "",
    prove: Annotated[
        bool,
        typer.Option("--prove", help="With git:REVISION: deploy the change in a lab under traffic, and report losses."),
    ] = False,
    prove_devices: Annotated[
        int,
        typer.Option("--prove-devices", help="Boot at most this many; of a larger fabric, a part.", metavar="N", min=1),
    ] = 40,
    prove_within: Annotated[
        float, typer.Option("--prove-within", help="End the proof after this, as failed.", metavar="S", min=1)
    ] = 900,
    processes: Processes = 0,
    take_over: TakeOver = False,
    fleet: Fleet = None,
) -> None:
    """Show what would change on the devices, its risks and what it affects; change nothing."""
    asked = PlanRequest(
        fabric,
        limit=limit,
        lab=lab,
        running=running,
        out=out,
        output=output,
        is_detailed=detailed,
        against=against,
        cluster=cluster,
        has_proof=prove,
        most_devices=prove_devices,
        within_s=prove_within,
        processes=processes,
        take_over=take_over,
        fleet=fleet,
    )
    _run("plan", asked)


def deploy(
    fabric: Fabric,
    file: Annotated[Path | None, typer.Argument(help="A plan of netkit plan -o.", metavar="[PLAN]")] = None,
    lab: Lab = "",
    limit: Limit = "",
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read every device; write to none.")] = False,
    resume: Annotated[
        str,
        typer.Option(
            "--resume",
            help="Finish an interrupted run: the newest, or RUN.",
            metavar="[RUN]",
            autocompletion=complete.runs,
        ),
    ] = "",
    reason: Reason = "",
    approved: Annotated[
        str | None, typer.Option("--approved", help="Refuse any plan but the one of this digest.", metavar="DIGEST")
    ] = None,
    approval: Annotated[
        Path | None,
        typer.Option("--approval", help="What netkit approve wrote; default: beside the plan.", metavar="FILE"),
    ] = None,
    key: Key = None,
    skip_hook: SkipHook = None,
    max_fail: MaxFail = 0,
    disruptive: Disruptive = False,
    busy: Busy = False,
    take_over: TakeOver = False,
    no_canary: NoCanary = False,
    no_drain: NoDrain = False,
    confirm_within: ConfirmWithin = 120,
    parallel: Parallel = 20,
    together: Together = False,
    watch: Watch = 10,
    on_failure: Annotated[
        str,
        typer.Option("--on-failure", help="stop, or rollback: roll back the whole run automatically.", metavar="WHAT"),
    ] = "stop",
    fleet: Fleet = None,
    on_disconnect: OnDisconnect = "stop",
    then: Annotated[
        list[Path] | None, typer.Option("--then", help="Deploy this fabric next; repeats.", metavar="FABRIC")
    ] = None,
    max_failed_fabrics: Annotated[
        int,
        typer.Option(
            "--max-failed-fabrics", help="With --then: continue while at most this many fail.", metavar="N", min=0
        ),
    ] = 0,
    output: Format = "text",
) -> None:
    """Deploy the intended configuration: a canary, then waves; unconfirmed changes revert by themselves."""
    asked = DeployRequest(
        fabric,
        lab=lab,
        limit=limit,
        yes=yes,
        output=output,
        reason=reason.strip(),
        skip_hook=skip_hook,
        max_fail=max_fail,
        disruptive=disruptive,
        busy=busy,
        take_over=take_over,
        has_canary=not no_canary,
        has_drain=not no_drain,
        parallel=parallel,
        together=together,
        revert_s=confirm_within,
        watch_s=watch,
        on_failure=on_failure,
        file=file,
        is_dry=dry_run,
        resume=resume,
        approved=approved,
        approval=approval,
        key=key,
        fleet=fleet,
        on_disconnect=on_disconnect,
        then=tuple(then or ()),
        max_failed_fabrics=max_failed_fabrics,
    )
    _run("deploy", asked)


def rollback(
    run: Annotated[
        str,
        typer.Argument(
            help="The run, the beginning of its name, or last.", metavar="RUN", autocompletion=complete.runs
        ),
    ],
    fabric: Fabric,
    lab: Lab = "",
    limit: Limit = "",
    yes: Yes = False,
    reason: Reason = "",
    skip_hook: SkipHook = None,
    max_fail: MaxFail = 0,
    disruptive: Disruptive = False,
    busy: Busy = False,
    no_canary: NoCanary = False,
    no_drain: NoDrain = False,
    confirm_within: ConfirmWithin = 120,
    parallel: Parallel = 20,
    together: Together = False,
    watch: Watch = 10,
    fleet: Fleet = None,
    on_disconnect: OnDisconnect = "stop",
    output: Format = "text",
) -> None:
    """Roll back the changes of a run, with the same care."""
    asked = RollbackRequest(
        fabric,
        lab=lab,
        limit=limit,
        yes=yes,
        output=output,
        reason=reason.strip(),
        skip_hook=skip_hook,
        max_fail=max_fail,
        disruptive=disruptive,
        busy=busy,
        has_canary=not no_canary,
        has_drain=not no_drain,
        parallel=parallel,
        together=together,
        revert_s=confirm_within,
        watch_s=watch,
        run=run,
        fleet=fleet,
        on_disconnect=on_disconnect,
    )
    _run("deploy", asked, verb="rollback")


def approve(
    fabric: Fabric,
    file: Annotated[Path, typer.Argument(help="A plan of netkit plan -o.", metavar="PLAN")],
    key: Key = None,
    approver: Annotated[
        str, typer.Option("--as", help="Your name in allowed_signers; default: the key's.", metavar="PRINCIPAL")
    ] = "",
    valid_hours: Annotated[
        float | None,
        typer.Option("--valid-hours", help="How long it is valid; default: from deploy.yaml.", metavar="N"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; default: PLAN.approval.", metavar="FILE")
    ] = None,
    lab: Lab = "",
    yes: Yes = False,
) -> None:
    """Show a plan, and sign with an SSH key that someone else may deploy it, once and within a day."""
    _run(
        "approve",
        fabric,
        file,
        key=key,
        approver=approver,
        valid_hours=valid_hours,
        out=out,
        lab=lab,
        yes=yes,
    )


def history(
    fabric: Fabric,
    run: Annotated[
        str, typer.Argument(help="All about one run, or last.", metavar="[RUN]", autocompletion=complete.runs)
    ] = "",
    limit: Annotated[
        str,
        typer.Option(
            "--limit",
            help="Of one run: these devices only, all of their diffs.",
            metavar="EXPR",
            autocompletion=complete.devices,
        ),
    ] = "",
    lab: Lab = "",
    checks: Annotated[bool, typer.Option("--checks", help="Runs of checks instead of deploys.")] = False,
    store: Annotated[str, typer.Option("--store", help="Where they are: a file or a URL.", metavar="[=URL|FILE]")] = "",
    site: Site = "",
    fleet: Fleet = None,
    output: Annotated[
        str, typer.Option("--format", help="text or json; of one run of checks as in netkit check.", metavar="FORMAT")
    ] = "text",
) -> None:
    """List the runs on a fabric, newest first: deploys with user, change and reason, or stored checks."""
    if checks or store:
        _run("check_history", fabric, run, lab=lab, store=store, site=site, output=output)
        return
    _run("history", fabric, run, limit=limit, lab=lab, output=output, fleet=fleet)


def trust(
    fabric: Fabric,
    limit: Limit = "",
    lab: Lab = "",
    yes: Yes = False,
    replace: Annotated[bool, typer.Option("--replace", help="Also replace trusted keys that have changed.")] = False,
) -> None:
    """Collect SSH host keys and HTTPS certificates, show them, and trust them once you confirm."""
    _run("access", fabric, verb="trust", limit=limit, lab=lab, yes=yes, replace=replace)


def inventory(fabric: Fabric, limit: Limit = "", lab: Lab = "") -> None:
    """Print switches and GPU hosts as an Ansible inventory, for the playbooks or your own."""
    _run("access", fabric, verb="inventory", limit=limit, lab=lab)
