"""In what an ended run of the scheduling core and the oracle differ."""

from __future__ import annotations

from tests.sim.sched_oracle import (
    FAILED,
    SUBMIT_FAILED,
    SUCCEEDED,
    Key,
    Oracle,
    Worth,
    leaves,
)
from tests.sim.sched_oracle_runs import ENDS, Driven, steps_back


def disagreements(run: Driven) -> list[str]:
    """Everything in which an ended run and the oracle differ."""
    case = run.case
    suicides = frozenset(
        key for key, word in run.verdicts.items() if word == "removed by suicide"
    )
    oracle = Oracle(case.graph, case.outcomes, suicides, run.submitted, run.by_hand)
    found: list[str] = []
    status = "stalled" if oracle.stalls else "completed"
    unseen = oracle.with_word("blocked") - oracle.blocked_for_sure()
    if run.run.status == "stalled" and set(map(run.run.key, run.run.causes)) <= unseen:
        status = "stalled"
    elif run.run.status == "stalled" != status and _is_held_up(run, suicides):
        return _excess(run, oracle)
    if run.run.status != status:
        found.append(f"the run {run.run.status}, expected: {status}")
    if run.run.status == "completed" and run.pool:
        found.append(f"completed with a pool: {run.pool}")
    if run.run.status == "stalled" and not run.run.causes:
        found.append("stalled without a cause")
    if case.graph.runahead is None or run.run.status == status == "completed":
        found += _differing_ends(run, oracle)
    else:
        found += _excess(run, oracle)
    return found


def _is_held_up(run: Driven, suicides: frozenset[Key]) -> bool:
    """Whether a task holds the runahead base that only later ones could have freed.

    One that is blocked holds the base (SEMANTICS §4.3) also while parents at a future offset or
    a fixed point, which could make it not taken, lie beyond the limit. Seen from the jobs that
    there were, all that is in the pool must be there, and all else lie beyond the limit.
    """
    graph, pool = run.case.graph, run.pool
    holding = {key for key, word in pool.items() if word in (*ENDS, "blocked")}
    if graph.runahead is None or not steps_back(graph) or not holding:
        return False
    ended = {key: run.case.outcomes[key] for key in run.submitted}
    seen = Oracle(graph, ended, suicides, run.submitted)
    if not holding <= seen.incomplete | seen.with_word("blocked"):
        return False
    base = min(point for point, _ in holding)
    window = [point for point in run.points if point >= base][: graph.runahead + 1]
    left = seen.with_word("ran") - run.submitted.keys()
    return bool(left) and all(point > window[-1] for point, _ in left)


def _differing_ends(run: Driven, oracle: Oracle) -> list[str]:
    found = _difference("submissions", dict(run.submitted), oracle.submissions)
    pool = run.pool
    ended = {key for key, word in pool.items() if word in (FAILED, SUBMIT_FAILED, SUCCEEDED)}
    found += _difference("incomplete", ended, oracle.incomplete)
    blocked = {key for key, word in pool.items() if word == "blocked"}
    if not oracle.blocked_for_sure() <= blocked <= oracle.with_word("blocked"):
        found += _difference("blocked", blocked, oracle.blocked_for_sure())
    rest = pool.keys() - ended - blocked
    found += _difference("waiting", rest, oracle.waiting)
    found += _differing_verdicts(run, oracle)
    return found + _unlawful_suicides(run, oracle)


def _differing_verdicts(run: Driven, oracle: Oracle) -> list[str]:
    words = {Worth.LOST: "lost", Worth.NOT_TAKEN: "not taken"}
    expected = {
        key: words[fate.death]
        for key, fate in oracle.fates.items()
        if fate.word == "pruned" and fate.death is not None
    }
    seen = {key: word for key, word in run.verdicts.items() if word in words.values()}
    if any(
        leaf.absolute for arrow in run.case.graph.arrows for leaf in leaves(arrow.condition)
    ):
        expected = {key: word for key, word in expected.items() if key in seen}
    return _difference("verdicts", seen, expected)


def _unlawful_suicides(run: Driven, oracle: Oracle) -> list[str]:
    found = []
    for key, fate in oracle.fates.items():
        name = f"{key[0]}/{key[1]}"
        removed = run.verdicts.get(key) == "removed by suicide"
        if removed and not oracle.suicide_holds(key):
            found.append(f"{name} was removed by a suicide that does not hold")
        left = fate.word in ("open", "blocked") or fate.is_incomplete
        task = run.run.core.tasks.get(key)
        if oracle.suicide_is_absolute(key) and (task is None or not task.admitted):
            left = False  # removed when it is asked for or released: it has no last point
        if not removed and left and oracle.suicide_holds(key):
            found.append(f"{name} was not removed by a suicide that holds")
    return found


def _excess(run: Driven, oracle: Oracle) -> list[str]:
    """A run that stalled under a limit has done a part of what it could have done."""
    allowed = oracle.submissions
    more = {key: count for key, count in run.submitted.items() if count > allowed.get(key, 0)}
    found = [f"submissions: more than expected: {more}"] if more else []
    ended = {
        key for key, word in run.pool.items() if word in (FAILED, SUBMIT_FAILED, SUCCEEDED)
    }
    if not ended <= oracle.incomplete:
        found.append(f"incomplete: more than expected: {ended - oracle.incomplete}")
    pruned = {key for key, word in run.verdicts.items() if word in ("lost", "not taken")}
    if not pruned <= oracle.with_word("pruned"):
        found.append(f"pruned: more than expected: {pruned - oracle.with_word('pruned')}")
    return found


def _difference(what: str, seen: object, expected: object) -> list[str]:
    if seen == expected:
        return []
    if isinstance(seen, dict) and isinstance(expected, dict):
        seen, expected = set(seen.items()), set(expected.items())
    assert isinstance(seen, (set, frozenset)) or hasattr(seen, "__and__")
    more, less = set(seen) - set(expected), set(expected) - set(seen)
    return [f"{what}: unexpected {sorted(more)}, missing {sorted(less)}"]
