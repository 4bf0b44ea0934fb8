"""Changes of runs by chance: every kind, with everything that it can hold."""

from __future__ import annotations

from hypothesis import strategies as st

from tidewheel.core.sched.persistence import (
    DropTask,
    ForgetMemory,
    ForgetStored,
    PooledTaskRow,
    PutAbsolute,
    PutChain,
    PutFlow,
    PutMemory,
    PutRun,
    PutTask,
)
from tidewheel.core.sched.pool import FlowState, RunState, RunStatus
from tidewheel.core.sched.task_state import AtomValue, JobPhase, Verdict, VerdictKind

# Few of each, so that things are written again and dropped.
points = st.sampled_from((-3, 0, 1, 2, 2**40))
names = st.sampled_from(("a", "b", "été \N{SNOWMAN}", 'q"\\'))
keys = st.tuples(points, names)
flows = st.frozensets(st.integers(1, 3), max_size=3)
words = st.sampled_from(("succeeded", "x", "", "it's\n"))
texts = st.lists(words, max_size=2, unique=True).map(tuple)
flags = st.booleans()
counts = st.integers(0, 5)

rows = st.builds(
    PooledTaskRow,
    point=points,
    name=names,
    flows=flows,
    stage=st.sampled_from(JobPhase),
    true=st.lists(st.tuples(points, names, words), max_size=3, unique=True).map(tuple),
    missing=flags,
    waits=texts,
    outputs=texts,
    by_hand=texts,
    released=flags,
    held=flags,
    blocked=flags,
    manual=flags,
    satisfied_by_hand=flags,
    flow_wait=flags,
    ended=words,
    submit=st.just(0),
    try_number=counts,
    submit_try=counts,
    order=counts,
    bits=st.none(),  # which only a row of format 1 has
)
verdicts = st.builds(
    Verdict,
    kind=st.sampled_from(VerdictKind),
    death=st.sampled_from(AtomValue),
    ended=words,
    cause=st.none() | st.tuples(points, names, words),
    pooled=flags,
)
memories = st.builds(
    PutMemory,
    key=keys,
    spawned=flows,
    made=st.dictionaries(words, flows, max_size=3).map(lambda made: tuple(made.items())),
    verdicts=st.dictionaries(counts, verdicts, max_size=3).map(lambda v: tuple(v.items())),
    submits=counts,
    held_back=texts,
)
some_point = st.none() | points
flow_states = st.builds(
    FlowState,
    number=st.integers(1, 3),
    until=some_point,
    until_tasks=st.frozensets(keys, max_size=2),
    ignore_before=some_point,
    chains_from=some_point,
    stopped=flags,
    text=words,
)
run_states = st.builds(
    RunState,
    start=points,
    stop=some_point,
    hold_after=some_point,
    stop_after=st.none() | keys,
    paused=flags,
    stopping=words,
    status=st.sampled_from(RunStatus),
    prune_across_points=flags,
    held_tasks=st.lists(keys, max_size=3).map(dict.fromkeys),
    flows_made=counts,
    order=counts,
    has_submitted=flags,
    horizon=some_point,
)
changes = st.one_of(
    rows.map(PutTask),
    keys.map(DropTask),
    memories,
    memories.map(ForgetMemory),
    st.builds(
        ForgetStored, point=points, names=st.lists(names, min_size=1, max_size=3).map(tuple)
    ),
    st.builds(PutChain, name=names, flow=st.integers(1, 3), point=some_point),
    st.builds(
        PutAbsolute,
        key=st.tuples(points, names, words),
        values=st.dictionaries(counts, st.sampled_from(AtomValue)).map(
            lambda v: tuple(v.items())
        ),
    ),
    flow_states.map(PutFlow),
    run_states.map(PutRun),
)
batches = st.lists(st.lists(changes, max_size=12), max_size=4)
