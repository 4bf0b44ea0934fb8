"""Sends messages of a job to its server, where the socket of its worker is out of reach.

It imports only the standard library, as ``client`` does. A message carries a key of its own, so
that it can be sent again when no answer came.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from collections.abc import Mapping
from itertools import cycle
from urllib.parse import urlsplit

from tidewheel.errors import Refused, Unavailable
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.runners.sanitize import masked, masked_texts, secrets_in

SERVER, TOKEN, CA = "TIDEWHEEL_SERVER", "TIDEWHEEL_TOKEN", "TIDEWHEEL_CA"
JOB_TOKEN_PREFIX = "twa."
REPLY_SECONDS_MAX = 30.0
REPLY_BYTES_MAX = 64 * 1024
PAUSES_SECONDS = (0.2, 1.0, 3.0, 9.0)
TRY_LATER = frozenset({408, 429, 502, 503, 504})
BAD_FROM = 300


class Voice(NamedTuple):
    """Sends messages of a job to its server, with the job's own token."""

    server: str  # or several, with commas between them
    token: str
    ca: str | None = None

    def say(
        self,
        *,
        text: str,
        output: str | None,
        progress: float | None,
        values: str | None = None,
    ) -> None:
        """Sends a message; raises Refused if refused, Unavailable if no server answers."""
        hidden = masked_texts(secrets_in(os.environ))
        spoken = {"text": masked(text, hidden), "output": output and masked(output, hidden)}
        told = None if values is None else json.loads(masked(values, hidden))
        said = {**spoken, "progress": progress, "values": told}
        body, key = json.dumps(said).encode(), os.urandom(12).hex()
        servers = cycle(self.server.split(","))
        for pause in (*PAUSES_SECONDS, None):
            try:
                return self._post(next(servers), body, key)
            except Unavailable:
                if pause is None:
                    raise
            time.sleep(pause)
        raise AssertionError("the last try says how it went")

    def _post(self, server: str, body: bytes, key: str) -> None:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        }
        where = urlsplit(server.strip())
        path = f"{where.path.rstrip('/')}/api/v1/job/messages"
        connection = self._connection(where.scheme, where.netloc)
        try:
            connection.request("POST", path, body, headers)
            reply = connection.getresponse()
            answer = reply.read(REPLY_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"the server {server} does not answer ({error})") from error
        finally:
            connection.close()
        if reply.status >= BAD_FROM:
            kind = Unavailable if reply.status in TRY_LATER else Refused
            raise kind(_message(answer) or f"the server answered with status {reply.status}")

    def _connection(self, scheme: str, netloc: str) -> http.client.HTTPConnection:
        if scheme != "https":
            return http.client.HTTPConnection(netloc, timeout=REPLY_SECONDS_MAX)
        context = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection(netloc, timeout=REPLY_SECONDS_MAX, context=context)


def own_voice(environ: Mapping[str, str]) -> Voice | None:
    """Returns what sends messages for the job that has this environment.

    None if that names no server, or has no token of a job.
    """
    server, token = environ.get(SERVER, ""), environ.get(TOKEN, "")
    if not server or not token.startswith(JOB_TOKEN_PREFIX):
        return None
    return Voice(server, token, environ.get(CA) or None)


def _message(answer: bytes) -> str:
    try:
        said = json.loads(answer)
    except ValueError:
        return ""
    return str(said.get("message", "")) if isinstance(said, dict) else ""
