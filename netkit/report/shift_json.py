"""What a change of the repository would change, for machines."""

import json
from dataclasses import asdict

from netkit import plan as planning
from netkit.plan.shift import Shift, approval
from netkit.report.shift_view import NOTHING, Aside


def write(shift: Shift, aside: Aside = NOTHING) -> str:
    """Return the change as JSON; the plan in it is the one `netkit plan -o` writes."""
    document = {
        "base": shift.base,
        "approval": approval(shift.plan),
        "same": shift.same,
        "added": [asdict(device) for device in shift.added],
        "removed": [asdict(device) for device in shift.removed],
        "moved": [asdict(one) for one in shift.moved],
        "warnings": [str(warning) for warning in shift.warnings],
        **({"proof": aside.document} if aside.document else {}),
        "plan": json.loads(planning.write(shift.plan)),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
