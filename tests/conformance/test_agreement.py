"""Memory, SQLite, PostgreSQL and a server are one store: what one answers, all answer."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conformance.agreement import Agreement
from tests.conformance.remote_world import RemoteWorld
from tests.conformance.worlds import MemoryWorld, PostgresWorld, SqliteWorld

# An example is a life of many steps on three stores; a fifth of the usual number of them
# fits into the suite's time.
EXAMPLES = settings.default.max_examples // 5
# To shorten a failing life takes minutes, for which there is time at night. Else it is printed
# as it was, with the line that repeats it.
PHASES = set(Phase) - (set() if EXAMPLES >= 1000 else {Phase.shrink, Phase.explain})


@pytest.mark.req("R002-59", "R002-89", "R003-68")
@pytest.mark.timeout(600)
def test_the_three_stores_agree_about_everything(shared_postgres_url):
    worlds = (MemoryWorld, SqliteWorld, lambda: PostgresWorld(shared_postgres_url))
    live_through(worlds, EXAMPLES)


@pytest.mark.timeout(600)
def test_a_server_answers_what_the_store_behind_it_would(server_before):
    live_through((MemoryWorld, lambda: RemoteWorld(server_before)), EXAMPLES // 4)


def live_through(worlds, examples):
    run_state_machine_as_test(
        lambda: Agreement(*(world() for world in worlds)),
        settings=settings(
            max_examples=examples,
            phases=PHASES,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
