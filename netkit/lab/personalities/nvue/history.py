"""What became of each revision, as a table or as JSON."""

import json

from netkit.lab.personalities.nvue.revision import Revision, Store, UnknownRevisionError

COLUMNS = ("Rev ID", "State", "Apply ID", "Apply Date", "Type", "User", "Reason", "Message")


def shown(store: Store, form: str, number: str = "") -> str:
    """Return the revisions, or one."""
    if number and not (number.isdigit() and int(number) in store.revisions):
        raise UnknownRevisionError(number)
    found = [store.revisions[key] for key in sorted(store.revisions) if not number or key == int(number)]
    if form == "json":
        return json.dumps({str(revision.number): _object(revision) for revision in found}, indent=2) + "\n"
    rows = [COLUMNS, *(tuple(map(str, _row(revision))) for revision in found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    rows.insert(1, tuple("-" * width for width in widths))
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def _row(revision: Revision) -> tuple[object, ...]:
    reason = "Config update" if revision.applies else ""
    state, date = revision.state, revision.date
    return (revision.number, state, revision.apply_id, date, revision.kind, revision.user, reason, revision.message)


def _object(revision: Revision) -> dict[str, object]:
    names = ("state", "apply-id", "apply-date", "type", "user", "reason", "message")
    return dict(zip(names, _row(revision)[1:], strict=True))
