"""The registry of a server: the same documents, over HTTP."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence

from tidewheel.core.operator.registry import Bundle, RunRequest
from tidewheel.core.operator.views import RunView
from tidewheel.errors import Refused
from tidewheel.ports.registry import Document, Parameters
from tidewheel.store.remote.address import path_of
from tidewheel.store.remote.run_door import SENDING_SECONDS_MAX, bounded, explained
from tidewheel.store.remote.run_values import options_body, run_view
from tidewheel.store.remote.transport import Transport

FOLDERS_MAX = 1_000  # that are sent, for advice about missing ones


class RemoteRegistryDoor:
    """``ports.registry.RegistryDoor`` before a server; who asks is whoever the token says."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def register(
        self, bundles: Sequence[Bundle], *, who: str, strict: bool = False
    ) -> Document:
        del who
        body: Document = {"bundles": [_bundle_body(one) for one in bundles]}
        named = ", ".join(one.file or one.name for one in bundles)
        async with explained(named):
            response = await self._transport.call(
                "POST",
                "/workflows",
                query={"strict": True} if strict else None,
                body=bounded(body),
                again=True,  # the same twice is as once
                seconds_max=SENDING_SECONDS_MAX,
            )
        return response.read(Document)

    async def list(self, name: str = "") -> Document:
        query = {"name": name} if name else None
        return (await self._transport.call("GET", "/workflows", query=query)).read(Document)

    async def show(self, name: str, version: str = "") -> Document:
        return (await self._transport.call("GET", _path(name, version))).read(Document)

    async def check(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        return await self._tried(name, version, parameters, "check")

    async def render(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        return await self._tried(name, version, parameters, "render")

    async def _tried(
        self, name: str, version: str, parameters: Parameters | None, what: str
    ) -> Document:
        body: Document = {} if parameters is None else {"parameters": dict(parameters)}
        async with explained(f"{name}/{version}" if version else name):
            response = await self._transport.call(
                "POST",
                _path(name, version, what),
                body=bounded(body),
                again=True,
                seconds_max=SENDING_SECONDS_MAX,
            )
        return response.read(Document)

    async def remove(self, name: str, version: str = "") -> Document:
        return (await self._transport.call("DELETE", _path(name, version))).read(Document)

    async def begin(self, asked: RunRequest) -> RunView:
        body: Document = {
            "workflow": asked.workflow,
            "version": asked.version,
            "parameters": dict(asked.parameters),
            "options": options_body(asked.options),
            "name": asked.name,
            "queue": asked.queue,
        }
        async with explained(str(asked)):
            response = await self._transport.call(
                "POST",
                "/runs",
                body=bounded(body),
                # With a key: a request whose answer was lost makes no second run.
                key=asked.request or secrets.token_hex(16),
                seconds_max=SENDING_SECONDS_MAX,
            )
        return run_view(response.json["run"])


def _path(name: str, version: str, *rest: str) -> str:
    return path_of("workflows", name, *([version] if version else []), *rest)


def _bundle_body(bundle: Bundle) -> Document:
    for path in bundle.files:
        if not path.isprintable():  # also what is no Unicode
            raise Refused(f"the name of {path!r} cannot be sent; rename the file")
    return {
        "files": {
            path: {"base64": base64.b64encode(content).decode()}
            for path, content in bundle.files.items()
        },
        "executable": sorted(bundle.executable),
        "name": bundle.name,
        "version": bundle.version,
        "file": bundle.file,
        "folder": bundle.folder,
        "folders": sorted(bundle.folders)[:FOLDERS_MAX],
    }
