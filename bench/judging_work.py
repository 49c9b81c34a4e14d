"""Run netkit's checks on a healthy fabric with facts in memory, and print the time taken as one line of JSON."""

import argparse
import gc
import json
import sys
import time
from pathlib import Path

from bench import healthy
from netkit import design
from netkit.hardware import Catalog
from netkit.intent import load as load_intent
from netkit.judge import CheckContext, Verdict, catalog
from netkit.judge.run import run


def main() -> int:
    """Run checks; return 1 if they report a finding on a healthy fabric."""
    parser = argparse.ArgumentParser(description="Judge facts that are there.")
    parser.add_argument("--fabric", type=Path, required=True)
    parser.add_argument("--checks", required=True, help="names or globs, with commas between")
    given = parser.parse_args()
    fabric = design.build(load_intent(given.fabric).intent, Catalog())
    scene = CheckContext(fabric, healthy.snapshot(fabric))
    checks = catalog.select(catalog.load(), given.checks.split(","))
    gc.collect()
    gc.freeze()
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    judgement = run(scene, checks)
    seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    ill = [finding for finding in judgement.findings if finding.verdict > Verdict.SKIPPED]
    counted = {"judged": judgement.examined, "results": len(judgement.results), "ill": len(ill)}
    sys.stdout.write(json.dumps({**counted, "seconds": seconds, "cpu_s": cpu_s}) + "\n")
    for finding in ill[:3]:
        sys.stderr.write(f"{finding}\n")
    return 1 if ill else 0


if __name__ == "__main__":
    sys.exit(main())
