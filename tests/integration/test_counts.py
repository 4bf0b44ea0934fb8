"""What a unit of work costs, in numbers that no clock and no load changes. They only fall.

A rise needs its reason in the commit that brings it. `python -m bench.counts` tells them all.
"""

import asyncio

import pytest

from bench.counts import of_commands, of_each, of_start
from bench.drain_counts import asked_of_postgres, of_each_drained
from bench.request_counts import of_requests
from tidewheel.store.postgres import PostgresTransaction
from tidewheel.wiring.stores import migrate_store

# Modules of tidewheel, and all.
# Goals: a start-up of 0.25 s for one task, 0.05 s for --version.
MODULES_MAX = {
    "--version": (1, 56),
    "submit": (90, 298),
    "run": (
        226,
        442,
    ),  # two of them decide on values and keep them, one says which elements are
    "runs": (114, 324),
}
# What each further task of a chain costs; a fraction of a turn may be a renewed lease.
HOP_MAX = {"syncs": 2.2, "statements": 36, "calls": 575}
JOB_MAX = {"processes": 1, "folders": 9, "files": 3, "links": 1, "syncs": 4.5}
# The first run of a home, with one task: the store is made, and synced as a whole.
START_MAX = {"syncs": 18, "statements": 590}
# What a submit_many of 1,000 tasks costs; calls are those for one of them.
SUBMISSION_MAX = {"syncs": 1.4, "statements": 7, "calls": 1.2}
SUBMISSION_TO_POSTGRES_MAX = {"waits": 6, "statements": 4, "calls": 1.2}
TRIES = 3  # what renews a lease or looks around meanwhile counts, too: the least counts


def test_commands_load_no_more_modules_than_they_did():
    loaded = of_commands()
    assert loaded.keys() == MODULES_MAX.keys()
    for command, counts in loaded.items():
        assert counts <= MODULES_MAX[command], command
        assert counts[1] <= MODULES_MAX[command][1], command


@pytest.mark.parametrize(
    ("unit", "most"),
    [("hops", HOP_MAX), ("jobs", JOB_MAX), ("submissions", SUBMISSION_MAX)],
)
def test_a_task_costs_no_more_commits_statements_calls_files_and_processes(unit, most):
    stays_below(unit, most)


def test_a_submission_to_postgresql_costs_no_more_round_trips(postgres_url):
    migrate_store(postgres_url)
    stays_below("submissions", SUBMISSION_TO_POSTGRES_MAX, postgres_url)


def stays_below(unit, most, *store):
    seen = []
    for _ in range(TRIES):
        seen.append(of_each(unit, *store))
        assert seen[-1].keys() == most.keys()
        if all(seen[-1][name] <= most[name] for name in most):
            return
    raise AssertionError(f"{unit}: {seen}, and {most} at most")


# What each further task of a queue costs that is drained by a worker with 200 slots.
# An end is told once, also of a job that ends while it is started: two calls more than before.
DRAINED_MAX = {"syncs": 0.011, "statements": 0.14, "calls": 36}
ASKED_MAX = {"plain": 2, "keys": 3}  # beside BEGIN and COMMIT


def test_a_drained_task_costs_no_more_commits_statements_and_calls():
    seen = []
    for _ in range(TRIES):
        seen.append(of_each_drained())
        assert seen[-1].keys() == DRAINED_MAX.keys()
        if all(seen[-1][name] <= most for name, most in DRAINED_MAX.items()):
            return
    raise AssertionError(f"{seen}, and {DRAINED_MAX} at most")


def test_a_claim_asks_postgresql_no_more_often(postgres_url, monkeypatch):
    names, ask = [], PostgresTransaction.ask

    def noted(self, query, parameters):
        names.append(query)
        return ask(self, query, parameters)

    monkeypatch.setattr(PostgresTransaction, "ask", noted)
    asked = asyncio.run(asked_of_postgres(postgres_url, names))
    assert asked.keys() == ASKED_MAX.keys()
    for queue, statements in asked.items():
        assert len(statements) <= ASKED_MAX[queue], statements


def test_the_first_run_of_a_home_syncs_no_more_often_than_it_did():
    seen = []
    for _ in range(TRIES):
        seen.append(of_start())
        if all(seen[-1][name] <= START_MAX[name] for name in START_MAX):
            return
    raise AssertionError(f"{seen}, and {START_MAX} at most")


# What a request costs the server: commits, statements (of which a look has two that begin and
# end it), calls of our functions, changes of thread; alone, and in a crowd of 16. A fraction is
# the look at the caller's token, which is good for half a second.
REQUEST_MAX = {
    "GET /healthz": (0, 0.2, 58, 0.1),
    "GET /tasks/{id}": (0, 3.5, 170, 0.4),
    "GET /runs": (0, 6.5, 170, 4.5),
    "POST /tasks": (2.2, 15.6, 380, 4.6),
    "GET /healthz, 16 at once": (0, 0.2, 58, 0.1),
    "GET /tasks/{id}, 16 at once": (0, 1.5, 165, 0.3),
    "GET /runs, 16 at once": (0, 8.0, 190, 4.0),
    "POST /tasks, 16 at once": (0.5, 4.5, 290, 1.2),
}


def test_a_request_costs_no_more_commits_statements_calls_and_changes_of_thread():
    seen = []
    for _ in range(TRIES):
        seen.append({name: tuple(costs.values()) for name, costs in of_requests().items()})
        assert seen[-1].keys() == REQUEST_MAX.keys()
        if all(
            cost <= most
            for name, costs in seen[-1].items()
            for cost, most in zip(costs, REQUEST_MAX[name], strict=True)
        ):
            return
    raise AssertionError(f"{seen}, and {REQUEST_MAX} at most")
