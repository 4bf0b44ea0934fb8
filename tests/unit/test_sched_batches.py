"""Several steps written as one batch say the same as each of them written by itself."""

from tests.kit.scenario import compile_graph
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import events
from tidewheel.core.sched.events import JobEnd, Submit
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.persistence import (
    ForgetMemory,
    ForgetStored,
    PoolLedger,
    PutMemory,
    PutTask,
    changes,
    rebuild,
)
from tidewheel.core.sched.pool import Touched
from tidewheel.core.sched.step import new_pool, step
from tidewheel.core.sched.task_state import VerdictKind

NOW = Instant(1_900_000_000.0)


def played_in_one_batch(graph):
    """All jobs succeed, and what all steps touched becomes rows at the end."""
    pool, touched = new_pool(graph), Touched()
    todo = [events.RunStarted(NOW)]
    while todo:
        outcome = step(graph, pool, todo.pop(0))
        touched.add(outcome.touched)
        for effect in outcome.effects:
            if isinstance(effect, Submit):
                todo.append(events.OutputMade(effect.task, effect.submit, "started", NOW))
                end = events.JobEnded(effect.task, effect.submit, JobEnd.SUCCEEDED, NOW)
                todo.append(end)
    return pool, changes(pool, touched)


def test_what_was_touched_and_then_forgotten_in_one_batch_keeps_its_verdicts():
    pool, rows = played_in_one_batch(compile_graph("a[-P1] => a => b", final=9))
    forgotten = {row.row.key: row.row for row in rows if isinstance(row, ForgetMemory)}
    assert (1, "a") in forgotten
    for row in forgotten.values():
        assert {verdict.kind for _, verdict in row.verdicts} == {VerdictKind.FINISHED}
    put = {row.key for row in rows if isinstance(row, PutMemory)}
    assert put.isdisjoint(forgotten)
    assert {(point, name) for point, there in pool.memory.items() for name in there} == put
    ledger = PoolLedger()
    ledger.write(rows)
    assert ("memory", 1, "a") not in ledger.rows


def test_what_is_stored_already_is_forgotten_without_being_written_again():
    graph = compile_graph("a[-P1] => a", final=9)
    pool, ledger, stored, forgotten = new_pool(graph), PoolLedger(), {}, {}
    todo = [events.RunStarted(NOW)]
    while todo:
        outcome = step(graph, pool, todo.pop(0))
        for row in outcome.changes:
            assert not isinstance(row, ForgetMemory), (
                "each step is a batch: it ended in another"
            )
            if isinstance(row, PutMemory):
                stored[row.key] = row
            elif isinstance(row, ForgetStored):
                forgotten |= {(row.point, name): stored[row.point, name] for name in row.names}
        ledger.write(outcome.changes)
        submits = [one for one in outcome.effects if isinstance(one, Submit)]
        todo += [events.JobEnded(one.task, 1, JobEnd.SUCCEEDED, NOW) for one in submits]
    assert {(1, "a"), (7, "a")} <= forgotten.keys()
    for key, row in forgotten.items():
        assert {verdict.kind for _, verdict in row.verdicts} == {VerdictKind.FINISHED}
        assert ("memory", *key) not in ledger.rows


def test_a_task_that_was_only_spawned_is_one_row_from_which_its_history_follows():
    graph = compile_graph("a => b => c")
    pool, ledger = new_pool(graph), PoolLedger()
    ledger.write(step(graph, pool, events.RunStarted(NOW)).changes)
    end = events.JobEnded((1, "a"), 1, JobEnd.SUCCEEDED, NOW)
    rows = step(graph, pool, end).changes
    ledger.write(rows)
    assert [row.row.name for row in rows if isinstance(row, PutTask)] == ["b"]
    assert {row.key for row in rows if isinstance(row, PutMemory)} == {(1, "a")}
    again = rebuild(build_index(graph), ledger.rows.values())
    assert again.recall(1, "b").spawned == pool.recall(1, "b").spawned == {1}
    assert again.recall(1, "c") is None


def test_a_task_that_left_one_of_its_flows_is_remembered_in_both():
    graph = compile_graph("a")
    pool, ledger = new_pool(graph), PoolLedger()
    steps = [
        events.RunPaused(NOW),
        events.RunStarted(NOW),
        events.TasksTriggered(tasks=((1, "a"),), at=NOW, flow=frozenset({1, 2})),
        events.FlowStopped(2, NOW),
    ]
    for event in steps:
        ledger.write(step(graph, pool, event).changes)
    again = rebuild(build_index(graph), ledger.rows.values())
    assert again.tasks[1, "a"].flows == {1}
    assert again.recall(1, "a").spawned == pool.recall(1, "a").spawned == {1, 2}


def test_what_several_arrows_of_a_task_with_many_parents_need_is_said_once_in_its_row():
    graph = compile_graph("\n".join(f"a & p{number} => b" for number in range(20)))
    pool = new_pool(graph)
    step(graph, pool, events.RunStarted(NOW))
    for name in ("p3", "a", "p1"):
        outcome = step(graph, pool, events.JobEnded((1, name), 1, JobEnd.SUCCEEDED, NOW))
    [row] = [one.row for one in outcome.changes if isinstance(one, PutTask)]
    assert row.name == "b"
    assert sorted(row.true) == [(1, name, "succeeded") for name in ("a", "p1", "p3")]
