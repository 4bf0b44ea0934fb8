"""Mails events: one mail for a batch of task events, one for each event of the run.

The first event is mailed after a moment, so that those which come with it go into the same
mail; what comes within the batch interval after that waits for its end. A mail that no server
takes is tried again a few times, then given up: mail never stops a run. `done` of an event is
called when its mail was taken or given up, not if the process left before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tidewheel.formats.flow_cylc.settings import WorkflowMail
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.clock import Clock
from tidewheel.scheduler.handler_templates import (
    Done,
    HandledNotice,
    HandledRun,
    nobody_waits,
    words_of,
)
from tidewheel.services.service import OnReport, ServiceReport, tell_nobody

if TYPE_CHECKING:
    from email.message import EmailMessage

SMTP_PORT = 25
EVENTS_PER_MAIL_MAX = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """Says where mail is handed over, and how long it may wait."""

    smtp: str = "localhost:25"  # HOST or HOST:PORT
    timeout_seconds: float = 30.0
    gather_seconds: float = 1.0
    batch_interval_seconds: float = 300.0
    retry_delays_seconds: tuple[float, ...] = (10.0, 60.0)
    waiting_max: int = 10_000  # events; further ones are dropped and counted

    def server(self) -> tuple[str, int]:
        """Returns host and port; raises ValueError if the port is no number."""
        host, _, port = self.smtp.rpartition(":") if ":" in self.smtp else (self.smtp, "", "")
        return host or "localhost", int(port) if port else SMTP_PORT


Send = Callable[["EmailMessage"], None]


def smtp_sender(settings: MailSettings) -> Send:
    """Returns a function that hands a mail to the server; it blocks, so call it in a thread."""

    def send(mail: EmailMessage) -> None:
        import smtplib  # noqa: PLC0415 - slow, and few runs send mail

        host, port = settings.server()
        with smtplib.SMTP(host, port, timeout=settings.timeout_seconds) as server:
            server.send_message(mail)

    return send


class PostedEvent(NamedTuple):
    """Holds an event to be mailed, and the function to be called when that is over."""

    notice: HandledNotice
    done: Done


@dataclass(frozen=True, slots=True)
class Addresses:
    """Holds the sender and the receivers of a mail; `to` may have several, with commas."""

    sender: str
    to: str


class Mailer:
    """Collects events and mails them."""

    def __init__(
        self,
        run: HandledRun,
        mail: WorkflowMail,
        clock: Clock,
        settings: MailSettings,
        *,
        send: Send | None = None,
        on_report: OnReport = tell_nobody,
    ) -> None:
        self._run = run
        self._mail = mail
        self._clock = clock
        self._settings = settings
        self._send = send or smtp_sender(settings)
        self._on_report = on_report
        interval = mail.batch_interval_seconds
        self._interval_seconds = (
            settings.batch_interval_seconds if interval is None else interval
        )
        self._waiting: dict[Addresses, list[PostedEvent]] = {}
        self._next_at = float("-inf")
        self._gathering: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._resting: set[asyncio.Task[None]] = set()  # until the next try
        self._is_draining = False

    def post(self, notice: HandledNotice, done: Done = nobody_waits) -> None:
        """Has an event mailed, and returns at once."""
        addresses = self._addresses(notice)
        if notice.task is None:
            self._begin_sending(addresses, [PostedEvent(notice, done)])
            return
        if sum(map(len, self._waiting.values())) >= self._settings.waiting_max:
            self._tell("mail.dropped", handled=notice.event, id=notice.task.id)
            done(False)
            return
        self._waiting.setdefault(addresses, []).append(PostedEvent(notice, done))
        if self._gathering is None:
            self._gathering = asyncio.create_task(self._gather(), name="mail")

    async def drain(self, seconds_max: float) -> None:
        """Sends everything now, and waits for that, but not longer than this."""
        self._is_draining = True
        for task in self._resting:
            task.cancel()
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        self._flush()
        if self._sending:
            await asyncio.wait(self._sending, timeout=seconds_max)
        for task in self._sending:
            task.cancel()

    async def _gather(self) -> None:
        wait = max(self._settings.gather_seconds, self._next_at - self._clock.monotonic())
        await self._clock.sleep(wait)
        self._gathering = None
        self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._next_at = self._clock.monotonic() + self._interval_seconds
        for addresses, posted in waiting.items():
            for first in range(0, len(posted), EVENTS_PER_MAIL_MAX):
                self._begin_sending(addresses, posted[first : first + EVENTS_PER_MAIL_MAX])

    def _begin_sending(self, addresses: Addresses, posted: Sequence[PostedEvent]) -> None:
        work = self._compose_and_deliver(addresses, posted)
        task = asyncio.create_task(work, name="mail delivery")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _compose_and_deliver(
        self, addresses: Addresses, posted: Sequence[PostedEvent]
    ) -> None:
        notices = [one.notice for one in posted]
        is_over = True
        try:
            mail = compose(notices, addresses, self._run, self._mail.footer)
            is_over = await self._deliver(mail)
        except ValueError as error:  # bytes or addresses that no mail can have
            self._tell("mail.failed", to=addresses.to, error=str(error))
        except Exception as error:  # `done` must be called in any case
            self._tell("mail.failed", to=addresses.to, error=f"a bug in tidewheel, {error!r}")
        for one in posted:
            one.done(is_over)

    async def _deliver(self, mail: EmailMessage) -> bool:
        """Hands a mail to the server; False if the process left before all tries were made.

        True means that the mail was taken or given up; after False another scheduler may try.
        """
        trouble, is_cut_off = "", False
        for delay in (*self._settings.retry_delays_seconds, None):
            try:
                await asyncio.to_thread(self._send, mail)
            except (OSError, ValueError) as error:  # what smtplib raises is an OSError
                trouble = str(error)
            else:
                self._tell("mail.sent", subject=mail["Subject"], to=mail["To"])
                return True
            is_cut_off = delay is not None and not await self._rests(delay)
            if is_cut_off:
                break
        to, server = mail["To"], self._settings.smtp
        self._tell("mail.failed", subject=mail["Subject"], to=to, server=server, error=trouble)
        return not is_cut_off

    async def _rests(self, seconds: float) -> bool:
        """Waits before the next try; returns False if there will be none: it ends."""
        task = asyncio.current_task()
        assert task is not None
        if self._is_draining:
            return False
        self._resting.add(task)
        try:
            await self._clock.sleep(seconds)
        except asyncio.CancelledError:
            return False
        finally:
            self._resting.discard(task)
        return True

    def _addresses(self, notice: HandledNotice) -> Addresses:
        own = None if notice.task is None else notice.task.node.mail
        sender = (own and own.sender) or self._mail.sender
        to = (own and own.to) or self._mail.to
        return Addresses(
            sender or f"notifications@{self._run.host}", to or self._run.owner or "root"
        )

    def _tell(self, what: str, /, **facts: object) -> None:
        self._on_report(ServiceReport(service="scheduler", event=what, facts=facts))


def compose(
    notices: Sequence[HandledNotice], addresses: Addresses, run: HandledRun, footer: str
) -> EmailMessage:
    """Returns one mail about these events."""
    facts = "".join(_facts(one) for one in notices)
    about = f"workflow: {run.name}\nhost: {run.host}\nport: {run.port}\nowner: {run.owner}\n"
    text = f"{facts}\n{about}{_footer(footer, notices[-1], run)}"
    return new_mail(_subject(notices, run.name), addresses, text)


def new_mail(subject: str, addresses: Addresses, text: str) -> EmailMessage:
    """Returns a mail of plain text, for event handlers and for notifications."""
    from email.message import EmailMessage  # noqa: PLC0415 - slow, and few runs send mail
    from email.utils import formatdate  # noqa: PLC0415 - as above

    mail = EmailMessage()
    mail["Subject"] = _one_line(subject)
    mail["From"], mail["To"] = _one_line(addresses.sender), _one_line(addresses.to)
    mail["Date"] = formatdate()
    mail.set_content(text)
    return mail


def _subject(notices: Sequence[HandledNotice], run: str) -> str:
    first = notices[0]
    if first.task is None:
        return f"[workflow {first.event}] {run}"
    if len(notices) == 1:
        return f"[{first.task.job} {first.event}] {run}"
    events = {one.event for one in notices}
    what = f"tasks {first.event}" if len(events) == 1 else "task events"
    return f"[{len(notices)} {what}] {run}"


def _facts(one: HandledNotice) -> str:
    job = "" if one.task is None else f"job: {one.task.job}\n"
    message = f"message: {one.message}\n" if one.message or one.task is not None else ""
    return f"{job}event: {one.event}\n{message}\n"


def _footer(footer: str, notice: HandledNotice, run: HandledRun) -> str:
    """Returns the footer with its fields filled; as it was written if that cannot be done."""
    try:
        return f"{footer % words_of(notice, run)}\n" if footer else ""
    except (KeyError, TypeError, ValueError):
        return f"{footer}\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())
