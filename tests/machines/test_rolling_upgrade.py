"""From this version to the next, as docs/operations/upgrade.md says, while both of them work.

The next version is made of this one (tests/support/next_version.py).
"""

from itertools import count

import pytest

from tests.support.http_server import Caller, in_path
from tests.support.later_versions import OURS
from tests.support.next_version import FIELD, NEXT, USES_IT, make_next_version
from tests.support.patience import eventually
from tests.support.ports import free_port
from tests.support.run_crew import RunCrew, ended
from tidewheel import __version__
from tidewheel.client.tokens import make_token
from tidewheel.core.queue.access import EVERYTHING, Grant, Scope

OLD = {}
TASKS = 5  # of each queue, at each step
CYCLES = 25
GRAPH = "        P1 = a[-P1] => a => b & c => d"


class Machines(RunCrew):
    """Two servers on one PostgreSQL, and a worker that knows each of them alone."""

    def __init__(self, folder, store):
        super().__init__(folder, store)
        self.ports = [free_port(), free_port()]
        scopes = frozenset({Scope.ADMIN, Scope.WORKER, Scope.SUBMIT, Scope.READ})
        grant = Grant(scopes=scopes, names=EVERYTHING)
        self.token, _ = self.look(lambda store: make_token(store, "all", grant))
        self.roles = {}
        self._numbers = count()
        self.submitted = []

    def put(self, role, version):
        """A process of this version in the place of the one that has the role, if any has."""
        if (before := self.roles.get(role)) is not None:
            assert before.end() == 0, before.log
        name, number = role.rstrip("01"), int(role[-1:] if role[-1:].isdigit() else 0)
        if name == "server":
            words = ("server", "--port", str(self.ports[number]), "--no-monitor")
            self.roles[role] = self.start(*words, **version)
            self.roles[role].says("answering at")
        elif name == "worker":
            self.roles[role] = self.worker_at(number, **version)
        else:
            self.roles[role] = self.start(name, **version)

    def told(self, number):
        """What a program knows that knows one of the servers, and no database."""
        return {
            "TIDEWHEEL_STORE": "",
            "TIDEWHEEL_SERVER": f"http://127.0.0.1:{self.ports[number]}",
            "TIDEWHEEL_TOKEN": self.token,
            "TIDEWHEEL_HOME": str(self.home / f"machine{number}"),
        }

    def worker_at(self, number, **environment):
        queues = ("--queue", f"q{number}", "--queue", "run:*")
        return self.worker(
            *queues, "--slots", "4", "--drain", **self.told(number) | environment
        )

    def caller(self, number):
        return Caller(f"127.0.0.1:{self.ports[number]}", self.token)

    def version_of(self, number):
        return self.caller(number).get("/openapi.json").json["info"]["version"]

    def claims_with_the_field(self, number):
        """Whether the answer to a claim has what only the next version says."""
        caller, task_id = self.caller(number), f"claimed{number}"
        asking = {"name": "asking", "queues": ["other"]}
        worker = caller.post("/workers", asking).json["id"]
        assert caller.post("/tasks", {"id": task_id, "queue": "other", "spec": 1}).status == 201
        reply = caller.post("/queues/other/claim", {"worker": worker, "n": 1})
        [claimed] = reply.json["tasks"]
        return FIELD in claimed

    def works(self):
        """Each worker, with the server that it knows, does what is submitted now."""
        ids = []
        for number in (0, 1):
            for _ in range(TASKS):
                ids.append(f"t{next(self._numbers)}")
                task = {"id": ids[-1], "queue": f"q{number}", "handler": "note"}
                assert self.caller(number).post("/tasks", task).status == 201
        self.submitted += ids

        eventually(
            lambda: {self.task(one)["status"] for one in ids} == {"succeeded"},
            lambda: "\n".join(one.log[-2000:] for one in self.roles.values()),
            60,
        )

    def task(self, task_id):
        return self.caller(0).get(f"/tasks/{task_id}").json

    def run_completes(self):
        facts = f"/runs/{in_path('flow/run1')}/facts"
        eventually(
            lambda: self.caller(0).get(facts).json["run"]["status"] == "completed",
            lambda: self.caller(0).get(facts).body,
            90,
        )


@pytest.fixture
def machines(tmp_path, postgres_url):
    made = Machines(tmp_path, postgres_url)
    try:
        yield made
    finally:
        made.end()


def nothing_was_lost_or_doubled(machines):
    """Every task was executed once, at its first attempt, and so was every job of the run."""
    tasks = [machines.task(one) for one in machines.submitted]
    assert {(task["status"], task["attempt"]) for task in tasks} == {("succeeded", 1)}
    jobs = [f"flow/run1/{cycle}/{name}/1" for cycle in range(1, CYCLES + 1) for name in "abcd"]
    begun = [one.task_id for one in machines.executions()]
    assert sorted(begun) == sorted(machines.submitted + jobs)


def begin_a_run(machines):
    machines.define(GRAPH, root="        script = sleep 0.1", final=CYCLES)
    beginning = machines.start("run", "flow", "--detach", **machines.told(0))
    assert ended(beginning) == 0, beginning.log


@pytest.mark.timeout(240)
def test_processes_are_replaced_one_after_the_other_and_no_job_is_lost_or_doubled(
    machines, tmp_path
):
    """In the order of the page, but for one worker that comes before its server."""
    new = make_next_version(tmp_path / "next")
    for role in ("monitor", "scheduler", "server0", "server1", "worker0", "worker1"):
        machines.put(role, OLD)
    begin_a_run(machines)
    machines.works()
    for role in ("monitor", "scheduler", "server0"):
        machines.put(role, new)
        machines.works()
    assert [machines.version_of(n) for n in (0, 1)] == [NEXT, __version__]
    assert [machines.claims_with_the_field(n) for n in (0, 1)] == [True, False]
    machines.put("worker1", new)  # whose server is still the old one
    machines.works()
    machines.put("server1", new)
    machines.works()
    machines.put("worker0", new)
    machines.works()
    machines.run_completes()
    nothing_was_lost_or_doubled(machines)
    with machines.client() as client:
        assert client.verify() == []


@pytest.mark.parametrize("which", ["an old program, a new server", "the reverse"])
def test_commands_of_one_version_understand_a_server_of_the_other(machines, tmp_path, which):
    new = make_next_version(tmp_path / "next")
    near, far = (OLD, new) if which.startswith("an old") else (new, OLD)
    machines.put("server0", far)
    for words in (
        ("submit", "--id", "a", "--queue", "q0", "--", "true"),
        ("tasks", "--json"),
        ("task", "a"),
        ("queues",),
        ("cancel", "a"),
    ):
        program = machines.start(*words, **machines.told(0), **near)
        assert ended(program) == 0, (words, program.log)


def test_a_new_worker_that_says_what_an_old_server_does_not_know_is_told_to_upgrade_it(
    machines, tmp_path
):
    new = make_next_version(tmp_path / "next") | {USES_IT: "blue"}
    machines.put("server0", OLD)
    refused = machines.worker_at(0, **new)
    assert ended(refused) == 2
    assert f"there is no field '{FIELD}'" in refused.log
    assert "upgrade the server first" in refused.log
    machines.put("server0", new)
    accepted = machines.worker_at(0, **new)
    task = {"id": "t", "queue": "q0", "handler": "note"}
    assert machines.caller(0).post("/tasks", task).status == 201
    eventually(machines.executions, lambda: accepted.log)


@pytest.mark.timeout(240)
def test_a_new_schema_is_reached_by_the_page_s_four_steps_and_no_job_is_lost_or_doubled(
    machines, tmp_path
):
    new = make_next_version(tmp_path / "next", new_schema=True)
    roles = ("monitor", "scheduler", "server0", "server1", "worker0", "worker1")
    for role in roles:
        machines.put(role, OLD)
    begin_a_run(machines)
    machines.works()
    # A process of the new version refuses to start, and says what to do.
    early = machines.start("scheduler", **new)
    assert ended(early) == 3
    assert f"the store has schema version {OURS}" in early.log
    assert "run: tidewheel migrate" in early.log
    # A command takes what an old server has.
    asking = machines.start("tasks", "--json", **machines.told(0), **new)
    assert ended(asking) == 0, asking.log
    # Stop the old processes, migrate with the new version, start the new ones.
    for role in reversed(roles):
        assert machines.roles.pop(role).end() == 0
    assert ended(migrating := machines.start("migrate", **new)) == 0, migrating.log
    assert f"{OURS + 1}" in migrating.log
    late = machines.start("scheduler", **OLD)
    assert ended(late) == 3
    assert f"the store has schema version {OURS + 1}" in late.log
    assert "Upgrade tidewheel" in late.log
    for role in roles:  # one worker stays what it was: it speaks to a server alone
        machines.put(role, OLD if role == "worker1" else new)
    machines.works()
    assert {machines.task(one)[FIELD] for one in machines.submitted} == {"none"}
    machines.put("worker1", new)
    machines.works()
    verified = machines.start("verify", **new)
    assert ended(verified) == 0, verified.log
    machines.run_completes()
    nothing_was_lost_or_doubled(machines)
