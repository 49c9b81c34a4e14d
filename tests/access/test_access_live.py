"""Trust, and Nornir, on a running lab: real host keys, certificates and logins."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from napalm import get_network_driver
from nornir import InitNornir
from nornir.core.plugins.inventory import InventoryPluginRegister
from nornir.core.task import Task

from netkit.access.known_hosts import remember, scan
from netkit.access.settings import Endpoint
from netkit.errors import AccessError
from netkit.platforms.ssh import SshLine, SshTarget
from netkit.project.nornir_plugin import NetkitInventory
from tests.command import ROOT
from tests.lab.running import RunningLab, intent, needs_lab, running, write_fabric
from tests.platforms.nvue.switch import endpoint, opened

pytestmark = needs_lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), intent()), name="a") as booted:
        yield booted


def untrusted(lab: RunningLab, device: str, folder: Path, transport: str = "ssh") -> Endpoint:
    """A device without any trusted key."""
    return endpoint(lab, device, transport, known_hosts=folder / "known_hosts", certificate="")


def test_a_device_is_trusted_after_confirmation(lab: RunningLab, tmp_path: Path) -> None:
    place = untrusted(lab, "leaf01", tmp_path)
    with pytest.raises(AccessError, match="its SSH host key is not in") as caught:
        opened(lab, "leaf01", known_hosts=place.known_hosts)
    found = scan(place)
    assert (found.kind, found.status) == ("ssh-ed25519", "new")
    assert found.fingerprint in str(caught.value)
    assert not (tmp_path / "known_hosts").exists()
    remember([found], tmp_path / "known_hosts")
    opened(lab, "leaf01", known_hosts=place.known_hosts).close()
    assert scan(place).status == "known"


def test_a_changed_key_is_replaced_only_on_request(lab: RunningLab, tmp_path: Path) -> None:
    one, other = (scan(untrusted(lab, name, tmp_path)) for name in ("leaf01", "leaf02"))
    hosts = tmp_path / "known_hosts"
    key = other.line.split(" ", 1)[1]
    before = f"# ours\n{one.host},other.example {key}\n{other.line}\n@revoked {one.host} {key}\n"
    hosts.write_text(before, encoding="utf-8")
    with pytest.raises(AccessError, match=r"is not the known one|is not in"):
        opened(lab, "leaf01", known_hosts=hosts)
    hosts.write_text(before := before.replace(f"@revoked {one.host} {key}\n", ""), encoding="utf-8")
    changed = scan(untrusted(lab, "leaf01", tmp_path))
    assert changed.status == "changed"
    with pytest.raises(AccessError, match="leaf01: its ssh-ed25519 is not the trusted one"):
        remember([changed], hosts)
    assert hosts.read_text(encoding="utf-8") == before
    remember([changed], hosts, replace_changed=True)
    assert hosts.read_text(encoding="utf-8") == f"# ours\nother.example {key}\n{other.line}\n{one.line}\n"
    opened(lab, "leaf01", known_hosts=hosts).close()
    opened(lab, "leaf02", known_hosts=hosts).close()


def test_a_certificate_is_pinned(lab: RunningLab, tmp_path: Path) -> None:
    place = untrusted(lab, "leaf01", tmp_path, "nvue-rest")
    found = scan(place)
    assert (found.kind, found.status) == ("certificate", "new")
    assert found.fingerprint == f"SHA256:{endpoint(lab, 'leaf01', 'nvue-rest').certificate}"
    remember([found], tmp_path / "known_hosts")
    text = (tmp_path / "known_certificates").read_text(encoding="utf-8")
    pinned = text.splitlines()[-1].split()[2]
    opened(lab, "leaf01", "nvue-rest", known_hosts=place.known_hosts, certificate=pinned).close()
    assert scan(replace(place, certificate=pinned)).status == "known"
    other = scan(replace(untrusted(lab, "leaf02", tmp_path, "nvue-rest"), certificate=pinned))
    assert other.status == "changed"
    with pytest.raises(AccessError, match="leaf02: its certificate is not the trusted one"):
        remember([other], tmp_path / "known_hosts")


def test_a_hashed_name_is_known(lab: RunningLab, tmp_path: Path) -> None:
    from paramiko.hostkeys import HostKeys  # noqa: PLC0415 (only to write what OpenSSH would)

    found = scan(untrusted(lab, "leaf01", tmp_path))
    line = found.line.replace(found.host, HostKeys.hash_host(found.host), 1)
    (tmp_path / "known_hosts").write_text(f"{line}\n", encoding="utf-8")
    assert scan(untrusted(lab, "leaf01", tmp_path)).status == "known"
    opened(lab, "leaf01", known_hosts=tmp_path / "known_hosts").close()


@pytest.mark.parametrize("transport", ["ssh", "nvue-rest"])
def test_without_a_listener_no_key_is_shown(lab: RunningLab, tmp_path: Path, transport: str) -> None:
    with pytest.raises(AccessError, match=r"leaf01: .* port 1"):
        scan(replace(untrusted(lab, "leaf01", tmp_path, transport), port=1))


def line(lab: RunningLab, device: str = "gpu01") -> SshLine:
    place = endpoint(lab, device)
    target = SshTarget(
        device,
        place.host,
        place.user,
        place.port,
        key_file=place.key_file,
        known_hosts=place.known_hosts,
        timeout_s=120,
    )
    return SshLine(target)


def test_a_command_separates_stdin_stdout_stderr_and_exit_code(lab: RunningLab) -> None:
    ssh = line(lab)
    with pytest.raises(AccessError, match="the connection is lost"):
        ssh.run("true")
    ssh.open()
    assert ssh.is_alive
    done = ssh.run("tr a-z A-Z; echo wrong >&2; exit 7", stdin="in\n")
    assert (done.exit_code, done.stdout, done.stderr, done.output) == (7, "IN\n", "wrong\n", "wrong\nIN")
    big = ssh.run("wc -c; head -c 5000000 /dev/zero; head -c 3000000 /dev/zero >&2", stdin="x" * 5_000_000)
    assert (big.stdout[:8], len(big.stdout), len(big.stderr)) == ("5000000\n", 5_000_008, 3_000_000)
    assert ssh.run("printf '\\377'").stdout == "\N{REPLACEMENT CHARACTER}"
    ssh.close()
    ssh.close()
    assert not ssh.is_alive


def test_a_file_is_readable_by_its_owner_only(lab: RunningLab) -> None:
    ssh = line(lab)
    ssh.open()
    ssh.put("/tmp/it is ours", "text\n")  # noqa: S108
    ssh.put("/tmp/it is ours", "text of ours\n")  # noqa: S108
    shown = ssh.run("stat -c %a '/tmp/it is ours'; cat '/tmp/it is ours'").stdout
    assert shown == "600\ntext of ours\n"
    ssh.put("/tmp/tool", "#!/bin/sh\n", 0o755)  # noqa: S108
    assert ssh.run("stat -c %a /tmp/tool").stdout == "755\n"
    with pytest.raises(AccessError) as caught:
        ssh.run("sleep 600", timeout_s=1)
    assert "gpu01: did not answer within 1 s: sleep 600" in str(caught.value)
    assert ssh.run("echo on").stdout == "on\n"
    ssh.close()


def facts(task: Task) -> Any:
    """Open a device as the NAPALM plugin of Nornir does."""
    wanted = task.host.get_connection_parameters("napalm")
    with get_network_driver(wanted.platform)(
        wanted.hostname, wanted.username, wanted.password, **(wanted.extras or {})
    ) as device:
        return device.get_facts()


def test_nornir_and_napalm_drive_the_lab_by_name(lab: RunningLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "drivers")
    InventoryPluginRegister.register("NetkitInventory", NetkitInventory)
    monkeypatch.setenv("NETKIT_LAB_DIR", str(lab.home))
    options = {"fabric": str(lab.fabric), "lab": lab.name}
    nornir = InitNornir(inventory={"plugin": "NetkitInventory", "options": options}, logging={"enabled": False})
    done = nornir.filter(role="leaf").run(facts)
    assert not done.failed
    assert {name: result[0].result["hostname"] for name, result in done.items()} == {
        "leaf01": "leaf01",
        "leaf02": "leaf02",
    }
