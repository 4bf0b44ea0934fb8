"""Compares the scheduling core with the oracle on many random workflows, from one seed.

    python -m tests.sim.sched_oracle_campaign --seed 7 --graphs 1000

Each workflow is run in a random order, which the oracle judges, and in the same order with
restarts, which must make no difference at all.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from tests.sim.sched_oracle import SUCCEEDED, Arrow, Condition, Graph, Key, Leaf, Try
from tests.sim.sched_oracle_comparing import disagreements
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_graphs import Case, has_cycle, never_there
from tests.sim.sched_oracle_lists import draw_with_lists
from tests.sim.sched_oracle_runs import Broken, Driven

SHRINKS_MAX = 600
ORDERS_TRIED = 3


def problems(case: Case, order: int) -> tuple[list[str], list[str]]:
    """What is wrong in this order, and what had happened."""
    run: Driven | None = None
    try:
        run = driven(case, order)
        found = disagreements(run.to_the_end())
        if found:
            return found, run.history
        calm = run.end_state()
        rates = Random(order + 2)
        rate = rates.choice((0.1, 0.3, 1.0))
        run = driven(case, order, restart=lambda: rates.random() < rate)
        found = disagreements(run.to_the_end())
        # With room for all, the order of submissions in one step is nobody's business.
        found += _changed(calm, run.end_state()) if case.graph.limit is None else []
        if found:
            return found, run.history
        return [], run.history
    except (AssertionError, Broken, LookupError, TypeError, ValueError) as broken:
        history = [] if run is None else run.history
        return [f"{type(broken).__name__}: {broken}"], history


def driven(case: Case, order: int, *, restart: Callable[[], bool] = lambda: False) -> Driven:
    return Driven(case, Random(order).randrange, reports=order + 1, restart=restart)


def _changed(calm: dict[str, object], restarted: dict[str, object]) -> list[str]:
    return [
        f"a restart changed the {what}: {restarted[what]}, without: {calm[what]}"
        for what in calm
        if calm[what] != restarted[what]
    ]


# The smallest case that shows it.


def shrunk(case: Case, order: int) -> tuple[Case, int]:
    """A smaller case with something wrong, and an order that shows it."""
    kind = _kind(problems(case, order)[0])
    tried = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(case):
            tried += 1
            if tried > SHRINKS_MAX:
                return case, order
            bad = next(
                (o for o in _orders(order) if _kind(problems(candidate, o)[0]) == kind), None
            )
            if bad is not None:
                case, order, smaller = candidate, bad, True
                break
    return case, order


def _orders(order: int) -> list[int]:
    return [order, *range(ORDERS_TRIED)]


def _kind(found: list[str]) -> str:
    """What sort of thing is wrong: the words of the first problem, without names and points."""
    words = found[0].partition(": ")[0] if found else ""
    return "".join(letter for letter in words if not letter.isdigit())


def _smaller(case: Case) -> Iterator[Case]:
    for graph in _smaller_graphs(case.graph):
        if not never_there(graph) and not has_cycle(graph):
            yield Case(graph, dict(_outcomes(case, graph)))
    for key, tries in case.outcomes.items():
        if tries != (Try(SUCCEEDED),):
            yield Case(case.graph, {**case.outcomes, key: (Try(SUCCEEDED),)})


def _outcomes(case: Case, graph: Graph) -> Iterator[tuple[Key, tuple[Try, ...]]]:
    for name, points in graph.placed().items():
        for point in points:
            tries = case.outcomes.get((point, name), (Try(SUCCEEDED),))
            yield (point, name), tries if name in graph.retries else tries[-1:]


def _smaller_graphs(graph: Graph) -> Iterator[Graph]:
    for number, arrow in enumerate(graph.arrows):
        if arrow.hidden:
            continue  # it stands on a line with others
        before, after = graph.arrows[:number], graph.arrows[number + 1 :]
        yield replace(graph, arrows=before + after)
        for simpler in _simpler(arrow):
            yield replace(graph, arrows=(*before, simpler, *after))
    if graph.limit is not None:
        yield replace(graph, limit=None)
    if graph.runahead is not None:
        yield replace(graph, runahead=None)
    if graph.start != 1:
        yield replace(graph, start=1)
    for name in graph.retries:
        yield replace(graph, retries={n: r for n, r in graph.retries.items() if n != name})


def _simpler(arrow: Arrow) -> Iterator[Arrow]:
    for condition in _simpler_conditions(arrow.condition):
        yield replace(arrow, condition=condition)


def _simpler_conditions(condition: Condition | None) -> Iterator[Condition | None]:
    if condition is None:
        return
    if isinstance(condition, Leaf):
        yield None
        return
    yield from condition.terms


def report(case: Case, order: int) -> str:
    """All that is needed to see it again by hand."""
    found, history = problems(case, order)
    ends = [
        f"  {point}/{name}: "
        + ", then ".join(f"{one.end} {' '.join(one.customs)}" for one in tries)
        for (point, name), tries in sorted(case.outcomes.items())
        if tries != (Try(SUCCEEDED),)
    ]
    start = [] if case.graph.start == 1 else [f"start: {case.graph.start}"]
    return "\n".join(
        [
            *(*found, "", flow_text(case.graph), *start),
            *("ends (others succeed):", *ends),
            "what happened: " + "; ".join(history),
        ]
    )


def campaign(
    seed: int, *, graphs: int, seconds: float, at_least: int = 1, shrink: bool = True
) -> tuple[int, str]:
    """How many workflows agreed, and the report of the first that did not."""
    ends_at = time.monotonic() + seconds
    for number in range(graphs):
        if number >= at_least and time.monotonic() > ends_at:
            return number, ""
        case = draw_with_lists(seed + number)
        found, _ = problems(case, seed + number)
        if found:
            small, order = case, seed + number
            if shrink:
                small, order = shrunk(small, order)
            module = "tests.sim.sched_oracle_campaign"
            again = f"again: python -m {module} --seed {seed + number} --graphs 1"
            title = f"seed {seed + number}: " + "; ".join(found)
            return number, "\n".join(
                [title, "made smaller:" * shrink, report(small, order), again]
            )
    return graphs, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--graphs", type=int, default=1000, help="how many at most")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long …")
    parser.add_argument("--at-least", type=int, default=1, help="… but do so many in any case")
    parser.add_argument("--as-drawn", action="store_true", help="do not make it smaller")
    options = parser.parse_args()
    count, text = campaign(
        options.seed,
        graphs=options.graphs,
        seconds=options.seconds,
        at_least=options.at_least,
        shrink=not options.as_drawn,
    )
    if text:
        sys.stdout.write(f"disagreement after {count + 1} graphs\n{text}\n")
        return 1
    sys.stdout.write(f"no disagreement in {count} graphs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
