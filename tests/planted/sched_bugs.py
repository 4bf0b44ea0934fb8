"""Bugs of the scheduling core: run twice, never run, left behind, forgotten over a restart."""

from tests.planted.bug import Bug, Edit

SCHED = "core/sched"
CONDITIONS = f"{SCHED}/conditions.py"
ENDING = f"{SCHED}/ending.py"
JUDGEMENT = f"{SCHED}/judgement.py"
LIMITS = f"{SCHED}/limits.py"
OUTPUTS = f"{SCHED}/outputs.py"
RECORDS = f"{SCHED}/records.py"
RUNAHEAD = f"{SCHED}/runahead.py"
SPAWNING = f"{SCHED}/spawning.py"
STALL = f"{SCHED}/stall.py"
SUICIDE = f"{SCHED}/suicide.py"

SCHED_BUGS = (
    Bug(
        "a late parent runs its child again (finished removed at once)",
        (
            Edit(
                OUTPUTS, "        fresh = flows - memory.spawned\n", "        fresh = flows\n"
            ),
            Edit(
                OUTPUTS,
                "            fresh -= memory.verdicts.keys()\n",
                "            fresh = frozenset(\n"
                "                flow\n"
                "                for flow in fresh\n"
                "                if flow not in memory.verdicts\n"
                "                or memory.verdicts[flow].kind is VerdictKind.FINISHED\n"
                "            )\n",
            ),
        ),
    ),
    Bug(
        "the runahead base ignores incomplete tasks",
        (
            Edit(
                RUNAHEAD,
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
        (Edit(RUNAHEAD, "cycling.runahead + 1", "cycling.runahead + 2"),),
    ),
    Bug(
        "implied outputs are missing",
        (Edit(OUTPUTS, "(*implied, output) for output", "(output,) for output"),),
    ),
    Bug(
        "pruning leaves a task in the pool",
        (
            Edit(
                JUDGEMENT,
                "        leave(draft, task)\n        verdict = Verdict(VerdictKind.PRUNED",
                "        verdict = Verdict(VerdictKind.PRUNED",
            ),
        ),
    ),
    Bug(
        "a blocked task is no stall",
        (
            Edit(
                STALL,
                "    if task.standing in (Standing.INCOMPLETE, Standing.BLOCKED):\n",
                "    if task.standing is Standing.INCOMPLETE:\n",
            ),
        ),
    ),
    Bug(
        "a handled failure ends every later cycle unseen",
        (Edit(CONDITIONS, "value = LOST if inside else OPEN", "value = LOST"),),
    ),
    Bug(
        "an absolute parent forgets later points",
        (
            Edit(
                f"{SCHED}/absolute.py",
                "draft.to_start.append((node, flow, _first_point(pool, flow)))\n",
                "pass\n",
            ),
        ),
    ),
    Bug(
        "a suicide is ignored while its task is not spawned",
        (
            Edit(
                SUICIDE,
                "            condemn(draft, node, point, frozenset({flow}), BY_SUICIDE)\n",
                "            pass\n",
            ),
        ),
    ),
    Bug(
        "a suicide does not reach what ends incomplete after it",
        (
            Edit(
                ENDING,
                "        apply_level_to(draft, task)\n",
                "",
            ),
        ),
    ),
    Bug(
        "a failure that is tried again is an output",
        (
            Edit(
                ENDING,
                "    task.waits[RETRY] = None\n",
                "    task.waits[RETRY] = None\n    make(draft, task, output)\n",
            ),
        ),
    ),
    Bug(
        "OR is read as AND",
        (
            Edit(
                CONDITIONS,
                "return any(holds(term, mask)",
                "return all(holds(term, mask)",
            ),
        ),
    ),
    Bug(
        "-any of a family is read as -all",
        (
            Edit(
                f"{SCHED}/compile_plan.py",
                "members, term.outputs, term.every)",
                "members, term.outputs, True)",
            ),
        ),
    ),
    Bug(
        "a restart forgets an atom (prerequisites not saved)",
        (Edit(RECORDS, "row.stage, row.true, row.missing", "row.stage, 0, row.missing"),),
    ),
    Bug(
        "a restart forgets that a parent finished",
        (Edit(RECORDS, "dict(made), dict(verdicts)", "dict(made), {}"),),
    ),
    Bug(
        "a limit group leaks a place",
        (
            Edit(
                ENDING,
                "    draft.pool.queues[limit].active -= 1\n",
                "    draft.pool.queues[limit].active -= task.try_number == 1\n",
            ),
        ),
    ),
    Bug(
        "a limit group lets one too many in",
        (
            Edit(LIMITS, "queue.heap or 0 < queue.limit <= queue", "0 < queue.limit < queue"),
            Edit(LIMITS, "not 0 < queue.limit <= queue", "not 0 < queue.limit < queue"),
        ),
    ),
    Bug(
        "what a succeeded task did not make counts as lost",
        (
            Edit(
                f"{SCHED}/deaths.py",
                "FINISHED = Verdict(VerdictKind.FINISHED, Value.NOT_TAKEN",
                "FINISHED = Verdict(VerdictKind.FINISHED, Value.LOST",
            ),
        ),
    ),
    Bug(
        "outputs of an incomplete task die",
        (
            Edit(
                ENDING,
                "        task.stage = Stage.INCOMPLETE\n",
                "        task.stage = Stage.INCOMPLETE\n"
                "        condemn(draft, task.plan, task.point, task.flows, FINISHED)\n",
            ),
        ),
    ),
    Bug(
        "what failed before the start counts as having happened",
        (
            Edit(
                CONDITIONS,
                "pool.plan.policy.bad_end_before_start if leaf.output in BAD_ENDS else TRUE",
                "TRUE",
            ),
        ),
    ),
    Bug(
        "a chain breaks when its head leaves unreleased",
        (
            Edit(
                SPAWNING,
                "    if not task.released or task.plan.in_sequence:\n",
                "    if False:\n",
            ),
        ),
    ),
    Bug(
        "a report of an old job is believed",
        (
            Edit(
                f"{SCHED}/jobs.py",
                "task is None or task.submit != submit or",
                "task is None or",
            ),
        ),
    ),
    Bug(
        "what may still be asked for is forgotten",
        (
            Edit(
                f"{SCHED}/housekeeping.py",
                "horizon = Point(earliest - plan.reach_back - plan.lead)",
                "horizon = earliest",
            ),
        ),
    ),
)
