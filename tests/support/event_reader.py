"""Somebody who reads server-sent events from a socket, and what follows from them."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.support.http_server import API, Caller
from tests.support.patience import allowed

FINAL = {"succeeded", "failed", "cancelled"}


class Told(NamedTuple):
    """One event."""

    kind: str
    id: str
    data: Any


class EventReader:
    """One connection; `last` is what to give as Last-Event-ID after it is lost."""

    def __init__(self, caller: Caller, last: str | None = None, **query: str) -> None:
        self._connection = http.client.HTTPConnection(caller.address, timeout=allowed(20))
        headers = {"Accept": "text/event-stream", **caller.headers}
        if caller.token is not None:
            headers["Authorization"] = f"Bearer {caller.token}"
        if last is not None:
            headers["Last-Event-ID"] = last
        asked = f"?{urlencode(query)}" if query else ""
        self._connection.request("GET", f"{API}/events{asked}", headers=headers)
        self.answer = self._connection.getresponse()
        self.last, self.retry = last, None

    def ready(self) -> EventReader:
        """Whatever happens from now on is told."""
        told = self._event()
        assert told is not None and told.kind == "start", told
        return self

    def next(self) -> Told | None:
        """The next event after the start; None at the end."""
        while (told := self._event()) is not None and told.kind == "start":
            pass
        return told

    def _event(self) -> Told | None:
        kind = None
        while (line := self._line()) is not None:
            name, _, text = line.partition(": ")
            if name == "event":
                kind = text
            elif name == "data":
                return Told(kind, self.last, json.loads(text))
        return None

    def _line(self) -> str | None:
        try:
            line = self.answer.readline().decode()
        except (OSError, http.client.HTTPException):
            return None
        name, _, text = line.rstrip("\n").partition(": ")
        if name == "id":
            self.last = text
        elif name == "retry":
            self.retry = int(text)
        return line.rstrip("\n") if line else None

    def some(self, count: int) -> list[Told]:
        """So many, or fewer if it ends before."""
        found = []
        while len(found) < count and (told := self.next()) is not None:
            found.append(told)
        return found

    def until(self, wanted: Any) -> list[Told]:
        """All up to the first for which this is so."""
        found = []
        while (told := self.next()) is not None:
            found.append(told)
            if wanted(told):
                break
        return found

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


class Reduced:
    """The state that follows from a snapshot and the events after it."""

    def __init__(self, snapshot: Any = None) -> None:
        self.tasks = {one["id"]: _state(one) for one in (snapshot or {}).get("tasks", ())}
        self.run = dict((snapshot or {}).get("run") or {})
        self.pool = {one["id"]: one for one in (snapshot or {}).get("pool", ())}

    def apply(self, told: Told) -> None:
        data = told.data
        if told.kind == "task":
            self.tasks[data["id"]] = (data["to"], data["attempt"], data["worker"])
        elif told.kind == "run" and data["batch"] > self.run.get("batch", -1):
            self.run |= {name: data[name] for name in ("status", "reason", "batch")}
            for one in data["tasks"]:
                if one["in_pool"]:
                    self.pool[one["id"]] = one
                else:
                    self.pool.pop(one["id"], None)

    @property
    def open(self) -> dict[str, Any]:
        """The tasks that have not ended."""
        return {name: one for name, one in self.tasks.items() if one[0] not in FINAL}


def _state(task: Any) -> tuple[str, int, str | None]:
    return (task["status"], task["attempt"], task["worker"])
