"""Bugs of stores: who may report, when a lease ends, which task is next, who waits for whom.

Most were seen in other systems, which are named.
"""

from tests.planted.bug import Bug, Edit

LEASE = "core/queue/lease.py"
STATUS = "core/queue/status.py"
STEPS = "core/queue/steps.py"
CHANGES = "tests/kit/memory/changes.py"
LEASES = "tests/kit/memory/leases.py"
VIEWS = "tests/kit/memory/views.py"
TRANSITIONS = "store/operations/transitions.py"
CLAIM_REPORT = "store/operations/leases.py"
SUBMIT = "store/operations/submit.py"
LEASE_EXPIRY = "store/operations/workers.py"

GUARD = "if task.attempt != holder.attempt or task.owner != holder.worker:"
CHECK = '    check_holder(task, one.holder, "a report")'
BEAT_GUARD = '(lease["attempt"], lease["owner"]) != (beat["attempt"], worker)'
LAPSED = 'lapsed = lease["deadline_at"] < now and lease["lease_seconds"] <= watched_seconds'

LATE_OUTPUT = """\
    if task.lease is None and one.messages and one.end is None:
        for message in one.messages:
            row = {"seq": task.seq, "attempt": one.holder.attempt}
            row |= {"number": message.number, "text": message.text}
            writes.messages.append(row | {"output": message.output})
        return task.status
"""

REVIVED_LEASE = """\
        task = t.task.get(seq)
        if lease is None and task and task["attempt"] == beat["attempt"]:
            if task["status"] == Status.READY:
                t.update(t.task, seq, status=Status.RUNNING.value, owner=worker)
                take_leases(t, seqs=[seq], lease_seconds=10.0)
                lease = t.lease[seq]
"""

REPEATED_MESSAGES = """\
fresh = [
        type(said)(number=number, text=said.text, output=said.output)
        for number, said in enumerate(one.messages, stored + 1)
    ]"""

END_BUGS = (
    Bug(
        "an end is accepted whatever became of the attempt (Oban: unguarded complete)",
        (
            Edit(LEASE, GUARD, "if task.lease is None and task.status is not Status.READY:"),
            Edit(LEASE, "if task.status not in LEASED:", "if task.lease is None:"),
        ),
    ),
    Bug(
        "an end is guarded by status alone (River)",
        (Edit(LEASE, GUARD, "if task.lease is None:"),),
    ),
    Bug(
        "an end is guarded by its owner but not by its attempt",
        (Edit(LEASE, GUARD, "if task.owner != holder.worker:"),),
        seed=455,
    ),
    Bug(
        "a cancel overwrites a completed task",
        (
            Edit(
                STEPS,
                "if task.status in FINAL or task.status is Status.CANCELLING:",
                "if task.status in FINAL - {Status.SUCCEEDED} | {Status.CANCELLING}:",
            ),
            Edit(STATUS, "_S.SUCCEEDED: {},", "_S.SUCCEEDED: {_G.CANCEL: _S.CANCELLED},"),
            Edit(
                STATUS,
                "FINAL = frozenset(status for status, row in TRANSITIONS.items() if not row)",
                "FINAL = frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLED})",
            ),
        ),
    ),
    Bug(
        "a completion brings a cancelled task back",
        (
            Edit(
                STATUS,
                "dict.fromkeys(_ANY_END, _S.CANCELLED)",
                "dict.fromkeys(_ANY_END, _S.CANCELLED) | {_G.SUCCEED: _S.SUCCEEDED}",
            ),
        ),
    ),
    Bug(
        "a message of an earlier attempt is accepted (Cylc: old job)",
        (
            Edit(
                CLAIM_REPORT,
                CHECK,
                "    if one.end is not None or task.lease is None:\n    " + CHECK,
            ),
        ),
        seed=475,
    ),
    Bug(
        "an output is accepted after the end", (Edit(CLAIM_REPORT, CHECK, LATE_OUTPUT + CHECK),)
    ),
    Bug(
        "a message that was sent again is stored again",
        (
            Edit(
                CLAIM_REPORT,
                "fresh = [message for message in one.messages if message.number > stored]",
                REPEATED_MESSAGES,
            ),
        ),
    ),
    Bug(
        "a yield counts as a failure",
        (
            Edit(
                STEPS,
                "(signal in (Signal.RETRY, Signal.FAIL, Signal.ABORT))",
                "(signal in (Signal.RETRY, Signal.FAIL, Signal.ABORT, Signal.YIELD))",
            ),
        ),
    ),
)

LEASE_BUGS = (
    Bug(
        "a heartbeat is guarded by its owner but not by its attempt",
        (Edit(LEASES, BEAT_GUARD, 'lease["owner"] != worker'),),
    ),
    Bug(
        "a heartbeat after the lapse makes the lease anew",
        (
            Edit(
                LEASES,
                "        if lease is None or " + BEAT_GUARD,
                REVIVED_LEASE + "        if lease is None or " + BEAT_GUARD,
            ),
        ),
    ),
    Bug(
        "a lease lapses although it was renewed (Airflow #58570: orphan reset while running)",
        (
            Edit(
                LEASE,
                "lapsed = now > task.lease.deadline_at",
                "lapsed = now > task.lease.claimed_at + task.lease.lease_seconds",
            ),
            Edit(LEASES, LAPSED, 'lapsed = lease["claimed_at"] + lease["lease_seconds"] < now'),
        ),
    ),
    Bug(
        "a task without a time limit is ended for taking long (River: rescue)",
        (
            Edit(
                LEASE,
                "task.timeout_seconds is not None\n"
                "        and begun_at is not None\n"
                "        and now > begun_at + task.timeout_seconds",
                "begun_at is not None and now > begun_at + (task.timeout_seconds or 20.0)",
            ),
            Edit(
                LEASES,
                "too_long = None not in (limit, begun_at) and begun_at + limit < now",
                "too_long = begun_at is not None and begun_at + (limit or 20.0) < now",
            ),
            Edit(STEPS, "limit of {task.timeout_seconds:g} s", "limit of 20 s"),
        ),
    ),
    Bug(
        "after an outage leases lapse before anybody can renew them",
        (
            Edit(LEASE_EXPIRY, "task.lease.lease_seconds > watched_seconds", "False"),
            Edit(LEASES, LAPSED, 'lapsed = lease["deadline_at"] < now'),
        ),
    ),
    Bug(
        "monitors look at the first batch only (River #1318: rescuer starvation)",
        (
            Edit(
                LEASES,
                "for seq, lease in t.lease.items():\n        task = t.task[seq]\n        lim",
                "for seq, lease in sorted(t.lease.items())[:count]:\n"
                "        task = t.task[seq]\n        lim",
            ),
        ),
    ),
    Bug(
        "the attempt is not counted up by a second lease",
        (
            Edit(
                LEASES,
                'attempt=task["attempt"] + 1,',
                'attempt=max(1, task["attempt"]),',
            ),
        ),
    ),
)

CLAIM_BUGS = (
    Bug(
        "two claims return the same task",
        (
            Edit(
                LEASES,
                'can_be_claimed(t, task)\n        and task["due_at"] is None\n',
                'task["status"] in (Status.READY, Status.RUNNING)\n'
                '        and task["due_at"] is None\n',
            ),
            Edit(LEASES, "        assert seq not in t.lease, seq\n", ""),
        ),
    ),
    Bug(
        "a paused queue hands out tasks",
        (Edit(CLAIM_REPORT, "    if plan.paused:\n        return ClaimedTasks()\n", ""),),
    ),
    Bug(
        "priorities are compared as text (Scylla)",
        (
            Edit(
                LEASES,
                'return sorted(found, key=lambda task: (-task["priority"], task["seq"]))',
                'return sorted(found, key=lambda task: str(task["priority"]), reverse=True)',
            ),
        ),
        seed=445,
    ),
    Bug(
        "a delayed task runs at once",
        (Edit(LEASES, '        and task["due_at"] <= now\n', ""),),
    ),
    Bug(
        "a limit does not count what was requeued (Slurm: reservation not taken again)",
        (
            Edit(
                LEASES,
                '            "rank": -task["priority"],\n',
                '            "rank": -task["priority"],\n'
                '            "limit_key": None if task["attempt"] > 1 else task["limit_key"],'
                "\n",
            ),
        ),
    ),
)

GRAPH_BUGS = (
    Bug(
        "one met dependency is enough (non-idempotent decrement: released too early)",
        (
            Edit(
                TRANSITIONS,
                "elif task.status is Status.WAITING and task.seq not in still_open:",
                "elif task.status is Status.WAITING:",
            ),
        ),
    ),
    Bug(
        "a failed parent counts as a succeeded one",
        (
            Edit(
                "core/queue/dependency.py",
                "if output == parent_status.value and parent_status in FINAL:",
                "if parent_status in FINAL and parent_status is not Status.CANCELLED:",
            ),
        ),
    ),
    Bug(
        "children of a task that is being cancelled go on waiting",
        (
            Edit(
                TRANSITIONS,
                "change.to_status in FINAL | {Status.CANCELLING}:",
                "change.to_status in FINAL:",
            ),
        ),
    ),
    Bug(
        "a task that its own submission cancels keeps waiting for others",
        (
            Edit(
                SUBMIT,
                '    rows_in_chunks(batch.tx, "close_edges_of_children", "seqs", cancelled)\n',
                "",
            ),
        ),
    ),
    Bug(
        "retention removes a task for which others wait",
        (
            Edit(
                CHANGES,
                'return t.task[seq]["status"] in FINAL and all(',
                'return t.task[seq]["status"] in FINAL or all(',
            ),
            Edit(VIEWS, 'and task["seq"] not in needed', ""),
        ),
    ),
    Bug(
        "a deletion that is executed late takes a new task for the old one",
        (
            Edit(
                CHANGES,
                "    for seq in seqs:\n"
                "        if seq not in t.task or not _is_removable(t, seq):\n",
                "    for seq in [t.id[id_] for id_ in seqs if id_ in t.id]:\n"
                "        if not _is_removable(t, seq):\n",
            ),
            Edit(
                "services/monitor.py",
                "task.seq for task in expired",
                "task.id for task in expired",
            ),
        ),
        seed=485,
    ),
    Bug(
        "a unique key conflicts with itself",
        (
            Edit(
                SUBMIT,
                "if stored[task_id] == ours:",
                "if stored[task_id] == ours and not batch.accepted[task_id][1].unique_key:",
            ),
        ),
    ),
)

STORE_BUGS = (*END_BUGS, *LEASE_BUGS, *CLAIM_BUGS, *GRAPH_BUGS)
