"""Delivers one message to where its rule points: a webhook, a mail, a command."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import http.client
import ipaddress
import json
import shlex
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.runners.event_handlers import HandlerCommand, run_handler
from tidewheel.scheduler.mail import Addresses, MailSettings, new_mail, smtp_sender
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
    rule: NotificationRule,
    message: Notification,
    missed: int,
    means: DeliveryMeans,
    now: float,
) -> str:
    """Sends a message and returns "" if it was taken, else what went wrong.

    It takes at most SECONDS_MAX.
    """
    try:
        async with asyncio.timeout(SECONDS_MAX):
            if isinstance(rule.to, RunCommand):
                return await _run(rule, rule.to, message, missed, means)
            return await _send(rule, rule.to, message, missed, means, now)
    except TimeoutError:
        return f"no answer within {SECONDS_MAX:g} seconds"
    except Exception as error:  # one message that cannot be sent must not stop the others
        return repr(error)


async def _send(
    rule: NotificationRule,
    to: Webhook | MailTo,
    message: Notification,
    missed: int,
    means: DeliveryMeans,
    now: float,
) -> str:
    try:
        if isinstance(to, Webhook):
            body = json.dumps(document(message, text_of(rule, message), missed))
            # The time of this try: receivers refuse what was signed long ago, as a replay.
            what = Posted(message.id, message.event, int(now), body.encode())
            await asyncio.to_thread(post, to, what)
        else:
            settings = MailSettings(smtp=means.smtp, timeout_seconds=MAIL_SECONDS_MAX)
            mail = compose(rule, to, message, missed)
            await asyncio.to_thread(smtp_sender(settings), mail)
    except (OSError, ValueError, NotPosted) as error:  # what smtplib raises is an OSError
        server = f"{means.smtp}: " if isinstance(to, MailTo) else ""
        return f"{server}{error}" or repr(error)
    return ""


def compose(
    rule: NotificationRule, to: MailTo, message: Notification, missed: int
) -> EmailMessage:
    """Returns the mail of a message, with the id as its Message-ID.

    By that, mail programs recognize a second copy.
    """
    text = text_of(rule, message)
    host = socket.gethostname()
    known = facts(message, text)
    names = ("event", "run", "workflow", "status", "reason", "tasks", "count", "at", "rule")
    about = "".join(f"{name}: {known[name]}\n" for name in names if known[name])
    messages = "1 message" if missed == 1 else f"{missed} messages"
    dropped = f"\nDropped before this message: {messages} of this rule.\n" if missed else ""
    mail = new_mail(
        filled(rule.subject, known),
        Addresses(to.sender or f"tidewheel@{host}", ", ".join(to.to)),
        f"{text}\n\n{about}{dropped}",
    )
    mail["Message-ID"] = f"<{message.id}@tidewheel.{message.store or 'store'}>"
    mail["Auto-Submitted"] = "auto-generated"
    return mail


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
    # In a loop of its own, because a server's fast loop starts no process in a group of its own
    # (decision 0022).
    end = await asyncio.to_thread(lambda: asyncio.run(run_handler(command)))
    if not end.reason:
        return ""
    return f"{end.reason}: {end.output.strip()[-PRINTED_MAX:]}".rstrip(": ")


# Webhooks: a document is posted signed, within a time, and only to where a rule may point.
#
# A rule's URL is resolved once and the connection made to the address that was looked at, so
# that a name cannot point elsewhere between the look and the call. Link-local addresses are
# refused, because behind them clouds hand out credentials; so are their few well-known other
# addresses. A redirect is followed only within the same scheme, host and port, and only one
# that keeps the method. The answer's content is not read: nothing of it is needed, and it may
# be endless.
#
# The headers are those of Standard Webhooks: receivers find libraries that check them. The
# signature is over `id.timestamp.body`, so that nothing of it can be taken for another message.


POST_SECONDS_MAX = 10.0
REDIRECTS_MAX = 3
KEEPS_METHOD = (307, 308)
OTHER_REDIRECTS = (301, 302, 303)
DONE_BELOW = 300
SECRET_PREFIX = "whsec_"
# Where clouds answer with credentials beside 169.254.0.0/16 and fe80::/10.
METADATA = ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")
NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Posted(NamedTuple):
    """Holds a document that is sent, without its destination."""

    id: str
    event: str
    at: int  # seconds from 1970
    body: bytes


class NotPosted(Exception):
    """The message was refused, here or at its receiver; the text says why."""


def post(to: Webhook, what: Posted, seconds_max: float = POST_SECONDS_MAX) -> None:
    """Sends a document; raises NotPosted or OSError if it did not arrive. Blocks its thread."""
    url = urlsplit(to.url)
    for _ in range(REDIRECTS_MAX + 1):
        status, reason, location = _exchange(to, url, what, seconds_max)
        if status < DONE_BELOW:
            return
        if status not in (*KEEPS_METHOD, *OTHER_REDIRECTS):
            raise NotPosted(f"{url.netloc} answered {status} {reason}"[:300])
        following = urlsplit(urljoin(url.geturl(), location))
        if status not in KEEPS_METHOD or _origin(following) != _origin(url):
            raise NotPosted(
                f"{url.netloc} answered {status}, a redirect to {_shown(following)}; tidewheel "
                "follows only 307 and 308 to the same scheme, host and port: write the new URL "
                "into the rule"
            )
        url = following
    raise NotPosted(f"{url.netloc} redirects more than {REDIRECTS_MAX} times")


def _exchange(
    to: Webhook, url: SplitResult, what: Posted, seconds_max: float
) -> tuple[int, str, str]:
    host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
    connection = http.client.HTTPConnection(host, port, timeout=seconds_max)
    line = _connect(to, host, port, seconds_max)
    # A receiver that sends a byte from time to time would never be too slow for the socket.
    end = threading.Timer(seconds_max, _hang_up, [line])
    end.daemon = True
    end.start()
    try:
        connection.sock = line
        if url.scheme == "https":
            context = ssl.create_default_context(cafile=to.ca or None)
            connection.sock = context.wrap_socket(line, server_hostname=host)
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request("POST", path, what.body, _headers(to, what))
        answer = connection.getresponse()
        return answer.status, answer.reason, answer.getheader("Location", "")
    except http.client.HTTPException as error:
        raise NotPosted(f"{url.netloc} did not answer in HTTP: {error!r}"[:300]) from error
    finally:
        end.cancel()
        connection.close()
        line.close()


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _connect(to: Webhook, host: str, port: int, seconds_max: float) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    allowed = [one for one in found if to.anywhere or is_allowed(str(one[4][0]))]
    if not allowed:
        seen = ", ".join(sorted({str(one[4][0]) for one in found}))
        raise NotPosted(
            f"{host} is {seen}, an address that may give away secrets of this machine; "
            "write anywhere = true into the rule's `to` to allow this"
        )
    trouble: OSError | None = None
    for family, kind, protocol, _, address in allowed:
        line = socket.socket(family, kind, protocol)
        line.settimeout(seconds_max)
        try:
            line.connect(address)
        except OSError as error:
            line.close()
            trouble = error
        else:
            return line
    assert trouble is not None
    raise NotPosted(f"{host}:{port} cannot be reached: {trouble}") from trouble


def is_allowed(text: str) -> bool:
    """Says whether an address may be called without `anywhere = true` in the rule.

    Link-local and multicast addresses may not, nor those of clouds that hand out credentials.
    """
    address: Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address in NAT64:
            address = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    refused = address.is_link_local or address.is_multicast or address.is_unspecified
    return not refused and str(address) not in METADATA


def _headers(to: Webhook, what: Posted) -> dict[str, str]:
    return {
        **dict(to.headers),
        "Content-Type": "application/json",
        "User-Agent": "tidewheel",
        "Connection": "close",
        "webhook-id": what.id,
        "webhook-timestamp": str(what.at),
        "tidewheel-event": what.event,
        **({"webhook-signature": signature(to.secret, what)} if to.secret else {}),
    }


def signature(secret: str, what: Posted) -> str:
    """Returns the signature by Standard Webhooks 1: HMAC-SHA256 of `id.timestamp.body`."""
    signed = b"%s.%d.%s" % (what.id.encode(), what.at, what.body)
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def _key(secret: str) -> bytes:
    """Returns the key in a secret: decoded if it is `whsec_BASE64`, else its bytes."""
    if secret.startswith(SECRET_PREFIX):
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    return secret.encode()


def _shown(url: SplitResult) -> str:
    """Returns where a redirect leads, without its path, which may hold a secret."""
    return repr(f"{url.scheme}://{url.netloc}"[:200])


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    return url.scheme, url.hostname, url.port
