"""Bugs of the scheduler service and of how the store keeps runs: whatever a crash can show."""

from typing import NamedTuple

from tests.planted.bug import Bug, Edit

DRIVER = "services/scheduler/run_driver.py"
DRIVING = "services/scheduler/driving.py"
HAPPENINGS = "services/scheduler/happenings.py"
STAGE = "services/scheduler/stage.py"
BATCH = "store/scripts/run_batch.py"
EVENTS = "store/scripts/events.py"
MEMORY_BATCHES = "store/memory/run_batches.py"
MEMORY_RUNS = "store/memory/runs.py"
RECORDS = "core/sched/records.py"

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
                '    if not _is_free(t, row) and dead_epoch:\n',
            ),
        ),
    ),
    Bug(
        "a scheduler that lost its run goes on",
        (
            Edit(
                DRIVER,
                '            self.status, self.reason = "lost", str(lost)\n'
                "            self.ask_stop()\n",
                "            self._stage = None\n",
            ),
        ),
    ),
    Bug(
        "what was heard is not deleted",
        (Edit(BATCH, "    if batch.consumed:\n", "    if batch.consumed and batch.answers:\n"),),
    ),
    Bug(
        "messages are deleted without being heard",
        (
            Edit(
                DRIVER,
                "                stage.reports.said(drive, happening)\n",
                "                pass\n",
            ),
        ),
    ),
    Bug(
        "what was just heard is forgotten when the store fails in between",
        (
            Edit(
                DRIVER,
                "        inbox = await self._store.read_inbox(self._number, INBOX_MAX)\n",
                "        inbox = await self._store.read_inbox(self._number, INBOX_MAX)\n"
                "        for one in inbox.happenings:\n"
                "            await self._store.command(one.number) if hasattr(one, 'number') else 0\n",
            ),
        ),
    ),
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
        "the start of a job that fails is not told",
        (Edit(EVENTS, "and (fresh or not succeeds):", "and fresh:"),),
    ),
    Bug(
        "what a job said last is not told with its end",
        (Edit(EVENTS, "    for message in fresh:\n", "    for message in fresh[: None if change is None else -1]:\n"),),
    ),
    Bug(
        "submissions are written after the batch",
        (
            Edit(
                "store/run_facade.py",
                "        await self._write(\n"
                '            "write_batch",\n'
                "            lambda tx, effects: run_batch.write_batch(\n"
                "                tx, lease, batch, rows, effects, self._failpoint\n"
                "            ),\n"
                "        )\n",
                "        from dataclasses import replace\n"
                "        first = replace(batch, submissions=())\n"
                "        await self._write(\n"
                '            "write_batch",\n'
                "            lambda tx, effects: run_batch.write_batch(\n"
                "                tx, lease, first, rows, effects, self._failpoint\n"
                "            ),\n"
                "        )\n"
                "        await self.submit(batch.submissions)\n",
            ),
        ),
    ),
    Bug(
        "timers are not stored",
        (Edit(DRIVING, "            timers=timers,\n", "            timers=(),\n"),),
    ),
    Bug(
        "submit numbers begin again after a restart (Cylc #7433)",
        (Edit(RECORDS, "            row.submit,\n            row.try", "            0,\n            row.try"),),
    ),
    Bug(
        "try numbers begin again after a restart",
        (Edit(RECORDS, "            row.submit,\n            row.try_number,", "            row.submit,\n            1,"),),
    ),
    Bug(
        "jobs that run are forgotten after a restart",
        (Edit(DRIVING, "            if task.is_active:\n", "            if task.is_active and not stored:\n"),),
    ),
    Bug(
        "a run that was stopped is not carried on",
        (Edit(STAGE, "        if is_over:\n", "        if is_over and anew is not None:\n"),),
    ),
    Bug(
        "what was killed is tried again",
        (
            Edit(
                HAPPENINGS,
                "            how = JobEnd.KILLED\n",
                "            how = JobEnd.FAILED\n",
            ),
        ),
    ),
    Bug(
        "what could not be started has failed",
        (Edit(HAPPENINGS, "how = JobEnd.NOT_STARTED", "how = JobEnd.FAILED"),),
    ),
    Bug(
        "a batch is not counted once it is written",
        (
            Edit(
                DRIVING,
                "        self.lease = replace(self.lease, batch=self.lease.batch + 1)\n",
                "        self.lease = replace(self.lease, batch=self.lease.batch)\n",
            ),
        ),
    ),
    Bug(
        "people are told before it is stored",
        (
            Edit(
                DRIVER,
                "        if not await self._persist_batch(stage, batch):\n",
                "        if self._on_batch is not None and batch.submissions:\n"
                "            drive.lease, was = replace(drive.lease, batch=batch.number), drive.lease\n"
                "            self._on_batch(stage, drive.work)\n"
                "            drive.lease = was\n"
                "        if not await self._persist_batch(stage, batch):\n",
            ),
        ),
    ),
)


class NamedBug(NamedTuple):
    """A bug that a test of its own must find."""

    bug: Bug
    test: str
