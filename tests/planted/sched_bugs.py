"""Bugs of the scheduling core: run twice, never run, left behind, forgotten over a restart."""

from tests.planted.bug import Bug, Edit

SCHED = "core/sched"
EVALUATION = f"{SCHED}/evaluation.py"
COMPLETION = f"{SCHED}/completion.py"
REACHABILITY = f"{SCHED}/reachability.py"
LIMITS = f"{SCHED}/limits.py"
PROPAGATION = f"{SCHED}/propagation.py"
PERSISTENCE = f"{SCHED}/persistence.py"
SPAWN = f"{SCHED}/spawn.py"
LIFECYCLE = f"{SCHED}/lifecycle.py"
ELEMENTS = f"{SCHED}/elements.py"
POOL = f"{SCHED}/pool.py"
INTERVENTIONS = f"{SCHED}/interventions.py"
TRIGGER = f"{SCHED}/trigger.py"

SCHED_BUGS = (
    Bug(
        "a late parent runs its child again (finished removed at once)",
        (
            Edit(
                PROPAGATION,
                "    return flows.difference(memory.spawned, memory.verdicts)\n",
                "    return frozenset(\n"
                "        flow\n"
                "        for flow in flows\n"
                "        if flow not in memory.verdicts\n"
                "        or memory.verdicts[flow].kind.name == 'FINISHED'\n"
                "    )\n",
            ),
        ),
    ),
    Bug(
        "the runahead base ignores incomplete tasks",
        (
            Edit(
                LIMITS,
                "    base = pool.counted.earliest()\n",
                "    base = min(\n"
                "        (one.point for one in pool.tasks.values()\n"
                "         if int(one.standing) not in (0, 6)),\n"
                "        default=None,\n"
                "    )\n",
            ),
        ),
    ),
    Bug(
        "the runahead limit is one point too far",
        (Edit(LIMITS, "cycling.runahead + 1", "cycling.runahead + 2"),),
    ),
    Bug(
        "implied outputs are missing",
        (Edit(PROPAGATION, "(*implied, output) for output", "(output,) for output"),),
    ),
    Bug(
        "pruning leaves a task in the pool",
        (
            Edit(
                REACHABILITY,
                "        leave(context, task)\n        verdict = Verdict(VerdictKind.PRUNED",
                "        verdict = Verdict(VerdictKind.PRUNED",
            ),
        ),
    ),
    Bug(
        "a blocked task is no stall",
        (
            Edit(
                LIFECYCLE,
                "    if task.standing in _STUCK:\n",
                "    if task.standing is PoolState.INCOMPLETE:\n",
            ),
        ),
    ),
    Bug(
        "a handled failure ends every later cycle unseen",
        (Edit(EVALUATION, "value = LOST if inside else OPEN", "value = LOST"),),
    ),
    Bug(
        "an absolute parent forgets later points",
        (
            Edit(
                f"{SCHED}/absolute_triggers.py",
                "context.chains_to_start.append((node, flow, _first_point(pool, flow)))\n",
                "pass\n",
            ),
        ),
    ),
    Bug(
        "a suicide is ignored while its task is not spawned",
        (
            Edit(
                COMPLETION,
                "mark_unreachable(context, node, point, frozenset({flow}), BY_SUICIDE)\n",
                "pass\n",
            ),
        ),
    ),
    Bug(
        "a suicide does not reach what ends incomplete after it",
        (
            Edit(
                COMPLETION,
                "        apply_level_to(context, task)\n",
                "",
            ),
        ),
    ),
    Bug(
        "success is enough, whatever output was forgotten",
        (
            Edit(
                "core/graph/completion.py",
                "frozenset({SUCCEEDED, one}) for one in used if one not in STANDARD]\n",
                "frozenset({SUCCEEDED, one}) for one in used if not one]\n",
            ),
        ),
    ),
    Bug(
        "a failure that is tried again is an output",
        (
            Edit(
                COMPLETION,
                "    task.waits[spawn.RETRY] = None\n",
                "    task.waits[spawn.RETRY] = None\n"
                "    complete_output(context, task, output)\n",
            ),
        ),
    ),
    Bug(
        "OR is read as AND",
        (
            Edit(
                EVALUATION,
                "return any(holds(term, mask)",
                "return all(holds(term, mask)",
            ),
        ),
    ),
    Bug(
        "-any of a family is read as -all",
        (
            Edit(
                f"{SCHED}/index_builder.py",
                "members, term.outputs, term.every\n",
                "members, term.outputs, True\n",
            ),
        ),
    ),
    Bug(
        "a restart forgets an atom (prerequisites not saved)",
        (
            Edit(
                PERSISTENCE,
                "return row.true if row.bits is None",
                "return () if row.bits is None",
            ),
        ),
    ),
    Bug(
        "a restart forgets that a parent finished",
        (Edit(PERSISTENCE, "dict(self.made), dict(self.verdicts)", "dict(self.made), {}"),),
    ),
    Bug(
        "a limit group leaks a place",
        (
            Edit(
                COMPLETION,
                "    queue.active -= 1\n",
                "    queue.active -= task.try_number == 1\n",
            ),
        ),
    ),
    Bug(
        "a limit group lets one too many in",
        (
            Edit(
                LIMITS,
                "queue.heap or 0 < queue.limit <= queue",
                "0 < queue.limit < queue",
            ),
            Edit(LIMITS, "not 0 < queue.limit <= queue", "not 0 < queue.limit < queue"),
        ),
    ),
    Bug(
        "what a succeeded task did not make counts as lost",
        (
            Edit(
                PROPAGATION,
                "FINISHED = Verdict(VerdictKind.FINISHED, AtomValue.NOT_TAKEN",
                "FINISHED = Verdict(VerdictKind.FINISHED, AtomValue.LOST",
            ),
        ),
    ),
    Bug(
        "outputs of an incomplete task die",
        (
            Edit(
                COMPLETION,
                "        task.stage = JobPhase.INCOMPLETE\n",
                "        task.stage = JobPhase.INCOMPLETE\n"
                "        mark_unreachable("
                "context, task.plan, task.point, task.flows, FINISHED)\n",
            ),
        ),
    ),
    Bug(
        "what failed before the start counts as having happened",
        (
            Edit(
                EVALUATION,
                "pool.plan.policy.bad_end_before_start if leaf.output in BAD_ENDS else TRUE",
                "TRUE",
            ),
        ),
    ),
    Bug(
        "a chain breaks when its head leaves unadmitted",
        (
            Edit(
                SPAWN,
                "    if not admitted or node.in_sequence:\n",
                "    if False:\n",
            ),
        ),
    ),
    Bug(
        "a report of an old job is believed",
        (
            Edit(
                COMPLETION,
                "task is None or task.submit != submit or",
                "task is None or",
            ),
        ),
    ),
    Bug(
        "what may still be asked for is forgotten",
        (
            Edit(
                f"{SCHED}/step.py",
                "horizon = Point(earliest - plan.reach_back - plan.lead)",
                "horizon = earliest",
            ),
        ),
    ),
    Bug(
        "an element too many",
        (
            Edit(
                ELEMENTS,
                "size is not None and index < size",
                "size is not None and index <= size",
            ),
        ),
    ),
    Bug(
        "no elements never complete the join",
        (Edit(POOL, "AtomValue(order[-1])", "AtomValue.OPEN"),),
    ),
    Bug(
        "the number of elements is forgotten over a restart",
        (
            Edit(
                PERSISTENCE,
                "made = tuple(memory.made.items())\n",
                "made = tuple(one for one in memory.made.items() if one[0][-1] != ']')\n",
            ),
        ),
    ),
    Bug(
        "elements of the point before are counted",
        (
            Edit(
                EVALUATION,
                "None if name == changing else pool.recall(point, name)\n",
                "None if name == changing else pool.recall(Point(point - 1), name)\n",
            ),
        ),
    ),
    Bug(
        "elements do not see what died before there were any",
        (Edit(PROPAGATION, "size and template.may_be_born_dead", "False"),),
    ),
)

# Found by properties: of lists that operators forget, of flows among elements, of groups.
LIST_BUGS = (
    Bug(
        "elements of a list that is forgotten stay",
        (
            Edit(
                INTERVENTIONS,
                "    for tasks in node.lists:\n        _forget",
                "    for tasks in ():\n        _forget",
            ),
        ),
        seed=98,
    ),
    Bug(
        "a flow has as many elements as another",
        (
            Edit(
                ELEMENTS,
                "(flow, size_at(pool, tasks, point, frozenset({flow}))) for flow in flows",
                "(flow, size_at(pool, tasks, point, frozenset(pool.flows))) for flow in flows",
            ),
        ),
        seed=139,
    ),
    Bug(
        "a flow that begins at elements has none",
        (
            Edit(
                ELEMENTS,
                "    made[output] = made.get(output, NO_FLOW) | lacking\n",
                "    made.get(output)\n",
            ),
        ),
        seed=192,
    ),
    Bug(
        "what a group did before counts for it",
        (
            Edit(
                TRIGGER,
                "        _forget_run(context, key, where)\n",
                "        where.union((context, key))\n",
            ),
        ),
        seed=69,
    ),
)
