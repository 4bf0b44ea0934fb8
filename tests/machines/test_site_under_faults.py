"""A whole site under fire: everybody is killed, the database crashes, cables are pulled (T16).

Three schedulers, three servers, two monitors and ten workers on three machines; workers reach
servers by TLS and nothing else. What counts is the same as for one worker beside its store:
nothing is lost, nothing is done twice without a lost lease on record, and the run ends as one
that nobody disturbed.
"""

import logging
import random

import pytest

from tests.support.audit import audit
from tests.support.patience import eventually, pace, scaled
from tests.support.postgres import PostgresServer
from tests.support.run_crew import ended
from tests.support.site import site
from tidewheel.errors import Unavailable

LOG = logging.getLogger(__name__)
MACHINES = 3
SERVERS, SCHEDULERS, MONITORS, WORKERS = 3, 3, 2, 10
FIRST_WORKER = SERVERS + SCHEDULERS + MONITORS
LEASE_SECONDS = 5.0  # of a job: as long as a cable is pulled
POINTS = scaled(5)
FAULTS = scaled(15)
NODES = [f"t{n}" for n in range(10)]
GRAPH = "\n".join(
    [
        "        P1 = '''",
        f"            {NODES[0]}[-P1] => {NODES[0]}",
        f"            {NODES[0]} => {' & '.join(NODES[1:-1])} => {NODES[-1]}",
        "        '''",
    ]
)
RUN = "flow/run1"


@pytest.fixture
def postgres():
    """One that these tests may crash."""
    with PostgresServer.running() as server:
        yield server


class Fire:
    """Who is on duty, and what may happen to them."""

    def __init__(self, place, postgres, chance):
        self.place, self.postgres, self.chance = place, postgres, chance
        self.count = 0
        token = place.token("worker")
        urls = ",".join(place.url(n) for n in range(SERVERS))
        self.roles = [lambda n=n: place.server(n) for n in range(SERVERS)]
        self.roles += [place.scheduler] * SCHEDULERS + [place.monitor] * MONITORS
        for number in range(WORKERS):
            machine = place.network.machines[number % MACHINES]
            self.roles.append(lambda m=machine: place.worker_at(m, urls, token, *SERVING))
        self.on_duty = [start() for start in self.roles]
        for server in self.on_duty[:SERVERS]:
            server.says("answering at")

    def kill_somebody(self):
        number = self.chance.randrange(len(self.roles))
        self.on_duty[number].kill()
        pace(self.chance.uniform(0.0, 1.0))
        self.on_duty[number] = self.roles[number]()

    def lose_a_machine(self):
        """Its workers and all their jobs, until others may do them.

        Workers that came back before would rightly say that jobs of theirs were killed: a
        machine that lost its power has another boot id, which cannot be made up here.
        """
        machine = self.chance.randrange(MACHINES)
        name = self.place.network.machines[machine]
        gone = range(FIRST_WORKER + machine, len(self.roles), MACHINES)
        for number in gone:
            self.on_duty[number].kill()
        self.place.kill_jobs_of(name)
        eventually(lambda: self.place.holds_nothing(name), "its leases have run out")
        for number in gone:
            self.on_duty[number] = self.roles[number]()

    def crash_database(self):
        self.postgres.restart_immediately()

    def pull_a_cable(self):
        machine = self.chance.choice(self.place.network.machines)
        self.place.network.unplug(machine)
        pace(self.chance.uniform(0.5, 5.0))
        self.place.network.unplug(machine, plugged=True)

    def anything(self):
        self.count += 1
        faults = (
            self.kill_somebody,
            self.lose_a_machine,
            self.crash_database,
            self.pull_a_cable,
        )
        self.chance.choices(faults, weights=(8, 1, 1, 2))[0]()


SERVING = ("--queue", "run:*", "--slots", "4")


def status(place):
    """Of the run; None while the database is away."""
    try:
        return place.view(RUN).status
    except Unavailable:
        return None


@pytest.mark.timeout(7200)
def test_a_run_ends_as_if_nobody_had_been_killed(postgres, tmp_path, request):
    seed = request.config.getoption("randomly_seed", 1)
    with site(tmp_path, postgres.create_database("site"), MACHINES) as place:
        place.define(GRAPH, root="        script = sleep 0.3", final=POINTS)
        fire = Fire(place, postgres, random.Random(seed))
        caller = place.caller(place.url(), place.token("submit", "operate"))
        begun = place.start("run", "flow", "--detach", "--pause", **caller)
        assert ended(begun) == 0, begun.log
        with place.client() as client:  # before any job is claimed: it may die at once
            client.configure_queue(f"run:{RUN}", lease_seconds=LEASE_SECONDS)
        resumed = place.start("resume", RUN, **caller)
        assert ended(resumed) == 0, resumed.log
        for _ in range(FAULTS):
            if status(place) == "completed":
                break
            fire.anything()
        over = lambda: status(place) == "completed"  # noqa: E731 - a name for one line
        eventually(over, "the run is completed", scaled(60), interval_seconds=0.5)
        final = place.final_state(RUN)
        expected = [f"{RUN}/{p}/{n}/1" for p in range(1, POINTS + 1) for n in NODES]
        assert [one for one, _ in final["submissions"]] == sorted(expected)
        assert {how for _, how in final["submissions"]} == {"succeeded"}
        with place.client() as client:
            happened = audit(client, place, expected)
        LOG.info("%d tasks, %d faults: %s", len(expected), fire.count, dict(happened))
