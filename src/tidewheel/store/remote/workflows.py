"""Asks a server about registered workflows, scheduling and processing blocks, and objects."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from tidewheel.api.operations import Service
from tidewheel.core.operator.blocks import InvalidSbi
from tidewheel.core.operator.registry import Bundle, RunRequest
from tidewheel.core.operator.views import RunView
from tidewheel.errors import PayloadTooLarge, Refused
from tidewheel.ports.blocks import BlockDoor
from tidewheel.ports.registry import Document, RegistryDoor
from tidewheel.store.remote.encode import BODY_BYTES_MAX
from tidewheel.store.remote.operations import ServerPart, asks
from tidewheel.store.remote.runs import (
    SENDING_SECONDS_MAX,
    bounded,
    explained,
    options_body,
    run_view,
)

FOLDERS_MAX = 1_000  # that are sent, for advice about missing ones


class RemoteRegistryDoor(ServerPart):
    """``ports.registry.RegistryDoor`` over HTTP; the server knows the caller by the token."""

    async def register(
        self, bundles: Sequence[Bundle], *, who: str, strict: bool = False
    ) -> Document:
        del who
        body: Document = {"bundles": [_bundle_body(one) for one in bundles]}
        named = ", ".join(one.file or one.name for one in bundles)
        async with explained(named):
            response = await self.transport.call(
                "POST",
                "/workflows",
                query={"strict": True} if strict else None,
                body=bounded(body),
                again=True,  # the same twice is as once
                seconds_max=SENDING_SECONDS_MAX,
            )
        return response.read(Document)

    list = asks(RegistryDoor.list, Service.REGISTRY)
    show = asks(RegistryDoor.show, Service.REGISTRY)
    check = asks(RegistryDoor.check, Service.REGISTRY)
    render = asks(RegistryDoor.render, Service.REGISTRY)
    remove = asks(RegistryDoor.remove, Service.REGISTRY)

    async def ask(self, service: Service, name: str, given: Mapping[str, object]) -> Any:  # noqa: ANN401 - the row says it
        named = (str(given.get(one) or "") for one in ("name", "version"))
        async with explained("/".join(filter(None, named))):
            return await super().ask(service, name, given)

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
            response = await self.transport.call(
                "POST",
                "/runs",
                body=bounded(body),
                # With a key: a request whose answer was lost makes no second run.
                key=asked.request or secrets.token_hex(16),
                seconds_max=SENDING_SECONDS_MAX,
            )
        return run_view(response.json["run"])


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


class RemoteBlockDoor(ServerPart):
    """``ports.blocks.BlockDoor`` over HTTP; the server knows the caller by the token."""

    async def submit_sbi(self, file: str, content: bytes, *, who: str) -> Document:
        del who
        if len(content) > BODY_BYTES_MAX:
            raise PayloadTooLarge("the instance", len(content), BODY_BYTES_MAX)
        kind = JSON if file.endswith(".json") else YAML
        async with explained(file, InvalidSbi):
            response = await self.transport.call(
                "POST",
                "/sbis",
                query={"file": file[-FILE_LENGTH_MAX:]},
                body=content or b" ",
                headers={"content-type": kind},
                again=True,  # the same twice is as once
                seconds_max=SENDING_SECONDS_MAX,
            )
        return response.read(Document)

    sbis = asks(BlockDoor.sbis, Service.BLOCKS)
    sbi = asks(BlockDoor.sbi, Service.BLOCKS)
    blocks = asks(BlockDoor.blocks, Service.BLOCKS)
    block = asks(BlockDoor.block, Service.BLOCKS)
    abort = asks(BlockDoor.abort, Service.BLOCKS)
    objects = asks(BlockDoor.objects, Service.BLOCKS)
    remove_object = asks(BlockDoor.remove_object, Service.BLOCKS)

    async def post_objects(
        self, objects: Mapping[str, Mapping[str, object]], *, who: str
    ) -> Document:
        del who
        body = [{"name": name, "facts": dict(facts)} for name, facts in objects.items()]
        response = await self.transport.call(
            "POST", "/objects", body={"objects": body}, again=True
        )
        return response.read(Document)
