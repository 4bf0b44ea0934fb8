"""Defines commands of people at a server: login, logout, session."""

from __future__ import annotations

import asyncio
import hmac
import html
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import click

from tidewheel.api.wire import document
from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.output import note, plural, safe, say_found
from tidewheel.cli.session import Session, option
from tidewheel.cli.session import session_command as command_of_session
from tidewheel.core.queue.access import TokenKind, TokenView
from tidewheel.core.queue.tokens import challenge_of
from tidewheel.credentials import is_safe_url
from tidewheel.errors import Refused
from tidewheel.vocabulary import time_text

if TYPE_CHECKING:
    from pathlib import Path

    from tidewheel.client import AsyncClient
    from tidewheel.store.remote.transport import Transport

Told = dict[str, Any]
WAIT_SECONDS_MAX = 900.0  # for somebody who signs in elsewhere
INTERVAL_SECONDS_MAX = 60.0
SLOW_DOWN_SECONDS = 5.0  # RFC 8628, 3.5
REQUEST_SECONDS_MAX = 10.0
HEAD_BYTES_MAX = 16 * 1024
CALLBACK = "/callback"


@command_of_session(
    "login",
    "login https://tidewheel.example.org",
    "tasks --server https://tidewheel.example.org     uses this sign-in",
)
@click.argument("server", required=False)
def login_command(session: Session, server: str | None) -> int:
    """Sign in at SERVER with your account in your organisation.

    Prints an address to open in a browser, and waits until you have signed in there. The token
    that SERVER then issues lasts for hours. It is kept in the state directory, and every
    command that names this server uses it.
    """
    from tidewheel.client.tokens import write_private
    from tidewheel.wiring.machine import make_private_directory

    url, path = _login_place(session, server)
    told = asyncio.run(_sign_in(url))
    stored = told["stored"]
    lasts = _seconds(stored["expires_at"]) - _seconds(stored["created_at"])
    make_private_directory(path.parent)
    ends_at = time.time() + lasts  # noqa: TID251 - on the clock of this machine
    write_private(f"{told['token']}\n{ends_at:.0f}", path)
    shown = {"server": url, "person": stored["name"], "expires_at": stored["expires_at"]}
    until = safe(stored["expires_at"])
    words = f"signed in at {safe(url)} as {safe(stored['name'])}, until {until}"
    return session.answer(shown, lambda _: note(words))


@command_of_session("logout", "logout https://tidewheel.example.org")
@click.argument("server", required=False)
def logout_command(session: Session, server: str | None) -> int:
    """Sign out: end the session of `tidewheel login` at SERVER, and remove its token."""
    from tidewheel.core.queue.tokens import split_token
    from tidewheel.credentials import credentials
    from tidewheel.errors import TidewheelError

    url, path = _login_place(session, server)
    known = credentials(url)
    split = split_token(known.token or "") if known.origin == str(path) else None
    words, ended, status = "this machine has no session at this server", False, ExitCode.DONE
    try:
        if split is not None:
            at_server = session._replace(store=url)
            at_server.ask(lambda client: client.store.end_session(split[0]))
            words, ended = "signed out", True
    except TidewheelError as error:
        words = f"the token is removed from this machine, but {url} did not end the "
        words += f"session: {error}"
        status = ExitCode.REFUSED if isinstance(error, Refused) else ExitCode.UNAVAILABLE
    path.unlink(missing_ok=True)
    session.answer({"server": url, "ended": ended}, lambda _: note(safe(words)))
    return status


def _login_place(session: Session, server: str | None) -> tuple[str, Path]:
    from tidewheel.client.tokens import server_url
    from tidewheel.config import home_directory
    from tidewheel.credentials import login_file_of

    url = server_url(server or session.store).rstrip("/")
    if not is_safe_url(url):
        raise click.UsageError(
            f"cannot sign in at {safe(url)}; expected the address of one server: https://HOST"
        )
    return url, home_directory() / login_file_of(url)


def _seconds(text: str) -> float:
    from tidewheel.api.wire import instant

    return instant(text)


async def _sign_in(url: str) -> Told:
    from tidewheel.credentials import credentials
    from tidewheel.store.remote.transport import Transport

    transport = Transport(url, ca=credentials(url).ca)
    try:
        ways: Told = (await transport.call("GET", "/sign-in")).json
        if ways["issuer"] is None:
            raise Refused(
                f"{url} has no sign-in for command lines; ask its admin for a token, "
                "and set TIDEWHEEL_TOKEN"
            )
        return await (_by_device(transport) if ways["device"] else _by_code(transport, ways))
    finally:
        await transport.close()


async def _token(transport: Transport, body: Told) -> Told:
    told: Told = (await transport.call("POST", "/sign-in/token", body=body)).json
    return told


async def _by_device(transport: Transport) -> Told:
    """Waits until somebody has typed a code at the provider; returns the token (RFC 8628)."""
    begun = (await transport.call("POST", "/sign-in/device", body={})).json
    whole = begun["verification_uri_complete"]
    note(f"open {safe(begun['verification_uri'])} and type {safe(begun['user_code'])}")
    if whole:
        note(f"or open {safe(whole)}")
    interval = float(begun["interval"])
    ends_at = time.monotonic() + min(float(begun["expires_in"]), WAIT_SECONDS_MAX)
    while time.monotonic() < ends_at:
        await asyncio.sleep(min(interval, INTERVAL_SECONDS_MAX))
        told = await _token(transport, {"device_code": begun["device_code"]})
        if told["token"] is not None:
            return told
        interval += SLOW_DOWN_SECONDS if told["waits"] == "slow_down" else 0.0
    raise Refused("the time to sign in is over; start again: tidewheel login")


async def _by_code(transport: Transport, ways: Told) -> Told:
    """Waits until the provider has sent a browser of this machine to a port of ours; returns
    the token (RFC 8252)."""
    if not is_safe_url(ways["authorization_endpoint"]):
        raise Refused(
            "the address of the server's sign-in provider is not https; tell the server's admin"
        )
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    came: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
    listening = await asyncio.start_server(
        lambda reader, writer: _answer_browser(reader, writer, state, came),
        "127.0.0.1",
        0,
        limit=HEAD_BYTES_MAX,
    )
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        redirect_uri = f"http://127.0.0.1:{port}{CALLBACK}"
        asked = {
            "response_type": "code",
            "client_id": ways["client_id"],
            "redirect_uri": redirect_uri,
            "scope": ways["scope"],
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        address = ways["authorization_endpoint"]
        joint = "&" if urlsplit(address).query else "?"
        note(f"open in a browser of this machine: {safe(address + joint + urlencode(asked))}")
        try:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                told = await came
        except TimeoutError:
            raise Refused("the time to sign in is over; start again: tidewheel login") from None
    if "code" not in told:
        raise Refused(
            f"the provider did not sign you in: {told.get('error', 'it sent no code')}"
        )
    body = {"code": told["code"], "verifier": verifier, "nonce": nonce}
    return await _token(transport, body | {"redirect_uri": redirect_uri})


async def _answer_browser(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    state: str,
    came: asyncio.Future[Told],
) -> None:
    """Answers one request; the one with our state says how the sign-in went."""
    status, words = "404 Not Found", "There is nothing here."
    try:
        async with asyncio.timeout(REQUEST_SECONDS_MAX):
            head = await reader.readuntil(b"\r\n\r\n")
        target = urlsplit(head.split(b" ", 2)[1].decode("ascii", "replace"))
        asked = {name: given[0] for name, given in parse_qs(target.query).items()}
        is_ours = hmac.compare_digest(asked.get("state", "").encode(), state.encode())
        if target.path == CALLBACK and is_ours:
            status, words = "200 OK", "You can close this page and go back to the terminal."
            if not came.done():
                came.set_result(asked)
    except (TimeoutError, OSError, ValueError, IndexError, EOFError, asyncio.LimitOverrunError):
        pass  # a stranger, or a browser that changed its mind
    page = f"<!doctype html><title>tidewheel</title><p>{html.escape(words)}</p>".encode()
    lines = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nConnection: close\r\n"
    writer.write(f"{lines}Content-Length: {len(page)}\r\n\r\n".encode() + page)
    writer.close()


@command_of_session(
    "session",
    "session list",
    "session end 7",
    "session end --all                 all that `session list` shows",
    "session end --person ada@example.org",
)
@click.argument("action", type=click.Choice(["list", "end"]))
@click.argument("number", type=int, required=False)
@option("--all everything", "With end: every session that `session list` shows.")
@option(
    "--person NAME", "List or end only sessions of this person, or of the token of this name."
)
def session_command(
    session: Session, action: str, number: int | None, *, everything: bool, person: str | None
) -> int:
    """List open sessions, of browsers and of `tidewheel login`, or end some of them.

    At a server you see your own sessions; an admin sees all sessions. Within a second after
    you end a session, the server refuses its requests.
    """
    if action == "list":
        if number is not None or everything:
            raise click.UsageError(
                "`session list` takes neither a number nor --all; try --person NAME"
            )
        return _list_sessions(session, person)
    if [number is not None, everything, person is not None].count(True) != 1:
        raise click.UsageError(
            "say which sessions to end: tidewheel session end NUMBER, --all or --person NAME"
        )

    async def end(client: AsyncClient) -> list[TokenView]:
        if number is not None:
            return [await client.store.end_session(number)]
        found = await client.store.sessions()
        chosen = [one for one in found if person is None or one.name == person]
        # The newest last: it may be the one that asks.
        return [await client.store.end_session(one.number) for one in chosen[::-1]]

    ended = session.ask_existing(end)
    return session.answer(
        {"ended": [document(view) for view in ended]},
        lambda _: note(f"{plural(len(ended), 'session')} ended"),
    )


def _list_sessions(session: Session, person: str | None) -> int:
    found = session.ask(lambda client: client.store.sessions())
    found = [one for one in found if person is None or one.name == person]
    columns: dict[str, Callable[[TokenView], str]] = {
        "SESSION": lambda view: str(view.number),
        "WHO": lambda view: view.name,
        "BY": lambda view: "token" if view.identity is None else view.identity.source,
        "IN": lambda view: "browser" if view.kind is TokenKind.SESSION else "command line",
        "BEGAN": lambda view: time_text(view.created_at) or "",
        "USED": lambda view: time_text(view.used_at) or "never",
        "ENDS": lambda view: time_text(view.expires_at) or "",
    }
    return session.answer(
        {"sessions": [document(view) for view in found]},
        lambda _: say_found(found, columns, "no session is open", drop=("BEGAN", "USED")),
    )
