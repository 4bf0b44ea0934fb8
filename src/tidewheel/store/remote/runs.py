"""Asks a server about runs, workflows, blocks and objects: with the same answers as a store."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, TypedDict, Unpack
from urllib.parse import unquote

import msgspec

from tidewheel.api.operation import ServiceName
from tidewheel.api.views import STATE, VIEWS, no_view, not_there_yet
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
    Document,
    LogPart,
    LogPlace,
)
from tidewheel.store.remote.connection import Query, path_of
from tidewheel.store.remote.operations import BODY_BYTES_MAX, ServerPart, asks
from tidewheel.store.remote.transport import Response

NOT_TOLD = Instant(float("inf"))  # until when a run is held; whether it is, is told
_NAMES = {"count": "limit", "window": "n"}  # as a server calls them


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
        raise Refused(f"ids must be a list of strings, not {json.dumps(ids)}")
    if any("," in one for one in ids):
        raise Refused("an id cannot contain a comma; give several ids as separate words")
    return ",".join(ids)


def run_view(facts: Mapping[str, Any]) -> RunView:
    """Returns the view of a run from what a server tells of it.

    A server tells neither epoch nor batch, and of the lease only whether it is held.
    """
    shared = ("number", "name", "workflow", "definition", "folder", "queue", "status", "reason")
    process, ended_at = facts["scheduler"], facts["ended_at"]
    if process is not None:
        process = HostProcess(host=process["host"], boot_id="", pid=process["pid"], started=0.0)
    return RunView(
        **{name: facts[name] for name in shared},
        options=msgspec.convert(facts.get("options") or {}, RunOptions),
        epoch=0,
        batch=0,
        owner=process,
        deadline_at=NOT_TOLD if facts["driven"] else None,
        created_at=instant(facts["created_at"]),
        updated_at=instant(facts["updated_at"]),
        ended_at=instant(ended_at) if ended_at else None,
        given=RunOptions(mode="") if facts.get("offered") else None,
    )


def options_body(options: RunOptions) -> Document:
    """Returns the options that somebody has given, by the names that a server has for them."""
    said = asdict(options)
    said["stall_timeout"] = said.pop("stall_timeout_seconds")
    unsaid = asdict(RunOptions(mode="")) | {"stall_timeout": None}
    return {name: value for name, value in said.items() if value != unsaid[name]}


def definition_body(definition: StoredDefinition) -> Document:
    """Returns a definition as it is sent, its files in base64."""
    return {
        "workflow": definition.workflow,
        "kind": definition.kind,
        "text": definition.text,
        "variables": json.loads(definition.variables),
        "files": [
            {"path": sendable(one.path), "content": text_of(one.content)}
            | {"executable": one.executable}
            for one in definition.files
        ],
    }


def _definition_of(said: Any) -> StoredDefinition:  # noqa: ANN401 - JSON of a server
    """Returns a definition as a server sends it."""
    files = tuple(
        StoredFile(one["path"], base64.b64decode(one["content"]), one["executable"])
        for one in said["files"]
    )
    kept = {name: said[name] for name in ("digest", "workflow", "kind", "text")}
    return StoredDefinition(**kept, variables=json.dumps(said["variables"]), files=files)


def sendable(path: str) -> str:
    """Returns the path of a file; raises Refused if JSON cannot hold it."""
    if not path.isprintable():  # also what is no Unicode
        raise Refused(
            f"the path {path!r} has characters that cannot be printed; rename the file"
        )
    return path


def text_of(content: bytes) -> str:
    """Returns bytes in base64."""
    return base64.b64encode(content).decode()


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


class DefinitionSender(ServerPart):
    """Sends definitions to a server, and begins runs of them."""

    async def send(self, path: str, body: Document, workflow: str, **how: Unpack[How]) -> Any:  # noqa: ANN401 - JSON
        """Sends a definition and returns the answer.

        Raises InvalidDefinition with the server's findings, as a store here would.
        """
        sent = msgspec.json.encode(body)
        if len(sent) > BODY_BYTES_MAX:
            raise PayloadTooLarge("the definition with its files", len(sent), BODY_BYTES_MAX)
        async with explained(workflow):
            response = await self.transport.call(
                "POST", path, body=sent, seconds_max=SENDING_SECONDS_MAX, **how
            )
        return response.json

    async def begin_run(
        self, asked: NewRun | RunRequest, named: str, body: Document
    ) -> RunView:
        """Begins a run and returns its view.

        The request has a key: if it is sent again, because its answer was lost, it begins no
        second run.
        """
        told = {
            "options": options_body(asked.options),
            "name": asked.name,
            "queue": asked.queue,
        }
        key = asked.request or secrets.token_hex(16)
        return run_view((await self.send("/runs", body | told, named, key=key))["run"])


class How(TypedDict, total=False):
    """Says how a definition is sent; see ``Transport.call``."""

    query: Query | None
    key: str
    again: bool


class RemoteRunDoor(DefinitionSender):
    """Implements ``ports.runs.RunDoor`` over HTTP; the server knows the caller by the token."""

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
            body = {"command": asked.get("command")}
            path = path_of("runs", run, name)
            tried = await self.transport.call("POST", path, body=body, again=True)
            return tried.read(Document)
        if name not in VIEWS:
            raise no_view(name)
        try:
            found = await self._get(path_of("runs", run) + VIEWS[name].path, query_of(asked))
        except NotFound as error:
            if name != STATE:
                raise
            # Of a run that is yet to come, as a store answers it.
            return not_there_yet(str(error), str(asked.get("id") or ""))
        # A page asks for the differences to the graph that it has.
        for_pages = ("version", "since", "gone") if name == "graph" else ()
        return {key: value for key, value in found.items() if key not in for_pages}

    async def _get(self, path: str, query: Query | None = None) -> Document:
        return (await self.transport.call("GET", path, query=query)).read(Document)

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
        response = await self.transport.call(
            "GET",
            path_of("runs", run, "log"),
            query={**query_of(wish), **span},
            seconds_max=seconds + SPARE_SECONDS,
        )
        return log_part(response)

    async def definition(self, run: str) -> StoredDefinition:
        response = await self.transport.call("GET", path_of("runs", run, "definition"))
        return _definition_of(response.json)

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
        response = await self.transport.call(
            "POST",
            path_of("runs", run, said.pop("verb")),
            query={"wait_s": seconds},
            body=said,
            seconds_max=seconds + SPARE_SECONDS,
        )
        made = response.json
        return Answer(made["run"], made["number"], made["verb"], made["answer"])

    # ---- beginning and ending ----

    async def begin(
        self, new: NewRun, definition: StoredDefinition, *, is_checked: bool = False
    ) -> RunView:
        del is_checked  # the server reads it in any case
        body: Document = {"definition": definition_body(definition), "folder": new.folder}
        return await self.begin_run(new, definition.workflow, body)

    async def carry_on(self, run: str, given: RunOptions) -> RunView:
        response = await self.transport.call(
            "POST",
            path_of("runs", run, "carry-on"),
            body={"options": options_body(given)},
            again=True,
            seconds_max=SENDING_SECONDS_MAX,
        )
        return run_view(response.json["run"])

    async def save_definition(self, run: str, definition: StoredDefinition) -> str:
        path, body = path_of("runs", run, "definitions"), definition_body(definition)
        return str((await self.send(path, body, definition.workflow, again=True))["digest"])

    async def delete(self, run: str) -> RunView:
        view = await self.find(run)
        await self.transport.call("DELETE", path_of("runs", view.name))
        return view


@asynccontextmanager
async def explained(
    workflow: str, kind: type[InvalidDefinition] = InvalidDefinition
) -> AsyncIterator[None]:
    """Turns a server's refusal of a definition into InvalidDefinition, with its findings.

    So callers see what a store here would raise.
    """
    try:
        yield
    except Refused as refused:
        if refused.code != InvalidDefinition.code:
            raise
        findings = getattr(refused, "findings", ())
        raise kind(workflow, map(finding_of, findings)) from None


# Registered workflows.

FOLDERS_MAX = 1_000  # that are sent, for advice about missing ones


@asks(ServiceName.REGISTRY)
class RemoteRegistryDoor(DefinitionSender):
    """Implements ``ports.runs.RegistryDoor`` over HTTP; the token tells who calls."""

    async def register(
        self, bundles: Sequence[Bundle], *, who: str, strict: bool = False
    ) -> Document:
        del who
        body: Document = {"bundles": [_bundle_body(one) for one in bundles]}
        named = ", ".join(one.file or one.name for one in bundles)
        query: Query | None = {"strict": True} if strict else None
        # The same twice is as once.
        told: Document = await self.send("/workflows", body, named, query=query, again=True)
        return told

    async def ask(self, service: ServiceName, name: str, given: Mapping[str, object]) -> Any:  # noqa: ANN401 - the row says it
        named = (str(given.get(one) or "") for one in ("name", "version"))
        async with explained("/".join(filter(None, named))):
            return await super().ask(service, name, given)

    async def definition(self, name: str, version: str = "") -> StoredDefinition:
        if not version:
            shown = await self.ask(ServiceName.REGISTRY, "show", {"name": name})
            version = str(shown["version"])
        place = path_of("workflows", name, version, "definition")
        return _definition_of((await self.transport.call("GET", place)).json)

    async def begin(self, asked: RunRequest) -> RunView:
        body: Document = {"workflow": asked.workflow, "version": asked.version}
        body["parameters"] = dict(asked.parameters)
        return await self.begin_run(asked, str(asked), body)


def _bundle_body(bundle: Bundle) -> Document:
    said = {name: getattr(bundle, name) for name in ("name", "version", "file", "folder")}
    return {
        "files": {
            sendable(path): {"base64": text_of(content)}
            for path, content in bundle.files.items()
        },
        "executable": sorted(bundle.executable),
        "folders": sorted(bundle.folders)[:FOLDERS_MAX],
        **said,
        # Only where there is one: a server of an earlier version does not know it.
        **({"source": asdict(bundle.source)} if bundle.source is not None else {}),
    }


# Blocks and objects.

JSON, YAML = "application/json", "application/yaml"
FILE_LENGTH_MAX = 200  # of a name, the end of which says what it is


@asks(ServiceName.BLOCKS)
class RemoteBlockDoor(ServerPart):
    """Implements ``ports.runs.BlockDoor`` over HTTP; the token tells who calls."""

    async def submit_sbi(
        self, file: str, content: bytes, *, who: str, dry_run: bool = False
    ) -> Document:
        del who
        if len(content) > BODY_BYTES_MAX:
            raise PayloadTooLarge("the instance", len(content), BODY_BYTES_MAX)
        kind = JSON if file.endswith(".json") else YAML
        async with explained(file, InvalidSbi):
            response = await self.transport.call(
                "POST",
                "/sbis",
                query={"file": file[-FILE_LENGTH_MAX:], "dry_run": dry_run},
                body=content or b" ",
                headers={"content-type": kind},
                again=True,  # the same twice is as once
                seconds_max=SENDING_SECONDS_MAX,
            )
        return response.read(Document)

    async def post_objects(
        self, objects: Mapping[str, Mapping[str, object]], *, who: str
    ) -> Document:
        del who
        body = [{"name": name, "facts": dict(facts)} for name, facts in objects.items()]
        response = await self.transport.call(
            "POST", "/objects", body={"objects": body}, again=True
        )
        return response.read(Document)
