"""Deploys to the GPU hosts of a running lab: sshd, Ansible, netplan, networkd, kernels and leaves are real."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.deploy import ConfigState, DeviceResult, Options, Outcome, SessionGate, apply
from netkit.deploy.gate import HostGate
from netkit.deploy.journal import Journal
from netkit.plan import Running, make
from netkit.platforms.config import Files
from netkit.platforms.driver import Candidate
from netkit.platforms.linux.driver import LinuxDriver, commit_together, shipped_playbooks
from netkit.platforms.linux.install import LIST, NOTHING
from tests.cli.site import PATIENCE_S, Site
from tests.command import NETKIT, ROOT
from tests.lab.running import intent, needs_lab, running, until, write_fabric
from tests.platforms.linux_driver.bench import ANSIBLE, Bench, Edit, bench

pytestmark = needs_lab
INTENT = intent()
CHANGED = intent(hosts={"model": "dgx-h100", "mtu_bytes": 4200}, cross_rail="blocked", lossless={"cnp": {"dscp": 46}})
HOSTS = ("gpu01", "gpu02")
ON_HOSTS = ("--yes", "--limit", "role=host", "--no-canary", "--disruptive", "--busy", "--confirm-within", "900")
WATCH = """
(exec ip -ts -4 monitor link address route >/tmp/seen) >/dev/null 2>&1 </dev/null &
echo $! >/tmp/watch; sleep 1
"""
SEEN = re.compile(r"^\[(\S+)\].*\b(rail\d)\b", re.MULTILINE)
CUT = """
- name: "Set up {{{{ rail }}}}"
  netkit_host: {{step: rail, rail: "{{{{ rail }}}}"}}
  when: rail in begun.rails

- name: Cut a host off after its first rail
  ansible.builtin.debug:
    msg: "{{{{ lookup('ansible.builtin.pipe', {command!r}) }}}}"
  when: (rail, inventory_hostname) == ('rail0', 'gpu02')
"""
Kept = dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Boot a fabric with the intended configurations; each test restores them."""
    with running(write_fabric(tmp_path_factory.mktemp("hosts"), INTENT)) as lab:
        yield bench(lab, INTENT, tmp_path_factory.mktemp("work"))


@pytest.fixture
def site(up: Bench, tmp_path: Path) -> Iterator[Site]:
    """The lab for a new user."""
    found = Site(up.lab, tmp_path)
    yield found
    write_fabric(up.lab.fabric, INTENT)
    done = found.netkit("deploy", *ON_HOSTS)
    assert done.returncode == 0, done.stdout + done.stderr


def kept(up: Bench) -> Kept:
    return {name: (up.disk(name), up.kernel(name)) for name in HOSTS}


def stripped(up: Bench) -> None:
    """Remove everything that netkit manages from the hosts."""
    drivers = [up.driver(name) for name in HOSTS]
    for driver in drivers:
        driver.load_candidate(Candidate({LIST: NOTHING}, (), "ansible"))
    assert commit_together(drivers) == {}


def moments(up: Bench) -> dict[str, list[str]]:
    """Kernel log times of each rail's changes on all hosts, since the watch began."""
    found: dict[str, list[str]] = {}
    for name in HOSTS:
        for at, rail in SEEN.findall(up.lab.shell(name, "kill $(cat /tmp/watch); cat /tmp/seen")):
            found.setdefault(rail, []).append(at)
    return {rail: sorted(times) for rail, times in found.items()}


def test_from_bare_hosts_then_a_change_then_rolled_back(up: Bench, site: Site) -> None:
    stripped(up)
    bare = kept(up)
    assert site.netkit("deploy", *ON_HOSTS).returncode == 0
    whole = kept(up)
    first = site.runs()[-1].name

    write_fabric(up.lab.fabric, CHANGED)
    for name in HOSTS:
        up.lab.shell(name, WATCH)
    done = site.netkit("deploy", *ON_HOSTS)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = moments(up)
    assert sorted(seen) == ["rail0", "rail1"]
    assert all(seen.values())  # no traffic: all rails of a host change in one step
    for name in HOSTS:
        assert up.lab.shell(name, "cat /sys/class/net/rail0/mtu /sys/class/net/rail1/mtu") == "4200\n4200\n"
        assert "via" not in up.lab.shell(name, "ip -4 route show table 100 10.128.128.0/29")
        assert up.lab.shell(name, "netkit-nic-qos --check; cat /sys/class/net/rail1/ecn/roce_np/cnp_dscp") == "46\n"
    again = site.netkit("deploy", *ON_HOSTS)
    assert (again.returncode, len(site.runs())) == (0, 2), again.stderr

    back = site.netkit("rollback", "last", *ON_HOSTS)
    assert back.returncode == 0, back.stdout + back.stderr
    assert kept(up) == whole
    back = site.netkit("rollback", first, *ON_HOSTS)
    assert back.returncode == 0, back.stdout + back.stderr
    assert kept(up) == bare


@pytest.mark.whole
def test_plain_ansible_with_the_inventory_of_netkit_deploys_verifies_and_reverts(up: Bench, site: Site) -> None:
    before = kept(up)
    write_fabric(up.lab.fabric, CHANGED)
    place = up.folder / "hosts.yaml"
    place.write_text(site.netkit("inventory").stdout, encoding="utf-8")
    assert up.lab.netkit("render", "--fabric", up.lab.fabric, "--out", up.folder / "out").returncode == 0
    options = {
        "hosts-apply.yml": (f"-enetkit_configs={up.folder / 'out'}", '-e{"netkit_batch": ["100%"]}'),
        "hosts-verify.yml": (),
        "hosts-rollback.yml": (),
    }
    for playbook, given in options.items():
        words = [str(ANSIBLE), "-i", str(place), str(shipped_playbooks() / playbook), *given]
        done = subprocess.run(words, cwd=up.folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (kept(up) == before) == (playbook == "hosts-rollback.yml")


@pytest.mark.whole
def test_a_host_lost_during_its_change_is_reverted_and_the_other_is_done(up: Bench, site: Site) -> None:
    before = kept(up)
    write_fabric(up.lab.fabric, CHANGED)
    own = up.lab.fabric / "playbooks" / "tasks"
    own.mkdir(parents=True)
    cut = f"cd {ROOT}; NETKIT_LAB_DIR={up.lab.home} {sys.executable} -m netkit lab break unreachable gpu02 --lab t"
    (own / "rail.yml").write_text(CUT.format(command=cut), encoding="utf-8")
    process = site.started("deploy", *ON_HOSTS)
    try:
        until(lambda: ("settle", "gpu02") in steps(site), "gpu02 is lost", patience_s=PATIENCE_S)
    finally:
        (own / "rail.yml").unlink()
        assert up.lab.lab("heal", "--all").returncode == 0
    said, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 4, said + complained
    assert "gpu02: reverted, runs its earlier configuration" in said
    assert (up.disk("gpu02"), up.kernel("gpu02")) == before["gpu02"]
    assert up.lab.shell("gpu01", "cat /sys/class/net/rail1/mtu") == "4200\n"


@pytest.mark.whole
def test_a_host_that_hangs_during_its_change_does_not_hold_up_the_other(up: Bench, site: Site) -> None:
    """Each step has 60 % of the time to confirm: the other host is confirmed in the rest."""
    before = kept(up)
    write_fabric(up.lab.fabric, CHANGED)
    (up.lab.fabric / "access.yaml").write_text("timeout_s: 10\n", encoding="utf-8")
    words = site.words("deploy", *ON_HOSTS, "--confirm-within", "100")[len(NETKIT) :]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.deploy.struck", "hangs", "gpu02", "commit", "1", up.lab.name, *words],
        cwd=ROOT,
        env=site.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        until(lambda: ("end", "gpu01") in steps(site), "gpu01 is done", patience_s=PATIENCE_S)
    finally:
        (up.lab.fabric / "access.yaml").unlink()
        assert up.lab.lab("heal", "--all").returncode == 0
    said, complained = process.communicate(timeout=PATIENCE_S)
    left = subprocess.run(["pgrep", "-f", f"^ssh .*={up.lab.home}/"], stdout=subprocess.PIPE, check=False)
    assert left.stdout == b""
    assert process.returncode == 4, said + complained
    assert "1 done, 1 reverted" in said
    what = "gpu02: reverted, runs its earlier configuration: hangs: a step did not end within 60 s; "
    assert f"{what}the host reverts by itself what it changed" in said
    assert (up.disk("gpu02"), up.kernel("gpu02")) == before["gpu02"]
    assert up.lab.shell("gpu01", "cat /sys/class/net/rail1/mtu") == "4200\n"


def steps(site: Site) -> list[tuple[str, str]]:
    """The steps of the newest run."""
    return [(entry.step, entry.device) for run in site.runs()[-1:] for entry in Journal(run).entries()]


def waits(up: Bench, device: str) -> bool:
    """Whether a change on a host waits for its confirmation."""
    driver = up.driver(device)
    found = driver.has_pending_commit()
    driver.close()
    return found


def killed(up: Bench, site: Site, *options: str) -> None:
    """Deploy, and kill netkit as soon as a host changes."""
    process = site.started("deploy", *ON_HOSTS, *options)
    try:
        until(lambda: waits(up, "gpu01"), "gpu01 changes", patience_s=PATIENCE_S)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    assert steps(site)[-2:] == [("commit", "gpu01"), ("commit", "gpu02")]


@pytest.mark.whole
def test_a_killed_deploy_is_resumed_although_its_ansible_still_runs(up: Bench, site: Site) -> None:
    write_fabric(up.lab.fabric, CHANGED)
    killed(up, site)
    done = site.netkit("deploy", "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in HOSTS:
        assert up.lab.shell(name, "cat /sys/class/net/rail0/mtu /sys/class/net/rail1/mtu") == "4200\n4200\n"
        assert not waits(up, name)
    assert site.netkit("plan", "--limit", "role=host", "--detailed-exitcode").returncode == 0


@pytest.mark.whole
def test_a_killed_deploy_is_not_confirmed_and_its_hosts_revert(up: Bench, site: Site) -> None:
    before = kept(up)
    write_fabric(up.lab.fabric, CHANGED)
    killed(up, site, "--confirm-within", "45")
    for fabric in (INTENT, CHANGED):  # the hosts run the second until their timer expires
        write_fabric(up.lab.fabric, fabric)
        again = site.netkit("deploy", *ON_HOSTS)
        assert again.returncode == 3, again.stderr
        assert "was interrupted: gpu01, gpu02 may still revert its change" in again.stderr
    until(lambda: not any(waits(up, name) for name in HOSTS), "the timers of the hosts", PATIENCE_S)
    assert kept(up) == before


def changed(up: Bench, site: Site, **edits: Edit) -> Outcome:
    """Deploy edited files to the hosts."""
    files: dict[str, Files] = {name: up.files(name, **edits) for name in HOSTS}
    secret = dict[str, str]().__getitem__
    there = {}
    for name in HOSTS:
        driver = up.driver(name)
        there[name] = Running(driver.running_files())
        driver.close()

    def connect(name: str) -> LinuxDriver:
        endpoint = up.endpoints[name]
        places = {"key_file": str(endpoint.key_file), "known_hosts": str(endpoint.known_hosts)}
        optional: dict[str, Any] = {"device": name, "port": endpoint.port, "secrets": secret, **places}
        return LinuxDriver(endpoint.host, endpoint.user, "", optional_args=optional)

    return apply(
        make(up.fabric, there, files),
        up.fabric,
        files,
        connect=connect,
        gate=HostGate(up.fabric, SessionGate(up.fabric, connect)),
        options=Options(is_disruptive_allowed=True, revert_s=900, settle_s=4, has_canary=True),
        journal=Journal.new(site.home / "runs"),
    )


def test_a_change_that_breaks_a_rail_is_reverted_on_the_first_host(up: Bench, site: Site) -> None:
    before = kept(up)

    def elsewhere(text: str) -> str:
        """Move rail1 to a link without a neighbor."""
        return re.sub(r"10\.128\.128\.(\d)(?!/29)", r"10.128.140.\1", text)

    outcome = changed(up, site, netplan_yaml=elsewhere)
    first = next(one for one in outcome.devices if one.wave)
    assert (first.result, first.state) == (DeviceResult.REVERTED, ConfigState.AS_BEFORE), first.reasons
    assert "its health is worse: " in first.reasons[0]
    assert "rail1: its leaf does not answer any more" in first.reasons[0]
    assert "rail1: no far rail answers any more" in first.reasons[0]
    assert outcome.stopped == f"{first.device} is not healthy"
    assert {one.result for one in outcome.devices} == {DeviceResult.REVERTED, DeviceResult.NOT_STARTED}
    assert kept(up) == before
