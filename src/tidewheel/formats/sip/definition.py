"""Reads a definition file of schema 2.0; a template is rendered first.

Which stages a workflow has is known without any parameter: a first look reads the file with all
of them unknown. Whatever a request says, the stages must be the same.

A mistake hides no other. What cannot be read is reported and left out, and the definition
remembers that something is missing, so that nothing untrue is said of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import TypeVar

from tidewheel.core.graph.definition import ELEMENTS_DEFAULT, ELEMENTS_MAX
from tidewheel.core.graph.findings import Findings, Position, nearest
from tidewheel.core.operator.registry import name_problem
from tidewheel.formats.sip import model, version_1
from tidewheel.formats.sip.document import (
    KINDS,
    Fields,
    Items,
    Node,
    Scalar,
    is_null,
    plain_value,
    unknown_scalars,
)
from tidewheel.formats.sip.field_reader import (
    FieldReader,
    entry,
    pair,
    refuse_entry,
    report_second,
    shown_as,
    written,
)
from tidewheel.formats.sip.keys import (
    DEFINITION,
    DEPENDENCY,
    RESOURCE_TYPE,
    RESOURCES,
    SCHEMA_VERSION,
    STAGE,
    STAGE_EXAMPLE,
)
from tidewheel.formats.sip.placeholders import Json, parameter_shown
from tidewheel.formats.sip.templates import (
    Names,
    Path,
    RenderedText,
    RenderMoment,
    Template,
    render_all,
)
from tidewheel.formats.sip.text_files import (
    STAGES_FOLDER,
    TEMPLATE_SUFFIX,
    SipSource,
    decoded,
    file_name,
    read_plain,
    read_rendered,
)
from tidewheel.lazy_dataclasses import dataclass

# From nodes to a typed definition.

_Entry = TypeVar("_Entry")
_ONE_OF = {"resources": "resource", "dependencies": "dependency"}
_PLAIN_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?", re.ASCII)


def read_definition(
    root: Node,
    from_file: model.NameAndVersion,
    findings: Findings,
    moment: RenderMoment,
    lists: Mapping[str, str] | None = None,
) -> model.SipDefinition | None:
    """Returns the definition as far as it is understood; None if the file is no definition.

    ``lists`` are the parameters that stages run for each element of, by stage.
    """
    if not isinstance(root, Fields):
        message = f"the file is {KINDS[type(root)]}, not a mapping with keys of a definition"
        example: dict[str, Json] = {"schema_version": SCHEMA_VERSION, "stages": []}
        hint = f"write {written(example, root.position)}"
        findings.error("no-definition", message, hint, root.position)
        return None
    if is_instance(root):
        message = "this is a scheduling block instance, not a workflow definition"
        command = f"tidewheel sbi submit {root.position.file}"
        hint = f"submit it after its workflows are registered: {command}"
        findings.error("no-definition", message, hint, root.position)
        return None
    if version_1.is_definition_1(root):
        version_1.report_definition_1(root, findings)
        return None
    reader = FieldReader(root, DEFINITION, "the definition", findings)
    found = reader.scalar("schema_version")
    if found is not None and found.text != SCHEMA_VERSION:
        seen = f"schema_version is {found.text!r}"
        findings.error("schema-version", seen, f"expected {SCHEMA_VERSION}", found.position)
    name, version = _identity(reader, from_file, findings)
    stages = _Stages(findings, moment, lists or {})
    found_stages = stages.read(reader.items("stages"), reader)
    return model.SipDefinition(
        id=name,
        version=version,
        stages=found_stages,
        network=reader.text("network") or "",
        unread=tuple(stages.unread),
        is_whole=stages.is_whole and not stages.unread and reader.is_listed("stages"),
    )


def is_instance(root: Node) -> bool:
    """Says whether a file is a scheduling block instance, which people keep with workflows."""
    return (
        isinstance(root, Fields)
        and root.get("processing_blocks") is not None
        and root.get("stages") is None
    )


def _identity(
    reader: FieldReader, from_file: model.NameAndVersion, findings: Findings
) -> tuple[str, str]:
    name = reader.text("id")
    if name is not None and (problem := name_problem(name)):
        _bad_name("workflow", name, problem, reader.position_of("id"), findings)
    version = _version(reader, findings, required=False)
    own = None if name is None else name.rpartition("/")[2]
    if own not in (None, from_file.stem, from_file.name):
        seen = f"the file is called {from_file.stem} and the workflow {name}"
        hint = "a file's name should tell which workflow it defines: rename one of them"
        findings.warning("name-differs", seen, hint, reader.position_of("id"))
    if version is None and not from_file.version:
        message = "neither the file nor its name has a version: the version is 0.0.0"
        example = pair("version", "1.0.0", reader.position)
        advice = f"write {example}, or call the file {from_file.stem}-1.0.0"
        findings.warning("no-version", message, advice, reader.position)
    return name or from_file.name, version or from_file.version or "0.0.0"


def _version(reader: FieldReader, findings: Findings, *, required: bool) -> str | None:
    if not required and reader.is_unknown("version"):
        return None
    found = reader.scalar("version")
    if found is None or found.unknown:
        return None
    if problem := model.version_problem(found.text):
        _bad_name("version", found.text, problem, found.position, findings)
        return None
    if not found.quoted and _PLAIN_NUMBER.fullmatch(found.text):
        shown = f"version of {reader.what} is {found.text}"
        seen = f"{shown}, which other programs read as a number"
        hint = f'write "{found.text}" in quotes, or a version such as 1.0.0'
        findings.warning("version-is-a-number", seen, hint, found.position)
    return found.text


def _bad_name(
    kind: str, name: str, problem: str, position: Position, findings: Findings
) -> None:
    findings.error("bad-name", f"{name!r} cannot be the name of a {kind}", problem, position)


@dataclass(slots=True)
class _Stages:
    """Reads the stages one after the other, and remembers their names."""

    findings: Findings
    moment: RenderMoment
    lists: Mapping[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)  # see SipDefinition
    is_whole: bool = True
    _positions: dict[str, Position] = field(default_factory=dict)

    def read(self, items: tuple[Node, ...], above: FieldReader) -> tuple[model.Stage, ...]:
        if len(items) > (most := model.STAGES_MAX):
            seen = f"the definition has {len(items)} stages; at most {most} are accepted"
            hint = "split it into several workflows"
            self.findings.error("too-many-stages", seen, hint, above.position_of("stages"))
            return ()
        stages = [self._stage(item, number) for number, item in enumerate(items, 1)]
        return tuple(stage for stage in stages if stage is not None)

    def _stage(self, item: Node, number: int) -> model.Stage | None:
        if not isinstance(item, Fields):
            seen = f"stage {number} is {KINDS[type(item)]}"
            hint = f"a stage is a mapping: {entry(STAGE_EXAMPLE, item.position)}"
            self.findings.error("stage-kind", seen, hint, item.position)
            self.unread.append(item.text if isinstance(item, Scalar) else "")
            return None
        what = shown_as("stage", item, f"stage {number}")
        reader = FieldReader(item, STAGE, what, self.findings)
        name = self._id(reader)
        version = _version(reader, self.findings, required=True)
        type_ = reader.text("type")
        for_each, where = self._for_each(reader, name or ""), reader.position_of("for_each")
        dependencies: tuple[model.Dependency, ...] = tuple(
            self._entries(reader, "dependencies", model.DEPENDENCIES_MAX, self._dependency)
        )
        self.is_whole &= reader.is_listed("dependencies") and self._knows_whether(reader)
        stage = model.Stage(
            id=name or "",
            version=version or "",
            type=model.StageType(type_) if type_ else model.StageType.PROCESSING,
            timeout_seconds=reader.value("timeout"),
            resources=tuple(
                self._entries(reader, "resources_required", model.RESOURCES_MAX, self._resource)
            ),
            dependencies=_with_list(dependencies, for_each, where),
            is_on=self._is_on(reader),
            for_each=for_each,
            elements_max=self._elements_max(reader, for_each),
            until=tuple(
                model.ServedStage(one.text.strip(), one.position)
                for one in reader.texts("until", model.DEPENDENCIES_MAX)
            ),
            position=item.position,
            elements_position=where,
        )
        if name and version:
            return stage
        self.unread.append(_called(item))
        return None

    def _is_on(self, reader: FieldReader) -> bool:
        """Says whether a stage runs. While no request is there, it may: a comparison with a
        parameter that is not known yet says nothing."""
        value, node = reader.value("when"), reader.node("when")
        is_open = isinstance(node, Scalar) and node.printed
        return value is not False or (is_open and self.moment is not RenderMoment.REQUEST)

    def _knows_whether(self, reader: FieldReader) -> bool:
        """Says whether it is known if a stage runs, as far as the moment allows it."""
        node = reader.node("when")
        if self.moment is RenderMoment.GLANCE and isinstance(node, Scalar) and node.printed:
            return False
        return node is None or reader.is_unknown("when") or reader.value("when") is not None

    def _for_each(self, reader: FieldReader, stage: str) -> model.ForEach | None:
        node = reader.elements("for_each", self.lists.get(stage, ""))
        if node is None:  # a list that cannot be read is one all the same
            return None if reader.node("for_each") is None else model.ListToCome("")
        if (unknown := next(unknown_scalars(node), None)) is not None:
            return model.ListToCome(parameter_shown(unknown.unknown) if unknown is node else "")
        if isinstance(node, Items):
            return model.ListGiven(tuple(map(plain_value, node.items)))
        if isinstance(node.structure, list):
            return model.ListGiven(tuple(node.structure))
        stage, dot, output = node.text.strip().partition(".")
        if dot and not output:
            seen = f"for_each of {reader.what} is {node.text!r}"
            hint = f"write {stage}.OUTPUT, an output that {stage} names in its outputs.yaml"
            self.findings.error("for-each", seen, hint, node.position)
            return model.ListToCome("")
        return model.ListReturned(stage, output) if dot else model.SameElements(stage)

    def _elements_max(self, reader: FieldReader, for_each: model.ForEach | None) -> int:
        found: int | None = reader.value("for_each_max")
        if found is None:
            return ELEMENTS_DEFAULT
        where = reader.position_of("for_each_max")
        if found > ELEMENTS_MAX:
            seen = f"for_each_max of {reader.what} is {found}"
            self.findings.error("value-kind", seen, f"write 1 to {ELEMENTS_MAX}", where)
        if reader.node("for_each") is None:
            seen = f"{reader.what} has for_each_max, but no for_each"
            self.findings.error("for-each", seen, "remove it, or name a list", where)
        if isinstance(for_each, model.SameElements):
            seen = f"{reader.what} has for_each_max, but takes its elements from another stage"
            hint = f"write for_each_max in stage {for_each.stage}"
            self.findings.error("for-each", seen, hint, where)
        return min(found, ELEMENTS_MAX)

    def _id(self, reader: FieldReader) -> str | None:
        name = reader.text("id")
        position = reader.position_of("id")
        for key in ("id", "version"):
            if reader.is_unknown(key):
                seen = f"the {key} of a stage depends on a parameter without a default"
                hint = (
                    "give the parameter a default: the stages of a workflow must be known "
                    "when it is registered"
                )
                self.findings.error("stage-of-a-parameter", seen, hint, reader.position_of(key))
        if name is None:
            return None
        if problem := model.stage_id_problem(name):
            _bad_name("stage", name, problem, position, self.findings)
            return None
        if name in self._positions:
            report_second("stage", name, self._positions[name], position, self.findings)
            return None
        self._positions[name] = position
        return name

    def _entries(
        self,
        reader: FieldReader,
        key: str,
        most: int,
        read: Callable[[Node, str], _Entry | None],
    ) -> Iterator[_Entry]:
        """Yields the entries of a list that can be read."""
        items, kind = reader.items(key), key.partition("_")[0]
        if len(items) > most:
            seen = f"{len(items)} {kind} in one stage; at most {most} are accepted"
            self.findings.error(f"too-many-{kind}", seen, "split the stage", reader.position)
            self.is_whole = False
            return
        for number, item in enumerate(items, 1):
            found = read(item, f"{_ONE_OF[kind]} {number} of {reader.what}")
            if found is not None:
                yield found

    def _resource(self, item: Node, what: str) -> model.Resource | None:
        if not isinstance(item, Fields):
            refuse_entry(item, what, {"type": "cpu", "value": 0.5}, self.findings)
            return None
        # Its type comes first: which other keys are known depends on it.
        only_type = tuple(entry for entry in item if entry.key.text == "type")
        reader = FieldReader(
            Fields(only_type, item.position), {"type": RESOURCE_TYPE}, what, self.findings
        )
        if (kind := reader.text("type")) is None:
            return None
        return FieldReader(item, RESOURCES[kind], what, self.findings).filled(model.NEEDS[kind])

    def _dependency(self, item: Node, what: str) -> model.Dependency | None:
        if not isinstance(item, Fields):
            meant = item.text if isinstance(item, Scalar) and item.text else "…"
            example = {"type": "stage", "value": meant, "condition": "complete"}
            refuse_entry(item, what, example, self.findings)
            self.is_whole = False
            return None
        reader = FieldReader(item, DEPENDENCY, what, self.findings)
        kind, value = reader.text("type"), reader.text("value")
        allowed = (model.PRESENT,) if kind == "buffer_object" else tuple(model.CONDITION_WORDS)
        if kind is None:  # then any of the words may be right
            allowed = (*allowed, model.PRESENT)
        condition = reader.choice("condition", allowed)
        if kind is None or value is None or reader.is_unknown("condition"):
            self.is_whole = False
            return None
        here = reader.position_of("value")
        if kind == "stage":
            # A condition that cannot be read is taken for one that contradicts no other.
            found = model.CONDITION_WORDS.get(condition or "", model.StageCondition.STARTED)
            return model.StageDependency(value, found, here)
        if problem := model.object_name_problem(value):
            _bad_name("buffer object", value, problem, here, self.findings)
            return None
        return model.ObjectDependency(value, here)


def _called(item: Fields) -> str:
    """Returns what a stage that cannot be read is called; "" if nothing says it."""
    named = (item.get("id"), item.get("name"))
    return next((one.text for one in named if isinstance(one, Scalar) and one.text), "")


def _with_list(
    dependencies: tuple[model.Dependency, ...], for_each: model.ForEach | None, where: Position
) -> tuple[model.Dependency, ...]:
    """Returns the dependencies of a stage with that on the stage that its list comes from."""
    if not isinstance(for_each, model.ListReturned | model.SameElements):
        return dependencies
    needed = model.StageDependency(for_each.stage, model.StageCondition.COMPLETE, where)
    return dependencies if needed in dependencies else (*dependencies, needed)


def nearest_stage(name: str, stages: Iterable[model.Stage]) -> str | None:
    """Returns the stage that was probably meant, or None: `stage-01` for `stage1`, too."""
    ids = [stage.id for stage in stages]
    near = nearest(name, ids)
    plain = _without_decoration(name)
    alike = [one for one in ids if _without_decoration(one) == plain]
    return alike[0] if alike else near


def _without_decoration(name: str) -> str:
    """Returns a name without signs, capitals and leading zeros. `stage-01` and `stage1` are the
    same to a person."""
    letters = re.sub(r"[\W_]+", "", name.lower())
    return re.sub(r"0+(?=\d)", "", letters)


# From the text of the file to its nodes.

_TEMPLATE_SIGNS = ("{{", "{%", "{#")


@dataclass(frozen=True, slots=True)
class DefinitionText:
    """Holds a definition as far as it could be read; `rendered` is None for a plain file."""

    definition: model.SipDefinition | None
    text: str = ""
    rendered: RenderedText | None = None
    is_template: bool = False
    lacks_stages: bool = False  # the key is there, and nothing under it
    is_parsed: bool = False  # whether its text is YAML or JSON

    def stages_among(self, folders: Iterable[str]) -> tuple[model.Stage, ...]:
        """Returns the stages whose files belong to the definition.

        If none can be read, those are taken whose folders are named in the text: a mistake in
        the definition hides none in their files.
        """
        known = self.definition
        if self.is_parsed and (known is None or known.is_whole or known.stages):
            return known.stages if known is not None else ()
        words = {*_WORD.findall(self.text)}
        ways = (one.split("/") for one in sorted(folders))
        named = (
            way[1:] for way in ways if len(way) == _STAGE_DEPTH and way[0] == STAGES_FOLDER
        )
        found = (
            model.Stage(id=name, version=version, type=model.StageType.PROCESSING)
            for name, version in named
            if words.issuperset((name, version))
        )
        return tuple(islice(found, _NAMED_IN_TEXT_MAX))


_STAGE_DEPTH = len((STAGES_FOLDER, "id", "version"))
_WORD = re.compile(r"[\w.+%@-]+", re.ASCII)
_NAMED_IN_TEXT_MAX = 200  # stages of a definition that cannot be read


def is_template(file: str, text: str) -> bool:
    """Says whether a file is a template, by its name or by its text."""
    return file_name(file).is_template or any(sign in text for sign in _TEMPLATE_SIGNS)


def first_look(file: str, content: bytes, folders: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Returns id and version of each stage whose files belong to a definition, read without
    any parameter; ``folders`` are those beside it."""
    read = read_text(file, content, DefinitionValues(), Findings(), RenderMoment.CHECK)
    return [(one.id, one.version) for one in read.stages_among(folders)]


def definitions_among(sources: Sequence[SipSource]) -> Sequence[SipSource]:
    """Returns the files of a folder that could be definitions; all, if none could.

    People keep scheduling block instances beside the workflows that they ask for.
    """
    return [one for one in sources if not _is_instance(one)] or sources


def _is_instance(source: SipSource) -> bool:
    content = source.files[source.file]
    if b"processing_blocks" not in content or file_name(source.file).is_template:
        return False
    findings = Findings()
    text = decoded(source.file, content, findings)
    root = None if text is None else read_plain(source.file, text, findings)
    return root is not None and is_instance(root)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionValues:
    """Holds what the template of a definition knows."""

    parameters: Mapping[str, Json] = field(default_factory=dict)
    # Of each stage by its id, those that it declares or is given.
    stages: Mapping[str, dict[str, Json]] = field(default_factory=dict)
    # By path, what people read in place of parameters that a request will bring.
    unknown: Mapping[Path, str] = field(default_factory=dict)
    # Outputs of stages: only a list that a stage runs for may be one of them.
    awaited: tuple[str, ...] = ()
    lists: Mapping[str, str] = field(default_factory=dict)  # see read_definition


def read_text(
    file: str,
    content: bytes,
    values: DefinitionValues,
    findings: Findings,
    moment: RenderMoment,
) -> DefinitionText:
    """Returns the definition in a file; a template is rendered with these values."""
    text = decoded(file, content, findings)
    if text is None:
        return DefinitionText(None)
    if not is_template(file, text):
        root = read_plain(file, text, findings)
        rendered = None
    else:
        if not file_name(file).is_template:
            seen = f"{file} is a template, and its name does not say so"
            hint = f"call it {file}{TEMPLATE_SUFFIX}"
            findings.warning("template-name", seen, hint, Position(file))
        parameters = dict(values.parameters)
        own: dict[str, Json] = {**values.stages, **parameters, "parameters": parameters}
        template = Template(
            file=file, text=text, own=own, unknown=values.unknown, awaited=values.awaited
        )
        (rendered,) = render_all([template], Names(), findings, moment)
        root = read_rendered(file, rendered, findings) if rendered is not None else None
        if rendered is not None and rendered.is_glanced:
            moment = RenderMoment.GLANCE
    definition = None
    if root is not None:
        if moment is RenderMoment.REQUEST:
            _refuse_awaited(root, findings)
        stem = model.name_and_version(file_name(file).stem)
        definition = read_definition(root, stem, findings, moment, values.lists)
    stages = root.get("stages") if isinstance(root, Fields) else None
    return DefinitionText(
        definition,
        text,
        rendered,
        is_template(file, text),
        lacks_stages=stages is not None and is_null(stages),
        is_parsed=root is not None,
    )


def _refuse_awaited(root: Node, findings: Findings) -> None:
    """Reports outputs of stages where the definition must be known before the run."""
    found = root.get("stages") if isinstance(root, Fields) else None
    stages = found.items if isinstance(found, Items) else ()
    lists = [one.get("for_each") for one in stages if isinstance(one, Fields)]
    for scalar in unknown_scalars(root):
        if not any(scalar is one for one in lists):
            name = parameter_shown(scalar.unknown) or scalar.unknown
            seen = f"{name!r} is known only when a stage has returned it"
            hint = "give it with the request; only for_each can wait for a stage"
            findings.error("template-undefined", seen, hint, scalar.position)
