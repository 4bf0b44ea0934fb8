"""Asks a server about registered workflows, scheduling and processing blocks, and objects."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence

from tidewheel.core.operator.blocks import InvalidSbi
from tidewheel.core.operator.registry import Bundle, RunRequest
from tidewheel.core.operator.views import RunView
from tidewheel.errors import PayloadTooLarge, Refused
from tidewheel.ports.registry import Document, Parameters
from tidewheel.store.remote.connection import Query, path_of
from tidewheel.store.remote.encode import BODY_BYTES_MAX
from tidewheel.store.remote.runs import (
    SENDING_SECONDS_MAX,
    bounded,
    explained,
    options_body,
    run_view,
)
from tidewheel.store.remote.transport import Transport

FOLDERS_MAX = 1_000  # that are sent, for advice about missing ones


class RemoteRegistryDoor:
    """``ports.registry.RegistryDoor`` over HTTP; the server knows the caller by the token."""

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


# Blocks and objects.


JSON, YAML = "application/json", "application/yaml"
FILE_LENGTH_MAX = 200  # of a name, the end of which says what it is


class RemoteBlockDoor:
    """``ports.blocks.BlockDoor`` over HTTP; the server knows the caller by the token."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    # ---- instances ----

    async def submit_sbi(self, file: str, content: bytes, *, who: str) -> Document:
        del who
        if len(content) > BODY_BYTES_MAX:
            raise PayloadTooLarge("the instance", len(content), BODY_BYTES_MAX)
        kind = JSON if file.endswith(".json") else YAML
        async with explained(file, InvalidSbi):
            response = await self._transport.call(
                "POST",
                "/sbis",
                query={"file": file[-FILE_LENGTH_MAX:]},
                body=content or b" ",
                headers={"content-type": kind},
                again=True,  # the same twice is as once
                seconds_max=SENDING_SECONDS_MAX,
            )
        return response.read(Document)

    async def sbis(self, count: int = 100) -> Document:
        return await self._get("/sbis", {"limit": count})

    async def sbi(self, sbi_id: str) -> Document:
        return await self._get(path_of("sbis", sbi_id))

    # ---- blocks ----

    async def blocks(self, *, sbi: str | None = None, count: int = 100) -> Document:
        return await self._get("/processing-blocks", {"sbi": sbi, "limit": count})

    async def block(self, block_id: str) -> Document:
        return await self._get(path_of("processing-blocks", block_id))

    async def abort(self, block_id: str, *, who: str, reason: str = "") -> Document:
        del who
        response = await self._transport.call(
            "POST",
            path_of("processing-blocks", block_id, "abort"),
            body={"reason": reason},
            again=True,
            seconds_max=SENDING_SECONDS_MAX,
        )
        return response.read(Document)

    # ---- objects ----

    async def post_objects(
        self, objects: Mapping[str, Mapping[str, object]], *, who: str
    ) -> Document:
        del who
        body = [{"name": name, "facts": dict(facts)} for name, facts in objects.items()]
        response = await self._transport.call(
            "POST", "/objects", body={"objects": body}, again=True
        )
        return response.read(Document)

    async def objects(self, *, after: str = "", count: int = 1_000) -> Document:
        return await self._get("/objects", {"after": after or None, "limit": count})

    async def remove_object(self, name: str) -> Document:
        return (await self._transport.call("DELETE", path_of("objects", name))).read(Document)

    async def _get(self, path: str, query: Query | None = None) -> Document:
        return (await self._transport.call("GET", path, query=query)).read(Document)
