"""Writes a graph of the oracle's model as the flow.cylc that the product reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.sim.sched_oracle import Condition, Every, Graph, Leaf


def text_of(condition: Condition) -> str:
    if isinstance(condition, Leaf):
        return condition.text
    sign = " & " if isinstance(condition, Every) else " | "
    return "(" + sign.join(text_of(term) for term in condition.terms) + ")"


def flow_text(graph: Graph) -> str:
    """The graph as a flow.cylc."""
    lines = [
        "[scheduling]",
        "    cycling mode = integer",
        "    initial cycle point = 1",
        f"    final cycle point = {graph.final}",
        f"    runahead limit = P{graph.final if graph.runahead is None else graph.runahead}",
    ]
    if graph.limit is not None:
        lines += [
            "    [[queues]]",
            "        [[[default]]]",
            f"            limit = {graph.limit}",
        ]
    lines += ["    [[graph]]"]
    lists = () if graph.list is None else graph.list.lines
    lines += [f"        {line}" for line in lists]
    for arrow in graph.arrows:
        if arrow.hidden:
            continue
        left = "" if arrow.condition is None else f"{text_of(arrow.condition)} => "
        lines.append(f"        {arrow.recurrence} = {left}{arrow.target_text}")
    if graph.list is not None:
        lines += ["[task parameters]", f"    f = {graph.list.source}.l max {graph.list.most}"]
    lines += ["[runtime]", *_runtime(graph)]
    return "\n".join(lines) + "\n"


def _runtime(graph: Graph) -> Iterator[str]:
    for family in graph.families:
        yield f"    [[{family}]]"
    member_of = {name: fam for fam, members in graph.families.items() for name in members}
    names = {re.sub(r"_f\d", "<f>", name) for name in graph.placed()}
    if graph.list is not None:  # which may be empty everywhere
        names |= {line.rpartition("=> ")[2] for line in graph.list.lines}
    for name in sorted(names):
        yield f"    [[{name}]]"
        if name in member_of:
            yield f"        inherit = {member_of[name]}"
        execution, submission = graph.retries.get(name, (0, 0))
        if execution:
            yield f"        execution retry delays = {execution}*PT1S"
        if submission:
            yield f"        submission retry delays = {submission}*PT1S"
        if graph.customs.get(name):
            yield "        [[[outputs]]]"
            yield from (f"            {one} = {one}" for one in graph.customs[name])
