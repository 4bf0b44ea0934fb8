"""Those beside which live runs are measured: the bare loop, HyperQueue and Dask."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from bench.environments import ensure_python_peer, python_version_of
from bench.scheduler.bounded import Failed, run
from bench.scheduler.shapes import Shape

SECONDS_MAX = 300.0
HERE = Path(__file__).parent
DISTRIBUTIONS = {"HyperQueue": "hyperqueue", "Dask": "distributed"}
_SCRIPTS = {"HyperQueue": "hyperqueue_seconds.py", "Dask": "dask_seconds.py"}


def bare_loop_rate(run_folder: Path, folder: Path, size: int, at_once: int) -> float:
    """Tasks per second of the jobs that tidewheel left in ``run_folder``."""
    where = folder / "bare"
    shutil.rmtree(where, ignore_errors=True)
    command = [sys.executable, "-m", "bench.scheduler.bare_loop"]
    command += [str(run_folder), str(where), str(at_once)]
    ran = run(command, folder / "bare.log", seconds_max=SECONDS_MAX)
    shutil.rmtree(where, ignore_errors=True)
    return size / float(ran.output)


def peer_rate(name: str, shape: Shape, folder: Path, at_once: int) -> float:
    """Tasks per second of HyperQueue or Dask."""
    interpreter = ensure_python_peer(DISTRIBUTIONS[name])
    where = folder / "peer"
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir()
    work = where / "work.json"
    work.write_text(json.dumps(shape.parents))
    command = [str(interpreter), str(HERE / _SCRIPTS[name])]
    command += [str(work), str(where), str(at_once)]
    ran = run(command, folder / "peer.log", seconds_max=SECONDS_MAX)
    answer = where / "seconds"
    if not answer.exists():
        raise Failed(f"{name}: no answer within {SECONDS_MAX:.0f} s: {ran.output[-300:]}")
    seconds = float(answer.read_text())
    shutil.rmtree(where, ignore_errors=True)
    return shape.size / seconds


def peer_version(name: str) -> str:
    distribution = DISTRIBUTIONS[name]
    return python_version_of(distribution, ensure_python_peer(distribution))
