"""Names of the standard library that the code in some folders uses and this Python lacks; without dependencies.

Run by each Python there is, as `python -I tests/lacking.py FOLDER...`; prints a line for each missing name.
"""

import ast
import gc
import importlib
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType


def imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield names bound to modules, and the modules."""
    for node in nodes:
        for one in node.names if isinstance(node, ast.Import) else ():
            first = one.name.partition(".")[0]
            yield (one.asname, one.name) if one.asname else (first, first)


def taken(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the dotted names used of modules, and the line."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute)]
    known = dict(imported(nodes))
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((f"{node.module}.{one.name}", node.lineno) for one in node.names)
        elif isinstance(node, ast.Attribute):
            first, _, rest = dotted(node).partition(".")
            if first in known:
                yield f"{known[first]}.{rest}", node.lineno


def dotted(node: ast.expr) -> str:
    """The text `a.b.c` of an attribute chain; empty for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    before = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else ""


@cache
def is_there(name: str) -> bool:
    """Whether modules have a dotted name; attributes of a module's own object are not inspected."""
    found: object = importlib.import_module(name.partition(".")[0])
    for part in name.split(".")[1:]:
        if not isinstance(found, ModuleType):
            return True
        if not hasattr(found, part):
            try:
                importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                return False
        found = getattr(found, part)
    return True


def lacking(file: Path) -> Iterator[str]:
    """Yield the names of the standard library that a file uses and this Python lacks."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        yield f"{file}:{error.lineno}: {error.msg}"
        return
    for name, line in taken(tree):
        if name.partition(".")[0] in sys.stdlib_module_names and not is_there(name):
            yield f"{file}:{line}: {name}"


if __name__ == "__main__":
    gc.disable()  # trees of syntax hold no circles
    for folder in sys.argv[1:]:
        for path in sorted(Path(folder).rglob("*.py")):
            for reported in lacking(path):
                sys.stdout.write(f"{reported}\n")
