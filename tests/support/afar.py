"""Workers that know nothing but a server, and a network between them that can be harmed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.kit.tcp_proxy import TcpProxy
from tests.support.fleet import Fleet, Program
from tests.support.http_server import Caller
from tests.support.patience import eventually
from tests.support.ports import free_port
from tidewheel.client.tokens import make_token
from tidewheel.core.queue.access import EVERYTHING, Grant, Scope
from tidewheel.wiring.stores import is_embedded, opened_store

ANSWERING = re.compile(r"answering at (http://\S+?);")


class Afar(Fleet):
    """A server beside its store, a proxy before it, and workers with homes of their own."""

    def __init__(self, folder: Path, store: str | None) -> None:
        super().__init__(folder, store)
        self._callers: dict[tuple[str, ...], Caller] = {}
        self.token = self.new_token("worker")
        self.server = self.start_server(str(free_port()))
        try:
            self.url = self._url()
        except BaseException:
            self.end()  # nobody has us yet who could
            raise
        where = urlsplit(self.url)
        assert where.hostname and where.port
        self.proxy = TcpProxy(where.hostname, where.port)
        if not is_embedded(self.store):
            self.monitor()

    def start_server(self, port: str) -> Program:
        return self.start("server", "--port", port)

    def restart_server(self) -> None:
        """A new one where the old one was."""
        self.server = self.start_server(str(urlsplit(self.url).port))
        self.server.says("answering at")

    def _url(self) -> str:
        found = eventually(lambda: ANSWERING.search(self.server.log), "the server answers")
        return found[1]

    def new_token(self, *scopes: str) -> str:
        async def make() -> str:
            async with opened_store(self.store) as store:
                grant = Grant(scopes=frozenset(map(Scope, scopes)), names=EVERYTHING)
                return (await make_token(store, "a test", grant))[0]

        return asyncio.run(make())

    def caller(self, *scopes: str) -> Caller:
        """Somebody who speaks to the server past the proxy; the same one when asked again,
        since those who wait ask often, and a new token opens the store."""
        if scopes not in self._callers:
            token = self.new_token(*scopes)
            self._callers[scopes] = Caller(urlsplit(self.url).netloc, token)
        return self._callers[scopes]

    def home_of(self, name: str) -> Path:
        """Below the fleet's own, so that its jobs are found, and another's all the same."""
        return self.home / name

    def worker_afar(self, name: str, *arguments: str, **environment: str) -> Program:
        """A worker on another machine, as far as it can tell."""
        told = {
            "TIDEWHEEL_STORE": "",
            "TIDEWHEEL_SERVER": f"http://{self.proxy.address}",
            "TIDEWHEEL_TOKEN": self.token,
            "TIDEWHEEL_HOME": str(self.home_of(name)),
        }
        return self.worker(*arguments, **told | environment)


@contextmanager
def afar(folder: Path, store: str | None) -> Iterator[Afar]:
    """For the length of a `with` block."""
    made = Afar(folder, store)
    try:
        with made.proxy:
            yield made
    finally:
        made.end()
