"""Claims under rules, against a plain oracle: what is handed out, and in which order."""

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests.conformance.run_steps import Driver
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.resources import Resources

ROUNDS, STEPS = 6, 30
KEYS = (None, None, None, *"aabbccdefghijklmnop")
LIMITS = (
    (),
    (Limit(concurrency_max=3),),
    (Limit(rate_max=3, rate_seconds=4.0),),
    (Limit(key="*", concurrency_max=1),),
    (Limit(key="a", concurrency_max=0), Limit(key="*", concurrency_max=2)),
    (Limit(key="*", rate_max=2, rate_seconds=3.0),),
    (Limit(concurrency_max=6), Limit(key="*", rate_max=1, rate_seconds=2.0, concurrency_max=2)),
    (Limit(key="b", rate_max=1, rate_seconds=5.0),),
)


@dataclass
class Asked:
    """A task as the oracle knows it."""

    name: str
    number: int
    priority: int
    key: str | None
    cpu: int
    ready_at: float


@dataclass
class Oracle:
    """Goes through every ready task, and knows nothing of lanes."""

    settings: QueueSettings
    ready: list[Asked] = field(default_factory=list)
    running: list[Asked] = field(default_factory=list)
    tokens: dict[str, tuple[float, float]] = field(default_factory=dict)
    turn: dict[str, int] = field(default_factory=dict)
    turns: int = 0

    def rule(self, key):
        rules = {limit.key: limit for limit in self.settings.limits}
        return rules.get(key) or (rules.get("*") if key else None)

    def left(self, key, now):
        rule = self.rule(key)
        tokens, at = self.tokens.get(key, (rule.rate_max, now))
        return min(rule.rate_max, tokens + (now - at) * rule.rate_max / rule.rate_seconds)

    def room(self, key, now):
        rule = self.rule(key)
        if rule is None:
            return 10**6
        busy = sum(1 for one in self.running if key in ("", one.key))
        free = 10**6 if rule.concurrency_max is None else rule.concurrency_max - busy
        if rule.rate_max is not None:
            free = min(free, int(self.left(key, now) + 1e-9))
        return max(0, free)

    def claim(self, count, cpu, now):
        keys = {one.key for one in self.ready if one.key}
        self.turn = {key: self.turn.get(key, self.turns) for key in keys} | {
            "": self.turn.get("", 0)
        }
        fitting = [one for one in self.ready if one.cpu <= cpu]
        chosen = []
        taken = Counter()
        turn, turns = dict(self.turn), self.turns
        while len(chosen) < min(count, self.room("", now)):
            allowed = [
                one
                for one in fitting
                if one not in chosen
                and (one.key is None or taken[one.key] < self.room(one.key, now))
            ]
            if not allowed:
                break
            if self.settings.fair:
                first = {
                    key: self.best([o for o in allowed if (o.key or "") == key], now)
                    for key in {one.key or "" for one in allowed}
                }
                key = min(first, key=lambda key: (turn[key], self.place(first[key], now)))
                turns += 1
                turn[key] = turns
                chosen.append(first[key])
            else:
                chosen.append(self.best(allowed, now))
            taken[chosen[-1].key] += 1
        return self.start(self.together(chosen, cpu), now)

    def best(self, allowed, now):
        """The oldest of the highest priority; with aging the best of the heads of lines."""
        if not self.settings.aging:
            return min(allowed, key=lambda one: (-one.priority, one.number))
        by_key = self.settings.fair or any(limit.key for limit in self.settings.limits)
        heads = {}
        for one in sorted(allowed, key=lambda one: one.number):
            heads.setdefault((one.key if by_key else None, one.priority), one)
        return min(heads.values(), key=lambda one: self.place(one, now))

    def place(self, one, now):
        priority = one.priority
        if self.settings.aging and priority < 255:
            priority = min(255, priority + int(now - one.ready_at))
        return -priority, one.number

    @staticmethod
    def together(chosen, cpu):
        for count, one in enumerate(chosen):
            cpu -= one.cpu
            if cpu < 0:
                return chosen[:count]
        return chosen

    def start(self, chosen, now):
        for key, count in Counter(["", *(o.key for o in chosen if o.key)]).items():
            rule = self.rule(key)
            starts = len(chosen) if key == "" else count
            if chosen and rule is not None and rule.rate_max is not None:
                self.tokens[key] = self.left(key, now) - starts, now
        for one in chosen:
            self.ready.remove(one)
            self.running.append(one)
            self.turns += 1
            self.turn[one.key or ""] = self.turns
        return [one.name for one in chosen]


def drawn_settings(chance):
    return QueueSettings(
        aging=chance.random() < 0.3,
        fair=chance.random() < 0.3,
        limits=chance.choice(LIMITS),
        lease_seconds=86_400,
    )


class Play:
    """One queue, which belongs to a run, and what happens in it by chance."""

    def __init__(self, store, clock, number):
        self.store, self.clock = store, clock
        self.driver = Driver.of(store, f"wf{number}")
        self.queue, self.worker = self.driver.run.queue, store.hire()
        self.oracle = Oracle(QueueSettings())
        self.held, self.count = {}, 0

    def configure(self):
        old = self.oracle
        settings = drawn_settings(random)
        if any(limit.rate_max for limit in old.settings.limits):
            return  # what a rate leaves is remembered across settings: another test's business
        self.store.configure_queue(self.queue, settings)
        self.oracle = Oracle(settings, old.ready, old.running)

    def submit(self):
        for _ in range(random.randint(1, 9)):
            self.count += 1
            name, of_run = f"t{self.count}", random.random() < 0.3
            asked = {"priority": random.choice((1, 5, 5, 9, 250, 255, 300))}
            asked["limit_key"], cpu = random.choice(KEYS), random.choice((0, 1, 3, 5))
            given = asked | {"resources": Resources(cpu=cpu), "max_retries": 9}
            if of_run:
                (name,) = self.driver.submit(name, **given)
            else:
                name = f"{self.queue} {name}"
                self.store.put(name, queue=self.queue, **given)
            one = Asked(name, self.count, asked["priority"], asked["limit_key"], cpu, 0.0)
            one.ready_at = self.clock.now
            self.oracle.ready.append(one)

    def claim(self):
        count, cpu = random.choice((1, 1, 2, 5, 40)), random.choice((2, 2, 4, 99))
        free = Resources(cpu=cpu)
        given = {"queue": self.queue, "worker": self.worker, "free": free}
        found = self.store.take(count, **given)
        expected = self.oracle.claim(count, cpu, self.clock.now)
        assert [one.id for one in found] == expected, self.oracle.settings
        self.held |= {one.id: one for one in found}

    def finish(self):
        for name in random.sample(sorted(self.held), min(len(self.held), random.randint(0, 4))):
            one = next(one for one in self.oracle.running if one.name == name)
            self.oracle.running.remove(one)
            again = random.random() < 0.3
            self.store.finish(self.held.pop(name), "failed" if again else "succeeded")
            if again:
                one.ready_at = self.clock.now
                self.oracle.ready.append(one)

    def cancel(self):
        if self.oracle.ready:
            one = random.choice(self.oracle.ready)
            self.store.cancel([one.name])
            self.oracle.ready.remove(one)

    def wait(self):
        self.clock.advance(random.choice((0.25, 1.0, 1.5, 60.0)))


@pytest.mark.slow
def test_what_is_claimed_is_what_the_plain_rule_says_task_by_task(world):
    store = world.open()
    for number in range(ROUNDS):
        play = Play(store, world.clock, number)
        steps = [play.configure, play.submit, play.configure]
        random.shuffle(steps)
        what = (play.claim, play.submit, play.finish, play.wait, play.cancel, play.configure)
        often = (9, 5, 6, 4, 1, 1)
        for step in [*steps, *random.choices(what, often, k=STEPS)]:
            step()
    assert store.verify() == []
