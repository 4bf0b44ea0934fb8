"""HyperQueue and Dask on live work: ``true``, or the very jobs that tidewheel has run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from bench.environments import ensure_python_peer, python_version_of
from bench.folders import put_aside
from bench.scheduler.bounded import Failed, run
from bench.scheduler.job_files import JobFiles, read_scripts
from bench.scheduler.shapes import Shape

SECONDS_MAX = 300.0
HERE = Path(__file__).parent
DISTRIBUTIONS = {"HyperQueue": "hyperqueue", "Dask": "distributed"}
_SCRIPTS = {"HyperQueue": "hyperqueue_seconds.py", "Dask": "dask_seconds.py"}
_TRUE: dict[str, object] = {"argv": ["true"], "environment": {}, "out": "", "err": ""}


def rate_of_true(name: str, shape: Shape, folder: Path, at_once: int) -> float:
    """Tasks per second, each of which is the program ``true``."""
    tasks = [{**_TRUE, "parents": parents} for parents in shape.parents]
    return _rate(name, tasks, folder, at_once)


def rate_of_jobs(
    name: str, shape: Shape, run_folder: Path, folder: Path, at_once: int
) -> float:
    """Tasks per second of jobs that tidewheel left in ``run_folder``; their files lie ready."""
    where = folder / "peer-jobs"
    put_aside(where)
    files = JobFiles(where)
    jobs = [asdict(files.prepare(script)) for script in read_scripts(run_folder)]
    tasks = [
        {**job, "parents": parents} for parents, job in zip(shape.parents, jobs, strict=True)
    ]
    rate = _rate(name, tasks, folder, at_once)
    put_aside(where)
    return rate


def _rate(name: str, tasks: list[dict[str, object]], folder: Path, at_once: int) -> float:
    interpreter = ensure_python_peer(DISTRIBUTIONS[name])
    where = folder / "peer"
    put_aside(where)
    where.mkdir()
    work = where / "work.json"
    work.write_text(json.dumps(tasks))
    command = [str(interpreter), str(HERE / _SCRIPTS[name])]
    command += [str(work), str(where), str(at_once)]
    ran = run(command, folder / "peer.log", seconds_max=SECONDS_MAX)
    answer = where / "seconds"
    if not answer.exists():
        raise Failed(f"{name}: no answer within {SECONDS_MAX:.0f} s: {ran.output[-300:]}")
    seconds = float(answer.read_text())
    put_aside(where)
    return len(tasks) / seconds


def peer_version(name: str) -> str:
    distribution = DISTRIBUTIONS[name]
    return python_version_of(distribution, ensure_python_peer(distribution))
