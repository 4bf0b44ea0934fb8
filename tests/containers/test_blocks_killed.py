"""Issue 20: blocks on a real engine, while everybody who works on them is killed.

Schedulers, workers, a monitor, a server, who submits, and the engine itself die by kill -9. All
is judged by what the stages wrote themselves and by SQL beside the product: every block has
completed, every stage succeeded once and after those before it, each further attempt has a lost
lease or a worker that died on record, and nothing is left on the engine.
"""

import json
import random
from collections import Counter

import apsw
import psycopg
import pytest

from tests.support.container_engine import DOCKER, running_engines, until_nothing_is_left
from tests.support.patience import eventually, pace
from tests.support.ports import free_port
from tests.support.run_crew import run_crew
from tests.support.sip_files import one_service, write_sip
from tests.support.sips import definition, stage

STAGES = {"ingest": (), "calibrate": ("ingest",), "image": ("ingest",), "report": ("image",)}
IN_SHELL = "calibrate"
LONG_SECONDS = 600.0
EVERYBODY = 8  # of so many kills one is of all at once, with the engine
NOTE = "echo {word} {name} ${dollar}TIDEWHEEL_ATTEMPT >> {folder}/journal"
TASKS = """
SELECT task.id, task.status, task.attempt,
       (SELECT count(*) FROM {step} h WHERE h.task_seq = task.seq AND h.signal = 'claim'),
       (SELECT count(*) FROM {step} h
         WHERE h.task_seq = task.seq AND h.signal IN ('lapse', 'yield', 'retry')),
       (SELECT count(*) FROM {step} h
         WHERE h.task_seq = task.seq AND h.to_status = 'succeeded')
  FROM {task} task
"""
RUNS = "SELECT name, status FROM {run}"


def script(name, folder, dollar):
    begin, end = (
        NOTE.format(word=word, name=name, folder=folder, dollar=dollar)
        for word in ("begin", "end")
    )
    return f"{begin}; sleep 1; {end}"


def define(crew):
    stages = [stage(name, *(f"{one} complete" for one in STAGES[name])) for name in STAGES]
    text = definition(*stages).replace("timeout: 60s", "timeout: 600s")
    files = {name: one_service(script(name, "/share", "$")) for name in STAGES}
    del files[IN_SHELL]
    write_sip(crew.folder / "flow", "flow-1.0.0.yaml", text, files)
    place = crew.folder / "flow/stages" / IN_SHELL / "1.0.0"
    place.mkdir(parents=True)
    (place / "script.sh").write_text(script(IN_SHELL, '"$TIDEWHEEL_WORKFLOW_SHARE_DIR"', ""))
    assert crew.ask("register", "flow")[0] == 0


def instances(crew, count, blocks_each=5):
    """The files of requests for so many blocks in all; returns the names of the blocks."""
    names = [f"PB-20261118-sip-{number:03}" for number in range(count)]
    for first in range(0, count, blocks_each):
        blocks = [
            {"id": name, "type": "offline", "workflow": {"id": "flow", "version": "1.0.0"}}
            for name in names[first : first + blocks_each]
        ]
        asked = {"id": f"SBI-20261118-sip-{first:03}", "version": "2.0"}
        asked |= {"scheduling_block": {"id": "SB-1"}, "processing_blocks": blocks}
        (crew.folder / f"sbi-{first:03}.json").write_text(json.dumps(asked))
    return names


class Duty:
    """Who works on the blocks; whoever is killed is followed by another."""

    def __init__(self, crew, engine, chance):
        self.crew, self.engine, self.chance = crew, engine, chance
        self.killed = Counter()
        serving = ("worker", "--queue", "run:*", "--slots", "4")
        in_containers = (*serving, "--runner", "compose")
        server = ("server", "--port", str(free_port()), "--no-monitor")
        self.words = (
            [("scheduler",)] * 2 + [in_containers] * 2 + [serving, ("monitor",), server]
        )
        self.parts = [crew.start(*words) for words in self.words]

    def kill(self, number):
        self.parts[number].kill()
        self.killed[self.words[number][0]] += 1

    def follow(self, number):
        self.parts[number] = self.crew.start(*self.words[number])

    def kill_one(self):
        number = self.chance.randrange(len(self.parts))
        self.kill(number)
        pace(self.chance.uniform(0.0, 1.0))
        self.follow(number)

    def kill_everybody(self):
        for number in range(len(self.parts)):
            self.kill(number)
        self.engine.kill()
        self.killed["engine"] += 1
        self.engine.start()
        for number in range(len(self.parts)):
            self.follow(number)

    def submit(self, file):
        """Asked for by somebody who is killed meanwhile, and asks again."""
        first = self.crew.start("sbi", "submit", file)
        pace(self.chance.uniform(0.0, 1.5))
        if first.runs:
            first.kill()
            self.killed["submit"] += 1
        status, said = self.crew.ask("sbi", "submit", file)
        assert status == 0, said


def journal(crew, block):
    path = crew.home / "runs" / block / "share/journal"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def rows(crew, statement):
    """The tables, read by the database's own program and never by ours."""
    lead = "" if crew.store.startswith("sqlite:") else "tidewheel."
    text = statement.format(**{name: f"{lead}{name}" for name in ("step", "task", "run")})
    if not lead:
        with apsw.Connection(crew.store.removeprefix("sqlite:///")) as connection:
            found = connection.execute(text).fetchall()
    else:
        with psycopg.connect(crew.store) as connection:
            found = connection.execute(text).fetchall()
    return {one[0]: one[1:] for one in found}


def judge(crew, blocks):
    """Returns how many attempts were further ones."""
    assert rows(crew, RUNS) == dict.fromkeys(blocks, ("completed",))
    stored = rows(crew, TASKS)
    assert stored.keys() == {f"{block}/1/{name}/1" for block in blocks for name in STAGES}
    for task_id, (status, attempt, claims, excuses, ends) in stored.items():
        seen = (task_id, status, attempt, claims, excuses, ends)
        assert status == "succeeded" and ends == 1, seen
        assert attempt == claims <= excuses + 1, seen
    for block in blocks:
        lines = journal(crew, block)
        assert len(set(map(tuple, lines))) == len(lines), f"{block}: one attempt ran twice"
        ended = [name for word, name, _ in lines if word == "end"]
        assert set(ended) == STAGES.keys(), (block, lines)
        done = set()
        for word, name, attempt in lines:
            assert done.issuperset(STAGES[name]), f"{block}: {name} began too early: {lines}"
            assert int(attempt) <= stored[f"{block}/1/{name}/1"][1], (block, lines)
            done |= {name} if word == "end" else set()
    return sum(one[1] for one in stored.values()) - len(stored)


@pytest.fixture(params=["sqlite", "postgres"])
def crew(request, tmp_path):
    if reason := DOCKER.missing_reason():
        pytest.skip(reason)
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    with running_engines("e1") as [engine], run_crew(tmp_path, url) as crew:
        crew.environment |= engine.environment
        yield crew, engine


@pytest.mark.timeout(3600)
@pytest.mark.req("R004-62")
@pytest.mark.parametrize(
    ("count", "kills"), [(5, 4), pytest.param(30, 25, marks=pytest.mark.nightly)]
)
def test_blocks_whose_workers_schedulers_server_and_engine_are_killed_all_complete(
    crew, request, record_property, count, kills
):
    crew, engine = crew
    chance = random.Random(request.config.getoption("randomly_seed", 1))
    define(crew)
    blocks = instances(crew, count)
    stages = count * len(STAGES)
    moments = sorted(chance.randrange(stages * 9 // 10) for _ in range(kills))
    duty = Duty(crew, engine, chance)
    for file in sorted(crew.folder.glob("sbi-*.json")):
        duty.submit(file.name)

    def ends():
        return sum(line[0] == "end" for block in blocks for line in journal(crew, block))

    for number, moment in enumerate(moments):
        eventually(
            lambda n=moment: ends() >= n,
            lambda n=moment: f"{n} stages have ended, not {ends()}: {rows(crew, TASKS)}",
            LONG_SECONDS,
        )
        pace(chance.uniform(0.0, 0.5))
        (duty.kill_everybody if number % EVERYBODY == 2 else duty.kill_one)()
    eventually(
        lambda: set(rows(crew, RUNS).values()) == {("completed",)},
        lambda: f"all are completed, not {rows(crew, RUNS)}, {rows(crew, TASKS)}",
        LONG_SECONDS,
    )
    record_property("killed", dict(duty.killed))
    record_property("further attempts", judge(crew, blocks))
    assert crew.look(lambda store: store.verify()) == []
    until_nothing_is_left(engine)
