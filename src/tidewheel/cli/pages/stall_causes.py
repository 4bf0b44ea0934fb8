"""Says why a run does not go on: failures that are alike in one line, then each other cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from tidewheel.cli.output import plural
from tidewheel.cli.pages.format import documents, texts
from tidewheel.core.sched.explain import why
from tidewheel.core.sched.lifecycle import root_causes
from tidewheel.core.sched.task_state import Key, PoolState
from tidewheel.scheduler.run_engine import RunEngine
from tidewheel.views.error_groups import (
    FailedJob,
    failure_of,
    group_commands,
    grouped,
    told_group,
)
from tidewheel.views.run_facts import command_lines

CAUSES_MAX = 10


def other_causes(shown: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Returns the causes that are in no group of failures, from the view of a run."""
    told = {id_ for group in documents(shown, "groups") for id_ in texts(group, "ids")}
    return [one for one in documents(shown, "causes") if one["id"] not in told]


def cause_lines(shown: Mapping[str, object]) -> Iterator[str]:
    """Yields the lines that say why a run does not go on by itself, from the view of it."""
    groups, others = documents(shown, "groups"), other_causes(shown)
    for group in groups[:CAUSES_MAX]:
        yield str(group["text"])
        yield from (f"  {one}" for one in texts(group, "commands"))
    for cause in others[: CAUSES_MAX - len(groups)]:
        for reason in documents(cause, "reasons"):
            yield str(reason["text"])
            yield from (f"  {one}" for one in texts(reason, "commands"))
    told = sum(cast("int", one["count"]) for one in groups[:CAUSES_MAX])
    yield from _more(told + len(others[: CAUSES_MAX - len(groups)]), shown)


def _more(told: int, shown: Mapping[str, object]) -> Iterator[str]:
    if (more := len(documents(shown, "causes")) - told) > 0:
        yield f"and {plural(more, 'task')} more"


def causes(engine: RunEngine, errors: Mapping[Key, str]) -> Iterator[str]:
    """Yields the lines that say why a run stands still, each with the commands that help;
    `errors` says how jobs ended."""
    pool, run = engine.pool, engine.run.name
    found = root_causes(pool)
    failed = [task for task in found if task.standing is PoolState.INCOMPLETE]
    jobs = {key: FailedJob(None, error) for key, error in errors.items()}
    no_job = FailedJob(None, "")
    failures = (
        failure_of(pool, one.key, one.ended, jobs.get(one.key, no_job)) for one in failed
    )
    groups = grouped(failures)
    told = 0
    for those in groups[:CAUSES_MAX]:
        told += len(those)
        yield told_group(pool, those)
        yield from (f"  {one}" for one in group_commands(run, pool, those))
    others = [one for one in found if one.standing is not PoolState.INCOMPLETE]
    shown = others[: max(0, CAUSES_MAX - len(groups))]
    for task in shown:
        yield from _one_cause(engine, task.key)
    if (more := len(found) - told - len(shown)) > 0:
        yield f"and {plural(more, 'task')} more"


def _one_cause(engine: RunEngine, key: Key) -> Iterable[str]:
    reasons = why(engine.pool, key)
    words = "; ".join(reason.text for reason in reasons)
    command = next((one.command for one in reasons if one.command), "")
    name = engine.pool.plan.name_of(key)
    yield words if words.startswith(name) else f"{name}: {words}"
    yield from (f"  {one}" for one in command_lines(engine.run.name, command))
