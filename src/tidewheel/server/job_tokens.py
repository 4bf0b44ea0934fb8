"""Jobs that speak to the server themselves: which attempt is behind a token, what is its own.

A job's token opens only routes that say so, each with a rule of its own: its messages, its
task, its run. It has no scope, no queue and no workflow.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from tidewheel.api.tasks import Task
from tidewheel.core.queue.access import Grant, TokenKind, TokenView
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.tokens import PREFIX, AttemptToken, read_attempt_token
from tidewheel.errors import NotFound
from tidewheel.ports.store import Store
from tidewheel.server.errors import AttemptOver, NotAuthenticated

NOTHING = Grant(scopes=frozenset(), queues=(), workflows=())


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """An attempt that has its lease."""

    task: Task
    holder: Holder
    token: TokenView  # of its worker; what it allows is not the job's

    @property
    def caller(self) -> TokenView:
        """Who calls, for the audit and for answers that are kept; it allows nothing."""
        return replace(self.token, name=f"job {self.task.id}"[:256], grant=NOTHING)

    def key(self, given: str) -> str:
        """A key of this attempt alone, as all jobs of a worker have one token above them."""
        own = f"{self.task.seq}/{self.task.attempt}/{given}"
        return "job-" + hashlib.sha256(own.encode()).hexdigest()


def is_job_token(text: str | None) -> bool:
    return text is not None and text.startswith(PREFIX)


async def job_behind(text: str, store: Store) -> JobIdentity:
    """NotAuthenticated if nobody is; AttemptOver if it was good once.

    Looked up each time: a token is dead in the moment in which its attempt loses its lease.
    """
    said = read_attempt_token(text)
    if said is None:
        raise NotAuthenticated()
    try:
        token, now = await store.token(said.parent)
        task = await store.get(said.task_id)
    except NotFound:
        raise NotAuthenticated() from None
    is_proven = said.is_proven_by(token.digest, task.seq)
    if not is_proven or token.kind is not TokenKind.BEARER or not token.is_valid(now):
        raise NotAuthenticated()
    holder = await _holder(said, task, store)
    return JobIdentity(task=task, holder=holder, token=token)


async def _holder(said: AttemptToken, task: Task, store: Store) -> Holder:
    if task.status not in LEASED or task.attempt != said.attempt or task.owner is None:
        raise AttemptOver()
    if await store.worker_token(task.owner) != said.parent:  # another's by now
        raise AttemptOver()
    return Holder(task_id=task.id, attempt=task.attempt, worker=task.owner)
