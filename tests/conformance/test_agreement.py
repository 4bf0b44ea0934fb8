"""Memory, SQLite and PostgreSQL are one store: what one answers, all answer."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conformance.agreement import Agreement

# An example is a life of many steps on three stores; a fifth of the usual number of them
# fits into the suite's time.
EXAMPLES = settings.default.max_examples // 5
# To shorten a failing life takes minutes, for which there is time at night. Else it is printed
# as it was, with the line that repeats it.
PHASES = set(Phase) - (set() if EXAMPLES >= 1000 else {Phase.shrink, Phase.explain})


@pytest.mark.req("R002-59", "R002-89", "R003-68")
@pytest.mark.timeout(600)
def test_the_three_stores_agree_about_everything(shared_postgres_url):
    run_state_machine_as_test(
        lambda: Agreement(shared_postgres_url),
        settings=settings(
            max_examples=EXAMPLES,
            phases=PHASES,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
