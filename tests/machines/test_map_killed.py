"""Issue 19: a map of 2,000 over a returned list, and ten kills of those who work on it.

What happened is judged by what the jobs wrote themselves and by SQL beside the product: every
element ran with its own value and succeeded once, each further attempt has a lost lease or a
worker that died on record, and the join saw all values in their order.
"""

import json
import random
from collections import Counter

import apsw
import psycopg
import pytest

from tests.support.patience import eventually, pace, scaled
from tests.support.run_crew import run_crew

ELEMENTS = 2_000
KILLS = scaled(10)
VALUES = [number * 7919 % 10_007 for number in range(ELEMENTS)]  # all differ
RUN = "flow/run1"
SLOTS = "6"
LONG_SECONDS = 300.0
FLOW = r"""
[task parameters]
    n = list.numbers max 2000
[scheduling]
    [[queues]]
        [[[default]]]
            limit = 60
    [[graph]]
        R1 = list => square<n> => join
[runtime]
    [[list]]
        script = '''
            echo "list $TIDEWHEEL_ATTEMPT" >> {folder}/lists
            cat {folder}/numbers > "$TIDEWHEEL_OUTPUTS"
        '''
    [[square<n>]]
        script = '''
            n=$CYLC_TASK_PARAM_n try="$CYLC_TASK_SUBMIT_NUMBER $TIDEWHEEL_ATTEMPT"
            echo "$CYLC_TASK_NAME $try $n" >> {folder}/journal
            echo "{{\"square\": $((n * n))}}" > "$TIDEWHEEL_OUTPUTS"
        '''
    [[join]]
        script = '''
            echo "$ALL" > {folder}/all
            cp "$TIDEWHEEL_INPUTS" {folder}/inputs
        '''
        [[[inputs]]]
            ALL = square<n>.square
"""
# Every submission of the run as the tables have it, whatever the program says of it.
ENDED = """
SELECT task.id, task.status, task.attempt,
       (SELECT count(*) FROM {history} h WHERE h.task_seq = task.seq AND h.signal = 'claim'),
       (SELECT count(*) FROM {history} h
         WHERE h.task_seq = task.seq AND h.signal IN ('lapse', 'yield', 'retry')),
       (SELECT count(*) FROM {history} h
         WHERE h.task_seq = task.seq AND h.to_status = 'succeeded')
  FROM {task} task
"""


@pytest.fixture(params=["sqlite", "postgres"])
def crew(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    with run_crew(tmp_path, url) as crew:
        yield crew


def define(crew):
    folder = crew.folder / "flow"
    folder.mkdir()
    (crew.folder / "numbers").write_text(json.dumps({"numbers": VALUES}))
    text = FLOW.format(folder=crew.folder).replace("'''", '"""')
    (folder / "flow.cylc").write_text(text)


class Duty:
    """Two schedulers, two workers and a monitor; who is killed is followed by another."""

    def __init__(self, crew, chance):
        self.crew, self.chance = crew, chance
        self.first = crew.run()  # drives and works, until it is the first to die
        self.schedulers, self.workers, self.monitor = [], [], crew.monitor()
        self.killed = Counter()

    def fill(self):
        while len(self.schedulers) < 2:
            self.schedulers.append(self.crew.scheduler())
        while len(self.workers) < 2:
            self.workers.append(self.crew.worker("--queue", f"run:{RUN}", "--slots", SLOTS))

    def kill_one(self):
        if self.first is not None:
            self.first.kill()
            self.first = None
            self.killed["run"] += 1
        elif self.chance.random() < 0.5:
            self.workers.pop(self.chance.randrange(2)).kill()
            self.killed["worker"] += 1
        else:
            owner = self.crew.view(RUN).owner
            mine = [one for one in self.schedulers if owner and one.pid == owner.pid]
            victim = (mine or self.schedulers)[0]
            self.schedulers.remove(victim)
            victim.kill()
            self.killed["scheduler"] += 1
        self.fill()


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def rows(crew):
    """The tables, read by the database's own program and never by ours."""
    if crew.store.startswith("sqlite:"):
        with apsw.Connection(crew.store.removeprefix("sqlite:///")) as connection:
            found = connection.execute(ENDED.format(history="history", task="task")).fetchall()
    else:
        names = {"history": "tidewheel.step", "task": "tidewheel.task"}
        with psycopg.connect(crew.store) as connection:
            found = connection.execute(ENDED.format(**names)).fetchall()
    return {one[0]: one[1:] for one in found}


def judge(crew):
    expected = {f"{RUN}/1/square_n{number}/1": number for number in range(ELEMENTS)}
    stored = rows(crew)
    assert stored.keys() == {*expected, f"{RUN}/1/list/1", f"{RUN}/1/join/1"}
    for task_id, (status, attempt, claims, excuses, ends) in stored.items():
        seen = (task_id, status, attempt, claims, excuses, ends)
        assert status == "succeeded" and ends == 1, seen
        assert attempt == claims <= excuses + 1, seen
    begun = Counter()
    for line in lines(crew.journal):
        name, submit, attempt, value = line.split()
        number = int(name.removeprefix("square_n"))
        assert submit == "1" and int(value) == VALUES[number], line
        begun[number, int(attempt)] += 1
    assert {number for number, _ in begun} == set(range(ELEMENTS)), "an element never ran"
    assert set(begun.values()) == {1}, "one attempt ran twice"
    for number, attempt in begun:
        assert attempt <= stored[f"{RUN}/1/square_n{number}/1"][1]
    squares = [value * value for value in VALUES]
    assert json.loads((crew.folder / "all").read_text()) == squares
    inputs = json.loads((crew.folder / "inputs").read_text())
    assert inputs == {"square<n>": [{"square": one} for one in squares]}
    return len(begun) - ELEMENTS


@pytest.mark.timeout(1800)
def test_a_map_of_two_thousand_that_is_killed_ten_times_loses_and_doubles_nothing(
    crew, request, record_property
):
    chance = random.Random(request.config.getoption("randomly_seed", 1))
    define(crew)
    # The first when the list has just been returned, the others wherever chance has it.
    moments = sorted(chance.randrange(ELEMENTS * 19 // 20) for _ in range(KILLS - 1))
    duty = Duty(crew, chance)
    eventually(lambda: lines(crew.folder / "lists"), lambda: duty.first.log)
    pace(chance.uniform(0.0, 0.3))
    duty.kill_one()
    for moment in moments:
        eventually(
            lambda n=moment: len(lines(crew.journal)) >= n,
            lambda n=moment: f"{n} elements have begun, not {len(lines(crew.journal))}",
            LONG_SECONDS,
        )
        pace(chance.uniform(0.0, 0.1))
        duty.kill_one()
    eventually(
        lambda: crew.view(RUN).status == "completed",
        lambda: f"the run is completed, not {crew.view(RUN)}",
        LONG_SECONDS,
    )
    assert sum(duty.killed.values()) == KILLS
    record_property("killed", dict(duty.killed))
    record_property("further attempts", judge(crew))
    assert crew.look(lambda store: store.verify()) == []
