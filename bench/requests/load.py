"""Connections that ask the same thing again and again, each as soon as it was answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

HEAD_END = b"\r\n\r\n"
LENGTH, RETRY = b"content-length:", b"retry-after:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request; ``body`` gets a number that is used once."""

    name: str
    method: str
    path: str
    body: Callable[[int], bytes] = lambda _: b""
    status: int = 200


@dataclass(slots=True)
class Answers:
    """What came back."""

    count: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Of the times that an answer took."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Reply(NamedTuple):
    """Whatever is answered."""

    status: int
    body: bytes
    retry_seconds: float  # when to come again, if it was turned away


class Asker:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, question: Question, number: int, token: str) -> bytes:
        """The body of the answer, which must be the one that is expected."""
        reply = await self.answer(question, number, token)
        if reply.status != question.status:
            raise RuntimeError(f"{question.name}: {reply.status} {reply.body.decode()}")
        return reply.body

    async def answer(self, question: Question, number: int, token: str) -> Reply:
        body = question.body(number)
        head = (
            f"{question.method} {question.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answered = await self._reader.readuntil(HEAD_END)
        head_lines = answered.lower()
        text = await self._reader.readexactly(_number(head_lines, LENGTH))
        return Reply(int(answered[9:12]), text, _number(head_lines, RETRY))

    def close(self) -> None:
        self._writer.close()


def _number(head: bytes, name: bytes) -> int:
    return int(head.partition(name)[2].partition(b"\r")[0] or 0)


async def run_load(
    port: int, question: Question, token: str, *, connections: int, seconds: float
) -> Answers:
    """As many answers as come in that time."""
    askers = [
        Asker(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(connections)
    ]
    answers, numbers = Answers(), iter(range(10**9))
    began = time.monotonic()
    await asyncio.gather(
        *(
            _repeat(asker, question, token, numbers.__next__, began + seconds, answers)
            for asker in askers
        )
    )
    answers.seconds = time.monotonic() - began
    for asker in askers:
        asker.close()
    return answers


async def _repeat(
    asker: Asker,
    question: Question,
    token: str,
    next_number: Callable[[], int],
    ends_at: float,
    answers: Answers,
) -> None:
    while (asked_at := time.monotonic()) < ends_at:
        await asker.ask(question, next_number(), token)
        answers.count += 1
        answers.latencies.append(time.monotonic() - asked_at)
