"""Delivers one message to where its rule points: a webhook, a mail, a command."""

from __future__ import annotations

import asyncio
import json
import shlex
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import assert_never

from tidewheel.runners.event_handlers import HandlerCommand, HandlerEnd, run_handler
from tidewheel.scheduler.mail import Addresses, MailSettings, new_mail, smtp_sender
from tidewheel.services.notifications import webhook
from tidewheel.services.notifications.messages import Notification, document, facts, text_of
from tidewheel.services.notifications.rules import (
    MailTo,
    NotificationRule,
    RunCommand,
    Webhook,
    filled,
)

SECONDS_MAX = 30.0  # of any delivery; the lease of the notifier lasts longer
COMMAND_SECONDS_MAX = 25.0
MAIL_SECONDS_MAX = 20.0
PRINTED_MAX = 500  # characters of what a command that failed printed


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryMeans:
    """Holds what deliveries are made with; `environment` is all that a command sees."""

    directory: Path
    smtp: str
    environment: Mapping[str, str] = field(default_factory=dict)


async def deliver(
    rule: NotificationRule, message: Notification, missed: int, means: DeliveryMeans
) -> str:
    """Sends a message and returns "" if it was taken, else what went wrong; always in time."""
    try:
        async with asyncio.timeout(SECONDS_MAX):
            match rule.to:
                case Webhook():
                    return await _post(rule, rule.to, message, missed)
                case MailTo():
                    return await _mail(rule, rule.to, message, missed, means)
                case RunCommand():
                    return await _run(rule, rule.to, message, missed, means)
                case _:
                    assert_never(rule.to)
    except TimeoutError:
        return f"no answer within {SECONDS_MAX:g} seconds"
    except Exception as error:  # one message that cannot be sent must not stop the others
        return repr(error)


async def _post(rule: NotificationRule, to: Webhook, message: Notification, missed: int) -> str:
    body = json.dumps(document(message, text_of(rule, message), missed)).encode()
    what = webhook.Posted(message.id, message.event, int(message.at), body)
    try:
        await asyncio.to_thread(webhook.post, to, what)
    except (OSError, ValueError, webhook.NotPosted) as error:
        return str(error) or repr(error)
    return ""


async def _mail(
    rule: NotificationRule, to: MailTo, message: Notification, missed: int, means: DeliveryMeans
) -> str:
    settings = MailSettings(smtp=means.smtp, timeout_seconds=MAIL_SECONDS_MAX)
    try:
        mail = compose(rule, to, message, missed)
        await asyncio.to_thread(smtp_sender(settings), mail)
    except (OSError, ValueError) as error:  # what smtplib raises is an OSError
        return f"{means.smtp}: {error}"
    return ""


def compose(
    rule: NotificationRule, to: MailTo, message: Notification, missed: int
) -> EmailMessage:
    """Composes a mail with the id where mail programs look for one: a second copy is known."""
    text = text_of(rule, message)
    host = socket.gethostname()
    dropped = f"\n{missed} messages of this rule before it were dropped.\n" if missed else ""
    mail = new_mail(
        filled(rule.subject, facts(message, text)),
        Addresses(to.sender or f"tidewheel@{host}", ", ".join(to.to)),
        f"{text}\n\n{_about(message)}{dropped}",
    )
    mail["Message-ID"] = f"<{message.id}@tidewheel.{message.store or 'store'}>"
    mail["Auto-Submitted"] = "auto-generated"
    return mail


def _about(message: Notification) -> str:
    shown = facts(message, "")
    names = ("event", "run", "workflow", "status", "reason", "tasks", "count", "at", "rule")
    return "".join(f"{name}: {shown[name]}\n" for name in names if shown[name])


async def _run(
    rule: NotificationRule,
    to: RunCommand,
    message: Notification,
    missed: int,
    means: DeliveryMeans,
) -> str:
    text = text_of(rule, message)
    known = facts(message, text)
    words = [shlex.quote(filled(word, known)) for word in to.words]
    given = {f"TIDEWHEEL_NOTIFY_{name.upper()}": value for name, value in known.items()}
    whole = json.dumps(document(message, text, missed))
    command = HandlerCommand(
        command=to.line or " ".join(words),
        directory=means.directory,
        environment={
            **means.environment,
            **{name: value.replace("\0", "") for name, value in given.items()},
            "TIDEWHEEL_NOTIFY_MESSAGE": whole,
        },
        seconds_max=COMMAND_SECONDS_MAX,
    )
    end = await asyncio.to_thread(_in_a_loop_of_its_own, command)
    if not end.reason:
        return ""
    return f"{end.reason}: {end.output.strip()[-PRINTED_MAX:]}".rstrip(": ")


def _in_a_loop_of_its_own(command: HandlerCommand) -> HandlerEnd:
    """Runs a command in a loop of its own, because a server's fast loop starts no process in a
    group of its own (decision 0022)."""
    return asyncio.run(run_handler(command))
