"""A user's own templates: they replace netkit's file by file, fail in one clear line, and stay in their sandbox."""

import json
import re
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader
from jinja2.exceptions import SecurityError

from netkit import Project
from netkit.errors import RenderError
from netkit.platforms.ownership import shipped_templates
from netkit.render import Engine, inputs, names, render
from tests import intents
from tests.command import ROOT, Done, assert_refused, run
from tests.conftest import Golden

REFERENCE = ROOT / "inventory" / "reference"
MORE_BYTES = 1_200_000_000
"""Beyond the memory of a fork of the test process, which grows from test to test."""
DEVICE = "leaf01"


def with_template(tmp_path: Path, text: str, name: str = "nvue/startup.yaml.j2") -> Path:
    """A fabric folder whose own template replaces one of netkit's."""
    fabric = tmp_path / "fabric"
    shutil.copytree(REFERENCE, fabric, dirs_exist_ok=True)
    file = fabric / "templates" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return fabric


def render_leaf(fabric: Path, out: Path) -> Done:
    """Render one switch with little memory, so that a template that needs more fails at once."""

    def limit() -> None:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MORE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    return run("render", "--fabric", fabric, "-o", out, "--limit", DEVICE, before=limit)


def processor_s() -> float:
    """CPU time of ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def said_by(tmp_path: Path, text: str) -> str:
    """The error of a template for the leaf."""
    done = render_leaf(with_template(tmp_path, text), tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    return (tmp_path / "out" / DEVICE / "startup.yaml").read_text(encoding="utf-8")


def test_a_users_template_replaces_one_file_and_the_others_stay(tmp_path: Path) -> None:
    own = (shipped_templates() / "nvue" / "services.yaml.j2").read_text(encoding="utf-8")
    fabric = with_template(tmp_path, "{# ours #}\n" + own + "# our own line\n", "nvue/services.yaml.j2")
    plain, changed = tmp_path / "plain", tmp_path / "changed"
    assert run("render", "--fabric", REFERENCE, "-o", plain).returncode == 0
    assert run("render", "--fabric", fabric, "-o", changed).returncode == 0
    ours = (changed / DEVICE / "startup.yaml").read_text(encoding="utf-8")
    assert "# our own line" in ours
    assert ours.replace("# our own line\n", "") == (plain / DEVICE / "startup.yaml").read_text(encoding="utf-8")
    for file in plain.glob("gpu*/*"):
        assert file.read_bytes() == (changed / file.relative_to(plain)).read_bytes()


def test_a_users_template_includes_the_one_it_replaces(tmp_path: Path) -> None:
    name = "nvue/services.yaml.j2"
    fabric = with_template(tmp_path, '{% include "netkit/nvue/services.yaml.j2" %}\n# our own line\n', name)
    plain, changed = tmp_path / "plain", tmp_path / "changed"
    assert run("render", "--fabric", REFERENCE, "-o", plain, "--limit", DEVICE).returncode == 0
    assert run("render", "--fabric", fabric, "-o", changed, "--limit", DEVICE).returncode == 0
    ours = (changed / DEVICE / "startup.yaml").read_text(encoding="utf-8")
    assert ours != (plain / DEVICE / "startup.yaml").read_text(encoding="utf-8")
    assert ours.replace("# our own line\n", "") == (plain / DEVICE / "startup.yaml").read_text(encoding="utf-8")


def test_templates_beside_the_inventory_and_in_the_working_folder_count_and_the_nearest_wins(tmp_path: Path) -> None:
    fabric = tmp_path / "inventory" / "one"
    shutil.copytree(REFERENCE, fabric)
    for place, word in ((tmp_path / "work", "work"), (tmp_path, "project"), (fabric, "fabric")):
        file = place / "templates" / "nvue" / "startup.yaml.j2"
        file.parent.mkdir(parents=True)
        file.write_text(f"{word}\n", encoding="utf-8")
    said = []
    for gone in (None, fabric, tmp_path, tmp_path / "work"):
        if gone:
            shutil.rmtree(gone / "templates")
        done = run("render", "--fabric", fabric, "-o", tmp_path / "out", "--limit", DEVICE, cwd=tmp_path / "work")
        assert done.returncode == 0, done.stderr
        said.append((tmp_path / "out" / DEVICE / "startup.yaml").read_text(encoding="utf-8").splitlines()[0])
    assert said[:3] == ["fabric", "project", "work"]
    assert said[3] not in said[:3]


BROKEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "undefined variable": ("one\n{{ nothing }}\n", ("startup.yaml.j2:2:", "'nothing' is undefined", DEVICE)),
    "undefined attribute": ("{{ {}.colour }}\n", ("startup.yaml.j2:1:", "colour", DEVICE)),
    "undefined in a loop": (
        "\n\n{% for x in nothing %}{% endfor %}\n",
        ("startup.yaml.j2:3:", "'nothing' is undefined", DEVICE),
    ),
    "syntax error": ("one\n\n{% for x in %}\n", ("startup.yaml.j2:3:",)),
    "unclosed block": ("{% for x in [1] %}\nno end\n", ("startup.yaml.j2:",)),
    "unknown filter": ("one\n{{ 1|colour }}\n", ("startup.yaml.j2:2:", "colour")),
    "unknown tag": ("{% shell ls %}\n", ("startup.yaml.j2:1:", "shell")),
    "missing include": (
        "{% include 'nvue/nothing.j2' %}\n",
        ("startup.yaml.j2", "nvue/nothing.j2", "no template folder has"),
    ),
    "division by zero": ("\n{{ 1 // 0 }}\n", ("startup.yaml.j2:2:", DEVICE)),
    "wrong types": ("\n{{ 1 + 'a' }}\n", ("startup.yaml.j2:2:", DEVICE)),
    "bad index": ("{{ [1][5] }}\n", ("startup.yaml.j2:1:",)),
    "too many nested loops": ("{% for a in [1] %}" * 30 + "{% endfor %}" * 30, ("startup.yaml.j2",)),
    "an expression without end": ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", ("startup.yaml.j2",)),
    "includes itself": ("{% include 'nvue/startup.yaml.j2' %}\n", ("startup.yaml.j2", DEVICE)),
    "calls itself": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}\n", ("startup.yaml.j2:1:", DEVICE)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_template_is_reported_in_one_line(name: str, tmp_path: Path) -> None:
    text, words = BROKEN[name]
    done = render_leaf(with_template(tmp_path, text), tmp_path / "out")
    assert_refused(done, *words)
    assert len(done.stderr) < 500
    assert not (tmp_path / "out").exists()


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    with_template(tmp_path, "\n\n\n{{ nothing }}\n", "nvue/part.j2")
    fabric = with_template(tmp_path, "{% include 'nvue/part.j2' %}\n")
    assert_refused(render_leaf(fabric, tmp_path / "out"), "part.j2:4:", "'nothing' is undefined", DEVICE)


def test_a_template_that_is_not_text_is_reported(tmp_path: Path) -> None:
    fabric = with_template(tmp_path, "")
    (fabric / "templates" / "nvue" / "startup.yaml.j2").write_bytes(b"caf\xe9\n")
    assert_refused(render_leaf(fabric, tmp_path / "out"), "nvue/startup.yaml.j2")


def test_ownership_is_declared_by_netkit_alone(tmp_path: Path, golden: Golden) -> None:
    # A comment that claims it, as overrides had one, changes nothing; nor does a copy of netkit's own file.
    fabric = with_template(tmp_path, "{# owns:\nsystem.ssh-server\n#}\nhello\n")
    own = fabric / "templates" / "nvue" / "owns.yaml"
    own.write_bytes((shipped_templates() / "nvue" / "owns.yaml").read_bytes())
    assert render_leaf(fabric, tmp_path / "out").returncode == 0
    own.write_text("owned:\n  - system / ssh-server\n", encoding="utf-8")
    done = render_leaf(fabric, tmp_path / "other")
    assert_refused(done, "owns.yaml")
    golden("overrides/owns.txt", done.stderr.replace(f"{tmp_path}/", "").replace(f"{ROOT}/", ""))


ESCAPES: dict[str, str] = {
    "include of an absolute path": "{% include '/etc/passwd' %}",
    "include of a path upwards": "{% include '../../../../../../../../etc/passwd' %}",
    "include of a path upwards within": "{% include 'nvue/../../../fabric.yaml' %}",
    "import of a path": "{% import '/etc/passwd' as x %}{{ x }}",
    "extends a path": "{% extends '/etc/passwd' %}",
    "class": "{{ ''.__class__ }}",
    "class by filter": "{{ ''|attr('__class__') }}",
    "class by subscript": "{{ ''['__class__'] }}",
    "class by map": "{{ ['']|map(attribute='__class__')|join }}",
    "class by format": "{{ '{0.__class__}'.format('') }}",
    "class by format_map": "{{ '{a.__class__}'.format_map({'a': 1}) }}",
    "class by a format held back": "{% set f = '{0.__class__}'.format %}{{ f('') }}",
    "globals of a macro": "{% macro m() %}{% endmacro %}{{ m.__globals__ }}",
    "globals of a built-in": "{{ range.__globals__ }}",
    "globals of cycler": "{{ cycler.__init__.__globals__ }}",
    "subclasses": "{{ [].__class__.__base__.__subclasses__() }}",
    "self": "{{ self.__init__.__globals__ }}",
    "self's environment": "{{ self._TemplateReference__context.environment }}",
    "open": "{{ open('/etc/passwd').read() }}",
    "import of a module": "{{ __import__('os') }}",
    "generator frame": "{{ (x for x in []).gi_frame }}",
    "python 2's way": "{{ ().__class__.__mro__[1] }}",
    "change of a list": "{% set x = [1] %}{{ x.append(2) }}",
    "change of a mapping": "{% set x = {'a': 1} %}{{ x.update({'b': 2}) }}",
    "the do tag": "{% do x.append(1) %}",
    "the debug tag": "{% debug %}",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_a_template_cannot_leave_its_sandbox(name: str, tmp_path: Path) -> None:
    fabric = with_template(tmp_path, ESCAPES[name] + "\n")
    done = render_leaf(fabric, tmp_path / "out")
    assert_refused(done)
    assert re.search(
        r"unsafe|undefined|has no attribute|no template folder has|Encountered unknown tag|unexpected|expected",
        done.stderr,
    ), done.stderr
    assert "root:x:0:0" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_template_cannot_reach_into_the_fabric_or_change_it() -> None:
    fabric = intents.fabric(intents.values())
    before = repr(fabric)
    engine = Engine()
    switch = fabric.switches[0]
    harmless = "{{ it.name }} {{ it.ports[0].description }}"
    assert engine.environment.from_string(harmless).render(it=switch).startswith("leaf01 ")
    for attempt in (
        "{% set it.name = 'x' %}",
        "{{ it.__setattr__('name', 'x') }}",
        "{{ it.__dict__ }}",
        "{{ it.__class__ }}",
        "{{ it._by_name }}",
        "{{ it['__class__'] }}",
        "{{ it|attr('__dict__') }}",
        "{{ it.fabric_ports.__class__ }}",
        "{{ it.model.split.__globals__ }}",
        "{{ it.model.split.__func__ }}",
    ):
        with pytest.raises(Exception, match=r"unsafe|undefined|has no attribute|non-namespace|expected|not allowed"):
            engine.environment.from_string(attempt).render(it=switch)
    assert repr(fabric) == before


def test_no_view_exposes_anything_that_can_access_the_machine() -> None:
    for platform, version in (("nvue", "5.16.1"), ("sonic", "202411"), ("eos", "4.35.1F"), ("frr", "8.4.4")):
        seen: set[type] = set()
        engine = Engine()

        def look(value: object, seen: set[type] = seen) -> None:
            if type(value) in seen and type(value) not in {dict, tuple, list}:
                return
            seen.add(type(value))
            if isinstance(value, dict):
                for key, inner in value.items():
                    look(key)
                    look(inner)
            elif isinstance(value, tuple | list):
                for inner in value:
                    look(inner)
            else:
                for name in getattr(type(value), "__dataclass_fields__", {}):
                    look(getattr(value, name))

        def spy(_name: str, context: object, _device: str, look: object = look) -> str:
            look(context)  # type: ignore[operator]
            return ""

        engine.render = spy  # type: ignore[method-assign, assignment]
        fabric = intents.fabric(intents.on_platform(platform, version))
        assert list(render(fabric, (fabric.switches[0], fabric.hosts[0]), engine, ztp=True))
        plain = {str, int, float, bool, tuple, list, dict, type(None)}
        strange = {kind for kind in seen - plain if not kind.__module__.startswith("netkit.")}
        assert strange == set(), platform


GREEDY: dict[str, str] = {
    "a long range": "{% for x in range(10**9) %}{% endfor %}",
    "a longer range": "{% for x in range(100001) %}{% endfor %}",
    "a power": "{{ 9**9**9 }}",
    "a repeated word": "{{ 'x' * 10**10 }}",
    "a repeated word, number first": "{{ 10**10 * 'x' }}",
    "a repeated list": "{{ [1] * 1000000000 }}",
    "repetition in steps": "{{ 'x' * 100000 * 100000 * 100 }}",
    "a product that grows": "{% set n = 99999 %}{{ ('x' * n) * n }}",
    "a wide field": "{{ '%2000000000d' % 1 }}",
    "a wide field by name": "{{ '{:2000000000}'.format(1) }}",
    "centred in a desert": "{{ 'x'|center(2000000000) }}",
    "ljust": "{{ 'x'.ljust(2000000000) }}",
    "indented to the moon": "{{ 'x\ny'|indent(2000000000) }}",
    "lorem without end": "{{ lipsum(n=2000000000) }}",
    "doubling": "{% set n = namespace(x='xx') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "doubling lists": "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "doubling macro": (
        "{% macro m(s, n) %}{% for i in range(n) %}{{ m(s ~ s, n - 1) }}{% endfor %}{% endmacro %}{{ m('xx', 60) }}"
    ),
    "replacing all by more": "{{ ('x' * 99999)|replace('x', 'x' * 99999)|length }}",
    "joining by a mountain": "{{ range(99999)|join('x' * 99999)|length }}",
    "output without end": "{% for a in range(99999) %}{{ 'x' * 99999 }}{% endfor %}",
}


@pytest.mark.parametrize("name", GREEDY)
def test_an_excessive_template_is_refused_in_one_line_and_bounded_time(name: str, tmp_path: Path) -> None:
    fabric = with_template(tmp_path, GREEDY[name] + "\n")
    began_s = processor_s()
    done = render_leaf(fabric, tmp_path / "out")
    assert_refused(done, "startup.yaml.j2", DEVICE)
    assert processor_s() - began_s < 15
    assert not (tmp_path / "out").exists()


def test_a_template_that_takes_too_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netkit.project.rendering.LONGEST_S", 1.0)
    text = "\n{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}\n"
    began_s = processor_s()
    done = render_leaf(with_template(tmp_path, text), tmp_path / "out")
    assert_refused(done, "startup.yaml.j2:2:", "takes longer than 1 s", DEVICE)
    assert processor_s() - began_s < 10


def test_common_template_features_still_work(tmp_path: Path) -> None:
    text = (
        "{% for n in range(3) %}{{ n * 2 }} {% endfor %}{{ '-' * 10 }} {{ 'x%03d' % 7 }} {{ 'ab'|center(6) }}|"
        "{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }} "
        "{{ [1, 2]|join(',') }} {{ '{:>4}'.format(5) }}\n"
    )
    assert said_by(tmp_path, text) == "0 2 4 ---------- x007   ab  |3 1,2    5\n"


@pytest.mark.parametrize("product", ["'x' * 100000 * 2", "100001 * [1]", "('x' * 400) * 400", "2 ** 2"])
def test_a_large_product_is_refused_before_it_is_computed(product: str) -> None:
    with pytest.raises(SecurityError, match=r"too large|no powers"):
        Engine().environment.from_string("{{ " + product + " }}").render()


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("{% for _ in view.vlan %}\nx\n{% endfor %}", "write {% if view.vlan %} … {% endif %}"),
        (
            "{% for bgp in view.bgp %}\nx\n{% endfor %}",
            "write {% if view.bgp %} … {% endif %}, and view.bgp instead of bgp in it",
        ),
        (
            "{% for all in view.logins %}\n{% for login in all %}\nx\n{% endfor %}\n{% endfor %}",
            "write one loop: {% for login in view.logins %}",
        ),
        ("{{ view.name | join }}", "write the value without join"),
    ],
    ids=["flag", "optional", "two-loops", "join"],
)
def test_a_loop_over_one_value_is_refused_with_the_line_to_write(text: str, remedy: str, tmp_path: Path) -> None:
    (tmp_path / "old.j2").write_text(text, encoding="utf-8")
    view = {"vlan": False, "bgp": {"asn": 1}.values, "logins": (1, 2), "name": "leaf01"}
    with pytest.raises(RenderError) as refused:
        Engine((tmp_path,)).render("old.j2", {"view": view}, "leaf01")
    assert [problem.remedy for problem in refused.value.problems] == [remedy]


def test_an_engine_renders_the_current_text_of_a_file(tmp_path: Path) -> None:
    """Engines share compiled templates, but not those of another folder or an earlier text."""
    for folder, text in (("a", "one"), ("a", "two"), ("b", "one"), ("a", "one")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "my.j2").write_text(text, encoding="utf-8")
        assert Engine((tmp_path / folder,)).render("my.j2", {}, "leaf01") == text


# Lines of overrides from when an optional value was a list of one or none, and their current form.
OVERRIDES: dict[str, tuple[tuple[str, str], ...]] = {
    "nvue": (
        ("{% for _ in view.draining %}x{% endfor %}", "{% if switch.drain %}x{% endif %}"),
        (
            "{% for management in view.management %}{{ management.address }}{% endfor %}",
            "{% if switch.management %}{{ switch.management.address }}{% endif %}",
        ),
        ("{% for vlan in view.vlans %}{{ vlan.number }}{% endfor %}", "{% if switch.vlan %}x{% endif %}"),
        (
            "{% for all in view.neighbors %}{% for neighbor in all %}{{ neighbor.port }}{% endfor %}{% endfor %}",
            "{% for neighbor in view.neighbors %}{{ neighbor.port }}{% endfor %}",
        ),
        (
            "{% for pairs in view.qos.dscps %}{% for dscp, priority in pairs %}{{ dscp }}{% endfor %}{% endfor %}",
            "{% for dscp, priority in view.qos.dscps %}{{ dscp }}{% endfor %}",
        ),
        (
            "{% for port in view.interfaces %}{% for vlan in port.access %}{{ vlan }}{% endfor %}{% endfor %}",
            "{% for port in view.interfaces %}{% if port.access %}{{ port.access }}{% endif %}{% endfor %}",
        ),
        (
            "{% for port in view.interfaces %}{% for _ in port.adaptive_routing %}x{% endfor %}{% endfor %}",
            "{% for port in view.interfaces %}{% if port.adaptive_routing %}x{% endif %}{% endfor %}",
        ),
        ("{% for tree in view.service %}x{% endfor %}", "{% if words.service_ntp %}x{% endif %}"),
        ("{% for tree in view.system.dns %}x{% endfor %}", "{% if fabric.services.dns %}x{% endif %}"),
    ),
    "sonic": (
        (
            "{% for ports in view.ports %}{% for port, comma in ports %}{{ port.name }}{% endfor %}{% endfor %}",
            "{% for port in view.ports %}{{ port.name }},{% endfor %}",
        ),
        (
            "{% for qos in view.qos %}{{ qos.roce }}{% endfor %}",
            "{% if view.qos %}{{ view.qos.roce }}{% endif %}",
        ),
        (
            "{% for port, _ in view.qos.ports %}{{ port.name }}{% endfor %}",
            "{% for port in view.qos.ports %}{{ port.name }}{% endfor %}",
        ),
        (
            "{% for interface in view.interfaces %}{% for address in interface.addresses %}x{% endfor %}{% endfor %}",
            "{% for interface in view.interfaces %}{% if interface.address %}x{% endif %}{% endfor %}",
        ),
        (
            "{% for (dscp, group), comma in view.qos.maps.dscp_to_class %}{{ dscp }}{% endfor %}",
            "{{ view.qos.dscp_to_class | tojson }}",
        ),
        ("{% for _ in view.has_wcmp %}x{% endfor %}", "{% if words.has_wcmp %}x{% endif %}"),
        (
            "{% for servers in view.services.dns %}{% for address, comma in servers %}x{% endfor %}{% endfor %}",
            "{% for address in fabric.services.dns %}x{% endfor %}",
        ),
        (
            "{% for bgp in view.bgp %}{{ bgp.instance.asn }}{% endfor %}",
            "{% if routing.groups %}{{ switch.asn }}{% endif %}",
        ),
        (
            '{% include "netkit/sonic/ztp_config_db.json.j2" %}\n,\n "X": {}\n',
            '{ "Y": {\n  "a": {},\n }, "X": {},\n}\n',
        ),
    ),
    "frr": (
        (
            "{% for bgp in routing.instances %}{{ bgp.asn }}{% endfor %}",
            "{% if routing.groups %}{{ switch.asn }}{% endif %}",
        ),
        (
            "{% for group in routing.groups %}{% for policy in group.policies %}x{% endfor %}{% endfor %}",
            "{% for group in routing.groups %}{{ group.inbound }}{% endfor %}",
        ),
        (
            "{% for port in ports %}{% for address in port.addresses %}{{ address }}{% endfor %}{% endfor %}",
            "{% for port in ports %}{% if port.address %}{{ port.address }}{% endif %}{% endfor %}",
        ),
        (
            "{% for map in routing.route_maps %}{% for preference in map.local_preferences %}x{% endfor %}{% endfor %}",
            "{% for map in routing.route_maps %}{% if map.local_preference is not none %}x{% endif %}{% endfor %}",
        ),
        (
            "{% for management in management %}{{ management.table }}{% endfor %}",
            "{% if switch.management %}{{ vrf_table }}{% endif %}",
        ),
        (
            "{% for device in service.devices %}{{ device }}{% endfor %}",
            "{% if switch.management %}{{ vrf }}{% endif %}",
        ),
        ("{% for one in bridges %}{{ one.name }}{% endfor %}", "{% if bridge %}{{ bridge.name }}{% endif %}"),
    ),
    "host": (
        (
            "{% for rail in rails %}{% for mac in rail.macs %}{{ mac }}{% endfor %}{% endfor %}",
            "{% for rail in rails %}{% if rail.mac %}{{ rail.mac }}{% endif %}{% endfor %}",
        ),
        (
            "{% for name in names %}{% for rdma in name.new_rdma %}{{ rdma }}{% endfor %}{% endfor %}",
            "{% for name in names %}{% if name.new_rdma %}{{ name.new_rdma }}{% endif %}{% endfor %}",
        ),
    ),
}
NEWEST = {"nvue": "5.16.1", "sonic": "202411", "eos": "4.35.1F", "frr": "8.4.4"}


@pytest.mark.parametrize("platform", OVERRIDES)
def test_an_override_from_before_templates_used_if_is_refused_with_what_to_write(
    platform: str, golden: Golden, tmp_path: Path
) -> None:
    # With a non-default DSCP and a drained switch, every one of these lists and flags is present.
    odd = {"lossless": {"roce": {"dscp": [26, 40]}}, "overrides": {"leaf01": {"drain": True}}}
    of_hosts = platform == "host"
    fabric = intents.fabric(intents.values(odd) if of_hosts else intents.on_platform(platform, NEWEST[platform], odd))
    device = fabric.hosts[0] if of_hosts else fabric.switch("leaf01")
    artifact = next(iter(inputs(fabric)(device)))
    refusals = []
    for number, (old, new) in enumerate(OVERRIDES[platform]):
        ending = ".json.j2" if '"X": {}' in old else ".j2"
        for kind, text in (("old", old), ("new", new)):
            (tmp_path / platform).mkdir(exist_ok=True)
            (tmp_path / platform / f"{kind}{number}{ending}").write_text(text, encoding="utf-8")
        engine = Engine((tmp_path,))
        with pytest.raises(RenderError) as refused:
            engine.render(f"{platform}/old{number}{ending}", artifact.context, device.name)
        refusals.append(f"{old}\n{refused.value}\n".replace(f"{tmp_path}/", ""))
        engine.render(f"{platform}/new{number}{ending}", artifact.context, device.name)
    golden(f"overrides/{platform}.txt", "\n".join(refusals))


def ending_rows(value: Any, depth: int = 0) -> str:
    """JSON as templates write it: a comma after each row, the last one too."""
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {ending_rows(inner, depth + 1)},\n" for key, inner in value.items()]
        return "{\n" + "".join(" " * depth + row for row in rows) + " " * depth + "}"
    if isinstance(value, list):
        return "[\n" + "".join(f"{ending_rows(inner, depth + 1)},\n" for inner in value) + "]"
    return json.dumps(value)


TEXTS = st.text(st.sampled_from(',}]{["\n\\ a'), max_size=8)
TREES = st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))


@given(st.dictionaries(TEXTS, TREES, max_size=3))
def test_the_comma_after_a_last_row_is_removed_and_no_text_changes(tree: dict[str, Any]) -> None:
    engine = Engine()
    engine.environment.loader = DictLoader({"sonic/one.json.j2": "{{ text }}"})
    text = engine.render("sonic/one.json.j2", {"text": ending_rows(tree)}, DEVICE)
    assert json.loads(text) == tree


@pytest.mark.parametrize("platform", [*NEWEST, "host"])
def test_each_listed_name_is_present_with_its_value(platform: str) -> None:
    of_hosts = platform == "host"
    fabric = intents.fabric(intents.values() if of_hosts else intents.on_platform(platform, NEWEST[platform]))
    device = fabric.hosts[0] if of_hosts else fabric.switch("leaf01")
    context: dict[str, Any] = {}
    for artifact in inputs(fabric, ztp=True)(device):
        context = {**artifact.context, **context}
    listed = {one.name: one.value for one in names(fabric, device)}
    assert {re.split(r"[.\[]", name)[0] for name in listed} == context.keys()
    others = ("[", "list of", "mapping of", "the same as")
    plain = {name: value for name, value in listed.items() if not value.startswith(others)}
    environment = Engine().environment
    said = {name: environment.from_string("{{ " + name + " }}").render(context) for name in plain}
    spelled = {"True": "true", "False": "false", "None": "none"}
    assert {name: spelled.get(text, text) for name, text in said.items()} == plain


def test_the_view_of_a_device_lists_its_templates_and_an_unknown_device_is_refused(tmp_path: Path) -> None:
    fabric = with_template(tmp_path, "# ours\n", "nvue/qos.yaml.j2")
    done = run("design", "--fabric", fabric, "--view", DEVICE, "--format", "json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    reported = json.loads(done.stdout)
    ours = [one for one in reported["templates"] if not one["path"].startswith(str(shipped_templates()))]
    assert ours == [{"file": "", "template": "nvue/qos.yaml.j2", "path": str(fabric / "templates/nvue/qos.yaml.j2")}]
    assert {"name": "switch.name", "value": DEVICE} in reported["names"]
    assert_refused(run("design", "--fabric", fabric, "--view", "leaf1"), "no device 'leaf1'; did you mean leaf")


def test_a_users_additional_file_is_rendered(tmp_path: Path, golden: Golden) -> None:
    text = "{% if switch.role == 'leaf' %}\nleaf {{ switch.name }}\n{% endif %}\n"
    fabric = with_template(tmp_path, text, "nvue/files/label.txt.j2")
    out = tmp_path / "out"
    assert run("render", "--fabric", fabric, "-o", out).returncode == 0
    leaves = {file.parent for file in out.glob("leaf*/startup.yaml")}
    assert {file.parent for file in out.glob("*/label.txt")} == leaves
    assert (out / DEVICE / "label.txt").read_text(encoding="utf-8") == f"leaf {DEVICE}\n"
    planned = run("plan", "--fabric", fabric, "--running", out, "--limit", DEVICE)
    assert (planned.returncode, planned.stderr) == (0, "")
    with_template(tmp_path, "x\n", "nvue/files/startup.yaml.j2")
    done = render_leaf(fabric, tmp_path / "other")
    assert_refused(done, "startup.yaml")
    golden("overrides/files.txt", done.stderr)


def test_a_path_that_the_intent_owns_is_planned_like_others(tmp_path: Path) -> None:
    folder, saved = tmp_path / "f", tmp_path / "saved"
    done = run("init", folder, "--leaves", "2", "--spines", "2", "--hosts-per-unit", "2", "--platform", "eos")
    assert done.returncode == 0, done.stderr
    (folder / "templates" / "eos").mkdir(parents=True)
    (folder / "templates" / "eos" / "services.j2").write_text(
        "{% include 'netkit/eos/services.j2' %}\nip access-list standard EDGE\n   10 permit 192.0.2.0/24\n!\n", "utf-8"
    )
    leaf = saved / "leaf-u01-r0"
    leaf.mkdir(parents=True)

    def planned(added: str) -> list[tuple[Any, ...]]:
        text = Project.open(folder).render(leaf.name)[leaf.name]["eos.cfg"]
        (leaf / "eos.cfg").write_text(text.replace("   10 permit 192.0.2.0/24\n", added), encoding="utf-8")
        (device,) = Project.open(folder).plan(leaf.name, running=saved).plan.devices
        return [(change.path, change.running, change.intended) for change in device.changes]

    by_hand = "   10 permit 192.0.2.0/24\n   20 permit 198.51.100.0/24\n"
    assert planned(by_hand) == []
    with (folder / "fabric.yaml").open("a", encoding="utf-8") as file:
        file.write("own: [ip access-list standard EDGE]\n")
    edge = "ip access-list standard EDGE"
    assert planned("   10 permit 192.0.2.0/24\n") == []
    assert planned("") == [((edge, "10 permit 192.0.2.0/24"), None, "")]
    assert planned(by_hand) == [((edge, "20 permit 198.51.100.0/24"), "", None)]
