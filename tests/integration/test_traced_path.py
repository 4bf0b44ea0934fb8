"""From the end of a job to the start of the next lie as few files and functions as promised."""

import re
import subprocess
import sys
from pathlib import Path

# 211, not 202: the batch that makes the task ready also carries out the claim of it.
FILES_MAX, FUNCTIONS_MAX = 43, 211  # goals: 45, 220
TRIES = 3  # what renews a lease meanwhile counts, too, so the shortest counts
ROOT = Path(__file__).resolve().parents[2]


def test_the_way_from_the_end_of_a_job_to_the_start_of_the_next_is_short():
    seen = []
    for _ in range(TRIES):
        asked = [sys.executable, "-m", "bench.traced_path"]
        told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
        found = re.match(r"(\d+) files, (\d+) functions", told.stdout)
        assert found, told.stdout + told.stderr
        files, functions = int(found[1]), int(found[2])
        if files <= FILES_MAX and functions <= FUNCTIONS_MAX:
            return
        seen.append((files, functions))
    raise AssertionError(f"files and functions: {seen}; python -m bench.traced_path lists them")
