"""How many random changes of the code the tests notice, and how much of it they run.

`python -m tests.mutation` runs the tests that start nothing under coverage, and prints the share of lines and branches
they run. Then it changes random lines of deploy, plan and judge in a copy of the checkout, one at a time, and runs the
tests that execute that line until one fails. It prints each change that no test notices, and the share of those that
one does. First it makes sure that the tests pass in the copy, and that a change known to be noticed is.
Coverage is kept in `--keep`, and used again if it is there.
"""

import argparse
import ast
import compileall
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from py_compile import PycInvalidationMode
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("deploy", "plan", "judge")
TESTS_EACH = 60
TIME_LIMIT_S = 180
LEFT_OUT = (".git", ".venv", ".bench-venv", ".*_cache", ".hypothesis", "__pycache__", "out")
CONTROL = ("netkit/plan/group.py", "        if device.changes:\n", "        if not device.changes:\n")
"""A file, a line of it, and a change of that line which tests notice; otherwise the results are meaningless."""
COVERAGE = """\
[run]
branch = true
parallel = true
source = netkit
patch = subprocess, fork, _exit
data_file = {folder}/coverage
context = ${{NETKIT_TEST-}}
"""
"""Commands that a test forks measure themselves: the environment names their test."""
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
}


@dataclass(frozen=True)
class Mutant:
    """A file with one change in it."""

    path: Path
    lines: range
    change: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.lines.start}: {self.change}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have coverage record which test runs a line."""
    from coverage import Coverage  # noqa: PLC0415  # only where tests run under coverage

    os.environ["NETKIT_TEST"] = item.nodeid
    current = Coverage.current()
    if current is not None:
        current.switch_context(item.nodeid)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--lines", type=int, default=200, help="how many lines are changed (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default 1)")
    parser.add_argument("--keep", type=Path, default=ROOT / "out" / "mutation", help="where coverage is kept")
    parser.add_argument("tests", nargs="*", help="which of the tests that start nothing (default: all)")
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    if not (given.keep / "coverage").exists():
        try:
            measure(given.keep, given.tests)
        except subprocess.CalledProcessError:
            sys.exit("error: the tests fail without any change of the code; fix that first")
    print(report(given.keep), flush=True)
    tests_of = tests_by_line(given.keep / "coverage")
    chance = random.Random(given.seed)  # noqa: S311  # the same lines for the same seed
    noticed = 0
    chosen = list(drawn(chance, given.lines))
    with TemporaryDirectory(prefix="netkit-mutation-") as folder:
        copy = Path(folder) / ROOT.name
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        # Validated by hash: a change within a second and of the same length is compiled again, too.
        compileall.compile_dir(copy / "netkit", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        check_control(tests_of, copy)
        for mutant in chosen:
            if is_noticed(mutant, tests_of(mutant, chance), copy):
                noticed += 1
            else:
                print(f"survived: {mutant}", flush=True)
    print(f"{noticed} of {len(chosen)} changes made a test fail ({100 * noticed / len(chosen):.1f} %)")
    return 0


def check_control(tests_of: Callable[[Mutant, random.Random], list[str]], copy: Path) -> None:
    """Exit unless the tests of one line pass unchanged, and notice a change of it that breaks the grouping of plans."""
    name, line, changed = CONTROL
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    if text.count(line) != 1:
        sys.exit(f"error: {name}: not once: {line.strip()}; choose another line for CONTROL")
    number = text[: text.index(line)].count("\n") + 1
    broken = Mutant(path, range(number, number + 1), changed.strip(), text.replace(line, changed))
    tests = tests_of(broken, random.Random(0))  # noqa: S311  # always the same tests
    if is_noticed(replace(broken, text=text), tests, copy):
        sys.exit(f"error: the tests of {name}:{number} fail in a copy of the checkout without any change")
    if not is_noticed(broken, tests, copy):
        sys.exit(f"error: {broken} was not noticed, so that nothing else would be")


def measure(folder: Path, wanted: Sequence[str]) -> None:
    """Run the tests that start nothing under coverage, with the tests of each line."""
    settings = folder / "coveragerc"
    settings.write_text(COVERAGE.format(folder=folder), encoding="utf-8")
    tests = (sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-p", "tests.mutation")
    subprocess.run([*tests, "--no-live", "-n", "3", "--dist", "loadfile", *wanted], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "-m", "coverage", "combine", "-q", f"--rcfile={settings}"], cwd=ROOT, check=True)


def report(folder: Path) -> str:
    """The share of lines and branches that these tests run."""
    command = [sys.executable, "-m", "coverage", "report", f"--rcfile={folder / 'coveragerc'}", "--format=total"]
    shares = [
        subprocess.run([*command, "--precision=2", *wanted], cwd=ROOT, check=True, capture_output=True, text=True)
        for wanted in ([], [f"--include={','.join(f'netkit/{room}/*' for room in ROOMS)}"])
    ]
    return "lines and branches run: netkit {} %, {} alone {} %".format(
        shares[0].stdout.strip(), ", ".join(ROOMS), shares[1].stdout.strip()
    )


def tests_by_line(data: Path) -> Callable[[Mutant, random.Random], list[str]]:
    """A function that gives the tests that execute the lines of a mutant."""
    from coverage import CoverageData  # noqa: PLC0415  # only where it is installed

    seen = CoverageData(basename=str(data))
    seen.read()

    def tests_of(mutant: Mutant, chance: random.Random) -> list[str]:
        contexts = seen.contexts_by_lineno(str(mutant.path))
        at_lines = {test for line in mutant.lines for test in contexts.get(line, ()) if test}
        # Lines that run on import belong to no test, so any test of the file may notice.
        found = sorted(at_lines or {test for tests in contexts.values() for test in tests if test})
        chance.shuffle(found)
        room = f"tests/{mutant.path.parent.name}/"
        return sorted(found, key=lambda test: not test.startswith(room))[:TESTS_EACH]

    return tests_of


def drawn(chance: random.Random, count: int) -> Iterator[Mutant]:
    """Yield random lines of the packages, each with one random change."""
    paths = sorted(path for room in ROOMS for path in (ROOT / "netkit" / room).rglob("[a-z]*.py"))
    places = [(path, line) for path in paths for line in sorted({line for line, _ in sites(parsed(path))})]
    for path, line in sorted(chance.sample(places, min(count, len(places)))):
        tree = parsed(path)
        lines = statement_at(tree, line)
        change = chance.choice([change for at, change in sites(tree) if at == line])()
        yield Mutant(path, lines, change, ast.unparse(ast.fix_missing_locations(tree)))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statement_at(tree: ast.Module, line: int) -> range:
    """The lines of the simple statement at a line; only that line of a compound one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and node.lineno <= line <= (node.end_lineno or 0):
            return range(node.lineno, (node.end_lineno or line) + 1)
    return range(line, line + 1)


def sites(tree: ast.Module) -> Iterator[tuple[int, Callable[[], str]]]:
    """Yield each line that can be changed, with the change."""
    fixed = {id(inner) for node in ast.walk(tree) for part in _not_code(node) for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in fixed:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            yield node.lineno, partial(_swap, node, "ops")
        elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPPED:
            yield node.lineno, partial(_swap, node, "op")
        elif isinstance(node, ast.Constant) and type(node.value) in {bool, int, float, str}:
            yield node.lineno, partial(_other_constant, node)
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            yield node.test.lineno, partial(_negate, node)
        elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
            yield node.lineno, partial(_return_none, node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node.lineno, partial(_drop_call, node)


def _not_code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what no test could notice: docstrings, annotations, and parts of messages."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    elif isinstance(node, ast.AnnAssign | ast.arg) and node.annotation:
        yield node.annotation
    elif isinstance(node, ast.FunctionDef) and node.returns:
        yield node.returns
    elif isinstance(node, ast.JoinedStr):
        yield node


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _swap(node: ast.Compare | ast.BoolOp | ast.BinOp, field: str) -> str:
    before = ast.unparse(node)
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()  # type: ignore[call-overload]
    else:
        setattr(node, field, SWAPPED[type(node.op)]())
    return f"{before} -> {ast.unparse(node)}"


def _other_constant(node: ast.Constant) -> str:
    before = node.value
    node.value = not before if isinstance(before, bool) else before + (" changed" if isinstance(before, str) else 1)  # type: ignore[operator]
    return f"{before!r} -> {node.value!r}"


def _negate(node: ast.If | ast.While | ast.IfExp) -> str:
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return ast.unparse(node.test)


def _return_none(node: ast.Return) -> str:
    before = ast.unparse(node)
    node.value = ast.Constant(None)
    return f"{before} -> return None"


def _drop_call(node: ast.Expr) -> str:
    before = ast.unparse(node)
    node.value = ast.Constant(None)
    return f"without {before}"


def is_noticed(mutant: Mutant, tests: list[str], copy: Path) -> bool:
    """Whether one of the tests fails with the mutant in place of the file, in a copy of the checkout."""
    if not tests:
        return False
    file = copy / mutant.path.relative_to(ROOT)
    before = file.read_bytes()
    file.write_text(mutant.text, encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            check=False,
            capture_output=True,
            timeout=TIME_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_bytes(before)
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
