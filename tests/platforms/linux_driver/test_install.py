"""Where the files of a host are installed, and reading them back: equal to what is rendered."""

import ast
import base64
import contextlib
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.access.inventory import ansible_inventory as inventory
from netkit.access.settings import Endpoint
from netkit.errors import ConfigError, DeviceError
from netkit.platforms.compare import MODELS
from netkit.platforms.linux import install, rails
from netkit.platforms.linux.driver import shipped_playbooks
from netkit.platforms.ownership import declared
from tests.intents import fabric, values
from tests.lab.personalities.linux_host_desk import rendered

SHAPES = [
    values({"hosts": {"model": "dgx-h100", "backend": backend}, "host_routes": routes, "cross_rail": cross})
    for backend in ("netplan", "networkd")
    for routes in ("per-leaf", "supernet")
    for cross in ("routed", "blocked")
] + [values({"attachment": "vlan"})]


def printed(there: dict[str, str]) -> str:
    rows = [f"0640 {len(text.encode())} {place}\n" for place, text in there.items()]
    held = base64.b64encode("".join(there.values()).encode()).decode()
    return "".join([*rows, f"{held}\n" if there else "", "end\n"])


def places(files: dict[str, str]) -> dict[str, str]:
    return {entry["path"]: entry["content"] for entry in install.entries(files, "gpu01")}


@pytest.mark.parametrize("shape", SHAPES)
def test_installed_files_are_read_back_as_rendered(shape: dict[str, object]) -> None:
    built = fabric(shape)
    for host in built.hosts:
        files = rendered(built, host)
        found = install.running(printed(places(files)), host.name)
        there = {name: text for name, text in found.items() if text is not None and name != install.LIST}
        assert there == {name: text for name, text in files.items() if MODELS["linux"].reads(name)}
        back = install.entries({name: text for name, text in found.items() if text is not None}, host.name)
        assert {entry["path"]: entry["content"] for entry in back} == places(files)
        assert {entry["mode"] for entry in back} == {"0640"}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_rendered_name_is_known_on_a_bare_host(shape: dict[str, object]) -> None:
    built = fabric(shape)
    found = install.running(printed({}), "gpu01")
    assert {name for name, text in found.items() if text is not None} == {install.LIST}
    assert install.entries({install.LIST: found[install.LIST] or ""}, "gpu01") == []
    assert {name for name in rendered(built, built.hosts[0]) if MODELS["linux"].reads(name)} <= set(found)


def test_missing_or_different_drop_ins_are_visible_and_can_be_restored() -> None:
    built = fabric(values({}))
    there = places(rendered(built, built.hosts[0]))
    missing = next(place for place in there if place.endswith("rail1.network.d/oif.conf"))
    del there[missing]
    for _ in range(2):
        found = install.running(printed(there), "gpu01")
        assert found["oif.conf"] is None
        back = install.entries({name: text for name, text in found.items() if text is not None}, "gpu01")
        assert {entry["path"]: entry["content"] for entry in back} == there
        there[missing] = "[RoutingPolicyRule]\nTable=7\n"


@given(st.text().filter(lambda text: text.splitlines()[-1:] != ["end"]))
def test_any_answer_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(DeviceError):
        assert "netplan.yaml" in install.running(f"{text}\nend\n", "gpu01")
    with pytest.raises(DeviceError, match="its files cannot be read"):
        install.running(text, "gpu01")


@pytest.mark.parametrize(
    "text",
    [
        "0640 4 /etc/nccl.conf\nYWJj\nend\n",
        "0640 2 /etc/nccl.conf\nYWJj\nend\n",
        "0640 3 /etc/nccl.conf\nYWJ\nend\n",
        "0640 3 /etc/nccl.conf\nYWJj\n",
        "0640 3 /etc/nccl.conf\nend\n",
        "0640 /etc/nccl.conf\nYWJj\nend\n",
        "0640 -1 /etc/nccl.conf\n0640 4 /etc/netkit/mlxconfig.conf\nYWJj\nend\n",
    ],
    ids=["longer", "shorter", "garbled", "cut", "nothing held", "no size", "less than nothing"],
)
def test_an_incomplete_answer_is_refused(text: str) -> None:
    with pytest.raises(DeviceError, match="its files cannot be read"):
        install.running(text, "gpu01")


@pytest.mark.parametrize("text", ["", "# nothing\n", "0600 netplan.yaml\n", "0600 gone.yaml /etc/netplan/x.yaml\n"])
def test_files_without_a_known_path_are_refused(text: str) -> None:
    with pytest.raises(DeviceError, match=r"install\.txt.*render it again"):
        install.entries({"install.txt": text, "netplan.yaml": ""}, "gpu01")


def test_program_module_and_templates_agree_on_owned_files() -> None:
    source = (shipped_playbooks() / "library" / "netkit_host.py").read_text(encoding="utf-8")
    owned = next(
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OWNED"
    )
    assert set(owned) == set(install.PLACES)
    patterns = [pattern for (pattern,) in declared("host").owned]
    files = [name or place.rpartition("/")[2] for place, name in install.PLACES.items()]
    assert sorted(pattern for name in files for pattern in patterns if fnmatchcase(name, pattern)) == sorted(patterns)


@pytest.mark.parametrize("shape", SHAPES)
def test_files_and_design_request_the_same_of_the_kernel(shape: dict[str, object]) -> None:
    built = fabric(shape)
    endpoints = {host.name: Endpoint(host.name, "linux", "h", 22, "root") for host in built.hosts}
    hosts = inventory(built, endpoints)["all"]["hosts"]  # type: ignore[index]
    assert set(hosts) == {host.name for host in built.hosts}
    for host in built.hosts:
        configured = rails.configured(rendered(built, host))
        assert hosts[host.name]["netkit_rails"] == rails.as_variables(configured)
        assert [rail.interface for rail in configured] == [nic.interface for nic in host.nics]
        assert all(rail.lookups for rail in configured)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_host_is_asked_for_the_path_to_itself(shape: dict[str, object]) -> None:
    built = fabric(shape)
    for host in built.hosts:
        asked = {lookup.to for rail in rails.configured(rendered(built, host)) for lookup in rail.lookups}
        assert not asked & {nic.address for nic in host.nics}


@pytest.mark.parametrize("name", ["netplan.yaml", "10-rail0.network"])
@pytest.mark.parametrize("text", ["", "{", "a: &a [*a]", "network: {ethernets: {rail0: {}}}", "[Match]\nName=rail0\n"])
def test_files_without_a_rail_are_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match="describe no rail"):
        rails.configured({name: text})


@given(st.text())
def test_any_netplan_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert rails.configured({"netplan.yaml": text})


def test_an_inventory_holds_no_password_and_verifies_host_keys(tmp_path: Path) -> None:
    built = fabric(values({}))
    name = built.hosts[0].name
    endpoint = Endpoint(name, "linux", "h", 2222, "ops", password="s3cr3t", known_hosts=tmp_path / "a b")  # noqa: S106
    host = inventory(built, {name: endpoint})["all"]["hosts"][name]  # type: ignore[index]
    assert "s3cr3t" not in repr(host)
    assert "lookup('ansible.builtin.env', 'NETKIT_PASSWORD')" in str(host["ansible_password"])
    alive = "-oServerAliveInterval=8 -oServerAliveCountMax=3"
    assert (
        host["ansible_ssh_common_args"] == f"-oStrictHostKeyChecking=yes {alive} '-oUserKnownHostsFile={tmp_path}/a b'"
    )
    assert (host["ansible_port"], host["ansible_become"]) == (2222, True)


def staging(place: Path, **environment: str) -> tuple[int, str]:
    words = ["/bin/sh", "-c", install.stage_command(str(place))]
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **environment}
    done = subprocess.run(words, input="text", env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_files_are_staged_for_their_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / "netkit" / "staged.json"
    assert staging(place) == (0, "")
    assert [(one.name, one.stat().st_mode & 0o777) for one in place.parent.iterdir()] == [("staged.json", 0o600)]
    assert place.read_text(encoding="utf-8") == "text"


def test_a_host_on_which_ansible_cannot_work_stages_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "netkit" / "staged.json"
    code, complaint = staging(place, TMPDIR=str(tmp_path / "gone"))
    assert (code, "failed to create directory" in complaint) == (1, True), complaint
    monkeypatch.setattr(install, "PYTHON", "/gone/python3")
    assert staging(place) == (1, "/gone/python3 is missing, or older than 3.8, and Ansible needs it\n")
    assert list(tmp_path.iterdir()) == []
