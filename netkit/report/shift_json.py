"""What a change of the repository would change, for machines."""

import json
from dataclasses import asdict

from netkit import plan as planning
from netkit.plan.shift import Shift, approval


def write(shift: Shift) -> str:
    """Return the change as JSON; the plan in it is the one `netkit plan -o` writes."""
    document = {
        "base": shift.base,
        "approval": approval(shift.plan),
        "same": shift.same,
        "added": [asdict(device) for device in shift.added],
        "removed": [asdict(device) for device in shift.removed],
        "moved": [asdict(one) for one in shift.moved],
        "warnings": [str(warning) for warning in shift.warnings],
        "plan": json.loads(planning.write(shift.plan)),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
