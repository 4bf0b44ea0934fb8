"""Definitions of a wanted size: chains, families, inheritance, inter-cycle arrows, branches."""

from __future__ import annotations

LINES_PER_TASK = 6.4  # of the file below, about
FAMILY_SIZE = 20

_HEAD = """\
[scheduler]
    UTC mode = True
    allow implicit tasks = False
[scheduling]
    initial cycle point = 20300101T00Z
    final cycle point = 20301231T00Z
    runahead limit = P5
    [[queues]]
        [[[heavy]]]
            limit = 10
            members = FAM0
    [[graph]]
"""
_TASK = """\
    [[task{n}]]
        inherit = FAM{family}
        script = echo "task {n} at $CYLC_TASK_CYCLE_POINT"
        [[[environment]]]
            NUMBER = {n}
"""
_FAMILY = """\
    [[FAM{family}]]
        execution retry delays = 2*PT30S, PT5M
        execution time limit = PT1H
        [[[environment]]]
            FAMILY = {family}
"""


def definition(lines: int) -> str:
    """A flow.cylc of about so many lines."""
    return workflow(max(FAMILY_SIZE, int(lines / LINES_PER_TASK)))


def workflow(tasks: int) -> str:
    """A flow.cylc of so many tasks in families of twenty."""
    families = (tasks + FAMILY_SIZE - 1) // FAMILY_SIZE
    graph = [
        f"            task{n}[-P1D]? => task{n}? => task{n + 1}?"
        for n in range(0, tasks - 1, 2)
    ]
    graph += [f"            task{n}:fail? => mend{n % 10}" for n in range(1, tasks, 2)]
    daily = [
        f"            FAM{family}:finish-all => report{family % 5}"
        for family in range(families)
    ]
    runtime = [_FAMILY.format(family=family) for family in range(families)]
    runtime += [_TASK.format(n=n, family=n // FAMILY_SIZE) for n in range(tasks)]
    others = [f"    [[mend{n}]]\n" for n in range(10)] + [
        f"    [[report{n}]]\n" for n in range(5)
    ]
    return (
        _HEAD
        + _text("T00", graph)
        + _text("T12", daily)
        + "[runtime]\n    [[root]]\n        script = true\n"
        + "".join(runtime + others)
    )


def _text(recurrence: str, lines: list[str]) -> str:
    body = "\n".join(lines)
    return f'        {recurrence} = """\n{body}\n        """\n'
