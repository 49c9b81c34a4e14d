"""The HTML of a report: one file that loads nothing else and runs only its own script."""

import base64
import hashlib
import json
import time
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from netkit.report.page.document import document
from netkit.report.page.view import Reported

SCRIPTS = ("table", "element", "picture", "heat", "finding", "detail", "trend", "start")
"""The parts of the script, in order of dependency."""
ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
"""Characters that could end the element of the data, or have a meaning in HTML or JavaScript."""


Link = tuple[str, str]
"""The text and target of a link."""


def page(reported: Reported) -> str:
    return framed(document(reported))


def framed(data: dict[str, Any], links: Sequence[Link] = ()) -> str:
    """Render the HTML of a report; `links` lead to related pages."""
    style, script = asset("page.css"), _script()
    return _frame().render(
        data=data,
        json=Markup(embedded(data)),  # noqa: S704 (escaped for this very place)
        style=Markup(style),  # noqa: S704 (ours)
        script=Markup(script),  # noqa: S704 (ours)
        policy=policy(),
        links=links,
        taken=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(data["taken_s"])),
    )


def embedded(data: dict[str, Any]) -> str:
    """Data as JSON that is safe in a script element."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(ESCAPES)


@cache
def policy() -> str:
    """The Content-Security-Policy: the report's own script and style, and nothing fetched."""
    return (
        f"default-src 'none'; script-src {digest(_script())}; style-src {digest(asset('page.css'))}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """The CSP source expression of a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def asset(name: str) -> str:
    """Read a file of the page."""
    return (files("netkit.report.page") / "assets" / name).read_text(encoding="utf-8")


def _script() -> str:
    body = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{body}\n}})();'


@cache
def _frame() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(asset("page.html.j2"))
