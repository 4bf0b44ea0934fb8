"""Counts what a task costs the core, in numbers that do not depend on the machine.

Calls are those of functions of ours for one completion, in each shape of P6. Rows are what is
stored of one task that is spawned by one batch and ends in a later one, as most tasks of a wide
cycle do. Counted are many of them less a few, so what it takes to begin is left out. So it is
with the calls for a task of a definition that is read, compiled and checked (P12).
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType

from bench.compile.generated import workflow
from bench.counts import SOURCE
from bench.scheduler import shapes
from bench.scheduler.core_rate import NOW
from bench.scheduler.one_process import read_flow
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.sched.events import JobEnd, JobEnded, RunStarted, Submit
from tidewheel.core.sched.persistence import changes
from tidewheel.core.sched.pool import TaskPool, Touched
from tidewheel.core.sched.step import new_pool, step
from tidewheel.formats.flow_cylc.workflow import LoadOptions, load_workflow

FEW, MANY = 100, 400  # tasks
BATCH = 40  # steps of one that is counted: fewer than a wide cycle has tasks of a kind
CYCLES = 3  # of which the first is forgotten

SHAPES: dict[str, Callable[[int], shapes.Shape]] = {
    "chain": shapes.chain,
    "cycles": lambda tasks: shapes.cycles(tasks // shapes.CYCLE),
    "lone tasks": lambda tasks: shapes.parentless(tasks // 10, 10, runahead=5),
}


def of_each_completion() -> dict[str, float]:
    """Returns the calls of a completion, by shape."""
    return {
        name: (_calls(shape(MANY)) - _calls(shape(FEW))) / (MANY - FEW)
        for name, shape in SHAPES.items()
    }


def of_each_task_of_a_wide_cycle() -> dict[str, float]:
    """Returns the rows of a task, by kind."""
    few, many = (_rows(shapes.cycles(CYCLES, width=tasks)) for tasks in (FEW, MANY))
    return {kind: (many[kind] - few[kind]) / (CYCLES * (MANY - FEW)) for kind in sorted(many)}


def of_each_task_that_is_read() -> float:
    """Returns the calls for a task of a definition, with its lines of the graph."""
    return (_calls_to_read(MANY) - _calls_to_read(FEW)) / (MANY - FEW)


def _graph(shape: shapes.Shape) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "flow.cylc").write_text(shape.flow())
        graph = read_flow(Path(folder), RunOptions(now=0.0)).graph
    assert graph is not None
    return graph


def _calls(shape: shapes.Shape) -> int:
    graph = _graph(shape)
    for _ in _steps(graph, new_pool(graph)):
        pass  # once before: classes are compiled when they are first used
    steps = _steps(graph, new_pool(graph))
    next(steps)  # the start looks at every node once
    return _counted(lambda: deque(steps, maxlen=0))


def _calls_to_read(tasks: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flow.cylc"
        path.write_text(workflow(tasks))

        def read() -> None:
            findings = Findings()
            load_workflow(path, LoadOptions(now=0.0), findings)
            assert not findings.has_errors, findings.sorted()[:3]

        read()  # once before, as above
        return _counted(read)


def _counted(work: Callable[[], object]) -> int:
    """Returns how often functions of ours are called meanwhile."""
    calls = 0

    def hook(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        del argument
        calls += event == "call" and frame.f_code.co_filename.startswith(SOURCE)

    sys.setprofile(hook)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def _rows(shape: shapes.Shape) -> Counter[str]:
    graph = _graph(shape)
    pool, rows = new_pool(graph), Counter[str]()
    steps = _steps(graph, pool)
    while batch := list(islice(steps, BATCH)):
        touched = Touched()
        for one in batch:
            touched.add(one)
        rows.update(type(row).__name__ for row in changes(pool, touched))
    return rows


def _steps(graph: Graph, pool: TaskPool) -> Iterator[Touched]:
    """Plays a run in which every job succeeds at once; yields what each step touched."""
    outcome = step(graph, pool, RunStarted(NOW))
    todo = deque(outcome.effects)
    yield outcome.touched
    while todo:
        one = todo.popleft()
        if isinstance(one, Submit):
            ended = JobEnded(one.task, one.submit, JobEnd.SUCCEEDED, NOW)
            outcome = step(graph, pool, ended)
            todo.extend(outcome.effects)
            yield outcome.touched
