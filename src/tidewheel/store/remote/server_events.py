"""Server-sent events, as HTML's standard defines them: from bytes to events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from tidewheel.errors import Unavailable

EVENT_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of a stream."""

    event: str
    data: str
    id: str | None = None  # the last one that was sent, for Last-Event-ID; None: none ever was

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        return msgspec.json.decode(self.data)


class EventReader:
    """Takes bytes as they come, gives the events that are complete."""

    def __init__(self, last_event_id: str | None = None) -> None:
        self._rest = b""
        self._name, self._id = "", last_event_id
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[ServerEvent]:
        """What these bytes complete; a stream of ours ends its lines with a line feed."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        size = len(self._rest) + sum(map(len, self._data))
        if size > EVENT_BYTES_MAX:
            raise Unavailable(f"an event has more than {EVENT_BYTES_MAX} bytes")
        for line in lines:
            event = self._line(line.rstrip(b"\r").decode(errors="replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._complete()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
            case _:
                pass  # a comment, the advice to come back later, or what we do not know
        return None

    def _complete(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        if not data:
            return None
        return ServerEvent(name or "message", "\n".join(data), self._id)
