"""The HTML around the data of a report: one file that asks for nothing else and runs nothing but its own script."""

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
"""The parts of the script, in the order they need each other."""
ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
"""What could end the element that data stands in, or mean something to an HTML or a JavaScript parser."""


Link = tuple[str, str]
"""What a link says, and where it leads."""


def page(reported: Reported) -> str:
    """Return a report as HTML."""
    return framed(document(reported))


def framed(data: dict[str, Any], links: Sequence[Link] = ()) -> str:
    """Return the HTML that shows the data of a report; links lead to what else there is where it is shown."""
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
    """Return data as JSON that can stand in a script element whatever its texts hold."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(ESCAPES)


@cache
def policy() -> str:
    """Return the rule by which a browser runs the report's script and style, and fetches nothing at all."""
    return (
        f"default-src 'none'; script-src {digest(_script())}; style-src {digest(asset('page.css'))}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """Return by what a browser knows a script or a style it may use."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def asset(name: str) -> str:
    """Return a file that belongs to the page."""
    return (files("netkit.report.page") / "assets" / name).read_text(encoding="utf-8")


def _script() -> str:
    body = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{body}\n}})();'


@cache
def _frame() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(asset("page.html.j2"))
