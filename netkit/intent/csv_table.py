"""CSV files of rows ↔ plain values with the line of each row; built for files that spreadsheets and scripts write."""

import contextlib
import csv
import difflib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from netkit.errors import IntentError, OutputError, Problem
from netkit.intent.document import Value

LARGEST_BYTES = 64 * 1024 * 1024
DELIMITERS = ",;\t"
FORMULA = "=+@"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(slots=True)
class CsvTable:
    """The rows of one file, without their empty cells, and the line of each."""

    file: str
    rows: list[dict[str | int, Value]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, message: str, remedy: str, line: int, column: str = "") -> None:
        self.problems.append(Problem(message, remedy, (column,) if column else (), self.file, line))


def read(file: Path, kind: type[BaseModel]) -> CsvTable:
    """Read a table whose columns are the fields of a model; raise IntentError if it cannot be read at all."""
    table = CsvTable(str(file))
    rows = _rows(_text(file), table)
    line, header = next(rows, (1, []))
    names = [name.strip() for name in header]
    if _is_header(names, kind, table, line):
        for line, cells in rows:
            _add(table, names, cells, line)
    return table


def _text(file: Path) -> str:
    shown = str(file)
    try:
        if not file.is_file():
            what = "is not a regular file" if file.exists() else "does not exist"
            raise _refusal(shown, what, "check its name, on the command line or in fabric.yaml below tables")
        size = file.stat().st_size
        if size > LARGEST_BYTES:
            raise _refusal(shown, f"has {size:,} bytes", f"a table has at most {LARGEST_BYTES:,}")
        data = file.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _refusal(shown, f"cannot be read: {reason}", "check the path and its permissions") from None
    if data.startswith(UTF_16):
        raise _refusal(shown, "is UTF-16", "save it as UTF-8; Excel calls this CSV UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refusal(shown, "is not UTF-8", "save it as UTF-8; Excel calls this CSV UTF-8", line) from None


def _refusal(file: str, message: str, remedy: str, line: int = 0) -> IntentError:
    return IntentError(Problem(message, remedy, file=file, line=line))


def _rows(text: str, table: CsvTable) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with its first line; end at a quote that does not close."""
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = "holds a NUL byte" if "NUL" in str(error) else "a quote does not close, or is within a cell"
            table.refuse(what, "quote a whole cell or none of it, and double a quote within it", line)
            return
        if any(cell.strip() for cell in cells):
            yield line, cells


def _is_header(names: Sequence[str], kind: type[BaseModel], table: CsvTable, line: int) -> bool:
    known = kind.model_fields
    if not set(names) & known.keys():
        table.refuse("has no line of column names", f"begin with {', '.join(known)}, or some of them", line)
        return False
    for name in names:
        if name and name not in known:
            close = difflib.get_close_matches(name.lower(), known, 1, 0.6)
            remedy = f"did you mean {close[0]}?" if close else f"use {', '.join(known)}"
            table.refuse(f"unknown column {_shown(name)}", remedy, line)
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        table.refuse("this column is there twice", "keep one", line, name)
    missing = [name for name, one in known.items() if one.is_required() and name not in names]
    if missing:
        table.refuse(f"has no column {missing[0]}", "add it: it identifies the device of a row", line)
    return not table.problems


def _add(table: CsvTable, names: Sequence[str], cells: Sequence[str], line: int) -> None:
    """Add a row; empty cells are left out."""
    if len(cells) != len(names):
        what = f"has {len(cells)} cells, the line of column names has {len(names)}"
        table.refuse(what, "look for a comma too many or too few, or one that needs quotes", line)
        return
    row: dict[str | int, Value] = {}
    for name, raw in zip(names, cells, strict=True):
        cell = raw.strip()
        if not cell:
            continue
        if not name:
            table.refuse(f"{_shown(cell)} is in a column without a name", "give the column a name, or clear it", line)
        elif not cell.isprintable():
            table.refuse("goes over several lines", "write it on one; look for a quote that does not close", line, name)
        elif cell[0] in FORMULA:
            table.refuse(f"{_shown(cell)} is a formula", "save the value in its place", line, name)
        else:
            row[name] = cell
    table.rows.append(row)
    table.lines.append(line)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def write(file: Path, kind: type[BaseModel], rows: Iterable[Mapping[str, object]], columns: Iterable[str] = ()) -> int:
    """Write a table in one step, and return the number of its rows; a missing value or None is an empty cell.

    By default it has all columns.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns) or list(kind.model_fields), restval="", lineterminator="\n")
    writer.writeheader()
    count = 0
    for count, row in enumerate(rows, start=1):  # noqa: B007 (the count is returned)
        writer.writerow(row)
    staged = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        staged.write_text(text.getvalue(), encoding="utf-8", newline="")
        staged.replace(file)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(
            Problem(f"cannot be written: {reason}", "choose a folder you can write to", file=str(file))
        ) from None
    finally:
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)
    return count
