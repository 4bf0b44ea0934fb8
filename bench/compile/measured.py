"""``python -m bench.compile.measured FILE``: seconds and peak memory of reading one definition.

A process of its own, so that the memory of one size does not hide that of the next.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from pathlib import Path

from tidewheel.__main__ import GARBAGE_THRESHOLD
from tidewheel.core.graph.findings import Findings
from tidewheel.formats.flow_cylc.workflow import LoadOptions, load_workflow

ROUNDS = 5
KIB_PER_MB = 1_000


def seconds(path: Path) -> float:
    findings = Findings()
    begin = time.perf_counter()
    loaded = load_workflow(path, LoadOptions(now=0.0), findings)
    taken = time.perf_counter() - begin
    assert loaded.graph is not None and not findings.has_errors, findings.sorted()[:3]
    return taken


if __name__ == "__main__":
    gc.set_threshold(GARBAGE_THRESHOLD)  # as the command has it
    best = min(seconds(Path(sys.argv[1])) for _ in range(ROUNDS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MB
    sys.stdout.write(json.dumps([best, peak]))
