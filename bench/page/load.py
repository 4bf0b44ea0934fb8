"""A run that changes at a steady rate: tasks are held and released; every commit is heard."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from tests.support.browser import Site
from tests.support.event_reader import EventReader
from tests.support.http_server import in_path

# A hundred chains of six, none of which goes on: the run is paused.
STEPS = "abcdef"
CHAINS = 100
FLOW = f"""
[task parameters]
    i = 1..{CHAINS}
[scheduling]
    [[graph]]
        R1 = {" => ".join(f"{step}<i>" for step in STEPS)}
[runtime]
    [[{", ".join(f"{step}<i>" for step in STEPS)}]]
        script = true
"""
NODES = CHAINS * len(STEPS)
CHANGED = [f"1/a_i{number:03}" for number in range(1, 33)]
LAST = f"1/a_i{CHAINS:03}"  # changed once at the end, so that whoever hears knows that it came
SENDERS = 8
ACCEPTED = 202


class Load:
    """Who changes tasks, and who hears when each change was stored."""

    def __init__(self, site: Site, run: str) -> None:
        self._caller, self._run = site.caller(), run
        # Of each task: when it was stored that it is held, or is so no longer.
        self.stored: dict[str, list[tuple[float, bool]]] = defaultdict(list)

    @contextmanager
    def going_on(self, per_second: float) -> Iterator[Load]:
        reader = EventReader(self._caller, run=self._run).ready()
        hearing = threading.Thread(target=self._hear, args=(reader,))
        stop, begun = threading.Event(), time.monotonic()
        turns = enumerate(itertools.cycle([*_turn("hold"), *_turn("release")]))
        lock = threading.Lock()

        def send() -> None:
            while not stop.is_set():
                with lock:
                    number, (verb, task) = next(turns)
                if stop.wait(max(0.0, begun + number / per_second - time.monotonic())):
                    return
                self._give(verb, task)

        senders = [threading.Thread(target=send) for _ in range(SENDERS)]
        for one in (hearing, *senders):
            one.start()
        try:
            yield self
        finally:
            stop.set()
            for one in senders:
                one.join()
            self._give("hold", LAST)
            self._give("release", LAST)
            hearing.join()
            reader.close()

    def _give(self, verb: str, task: str) -> None:
        path = f"/runs/{in_path(self._run)}/{verb}?wait_s=0"
        answer = self._caller.post(path, {"ids": [task]})
        assert answer.status == ACCEPTED, answer

    @property
    def per_second(self) -> float:
        """How many changes were stored in a second, of those that were heard."""
        all_at = [at for changes in self.stored.values() for at, _ in changes]
        return (len(all_at) - 1) / (max(all_at) - min(all_at))

    def _hear(self, reader: EventReader) -> None:
        while (told := reader.next()) is not None:
            at = datetime.fromisoformat(told.data["at"]).timestamp()
            for words in told.data.get("tasks") or ():
                is_held = "held" in words["remarks"]
                if words["id"] == LAST and not is_held:
                    return
                self.stored[words["id"]].append((at, is_held))


def _turn(verb: str) -> list[tuple[str, str]]:
    return [(verb, task) for task in CHANGED]
