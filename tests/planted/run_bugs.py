"""Bugs of the scheduler service and of how the store keeps runs: whatever a crash can show."""

from typing import NamedTuple

from tests.planted.bug import Bug, Edit

DRIVER = "scheduler/run_driver.py"
ENGINE = "scheduler/run_engine.py"
JOB_EVENTS = "scheduler/inbox.py"
INBOX = "scheduler/run_driver.py"
BATCH = "store/operations/run_batch.py"
EVENTS = "store/operations/transitions.py"
MEMORY_BATCHES = "tests/kit/memory/run_batches.py"
MEMORY_RUNS = "tests/kit/memory/runs.py"
PERSISTENCE = "core/sched/persistence.py"

# Found by the joint simulation.
RUN_BUGS = (
    Bug(
        "two schedulers, no epoch (Argo)",
        (
            Edit(
                MEMORY_BATCHES,
                '    if (row["epoch"], row["batch"]) != (epoch, batch - 1):\n',
                '    if row["batch"] != batch - 1:\n',
            ),
        ),
    ),
    Bug(
        "a batch whose answer got lost is written again",
        (
            Edit(
                MEMORY_BATCHES,
                '    if (row["epoch"], row["batch"]) != (epoch, batch - 1):\n',
                '    if row["epoch"] != epoch:\n',
            ),
        ),
    ),
    Bug(
        "a claim does not raise the epoch",
        (Edit(MEMORY_RUNS, 'row["epoch"] + 1\n', 'row["epoch"]\n'),),
    ),
    Bug(
        "a run is taken from a scheduler that lives",
        (
            Edit(
                MEMORY_RUNS,
                '    if not _is_free(t, row) and row["epoch"] != dead_epoch:\n',
                "    if not _is_free(t, row) and dead_epoch:\n",
            ),
        ),
    ),
    Bug(
        "a scheduler that lost its run goes on",
        (
            Edit(
                DRIVER,
                '                self.status, self.reason = "lost", str(lost)\n'
                "                self.ask_stop()\n",
                "                self.reason = str(lost)\n",
            ),
        ),
    ),
    Bug(
        "what was heard is not deleted",
        (
            Edit(
                BATCH, "    if batch.consumed:\n", "    if batch.consumed and batch.answers:\n"
            ),
        ),
    ),
    Bug(
        "messages are deleted without being heard",
        (
            Edit(
                INBOX,
                "                job_said(engine, one)\n",
                "                pass\n",
            ),
        ),
    ),
    Bug(
        "the end of a job that was killed before it began is not told",
        (
            Edit(
                EVENTS,
                "        if task.run is not None and change.to_status in FINAL\n",
                "        if task.run is not None and change.to_status in FINAL\n"
                "        and change.attempt > 0\n",
            ),
        ),
    ),
    Bug(
        "what a job said last is not told with its end",
        (
            Edit(
                EVENTS,
                "    for message in fresh:\n",
                "    for message in fresh[: None if change is None else -1]:\n",
            ),
        ),
    ),
    Bug(
        "submissions are written after the batch",
        (
            Edit(
                "store/store.py",
                '"write_batch", write, lease, batch, rows, self._failpoint)\n',
                '"write_batch", write, lease, '
                '__import__("dataclasses").replace(batch, submissions=()), '
                "rows, self._failpoint)\n        await self.submit(batch.submissions)\n",
            ),
        ),
    ),
    Bug(
        "what is remembered of tasks is not stored",
        (
            Edit(
                BATCH,
                '    tx.each("put_memory", "memories", list(rows.memory.values()), run=run)\n',
                "",
            ),
        ),
    ),
    Bug(
        "how far chains have got is not stored",
        (
            Edit(
                BATCH,
                'if one["body"] is not None]',
                'if one["kind"] != "chain" and one["body"]]',
            ),
        ),
    ),
    Bug(
        "tasks that left the pool are stored there for ever",
        (Edit(BATCH, '    tx.each("drop_pool", "tasks", gone, run=run)\n', ""),),
    ),
    Bug(
        "timers are not stored",
        (Edit(ENGINE, "            timers=timers,\n", "            timers=(),\n"),),
    ),
    Bug(
        "submit numbers begin again after a restart (Cylc #7433)",
        (
            Edit(
                PERSISTENCE,
                "        setattr(task, name, value)\n",
                '        setattr(task, name, 0 if name == "submit" else value)\n',
            ),
        ),
    ),
    Bug(
        "jobs that run are forgotten after a restart",
        (
            Edit(
                ENGINE,
                "            if task.is_active:\n",
                "            if task.is_active and not opened.stored:\n",
            ),
        ),
    ),
    Bug(
        "a run that was stopped is not carried on",
        (
            Edit(
                ENGINE, "        if is_over:\n", "        if is_over and restart is not None:\n"
            ),
        ),
    ),
    Bug(
        "what was killed is tried again",
        (
            Edit(
                JOB_EVENTS,
                "        how = events.JobEnd.KILLED\n",
                "        how = events.JobEnd.FAILED\n",
            ),
        ),
    ),
    Bug(
        "a batch is not counted once it is written",
        (
            Edit(
                ENGINE,
                "            batch=lease.batch + 1,\n",
                "            batch=lease.batch,\n",
            ),
        ),
    ),
    Bug(
        "people are told before it is stored",
        (
            Edit(
                DRIVER,
                "        if not await self.persist(write):\n",
                "        if self._on_batch is not None and batch.submissions:\n"
                "            lease = engine.lease\n"
                "            engine.lease = replace(lease, batch=batch.number)\n"
                "            self._on_batch(engine, engine.batch)\n"
                "            engine.lease = lease\n"
                "        if not await self.persist(write):\n",
            ),
        ),
    ),
)


class NamedBug(NamedTuple):
    """A bug that a test of its own must find."""

    bug: Bug
    test: str


FAULTS = "tests/spec/test_driving_faults.py::"
DRIVEN = "tests/spec/test_driving.py::"
LISTS = "tests/spec/test_driving_lists.py::"
ELEMENTS = "tests/spec/test_sched_elements.py::"

# Too rare in the simulation, or nothing that it does: found by tests that are named.
NAMED_BUGS = (
    NamedBug(
        Bug(
            "the end of a job that lapsed too often is not told",
            (
                Edit(
                    EVENTS,
                    "        if task.run is not None and change.to_status in FINAL\n",
                    "        if task.run is not None and change.to_status in FINAL\n"
                    '        and change.signal.value != "lapse_out"\n',
                ),
            ),
        ),
        f"{DRIVEN}test_a_job_whose_workers_vanish_too_often_has_failed",
    ),
    NamedBug(
        Bug(
            "the start of a job that fails at once is not told",
            (Edit(EVENTS, "and (fresh or not succeeds):", "and fresh:"),),
        ),
        f"{FAULTS}test_a_job_that_fails_at_once_has_started",
    ),
    NamedBug(
        Bug(
            "a kill never reaches the queue",
            (Edit(ENGINE, "cancellations=list(batch.cancellations)", "cancellations=()"),),
        ),
        f"{FAULTS}test_a_kill_is_for_the_worker_to_do",
    ),
    NamedBug(
        Bug(
            "a pass that the store cut short is made again on top of itself",
            (
                Edit(
                    DRIVER,
                    "                await self._drop_what_was_half_done()\n"
                    "                raise\n",
                    "                raise\n",
                ),
            ),
        ),
        f"{FAULTS}test_what_was_obeyed_before_the_store_failed_is_not_obeyed_twice",
    ),
    NamedBug(
        Bug(
            "after a restart nobody watches the xtriggers",
            (Edit(ENGINE, "        self._watch_xtriggers(now)\n", ""),),
        ),
        f"{FAULTS}test_an_xtrigger_is_watched_again_after_a_crash",
    ),
    NamedBug(
        Bug(
            "a stall that ends nothing is told again and again",
            (
                Edit(
                    "scheduler/timers.py",
                    "if stalled and not self._is_told and not set_keys",
                    "if stalled and not set_keys",
                ),
            ),
        ),
        f"{FAULTS}test_a_stall_that_does_not_end_the_run_is_told_once",
    ),
    NamedBug(
        Bug(
            "elements read the list that was returned last",
            (
                Edit(
                    "scheduler/run_values.py",
                    "lists_in(pool, parent, flows) if pool.plan.mapped else NO_LISTS",
                    "NO_LISTS",
                ),
            ),
        ),
        f"{LISTS}test_elements_that_start_while_the_list_is_made_again_read_the_first",
    ),
    NamedBug(
        Bug(
            "of a list that was returned again only the last is read from the store",
            (
                Edit(
                    "scheduler/run_values.py",
                    "await self.fetch(again, one_flow=False)\n",
                    "await self.fetch(again, one_flow=True)\n",
                ),
            ),
        ),
        f"{LISTS}test_the_first_list_is_found_by_a_scheduler_that_heard_the_second_alone",
    ),
    NamedBug(
        Bug(
            "real jobs work on elements that are assumed",
            (
                Edit(
                    "scheduler/simulated_jobs.py",
                    "    if settings.mode is not RunMode.LIVE or ",
                    "    if settings.mode or ",
                ),
            ),
        ),
        f"{LISTS}test_real_jobs_never_work_on_elements_that_nobody_returned",
    ),
    NamedBug(
        Bug(
            "what an element made before its list came is not seen",
            (
                Edit(
                    "core/sched/propagation.py",
                    "if was_made or _has_made_pair(pool, node, point, one)",
                    "if was_made",
                ),
            ),
        ),
        f"{LISTS}test_a_list_that_is_forgotten_is_replaced_by_the_next",
    ),
    NamedBug(
        Bug(
            "elements of two lists are one task",
            (
                Edit(
                    "core/sched/elements.py",
                    "if its is None or its[:3] == own[:3]",
                    "if its is None or own[:3]",
                ),
            ),
        ),
        f"{ELEMENTS}test_elements_of_two_lists_never_are_one_task",
    ),
    NamedBug(
        Bug(
            "a flow that meets a list that was told does not have it",
            (
                Edit(
                    "core/sched/propagation.py",
                    "            record_size(task.memory, output, *told, new)\n",
                    "",
                ),
            ),
        ),
        f"{ELEMENTS}test_a_flow_that_meets_a_list_that_was_told_has_it_too",
    ),
    NamedBug(
        Bug(
            "the list that was returned last counts",
            (
                Edit(
                    "core/sched/elements.py",
                    "flow for flow, there in known.items() if there is None",
                    "flow for flow, there in known.items()",
                ),
            ),
        ),
        f"{ELEMENTS}test_a_list_that_changes_when_its_task_is_run_again_keeps_its_size"
        "_in_that_flow",
    ),
)
