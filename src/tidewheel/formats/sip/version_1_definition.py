"""Converts a definition of version 1: the definition itself, and the files of its stages.

Whatever 2.0 has no place for becomes a finding with its place; nothing is left out in silence
but what is empty. The files of a stage are looked for where version 1 looked for them, first of
all in templates/WORKFLOW/VERSION/STAGE/VERSION.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.operator.registry import name_problem
from tidewheel.formats.sip import version_1
from tidewheel.formats.sip.bundle import path_problem
from tidewheel.formats.sip.compose import emit_yaml
from tidewheel.formats.sip.document import (
    KINDS,
    Entry,
    Fields,
    Items,
    Node,
    Scalar,
    is_null,
    plain_value,
)
from tidewheel.formats.sip.keys import SCHEMA_VERSION
from tidewheel.formats.sip.model import name_and_version, stage_id_problem, version_problem
from tidewheel.formats.sip.placeholders import Json
from tidewheel.formats.sip.stage_folder import ARGS, COMPOSE, PARAMETERS
from tidewheel.formats.sip.text_files import (
    JSON_SUFFIX,
    STAGES_FOLDER,
    TEMPLATE_SUFFIX,
    FileName,
    decoded,
    file_name,
)
from tidewheel.formats.sip.version_1_templates import LOST, Rewriter
from tidewheel.lazy_dataclasses import dataclass

TEMPLATES_FOLDER = "templates"
_INDENT = 2
_SIGNS = ("{{", "{%", "{#")
_TEMPLATE = re.compile(
    r"\{[{%][-+]?\s*[\w('\"\[]"
)  # of Jinja2: engines have {{.Name}} themselves
_DEFINITION = ("schema_version", "id", "version", version_1.STAGES)
# "dependencies:" is a slip that the prototype's own files have.
_DEPENDENCIES = ("dependencies", "dependencies:")
_KEPT = ("id", "version", "type", "timeout")
_READ = (*_KEPT, "resources_required", *_DEPENDENCIES, "ee_config", "app_config")
# What the prototype wrote into a stage while it ran.
_OF_A_RUN = frozenset({"resources_assigned", "assigned_resources", "status", "updated"})
Look = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesBeside:
    """Gives the files beside a definition: ``look`` returns one by its path, or None."""

    look: Look
    # templates/WORKFLOW/VERSION: which there are.
    workflows: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedDefinition:
    """Holds a definition of 2.0 with the files of its stages, by path."""

    file: str
    name: str
    version: str
    files: Mapping[str, bytes]


def convert_definition(
    file: str, root: Fields, source: FilesBeside, findings: Findings
) -> ConvertedDefinition:
    """Returns a definition of version 1 as one of 2.0, as far as it can be carried over."""
    return _Conversion(file, root, source, findings).convert()


@dataclass(slots=True)
class _Conversion:
    """Converts one definition."""

    file: str
    root: Fields
    source: FilesBeside
    findings: Findings
    _files: dict[str, bytes] = field(default_factory=dict)
    _leads: tuple[str, ...] = ()

    def convert(self) -> ConvertedDefinition:
        named = name_and_version(file_name(self.file).stem)
        name = self._text("id", name_problem)
        version = self._text("version", version_problem)
        self._leads = self._folders(name, version)
        for entry in self.root:
            if entry.key.text not in _DEFINITION:
                self._lose(f"the key {entry.key.text!r} of the definition", entry)
        stages = self.root.get(version_1.STAGES)
        items = stages.items if isinstance(stages, Items) else ()
        if stages is not None and not isinstance(stages, Items):
            seen = f"stages is {KINDS[type(stages)]}"
            self.findings.error("value-kind", seen, "expected a list", stages.position)
        converted: dict[str, Json] = {"schema_version": SCHEMA_VERSION}
        converted |= {"id": name} if name else {}
        converted |= {"version": version} if version else {}
        found = [self._stage(item, number) for number, item in enumerate(items, 1)]
        converted["stages"] = [one for one in found if one is not None]
        file = self._file_name(name, version, converted)
        text = written(file, converted)
        return ConvertedDefinition(
            file=file,
            name=name or named.name,
            version=version or named.version or "0.0.0",
            files={file: text.encode(), **self._files},
        )

    def _text(self, key: str, problem: Callable[[str], str]) -> str:
        """Returns id or version of the workflow; "" if the name of the file must tell it."""
        node = self.root.get(key)
        if not isinstance(node, Scalar) or is_null(node):
            return ""
        if any(sign in node.text for sign in _SIGNS):
            seen = f"the {key} of the workflow is a template: {node.text}"
            hint = f"it is left out: write a plain {key} here, or put it in the file's name"
            self.findings.warning(LOST, seen, hint, node.position)
            return ""
        if why := problem(node.text):
            seen = f"{node.text!r} cannot be the {key} of a workflow"
            self.findings.error("bad-name", seen, why, node.position)
            return ""
        return node.text

    def _file_name(self, name: str, version: str, converted: Json) -> str:
        """Returns the name of the converted file: as it was, if it tells the workflow's."""
        there = file_name(self.file)
        stem = there.stem
        own, better = name.rpartition("/")[2], f"{name.rpartition('/')[2]}-{version}"
        tells = name_and_version(stem)
        if own and own not in (tells.stem, tells.name) and name_and_version(better).name == own:
            stem = better
        is_template = any(sign in json.dumps(converted) for sign in _SIGNS)
        return f"{stem}{there.suffix}{TEMPLATE_SUFFIX if is_template else ''}"

    def _folders(self, name: str, version: str) -> tuple[str, ...]:
        """Returns the folders in which the templates of this workflow may lie."""
        wanted = f"{TEMPLATES_FOLDER}/{name}/{version}"
        if name and version:
            return (wanted,)
        return tuple(sorted(self.source.workflows))

    # Stages.

    def _stage(self, item: Node, number: int) -> Json:
        if not isinstance(item, Fields):
            seen = f"stage {number} is {KINDS[type(item)]}"
            self.findings.error("stage-kind", seen, "a stage is a mapping", item.position)
            return None
        name, version = (
            one.text if isinstance(one, Scalar) else "" for one in map(item.get, _KEPT[:2])
        )
        what = f"stage {name or number}"
        stage: dict[str, Json] = {}
        for key in _KEPT:
            if (kept := item.get(key)) is not None and not is_null(kept):
                # Keys decide what a value is: a version stays as it was written.
                is_text = isinstance(kept, Scalar) and key == "version"
                stage[key] = kept.text if is_text else plain_value(kept)  # type: ignore[union-attr]
        stage["resources_required"] = [*self._resources(item, what)]
        if dependencies := [*self._dependencies(item, what)]:
            stage["dependencies"] = dependencies
        for entry in item:
            if entry.key.text not in _READ and entry.key.text not in _OF_A_RUN:
                self._lose(f"the key {entry.key.text!r} of {what}", entry)
        if problem := stage_id_problem(name) or version_problem(version):
            seen = f"stage {name!r}, version {version!r}, cannot have a folder in 2.0"
            self.findings.error("bad-name", seen, problem, item.position)
        else:
            self._convert_files(item, name, version)
        return stage

    def _dependencies(self, item: Fields, what: str) -> Iterator[Json]:
        for key in _DEPENDENCIES:
            node = item.get(key)
            if node is None or is_null(node) or plain_value(node) == []:
                continue
            if key != _DEPENDENCIES[0]:
                seen = f"{what} has the key {key!r}, which version 1 ignored"
                hint = "it becomes dependencies: the stage now waits for them"
                self.findings.warning("dependencies-spelling", seen, hint, node.position)
            for one in node.items if isinstance(node, Items) else (node,):
                yield from self._dependency(one, what)

    def _dependency(self, item: Node, what: str) -> Iterator[Json]:
        value = plain_value(item)
        if not isinstance(item, Fields) or not isinstance(value, dict):
            yield value
            return
        for entry in item:
            if entry.key.text not in ("type", "value", "condition"):
                self._lose(f"the key {entry.key.text!r} of a dependency of {what}", entry)
                value.pop(entry.key.text)
        named = value.get("value")
        if value.get("type") == "stages" and isinstance(named, str):
            for one in filter(None, map(str.strip, named.split(","))):
                yield {**value, "type": "stage", "value": one}
            return
        yield value

    def _resources(self, item: Fields, what: str) -> Iterator[Json]:
        node = item.get("resources_required")
        if node is None or is_null(node):
            return
        for one in node.items if isinstance(node, Items) else (node,):
            if not isinstance(one, Fields):
                yield plain_value(one)
            elif one.entries:
                yield self._resource(one, what)

    def _resource(self, item: Fields, what: str) -> Json:
        """Returns what a stage asks for: version 1 had the particulars in `parameters`."""
        value = plain_value(item)
        assert isinstance(value, dict)
        inner = value.pop("parameters", None)
        more: dict[str, Json] = {**value, **(inner if isinstance(inner, dict) else {})}
        kind, named = str(more.pop("type", "")), more.pop("id", None)
        amount = more.pop("value", None)
        if not kind and isinstance(named, str):  # "node:p3:compute_a"
            kind, _, rest = named.partition(":")
            more.setdefault("flavour", rest.rpartition(":")[2] or None)
            seen = f"a resource of {what} is called {named!r}"
            hint = f"it is read as {kind} of the flavour {more['flavour']}: check this"
            self.findings.warning(LOST, seen, hint, item.position)
        result: dict[str, Json] = {"type": kind, "value": amount}
        if kind in ("node", "nodes"):
            number = more.pop("number", amount)
            is_text = isinstance(number, str) and number.isdecimal()
            result = {"type": "nodes", "number": int(str(number)) if is_text else number}
            result |= {key: more.pop(key) for key in ("flavour", "label") if more.get(key)}
            result["exclusive"] = more.pop("exclusive", False)
        if lost := ", ".join(name for name, one in more.items() if one not in (None, {}, [])):
            seen = f"a resource of {what} has {lost}, which is not carried over"
            hint = "2.0 has no such key; use labels of workers instead (resources: label)"
            self.findings.warning(LOST, seen, hint, item.position)
        return result

    # The files of a stage.

    def _convert_files(self, item: Fields, name: str, version: str) -> None:
        rewriter = Rewriter(name, self.findings)
        folder = f"{STAGES_FOLDER}/{name}/{version}"
        engine = self._template(item, version_1.ENGINE, "compose_template", name)
        application = self._template(item, version_1.APPLICATION, "args_template", name)
        if engine is None:
            seen = f"stage {name} has no compose template: nothing says what it executes"
            hint = f"add {folder}/{COMPOSE}.yaml, or a command.yaml or script.sh"
            self.findings.error("no-compose-file", seen, hint, item.position)
        for stem, said in ((ARGS, application), (COMPOSE, engine)):
            found = None if said is None else self._find(said, name, version)
            if found is None:
                continue
            path, text = found
            is_compose = stem == COMPOSE
            rewritten = rewriter.rewritten(path, text, is_compose=is_compose)
            made = f"{folder}/{_named_as(stem, file_name(_plain_name(path)), rewritten)}"
            self._files[made] = rewritten.encode()
        if rewriter.parameters:
            lines = [
                f"{json.dumps(one)}:{_shown(default)}"
                for one, default in rewriter.parameters.items()
            ]
            text = "\n".join([_PARAMETERS_HEAD, *lines]) + "\n"
            self._files[f"{folder}/{PARAMETERS}.yaml"] = text.encode()

    def _template(self, item: Fields, key: str, word: str, name: str) -> Scalar | None:
        """Returns which template `ee_config` or `app_config` names; None if none."""
        node = item.get(key)
        if node is None or is_null(node):
            return None
        if not isinstance(node, Fields):
            seen = f"{key} of stage {name} is {KINDS[type(node)]}"
            self.findings.error("value-kind", seen, "expected a mapping", node.position)
            return None
        found: Scalar | None = None
        for entry in node:
            is_template = "template" in entry.key.text and isinstance(entry.value, Scalar)
            if is_template and found is None and not is_null(entry.value):
                assert isinstance(entry.value, Scalar)
                found = entry.value
                if entry.key.text != word:
                    seen = f"{key} of stage {name} has {entry.key.text}"
                    hint = f"it is read as {word}"
                    self.findings.warning("other-spelling", seen, hint, entry.key.position)
            elif (key, entry.key.text) != (version_1.ENGINE, "type"):
                self._lose(f"the key {entry.key.text!r} of {key} of stage {name}", entry)
        return found

    def _find(self, said: Scalar, stage: str, version: str) -> tuple[str, str] | None:
        """Returns path and text of a template; None, with a finding, if there is none."""
        name = said.text.removeprefix("./")
        if problem := path_problem(name):
            seen = f"stage {stage}: {said.text!r} is not read: {problem}"
            hint = "copy the file into the folder of the stage's templates, and use that path"
            self.findings.error("bad-path", seen, hint, said.position)
            return None
        tried = [f"{lead}/{stage}/{version}/{name}" for lead in self._leads]
        tried += [f"{lead}/{name}" for lead in self._leads] + [name]
        for path in tried:
            content = self.source.look(path)
            if content is not None:
                text = decoded(path, content, self.findings)
                return None if text is None else (path, text)
        wanted = f"{TEMPLATES_FOLDER}/WORKFLOW/VERSION/{stage}/{version}/{name}"
        seen = f"stage {stage}: there is no template {name}"
        hint = f"it was looked for in {tried[0] if self._leads else wanted}"
        self.findings.error("missing-template", seen, hint, said.position)
        return None

    def _lose(self, what: str, entry: Entry) -> None:
        """Reports a key that 2.0 has no place for, unless nothing stands there."""
        if is_null(entry.value) or plain_value(entry.value) in ({}, [], ""):
            return
        seen = f"{what} is not carried over"
        self.findings.warning(LOST, seen, "2.0 has no such key", entry.key.position)


_PARAMETERS_HEAD = (
    "# A parameter without a value must be given with each request, or gets a default here."
)


def _shown(default: Json) -> str:
    return "" if default is None else f" {json.dumps(default, ensure_ascii=False)}"


def _plain_name(path: str) -> str:
    """Returns the name of a template with its endings in order: `a.j2.json` is a.json.j2."""
    name = path.rpartition("/")[2]
    stem, dot, last = name.rpartition(f"{TEMPLATE_SUFFIX}.")
    return f"{stem}.{last}{TEMPLATE_SUFFIX}" if dot else name


def _named_as(stem: str, name: FileName, text: str) -> str:
    """Returns what a file of a stage is called in 2.0; version 1 rendered every one."""
    suffix = JSON_SUFFIX if name.suffix == JSON_SUFFIX and stem == ARGS else ".yaml"
    is_template = _TEMPLATE.search(text) is not None
    return f"{stem}{suffix}{TEMPLATE_SUFFIX if is_template else ''}"


def written(file: str, value: Json) -> str:
    """Returns a document as its file has it: JSON, or YAML."""
    if file_name(file).suffix == JSON_SUFFIX:
        return json.dumps(value, indent=_INDENT, ensure_ascii=False) + "\n"
    return emit_yaml(node_of(value))


def node_of(value: Json) -> Node:
    """Returns a value as the nodes that are written as YAML."""
    here = Position("")
    if isinstance(value, dict):
        return Fields(
            tuple(
                Entry(Scalar(name, False, here), node_of(one)) for name, one in value.items()
            ),
            here,
        )
    if isinstance(value, list):
        return Items(tuple(map(node_of, value)), here)
    if isinstance(value, str):
        return Scalar(value, True, here)
    return Scalar(json.dumps(value), False, here)
