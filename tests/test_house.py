"""The house rules: which stage may import which, what a template may contain, what is shipped."""

import ast
import re
from pathlib import Path

import pytest

from netkit.hardware import Catalog
from netkit.render import Engine
from netkit.render.engine import shipped_templates

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "netkit"

# From left to right. A stage imports only what stands to its left; only the CLI imports everything.
STAGES = (
    "errors",
    "hardware",
    "facts",
    "platforms",
    "intent",
    "design",
    "routing",
    "render",
    "plan",
    "access",
    "deploy",
    "observe",
    "judge",
    "store",
    "report",
    "notify",
    "watch",
    "serve",
    "lab",
    "prove",
    "cli",
)


def modules() -> list[Path]:
    found = sorted(PACKAGE.rglob("*.py"))
    assert len(found) > 20
    return found


def stage_of(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return {"__init__": "errors", "__main__": "cli"}.get(part, part)


def imported_stages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if (
                parts[0] == "netkit"
                and len(parts) > 1
                and (PACKAGE / parts[1]).exists() | (PACKAGE / f"{parts[1]}.py").exists()
            ):
                found.add(parts[1])
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_stage_imports_only_stages_to_its_left(path: Path) -> None:
    here = STAGES.index(stage_of(path))
    assert {stage for stage in imported_stages(path) if STAGES.index(stage) > here} == set()


LAB_READS = {"errors", "hardware", "intent", "design", "render", "lab"}


def test_the_lab_shares_no_code_with_what_is_tried_on_it() -> None:
    for path in (PACKAGE / "lab").rglob("*.py"):
        assert imported_stages(path) <= LAB_READS, path


# What talks to devices has deadlines and sockets; what these modules read and decide is in pure ones beside them.
TALKING = re.compile(r"(driver|ssh|transport\w*|shell\w*|rest\w*)\.py")


@pytest.mark.parametrize("stage", ["intent", "design", "routing", "render", "facts", "platforms", "hardware", "judge"])
def test_pure_stages_touch_no_clock_network_or_environment(stage: str) -> None:
    forbidden = {"time", "datetime", "random", "socket", "subprocess", "urllib", "http", "uuid", "secrets"}
    for path in (PACKAGE / stage).rglob("*.py"):
        if stage == "platforms" and TALKING.fullmatch(path.name):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
def test_templates_loop_and_never_decide(path: Path) -> None:
    code = re.findall(r"\{%.*?%\}|\{\{.*?\}\}", path.read_text(encoding="utf-8"), re.DOTALL)
    decisions = [
        piece
        for piece in code
        if re.search(r"\b(if|elif|else|is|and|or|not)\b|[=!<>]=|[<>]", re.sub(r"'[^']*'|\"[^\"]*\"", "", piece))
    ]
    assert decisions == []


def test_templates_that_make_a_file_say_what_they_own() -> None:
    views = "\n".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "render" / "views").rglob("*.py"))
    made = set(re.findall(r'"((?:nvue|sonic|eos|frr|host)/[\w./-]+\.j2)"', views))
    assert len(made) > 4
    engine = Engine()
    for name in sorted(made):
        owns = engine.source(name).owns
        assert bool(owns) == (name != "host/install.txt.j2"), name


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


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "lib", "base", "misc", "manager"}
    assert {path.stem for path in modules()} & empty == set()
