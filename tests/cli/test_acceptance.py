"""Jobs that a scheduler runs: right settings, bounded, and their output is judged as it is."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command import run
from tests.intents import on_platform
from tests.lab.running import write_fabric

SRUN = """#!/bin/bash
nodes=0; names=(); for word in "$@"; do case $word in
  --nodes=*) nodes=${word#*=};; --nodelist=*) IFS=, read -ra names <<<"${word#*=}";; --ntasks=*) tasks=${word#*=};;
esac; done
[ "$nodes" = 8 ] && { echo "srun: error: Node gpu08 is down"; exit 1; }
echo "# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 8589934592"
for rank in $(seq 0 $((tasks - 1))); do
  echo "#  Rank  $rank Group  0 Pid 1 on ${names[$((rank * nodes / tasks))]} device  0 [0x1b] NVIDIA H100"
done
env | sort | grep ^NCCL_ >&2
echo "#  size  count type redop root  time algbw busbw #wrong  time algbw busbw #wrong"
echo "  8589934592 2147483648 float sum -1  91000 94.40 ${BUSBW} 0  91000 94.40 ${BUSBW} 0"
echo "# Out of bounds values : 0 OK"
echo "# Avg bus bandwidth    : ${BUSBW}"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    units = {"units": [{"unit": "1-2", "hosts": 4}]}
    return write_fabric(tmp_path_factory.mktemp("fabric"), on_platform("nvue", "5.13.0", units))


def emitted(kind: str, place: Path, *more: str | Path) -> str:
    done = run("acceptance", "emit", kind, "--fabric", place, *more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_batch_script_is_sound_and_asks_for_what_it_uses(place: Path, tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    assert emitted("slurm", place, "-o", script) == f"{script}: slurm for 8 hosts of small\n"
    subprocess.run(["shellcheck", script], check=True)
    asked = [line.removeprefix("#SBATCH ") for line in script.read_text().splitlines() if line.startswith("#SBATCH")]
    assert asked[1:5] == [
        "--nodes=8",
        "--nodelist=gpu01,gpu02,gpu03,gpu04,gpu05,gpu06,gpu07,gpu08",
        "--ntasks-per-node=2",
        "--gpus-per-node=2",
    ]
    assert "--time=35" in asked


def ran(script: Path, folder: Path, busbw: str) -> tuple[Path, str]:
    """Run a batch script with an srun that answers at once; return its output and what NCCL was told."""
    srun, out = folder / "srun", folder / "job.out"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "BUSBW": busbw}
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, check=True)
    out.write_text(done.stdout)
    return out, done.stderr


def test_what_the_script_writes_is_judged_and_a_step_that_fails_hides_no_other(place: Path, tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    emitted("slurm", place, "-o", script)
    out, told = ran(script, tmp_path, "47.20")
    assert set(told.split()) == {
        "NCCL_IB_HCA==mlx5_0,mlx5_3",
        "NCCL_IB_TC=106",
        "NCCL_IB_SL=3",
        "NCCL_ALGO=Ring",
        "NCCL_SOCKET_IFNAME==eno1",
    }
    done = run("check", "acceptance", "--fabric", place, "--results", out)
    assert done.returncode == 1
    assert done.stdout.count("47.2 GB/s of bus bandwidth, 47 % of the 100 GB/s of its NICs") == 3
    assert "all_gather_perf failed: srun ended with 1" in done.stdout


def test_a_job_for_kubernetes_has_a_worker_for_each_host_and_every_rail(place: Path) -> None:
    job: dict[str, Any] = yaml.safe_load(
        emitted("mpijob", place, "--image", 'registry/nccl: "7"', "--limit", "gpu0[1-4]")
    )
    assert (job["apiVersion"], job["kind"], job["metadata"]["name"]) == (
        "kubeflow.org/v2beta1",
        "MPIJob",
        "acceptance-small",
    )
    spec = job["spec"]
    launcher, worker = (spec["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker"))
    # The replica's policy overrides that of its pod: only there does it keep a failed launcher, and its log.
    assert launcher["restartPolicy"] == "Never"
    assert "restartPolicy" not in launcher["template"]["spec"]
    assert (spec["slotsPerWorker"], worker["replicas"], launcher["replicas"]) == (2, 4, 1)
    annotations = worker["template"]["metadata"]["annotations"]
    assert annotations == {"k8s.v1.cni.cncf.io/networks": "rail0,rail1"}
    (container,) = worker["template"]["spec"]["containers"]
    assert container["image"] == 'registry/nccl: "7"'
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 2, "nvidia.com/rail0": 1, "nvidia.com/rail1": 1}


def test_the_launcher_of_kubernetes_runs_every_step_with_the_settings_of_the_design(
    place: Path, tmp_path: Path
) -> None:
    job = yaml.safe_load(emitted("mpijob", place))
    (container,) = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    program = tmp_path / "mpirun"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$*" >&2\n')
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [*container["command"], *container["args"]], env=environment, capture_output=True, text=True, check=True
    )
    calls = done.stderr.splitlines()
    settings = (
        "-x NCCL_IB_HCA==mlx5_0,mlx5_3 -x NCCL_IB_TC=106 -x NCCL_SOCKET_IFNAME==eth0 -x NCCL_IB_SL=3 -x NCCL_ALGO=Ring"
    )
    assert all(settings in call for call in calls)
    counts = [call.partition(" -np ")[2].split()[0] for call in calls]
    assert counts == ["4", "16"] * 3 + ["16"]
    assert calls[-1].endswith(
        "-x NCCL_TESTS_SPLIT=MOD 2 /opt/nccl-tests/build/all_reduce_perf -b 1G -e 8G -f 8 -g 1 -c 1 -n 20 -w 5"
    )
    assert done.stdout.count('#@ trial {"tool": "nccl-tests", "test": "all_gather_perf", "at_s": ') == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cron"], "error: unknown kind of job 'cron'; use slurm or mpijob\n"),
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
def test_what_cannot_be_written_is_said_in_a_line(place: Path, arguments: list[str], message: str) -> None:
    done = run("acceptance", "emit", *arguments, "--fabric", place)
    assert (done.returncode, done.stderr) == (3, message)
