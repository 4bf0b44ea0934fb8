"""Bugs of workers and monitors: leases not kept, ends not told, jobs not stopped."""

from tests.planted.bug import Bug, Edit

CLAIMER = "worker/claimer.py"
HEARTBEATS = "worker/heartbeats.py"
MONITOR = "services/monitor.py"
ATTEMPTS = "worker/attempts.py"

DUE_AT = "return attempt.confirmed_at + beats * attempt.task.lease_seconds / BEATS_PER_LEASE"

SERVICE_BUGS = (
    Bug(
        "workers judge leases by their own clocks",
        (
            Edit(
                ATTEMPTS,
                DUE_AT,
                "return attempt.task.deadline_at - attempt.task.lease_seconds / 2 + 0 * beats",
            ),
        ),
    ),
    Bug(
        "the lease of a silent job is not renewed (kombu #337)",
        (
            Edit(
                ATTEMPTS,
                DUE_AT,
                "rate = 0.3 if attempt.latest_progress is None else BEATS_PER_LEASE\n"
                "    return attempt.confirmed_at + beats * attempt.task.lease_seconds / rate",
            ),
        ),
    ),
    Bug(
        "a worker runs on what it has lost",
        (
            Edit(
                HEARTBEATS,
                "                    self._stop_job(attempt, StopReason.LOST, 0.0)\n",
                "",
            ),
        ),
    ),
    Bug(
        "a worker does not stop what was cancelled",
        (
            Edit(
                HEARTBEATS,
                " " * 20 + "self._stop_job(attempt, StopReason.CANCEL, grace_seconds)\n",
                "",
            ),
            Edit(
                "worker/worker.py",
                "self._jobs.stop_by_key(key, StopReason.CANCEL)",
                "del key",
            ),
        ),
    ),
    Bug(
        "a fenced job outlives its lease",
        (Edit(ATTEMPTS, "FENCE_MARGIN = 0.25", "FENCE_MARGIN = -2.0"),),
        seed=685,
    ),
    Bug(
        "a database error drops the end of an attempt",
        (
            Edit(
                "worker/reporter.py",
                "        if not self._batch:\n            return ()\n",
                "        if not self._batch:\n            return ()\n"
                "        batch, self._batch = self._batch, []\n"
                "        reports = [report for _, report in batch]\n"
                "        return self._heed(batch, await self._store.report(reports))\n",
            ),
        ),
    ),
    Bug(
        "a lost wake-up is lost for ever: nobody polls",
        (
            Edit(
                CLAIMER,
                "        rest = self._settings.poll_seconds * (1.0 - jitter)\n",
                "        return None if jitter >= 0.0 else 1.0\n        rest = 0.0\n",
            ),
        ),
    ),
    Bug(
        "after a lost answer a worker gives back what it is doing",
        (
            Edit(
                CLAIMER,
                "if (task.id, task.attempt) not in self._attempts\n",
                "if task.attempt\n",
            ),
        ),
    ),
    Bug(
        "a worker does not take the room of a task that was requeued (Slurm)",
        (
            Edit(
                ATTEMPTS,
                "[attempt.task.resources for attempt in attempts], -1)",
                "[one.task.resources for one in attempts if one.task.attempt == 1], -1)",
            ),
        ),
    ),
    Bug(
        "a worker never gives back the room of a task",
        (Edit(ATTEMPTS, "        self.machine.change_all(freed, 1)\n", ""),),
    ),
    Bug(
        "a worker forgets that a job has nodes for itself",
        (
            Edit(
                ATTEMPTS,
                "            self.nodes += sign * asked.nodes\n",
                "            pass\n",
            ),
        ),
        seed=15,
    ),
    Bug(
        "an exclusive task is claimed together with others",
        (
            Edit(
                "core/queue/resources.py",
                "if not fits(one, offered) or (one.exclusive and count):",
                "if not fits(one, offered):",
            ),
        ),
        seed=15,
    ),
    Bug(
        "the lease of a living worker is adopted",
        (
            Edit(
                "worker/adoption.py",
                "if lease.task.handler is None and not is_alive(lease.process)",
                "if lease.task.handler is None or is_alive(lease.process)",
            ),
        ),
    ),
    Bug(
        "a fenced job that outlived its worker is adopted",
        (
            Edit(
                "worker/adoption.py",
                "        if task.fence_kill:\n",
                "        if False:\n",
            ),
        ),
    ),
    Bug(
        "a lease that was adopted without a job is left to lapse",
        (
            Edit(
                "worker/adoption.py",
                "if job is None and fate is Fate.NOBODYS:",
                "if job is None:",
            ),
        ),
        seed=570,
    ),
    Bug(
        "a monitor does not know that the store was down",
        (
            Edit(
                MONITOR,
                "watched_seconds=self._watch.seconds(self._clock.monotonic()),",
                "watched_seconds=self._watch.seconds(self._clock.monotonic()) + 1e6,",
            ),
        ),
    ),
)
