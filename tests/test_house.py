"""The house rules: which stage may import which, what a template may contain, what is shipped."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from netkit.design.clusters import KINDS
from netkit.hardware import Catalog
from netkit.platforms import registry
from netkit.platforms.compare import MODELS
from netkit.platforms.ownership import shipped_templates

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "netkit"

# From left to right. A stage imports only stages to its left; only the CLI imports everything.
STAGES = (
    "errors",
    "private",
    "hardware",
    "facts",
    "platforms",
    "intent",
    "design",
    "routing",
    "render",
    "plan",
    "adopt",
    "access",
    "truth",
    "deploy",
    "observe",
    "judge",
    "gate",
    "silence",
    "store",
    "report",
    "notify",
    "watch",
    "serve",
    "lab",
    "prove",
    "project",
    "fleet",
    "mcp",
    "terminal",
    "cli",
)


@cache
def modules() -> list[Path]:
    found = sorted(PACKAGE.rglob("*.py"))
    assert len(found) > 20
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _trees() -> Iterator[None]:
    """Keep the trees of all modules only as long as they are needed: forks of later tests would copy their pages."""
    yield
    for known in (parsed, nodes):
        known.cache_clear()


def stage_of(path: Path) -> str:
    parts = [part.removesuffix(".py") for part in path.relative_to(PACKAGE).parts]
    return "render" if _is_view(parts) else {"__init__": "project", "__main__": "cli"}.get(parts[0], parts[0])


def _is_view(parts: Sequence[str]) -> bool:
    """Whether a module is the view of a NOS, which is in its folder and belongs to the stage that renders."""
    return len(parts) > 2 and parts[0] == "platforms" and parts[2].startswith("view")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


@cache
def in_package() -> set[str]:
    return {path.stem for path in PACKAGE.iterdir() if path.suffix in {"", ".py"} and not path.stem.startswith("_")}


@cache
def imported_stages(path: Path) -> set[str]:
    found = set()
    for node in nodes(path):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "netkit" and len(parts) > 1 and parts[1] in in_package():
                found.add("render" if _is_view(parts[1:]) else parts[1])
    return found


def test_a_stage_imports_only_stages_to_its_left() -> None:
    wrong = {
        f"{path.relative_to(PACKAGE)} imports {stage}"
        for path in modules()
        for stage in imported_stages(path)
        if STAGES.index(stage) > STAGES.index(stage_of(path))
    }
    assert wrong == set()


def test_the_architecture_page_names_every_stage() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page))
    private = {"private"}
    assert {stage for stage in STAGES if stage not in named} == private
    assert in_package() == set(STAGES)


NAMES_A_NOS = {
    "platforms/registry.py": "lists netkit's own",
    "cli/verbs/intent.py": "a new fabric begins with one",
}


def test_only_its_own_folder_names_a_nos() -> None:
    found = set()
    for path in modules():
        parts = path.relative_to(PACKAGE).parts
        if parts[0] == "lab" or (parts[0] == "platforms" and parts[1] in registry.OWN):
            continue
        for node in nodes(path):
            is_imported = isinstance(node, ast.ImportFrom) and set((node.module or "").split(".")) & {*registry.OWN}
            if is_imported or (isinstance(node, ast.Constant) and node.value in registry.OWN):
                found.add("/".join(parts))
    assert found == {*NAMES_A_NOS}


LAB_READS = {"errors", "private", "hardware", "intent", "design", "render", "lab"}


def test_the_lab_shares_no_code_with_what_is_tested_on_it() -> None:
    for path in (PACKAGE / "lab").rglob("*.py"):
        assert imported_stages(path) <= LAB_READS, path


# Code that talks to devices has deadlines and sockets; its parsers and decisions are in pure modules beside it.
TALKING = re.compile(r"(driver|ssh|transport\w*|shell\w*|rest\w*)\.py")


@pytest.mark.parametrize("stage", ["intent", "design", "routing", "render", "facts", "platforms", "hardware", "judge"])
def test_pure_stages_touch_no_clock_network_or_environment(stage: str) -> None:
    forbidden = {"time", "datetime", "random", "socket", "subprocess", "urllib", "http", "uuid", "secrets"}
    for path in (PACKAGE / stage).rglob("*.py"):
        if stage == "platforms" and TALKING.fullmatch(path.name):
            continue
        for node in nodes(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} & forbidden == set(), path
            is_environ = isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
            assert not is_environ, path


def templates() -> list[Path]:
    found = sorted(shipped_templates().rglob("*.j2"))
    assert len(found) > 5
    return found


@pytest.mark.parametrize("path", templates(), ids=lambda path: str(path.relative_to(shipped_templates())))
def test_templates_do_not_build_text_or_look_up_names(path: Path) -> None:
    code = re.findall(r"\{%.*?%\}|\{\{.*?\}\}", path.read_text(encoding="utf-8"), re.DOTALL)
    forbidden = re.compile(r"[+~]|\[[^\]]+\]|\|\s*(replace|map|select\w*|reject\w*)\b")
    assert [piece for piece in code if forbidden.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", piece))] == []


def test_templates_of_a_device_declare_what_they_own() -> None:
    folders = {path.relative_to(shipped_templates()).parts[0] for path in templates()} - {"job", *KINDS}
    assert (
        {path.parent.name for path in shipped_templates().glob("*/owns.yaml")}
        == folders
        == {*MODELS} - {"linux"} | {"host"}
    )


def test_every_hardware_value_has_a_source() -> None:
    catalog = Catalog()
    for name in catalog.names("switches"):
        model = catalog.switch(name)
        assert model.name == name
        assert all(split.source for split in model.splits)
        assert all(row.source for row in model.headroom_rows)
    for name in catalog.names("hosts"):
        assert catalog.host(name).name == name
    assert len(catalog.media()) > 5


def test_no_module_has_a_meaningless_name() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "lib", "base", "misc", "manager"}
    assert {path.stem for path in modules()} & empty == set()


STARTS = re.compile(r"(?:subprocess\.(?:run|Popen|call|check_\w+|get\w*output)|os\.(?:exec|spawn|posix_spawn)\w*)")
STARTS_BY_LIBRARY = re.compile(
    r"(?:os\.(?:system|popen)|pty\.spawn|asyncio\.(?:subprocess\.)?create_subprocess_\w+|multiprocessing\.get_context"
    r"|ansible_runner\.interface\.\w+|(?:\w+\.)*\w*ProxyCommand)"
)
KNOWN_STARTS = {
    "serve/rounds.py": "netkit itself, which needs its secrets",
    "project/processes.py": "this process, forked",
    "project/comparison.py": "this process, forked",
    "fleet/lease.py": "this process, forked",
    "platforms/linux/driver.py": "its environment is a list of what may pass",
}
CLEAN = re.compile(
    r"without_secrets\(|\{\*\*without_secrets\(|ENVIRONMENT$|\{\*\*ENVIRONMENT, \*\*\(environment or \{\}\)\}$"
)


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for path in modules():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@cache
def starts(path: Path) -> list[tuple[str, str]]:
    """The calls that start a program in a module, and the environment of each."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            assert node.module not in {"subprocess", "pty", "os.subprocess"}, f"{path}: import the module, to be found"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if STARTS_BY_LIBRARY.fullmatch(called):
            found.append((called, "?"))
        elif STARTS.fullmatch(called):
            given = [ast.unparse(word.value) for word in node.keywords if word.arg == "env"]
            is_exec = called.startswith("os.") and called.endswith("e")
            found.append((called, (given or [ast.unparse(node.args[-1]) if is_exec else ""])[0]))
    return found


def test_no_started_program_gets_the_secrets_of_netkit() -> None:
    unclean = {
        f"{path.relative_to(PACKAGE)}: {called} env={given}"
        for path in modules()
        for called, given in starts(path)
        if not CLEAN.match(given) and str(path.relative_to(PACKAGE)) not in KNOWN_STARTS
    }
    assert unclean == set()
    assert {name for name in KNOWN_STARTS if starts(PACKAGE / name)} == {*KNOWN_STARTS}
    assert sum(len(starts(path)) for path in modules()) > 15


@pytest.mark.parametrize(
    "call",
    [
        "subprocess.run(['x'])",
        "subprocess.Popen(['x'], env=dict(os.environ))",
        "os.execvp('x', ['x'])",
        "os.execve('x', ['x'], os.environ)",
        "os.system('x')",
        "paramiko.ProxyCommand('x')",
    ],
)
def test_a_program_that_would_get_secrets_is_detected(call: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(call, encoding="utf-8")
    assert [given for _, given in starts(file) if not CLEAN.match(given)]


HEAVY = {"jinja2", "netmiko", "nornir", "pydantic", "sqlalchemy", "yaml"}


def test_help_and_completion_load_no_heavy_library() -> None:
    program = "import sys, netkit.cli.app; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=180)
    assert HEAVY & {*done.stdout.split()} == set()


def imported_modules(path: Path) -> Iterator[Path]:
    """The modules of the package that importing a module imports."""
    for node in parsed(path).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module or ""]
        for name in names:
            found = ROOT.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("netkit.") and found.exists():
                yield found


def test_there_are_no_import_cycles() -> None:
    left = {path: set(imported_modules(path)) for path in modules()}
    while free := {path for path, wanted in left.items() if not wanted & left.keys()}:
        left = {path: wanted for path, wanted in left.items() if path not in free}
    assert {str(path.relative_to(PACKAGE)) for path in left} == set()
