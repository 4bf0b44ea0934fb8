"""Asks a server about runs, workflows, blocks and objects: the same answers, over HTTP."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote

import msgspec

from tidewheel.api.operation import ServiceName
from tidewheel.api.views import STATE, VIEWS, no_view
from tidewheel.api.wire import instant
from tidewheel.core.graph.findings import InvalidDefinition, finding_of
from tidewheel.core.operator.blocks import InvalidSbi
from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition, StoredFile
from tidewheel.core.operator.registry import Bundle, RunRequest
from tidewheel.core.operator.verbs import Command, command_text
from tidewheel.core.operator.views import RunView, only_run
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant
from tidewheel.errors import NotFound, PayloadTooLarge, Refused
from tidewheel.ports.runs import (
    ANSWER_SECONDS_MAX,
    LOG_BYTES_MAX,
    Answer,
    Arguments,
    BlockDoor,
    Document,
    LogPart,
    LogPlace,
    RegistryDoor,
)
from tidewheel.store.remote.connection import Query, path_of
from tidewheel.store.remote.operations import BODY_BYTES_MAX, ServerPart, asks
from tidewheel.store.remote.transport import Response, Transport

NOT_TOLD = Instant(float("inf"))  # until when a run is held; whether it is, is told
_NAMES = {"count": "limit", "window": "n"}  # as a server calls them


class SentFile(msgspec.Struct):
    """A file of a definition, in base64."""

    path: str
    content: str
    executable: bool


class SentDefinition(msgspec.Struct):
    """Holds the definition of a run as it is sent."""

    digest: str
    workflow: str
    kind: str
    text: str
    variables: list[str]
    files: list[SentFile]


def query_of(arguments: Mapping[str, object]) -> Query:
    """Returns the arguments of a view as parameters of a URL; leaves out what is empty."""
    found: dict[str, str | int | float | bool | None] = {}
    for name, value in arguments.items():
        if name == "ids":
            value = _joined(value)  # noqa: PLW2901 - the same in another form
        if isinstance(value, str | int | float) and value is not False and value != "":
            found[_NAMES.get(name, name)] = value
    return found


def _joined(ids: object) -> str:
    if not isinstance(ids, list | tuple) or not all(isinstance(one, str) for one in ids):
        raise Refused(f"ids must be a list of texts, not {json.dumps(ids)}")
    if any("," in one for one in ids):
        raise Refused("an id has no comma in it; name several as several words")
    return ",".join(ids)


def run_view(facts: Mapping[str, Any]) -> RunView:
    """Makes a run's view of what a server tells of it."""
    options = facts.get("options") or {}
    scheduler = facts["scheduler"]
    return RunView(
        number=facts["number"],
        name=facts["name"],
        workflow=facts["workflow"],
        definition=facts["definition"],
        options=msgspec.convert(options, RunOptions),
        folder=facts["folder"],
        queue=facts["queue"],
        status=facts["status"],
        reason=facts["reason"],
        epoch=0,
        batch=0,
        owner=None
        if scheduler is None
        else HostProcess(host=scheduler["host"], boot_id="", pid=scheduler["pid"], started=0.0),
        deadline_at=NOT_TOLD if facts["driven"] else None,
        created_at=instant(facts["created_at"]),
        updated_at=instant(facts["updated_at"]),
        ended_at=instant(facts["ended_at"]) if facts["ended_at"] else None,
        given=RunOptions(mode="") if facts.get("offered") else None,
    )


def options_body(options: RunOptions) -> Document:
    """Returns the options that differ from those of a run of which nothing is said."""
    said = asdict(options)
    said["stall_timeout"] = said.pop("stall_timeout_seconds")
    unsaid = asdict(RunOptions(mode="")) | {"stall_timeout": None}
    return {name: value for name, value in said.items() if value != unsaid[name]}


def definition_body(definition: StoredDefinition) -> Document:
    for one in definition.files:
        if not one.path.isprintable():  # also what is no Unicode
            raise Refused(f"the name of {one.path!r} cannot be sent; rename the file")
    return {
        "workflow": definition.workflow,
        "kind": definition.kind,
        "text": definition.text,
        "variables": json.loads(definition.variables),
        "files": [
            {
                "path": one.path,
                "content": base64.b64encode(one.content).decode(),
                "executable": one.executable,
            }
            for one in definition.files
        ],
    }


def definition_of(sent: SentDefinition) -> StoredDefinition:
    return StoredDefinition(
        digest=sent.digest,
        workflow=sent.workflow,
        kind=sent.kind,
        text=sent.text,
        variables=json.dumps(sent.variables),
        files=tuple(
            StoredFile(one.path, base64.b64decode(one.content), one.executable)
            for one in sent.files
        ),
    )


def log_part(response: Response) -> LogPart:
    """Returns a part of a log; the headers of the answer say which part of which log it is."""
    said = {
        name.removeprefix("x-log-"): unquote(value)
        for name, value in response.headers.items()
        if name.startswith("x-log-")
    }
    numbers = {name: int(said[name]) for name in ("submit", "attempt") if name in said}
    return LogPart(
        LogPlace(
            said.get("id"), numbers.get("submit"), numbers.get("attempt"), said.get("path", "")
        ),
        response.body,
        int(said.get("offset", 0)),
        int(said.get("size", 0)),
        found=said.get("found") == "true",
        over=said.get("over") == "true",
    )


# The views, commands and logs of runs.


RUNS_MAX = 1_000
SERVER_WAIT_SECONDS_MAX = 60.0
LOG_WAIT_SECONDS_MAX = 25.0
SPARE_SECONDS = 15.0  # for the way, beyond what the server waits
SENDING_SECONDS_MAX = 120.0


class RemoteRunDoor:
    """Is ``ports.runs.RunDoor`` over HTTP; the server knows the caller by the token."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    # ---- looking ----

    async def find(self, text: str = "") -> RunView:
        if text:
            return run_view((await self.look("facts", {"run": text}))["run"])  # type: ignore[arg-type]
        found: Any = (await self.look("runs", {"count": RUNS_MAX}))["runs"]
        return only_run([run_view(one) for one in found], Instant(0.0))

    async def look(self, name: str, arguments: Arguments) -> Document:
        asked = dict(arguments)
        if name == "runs":
            asked.pop("run", None)
            return await self._get("/runs", query_of(asked))
        run = str(asked.pop("run", "") or "")
        if name == "log":
            return await self._log_document(run, asked)
        if name == "dry-run":
            return await self._tried(run, asked.get("command"))
        if name not in VIEWS:
            raise no_view(name)
        try:
            found = await self._get(path_of("runs", run) + VIEWS[name].path, query_of(asked))
            return {
                key: value for key, value in found.items() if key not in told_to_pages(name)
            }
        except NotFound as error:
            if name != STATE:
                raise
            # Of a run that is yet to come, as a store answers it.
            selector = str(asked.get("id") or "").partition(":")[2]
            return {"run": "", "reason": str(error), "selector": selector, "tasks": []}

    async def _get(self, path: str, query: Query | None = None) -> Document:
        return (await self._transport.call("GET", path, query=query)).read(Document)

    async def _tried(self, run: str, command: object) -> Document:
        path = path_of("runs", run, "dry-run")
        response = await self._transport.call(
            "POST", path, body={"command": command}, again=True
        )
        return response.read(Document)

    async def _log_document(self, run: str, wish: Document) -> Document:
        bytes_max = wish.pop("bytes_max", None)
        wish.pop("awaited", None)
        limit = bytes_max if isinstance(bytes_max, int) else LOG_BYTES_MAX
        part = await self.log_part(run, wish, bytes_max=limit)
        return {
            "run": (await self.find(run)).name,
            **part.place._asdict(),
            "files": [],
            "text": part.content.decode(errors="replace"),
            "cut": part.offset > 0,
        }

    async def log_part(
        self,
        run: str,
        wish: Arguments,
        *,
        offset: int | None = None,
        bytes_max: int = LOG_BYTES_MAX,
        wait_seconds: float = 0.0,
    ) -> LogPart:
        seconds = min(wait_seconds, LOG_WAIT_SECONDS_MAX)
        span = {"offset": offset, "limit": bytes_max, "wait_s": seconds or None}
        response = await self._transport.call(
            "GET",
            path_of("runs", run, "log"),
            query={**query_of(wish), **span},
            seconds_max=seconds + SPARE_SECONDS,
        )
        return log_part(response)

    async def definition(self, run: str) -> StoredDefinition:
        response = await self._transport.call("GET", path_of("runs", run, "definition"))
        return definition_of(response.read(SentDefinition))

    # ---- commands ----

    async def give(
        self, run: str, command: Command, *, who: str, seconds_max: float = ANSWER_SECONDS_MAX
    ) -> Answer:
        del who
        seconds = min(max(seconds_max, 0.001), SERVER_WAIT_SECONDS_MAX)
        return await self._give(run, command, seconds)

    async def post(self, run: str, command: Command, *, who: str) -> int:
        del who
        return (await self._give(run, command, 0.0)).number

    async def _give(self, run: str, command: Command, seconds: float) -> Answer:
        said = json.loads(command_text(command))
        response = await self._transport.call(
            "POST",
            path_of("runs", run, said.pop("verb")),
            query={"wait_s": seconds},
            body=said,
            seconds_max=seconds + SPARE_SECONDS,
        )
        made = response.json
        return Answer(made["run"], made["number"], made["verb"], made["answer"])

    # ---- beginning and ending ----

    async def begin(self, new: NewRun, definition: StoredDefinition) -> RunView:
        body: Document = {
            "definition": definition_body(definition),
            "options": options_body(new.options),
            "name": new.name,
            "queue": new.queue,
            "folder": new.folder,
        }
        # With a key: a request whose answer was lost makes no second run.
        key = new.request or secrets.token_hex(16)
        async with explained(definition.workflow):
            response = await self._transport.call(
                "POST",
                "/runs",
                body=bounded(body),
                key=key,
                seconds_max=SENDING_SECONDS_MAX,
            )
        return run_view(response.json["run"])

    async def carry_on(self, run: str, given: RunOptions) -> RunView:
        response = await self._transport.call(
            "POST",
            path_of("runs", run, "carry-on"),
            body={"options": options_body(given)},
            again=True,
            seconds_max=SENDING_SECONDS_MAX,
        )
        return run_view(response.json["run"])

    async def save_definition(self, run: str, definition: StoredDefinition) -> str:
        async with explained(definition.workflow):
            response = await self._transport.call(
                "POST",
                path_of("runs", run, "definitions"),
                body=bounded(definition_body(definition)),
                again=True,
                seconds_max=SENDING_SECONDS_MAX,
            )
        return str(response.json["digest"])

    async def delete(self, run: str) -> RunView:
        view = await self.find(run)
        await self._transport.call("DELETE", path_of("runs", view.name))
        return view


def told_to_pages(name: str) -> tuple[str, ...]:
    """Returns the fields that a server adds to a view for pages.

    Pages ask for the differences to what they have.
    """
    return ("version", "since", "gone") if name == "graph" else ()


def bounded(body: Document) -> bytes:
    sent = msgspec.json.encode(body)
    if len(sent) > BODY_BYTES_MAX:
        raise PayloadTooLarge("the definition with its files", len(sent), BODY_BYTES_MAX)
    return sent


@asynccontextmanager
async def explained(
    workflow: str, kind: type[InvalidDefinition] = InvalidDefinition
) -> AsyncIterator[None]:
    """Raises what the server finds wrong with a definition as it would be raised here."""
    try:
        yield
    except Refused as refused:
        if refused.code != InvalidDefinition.code:
            raise
        findings = getattr(refused, "findings", ())
        raise kind(workflow, map(finding_of, findings)) from None


# Registered workflows.


FOLDERS_MAX = 1_000  # that are sent, for advice about missing ones


class RemoteRegistryDoor(ServerPart):
    """Is ``ports.registry.RegistryDoor`` over HTTP; the token tells the server who calls."""

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

    list = asks(RegistryDoor.list, ServiceName.REGISTRY)
    show = asks(RegistryDoor.show, ServiceName.REGISTRY)
    check = asks(RegistryDoor.check, ServiceName.REGISTRY)
    render = asks(RegistryDoor.render, ServiceName.REGISTRY)
    remove = asks(RegistryDoor.remove, ServiceName.REGISTRY)

    async def ask(self, service: ServiceName, name: str, given: Mapping[str, object]) -> Any:  # noqa: ANN401 - the row says it
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
    """Is ``ports.blocks.BlockDoor`` over HTTP; the server knows the caller by the token."""

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

    sbis = asks(BlockDoor.sbis, ServiceName.BLOCKS)
    sbi = asks(BlockDoor.sbi, ServiceName.BLOCKS)
    blocks = asks(BlockDoor.blocks, ServiceName.BLOCKS)
    block = asks(BlockDoor.block, ServiceName.BLOCKS)
    abort = asks(BlockDoor.abort, ServiceName.BLOCKS)
    objects = asks(BlockDoor.objects, ServiceName.BLOCKS)
    remove_object = asks(BlockDoor.remove_object, ServiceName.BLOCKS)

    async def post_objects(
        self, objects: Mapping[str, Mapping[str, object]], *, who: str
    ) -> Document:
        del who
        body = [{"name": name, "facts": dict(facts)} for name, facts in objects.items()]
        response = await self.transport.call(
            "POST", "/objects", body={"objects": body}, again=True
        )
        return response.read(Document)
