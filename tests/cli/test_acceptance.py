"""Acceptance jobs for a scheduler: settings, time limits, and that their results identify a slow NIC."""

import json
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command import run
from tests.conftest import Golden
from tests.intents import merge, on_platform
from tests.lab.running import write_fabric

PODS = ("mpijob", "jobset", "trainjob", "gke", "vertex")
KINDS = ("slurm", *PODS)
CLUSTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "kueue": {"kubernetes": {"namespace": "train", "resource_prefix": "example.com", "domain": "example.net"}},
    "volcano": {"kubernetes": {"scheduler": "volcano", "mode": "host-device", "network": "fabric-rail{rail}"}},
    "slurm": {"slurm": {"partition": "h100", "cpus": 64, "domain": "example.net"}},
    "apptainer": {"slurm": {"cpus": 64, "container": "apptainer", "image": "registry.example.net/nccl:7"}},
    "pyxis": {"slurm": {"cpus": 64, "container": "pyxis", "image": "registry.example.net/nccl:7"}},
}
NCCL = r"""
size_line="  8589934592 2147483648 float sum -1  91000 94.40 %s 0  91000 94.40 %s 0\n"
# table RANKS HOSTS RAIL: what a collective prints; a NIC in SLOW, such as gpu02:1, halves its bandwidth
table() {
  local ranks=$1 hosts=$2 rail=$3 nics=2 speed=49 host one
  [ "$ranks" = 1 ] && nics=1
  [ "${NCCL_TESTS_SPLIT:-AND 0x0}" = "AND 0x0" ] || nics=1
  for host in $hosts; do for one in ${SLOW:-}; do
    [ "$one" = "$host:${rail:-${one#*:}}" ] && speed=24
  done; done
  echo "# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 8589934592"
  local rank=0 slot
  for host in $hosts; do for ((slot = 0; slot < ranks; slot++)); do
    echo "#  Rank  $rank Group $((nics < ranks ? slot : 0)) Pid 1 on $host device  0 [0x1b] NVIDIA H100"
    rank=$((rank + 1))
  done; done
  echo "#  size  count type redop root  time algbw busbw #wrong  time algbw busbw #wrong"
  printf "$size_line" $((speed * nics)) $((speed * nics))
  echo "# Out of bounds values : 0 OK"
  echo "# Avg bus bandwidth    : $((speed * nics))"
}
rail_of() { case ${1:-} in =mlx5_0|0) echo 0;; =mlx5_3|1) echo 1;; esac; }
"""
SRUN = f"""#!/bin/bash
for word in "$@"; do case $word in
  --nodelist=*) IFS=, read -ra names <<<"${{word#*=}}";; --ntasks-per-node=*) ranks=${{word#*=}};;
  NCCL_TESTS_SPLIT=*|CUDA_VISIBLE_DEVICES=*) export "$word";;
esac; done
echo "$*" >>"$LOG"
{NCCL}
names=("${{names[@]%%.*}}")
case " ${{names[*]}} " in *" ${{DOWN:-none}} "*) echo "srun: error: Node $DOWN is down"; exit 1;; esac
table "$ranks" "${{names[*]}}" "$(rail_of "${{CUDA_VISIBLE_DEVICES:-}}")"
"""
MPIRUN = f"""#!/bin/bash
echo "$*" >>"$LOG"
while [ $# -gt 0 ]; do case $1 in
  --host) IFS=, read -ra names <<<"$2"; shift;; --map-by) ranks=${{2#ppr:}}; ranks=${{ranks%:node}}; shift;;
  -x) case $2 in NCCL_TESTS_SPLIT=*|CUDA_VISIBLE_DEVICES=*) export "$2";; esac; shift;;
esac; shift; done
{NCCL}
hosts=()
for name in "${{names[@]}}"; do name=${{name%:*}}; n=${{name%%.*}}; n=${{n##*-}}; hosts+=("gpu0$((8 - n))"); done
table "$ranks" "${{hosts[*]}}" "$(rail_of "${{CUDA_VISIBLE_DEVICES:-}}")"
"""
SILENT = "#!/bin/sh\n"
SSH = """#!/bin/bash
# Worker 0 is on the last node, worker 7 on the first.
pod=${2%%.*}; number=${pod##*-}
printf 'HOME=/root\\nNODE_NAME=%s%s%s\\n' "${NODE:-gpu0}" $((8 - number)) "$DOMAIN"
"""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Fabrics by the type of their cluster."""
    found = {}
    for name, clusters in CLUSTERS.items():
        values = on_platform("nvue", "5.13.0", {"units": [{"unit": "1-2", "hosts": 4}]})
        merge(values, {"ceilings": {"addresses_per_nic": 9}, "clusters": clusters} if clusters else {})
        found[name] = write_fabric(tmp_path_factory.mktemp(name), values)
    return found


def emitted(kind: str, place: Path, *more: str | Path) -> str:
    done = run("acceptance", "emit", kind, "--fabric", place, *more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def scripts(kind: str, text: str) -> list[str]:
    """The scripts of a job: its own, or those that its containers run."""
    if kind == "slurm":
        return [text]
    return [f"#!/bin/bash\n{one}" for one in _arguments(list(yaml.safe_load_all(text)))]


def _arguments(given: Any) -> list[str]:
    if isinstance(given, dict):
        own = [str(one) for one in given.get("args", ())]
        return own + [one for value in given.values() for one in _arguments(value)]
    return [one for value in given for one in _arguments(value)] if isinstance(given, list) else []


def pairs_of_kinds() -> list[tuple[str, str]]:
    return [
        (kind, name)
        for kind in KINDS
        for name, clusters in CLUSTERS.items()
        if not clusters or ("slurm" in clusters) == (kind == "slurm")
    ]


@cache
def complaints(script: str) -> str:
    """What shellcheck reports; several kinds of jobs have the same scripts."""
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    return subprocess.run(["shellcheck", "-"], input=script, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(("kind", "name"), pairs_of_kinds())
def test_every_script_passes_shellcheck(kind: str, name: str, places: Mapping[str, Path], golden: Golden) -> None:
    text = emitted(kind, places[name])
    golden(f"jobs/{kind}-{name}", text)
    found = scripts(kind, text)
    assert found
    for script in found:
        assert complaints(script) == ""
    assert all(len(script) < 128 * 1024 for script in found)  # MAX_ARG_STRLEN of Linux


def ran(kind: str, script: str, folder: Path, **given: str) -> tuple[Path, list[str]]:
    """Run a job with stub programs that answer at once; return its output and the runs it started."""
    for name, text in (("srun", SRUN), ("mpirun", MPIRUN), ("ssh", SSH), ("install", SILENT), ("ssh-keygen", SILENT)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    hostfile, log, out = folder / "hostfile", folder / "log", folder / "job.out"
    hostfile.write_text("".join(f"acceptance-small-worker-{n}.acceptance-small.x.svc slots=2\n" for n in range(8)))
    (folder / ".ssh").mkdir(exist_ok=True)
    for real, stub in (
        ("/etc/mpi/hostfile", str(hostfile)),
        ("source /usr", "# /usr"),
        ("/usr/sbin/sshd", "true"),
        ("/run/sshd", str(folder)),
    ):
        script = script.replace(real, stub)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "LOG": str(log),
        "HOME": str(folder),
        "DOMAIN": "",
        **given,
    }
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert (kind, done.stderr) == (kind, "")
    out.write_text(done.stdout)
    return out, log.read_text().splitlines()


JOBS = [
    ("slurm", "none", ""),
    ("slurm", "slurm", ""),
    ("mpijob", "none", ""),
    ("jobset", "kueue", ".example.net"),
    ("trainjob", "volcano", ""),
]


@pytest.mark.parametrize(("kind", "name", "domain"), JOBS)
def test_job_results_identify_a_slow_nic(
    kind: str, name: str, domain: str, places: Mapping[str, Path], tmp_path: Path
) -> None:
    script = scripts(kind, emitted(kind, places[name]))[-1 if kind in {"jobset", "trainjob"} else 0]
    out, runs = ran(kind, script, tmp_path, SLOW="gpu06:1", DOMAIN=domain)
    assert len(runs) == 3 * 2 + 1 + 3 * 2 * 2 + 2 * 4
    done = run("check", "acceptance.stragglers", "--fabric", places[name], "--results", out)
    assert done.returncode == 1
    assert done.stdout.count(" is slow: ") == 1
    assert (
        "gpu06:rail1 (rail 1, mlx5_3) is slow: 48 % of line rate at best in 9 runs with it, 98 % without; "
        "its link ends at leaf04 swp1s1"
    ) in " ".join(done.stdout.split())


@pytest.mark.parametrize(("kind", "name"), [("gke", "gke-h200-6"), ("vertex", "worker-2")])
def test_job_results_identify_a_slow_nic_of_a_host_outside_any_design(
    kind: str, name: str, places: Mapping[str, Path], tmp_path: Path
) -> None:
    script = scripts(kind, emitted(kind, places["none"]))[-1 if kind == "gke" else 0]
    replicas = ", ".join(f'"worker-{number}:2222"' for number in range(8))
    spec = f'{{"cluster": {{"workerpool1": [{replicas}]}}}}'
    out, _ = ran(kind, script, tmp_path, NODE="gke-h200-", CLUSTER_SPEC=spec, SLOW="gpu06:1")
    done = run("check", "acceptance.stragglers", "--fabric", places["none"], "--results", out, "--format", "json")
    assert done.returncode == 1
    (result,) = json.loads(done.stdout)["results"]
    text = (
        f"rdma-1 of {name} is slow: 48 % of line rate at best in 9 runs with it, 98 % without; "
        "no design has this host, nor the port at its link"
    )
    found = [(one["device"], one["place"], one["text"]) for one in result["findings"]]
    assert found == [("", f"{name}:rdma-1", text)]


@pytest.mark.parametrize("kind", ["gke", "vertex"])
def test_a_job_on_a_google_fabric_uses_the_hosts_it_finds(
    kind: str, places: Mapping[str, Path], tmp_path: Path
) -> None:
    script = scripts(kind, emitted(kind, places["none"]))[-1 if kind == "gke" else 0]
    replicas = ", ".join(f'"worker-{number}:2222"' for number in range(8))
    out, runs = ran(
        kind, script, tmp_path, DOMAIN=".google", CLUSTER_SPEC=f'{{"cluster": {{"workerpool1": [{replicas}]}}}}'
    )
    assert len(runs) == 3 * 2 + 1 + 3 * 2 * 2 + 2 * 4
    wanted = [f"gpu0{number}.google" if kind == "gke" else f"worker-{number - 1}" for number in range(1, 9)]
    marks = [json.loads(line.removeprefix("#@ trial ")) for line in out.read_text().splitlines() if "#@ trial" in line]
    assert marks[1]["hosts"] == wanted
    assert all("-x NCCL_ALGO=Ring" in line and "NCCL_IB" not in line for line in runs)


@pytest.mark.parametrize(("kind", "name", "domain"), JOBS)
def test_a_healthy_fabric_has_no_finding(
    kind: str, name: str, domain: str, places: Mapping[str, Path], tmp_path: Path
) -> None:
    script = scripts(kind, emitted(kind, places[name]))[-1 if kind in {"jobset", "trainjob"} else 0]
    out, _ = ran(kind, script, tmp_path, DOMAIN=domain)
    done = run("check", "acceptance", "--fabric", places[name], "--results", out)
    assert (done.returncode, "clean" in done.stdout) == (0, True), done.stdout


def test_a_failed_run_does_not_hide_the_others(places: Mapping[str, Path], tmp_path: Path) -> None:
    out, _ = ran("slurm", emitted("slurm", places["none"]), tmp_path, DOWN="gpu08")
    done = run("check", "acceptance.completed", "--fabric", places["none"], "--results", out)
    assert done.returncode == 1
    assert "all_gather_perf failed: srun ended with 1" in done.stdout
    assert out.read_text().count("# Avg bus bandwidth") == 3 + 3 * 2 + 6


def test_a_batch_script_requests_the_resources_it_uses(places: Mapping[str, Path], tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    assert emitted("slurm", places["slurm"], "-o", script) == f"{script}: slurm for 8 hosts of small\n"
    asked = [line.removeprefix("#SBATCH ") for line in script.read_text().splitlines() if line.startswith("#SBATCH")]
    names = ",".join(f"gpu{number:02}.example.net" for number in range(1, 9))
    assert asked[1:6] == [
        "--partition=h100",
        "--nodes=8",
        f"--nodelist={names}",
        "--ntasks-per-node=2",
        "--gpus-per-node=2",
    ]
    assert "--time=60" in asked


def test_runs_beside_each_other_share_no_nic(places: Mapping[str, Path], tmp_path: Path) -> None:
    """A NIC that is in two runs at once would be slow in both."""
    script = emitted("slurm", places["none"]).replace("wait\n", 'wait\necho "----" >>"$LOG"\n')
    _, runs = ran("slurm", script, tmp_path)
    batches = [batch.split("\n") for batch in "\n".join(runs[7:]).strip("-\n").split("\n----\n")]
    beside = [[line for line in batch if line] for batch in batches]
    assert [len(batch) for batch in beside] == [4] * 5
    for batch in beside:
        used = [nic for line in batch for nic in nics_of(line)]
        assert len(used) == len(set(used))


def nics_of(line: str) -> list[tuple[str, str]]:
    words = dict(word.lstrip("-").partition("=")[::2] for word in line.split())
    rails = [words["CUDA_VISIBLE_DEVICES"]] if "CUDA_VISIBLE_DEVICES" in words else ["0", "1"]
    return [(host, rail) for host in words["nodelist"].split(",") for rail in rails]


@pytest.mark.parametrize("kind", ["slurm", "mpijob"])
def test_an_odd_host_is_paired_with_two_others(kind: str, places: Mapping[str, Path], tmp_path: Path) -> None:
    script = scripts(kind, emitted(kind, places["none"], "--limit", "gpu0[1-5]"))[-1]
    out, _ = ran(kind, script, tmp_path, SLOW="gpu05:0")
    done = run("check", "acceptance.stragglers", "--fabric", places["none"], "--results", out)
    assert done.stdout.count(" is slow: ") == 1
    assert "gpu05:rail0 (rail 0, mlx5_0) is slow" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cron"], "error: unknown kind of job 'cron'; use slurm, mpijob, jobset, trainjob, gke, vertex\n"),
        (
            ["slurm", "--limit", "gpu01"],
            "error: a test of the network needs two hosts or more; choose more with --limit\n",
        ),
        (
            ["slurm", "-o", "/nowhere/job"],
            "error: /nowhere/job cannot be written: No such file or directory; check its folder and disk\n",
        ),
    ],
)
def test_an_unwritable_output_is_reported_in_one_line(
    places: Mapping[str, Path], arguments: list[str], message: str
) -> None:
    done = run("acceptance", "emit", *arguments, "--fabric", places["none"])
    assert (done.returncode, done.stderr) == (3, message)
