"""Renders the files of stages with their values: arguments first, then what is executed.

All stages of a definition are rendered in two goes of one process each, however many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import TypeVar

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.queue.secret_references import (
    NO_SECRETS,
    is_reference,
    reference_findings,
)
from tidewheel.formats.sip.compose import (
    SECRET_IN_CONTAINERS,
    adjusted_compose,
    check_compose,
    check_shell,
    emit_yaml,
    typed_compose,
)
from tidewheel.formats.sip.compose_schema import ComposeChecker, known_document
from tidewheel.formats.sip.document import Fields, Items, Node, Scalar, key_places, plain_value
from tidewheel.formats.sip.model import FIXED_NAMES, ITEM, JINJA_NAMES, WORD_BYTES_MAX
from tidewheel.formats.sip.parameters import (
    REQUEST,
    ParameterSource,
    StagePart,
    StageValues,
    Values,
)
from tidewheel.formats.sip.placeholders import Json, parameter_to_come, text_of_value
from tidewheel.formats.sip.stage_folder import ARGS, StageFolder, StageText
from tidewheel.formats.sip.templates import (
    Names,
    Path,
    RenderedText,
    RenderMoment,
    Template,
    render_all,
)
from tidewheel.formats.sip.text_files import read_plain, read_rendered
from tidewheel.lazy_dataclasses import dataclass

# The names that templates of stages know: those of their own stage, every stage by its id.

_PARAMETERS = "parameters"
_INDEX = "index"  # of an element, from 0
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class SharedNames:
    """Holds what templates can read of every stage, such as its version and parameters."""

    stages: Mapping[str, dict[str, Json]]
    # Parameters that have no value yet, by stage: what people read in their places.
    unknown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()  # stages whose parameters could not be read

    def names(self) -> Names:
        """Returns the names that all templates know: `stages`, and so each stage by its id."""
        ways: dict[Path, str] = {}
        for stage in {**self.unknown, **dict.fromkeys(self.unread)}:
            ways |= self.ways_to(stage, ("stages", stage))
        return Names({"stages": dict(self.stages)}, ways)

    def ways_to(self, stage: str, lead: Path) -> dict[Path, str]:
        """Returns the paths to parameters of a stage that have no value yet, below ``lead``.

        With each goes what people read there.
        """
        if stage in self.unread:
            return {(*lead, _PARAMETERS): parameter_to_come(f"{stage}.{_PARAMETERS}")}
        found = self.unknown.get(stage, {})
        return {(*lead, _PARAMETERS, name): text for name, text in found.items()}


def shared_names(
    source: ParameterSource, request: Values, outputs: Mapping[str, Values] | None = None
) -> SharedNames:
    """Returns what templates can read of the stages, with the values of a request.

    ``outputs`` are by stage; they are None before a stage is due.
    """
    stages: dict[str, dict[str, Json]] = {}
    unknown: dict[str, Mapping[str, str]] = {}
    for stage in source.definition.stages:
        values = source.values_for(StagePart(stage=stage), request, outputs)
        folder = source.folders.get(stage.id)
        declared = {*folder.defaults, *folder.required} if folder else set()
        declared |= source.given_apart(stage.id, request).keys()
        timeout = stage.timeout_seconds
        about: dict[str, Json] = {
            "id": stage.id,
            "version": stage.version,
            "type": stage.type.value,
            # 60, not 60.0, because templates print it.
            "timeout": timeout if timeout is None or timeout % 1 else int(timeout),
            _PARAMETERS: _only(declared, values.known),
        }
        if outputs is not None:  # then whatever has no value is a mistake
            about["outputs"] = dict(outputs.get(stage.id, {}))
        elif shown := _only(declared, values.shown):
            unknown[stage.id] = shown
        stages[stage.id] = about
    folders = source.folders
    unread = (one for one in stages if one not in folders or not folders[one].is_whole)
    return SharedNames(stages, unknown, frozenset(unread))


def own_names(
    part: StagePart,
    values: StageValues,
    shared: SharedNames,
    args: Json,
    declared: frozenset[str],
) -> tuple[dict[str, Json], dict[Path, str]]:
    """Returns the names of one stage's templates, and the paths to those without a value.

    ``declared`` are parameters; what a request gives under the id of a stage is none.
    """
    stage = part.stage
    known = dict(values.known)
    names = {name: value for name, value in known.items() if name not in FIXED_NAMES}
    ways: dict[Path, str] = shared.ways_to(stage.id, ("stage",))
    own: dict[str, dict[str, Json]] = {  # stages of which this element sees its own outputs
        name: {**shared.stages[name], "outputs": dict(made)} for name, made in part.made.items()
    }
    # What a request gives under the id of a stage is known as parameters of this stage.
    given = (one for one in names if one in shared.stages and one not in declared)
    for name in [one for one in given if isinstance(names[one], dict)]:
        del names[name]
    for name, about in own.items():
        parameters = about[_PARAMETERS]
        assert isinstance(parameters, dict)
        names.setdefault(name, {**about, **parameters})
    names |= {_PARAMETERS: known, "stage": dict(shared.stages[stage.id]), "args": args}
    if own:
        names["stages"] = {**shared.stages, **own}
    if part.index is not None:
        names["stage"] = {**shared.stages[stage.id], _INDEX: part.index}
    elif stage.is_mapped:
        ways[("stage", _INDEX)] = parameter_to_come(f"stage.{_INDEX}")
    ways |= {(_PARAMETERS, name): text for name, text in values.shown.items()}
    ways |= {(name,): text for name, text in values.shown.items() if name not in FIXED_NAMES}
    return names, ways


def _only(names: set[str], values: Mapping[str, _Value]) -> dict[str, _Value]:
    return {name: value for name, value in values.items() if name in names}


# Stage files with their values: arguments first, then what is executed, which may use them.


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedStage:
    """Holds what a stage executes, with its values: one of compose, command and script."""

    stage: str
    folder: str = ""  # of the stage, from that of the definition
    parameters: Values = field(default_factory=dict)
    args: Json = field(default_factory=dict)
    compose: str | None = None  # YAML
    # The same as plain values, without those that are still to come; None after errors.
    document: Json = None
    newer: tuple[str, ...] = ()  # keys of it that only docker compose 2 knows
    places: Mapping[tuple[str, ...], Position] = field(default_factory=dict)  # of its keys
    command: tuple[str, ...] | None = None  # words, for no shell
    script: str | None = None  # bash
    is_whole: bool = True  # False while values are still to come
    to_come: Mapping[str, str] = field(default_factory=dict)  # outputs: by which stage
    secrets: Mapping[str, str] = field(default_factory=dict)  # parameters that are references


@dataclass(frozen=True, slots=True)
class Read:
    """Holds the nodes of a file, and whether every value in it is known."""

    node: Node
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Says what is to be rendered: for which stages, with which values, at which moment."""

    source: ParameterSource
    parts: tuple[StagePart, ...]
    request: Values
    moment: RenderMoment
    outputs: Mapping[str, Values] | None = None

    def values(self) -> dict[str, StageValues]:
        """Returns the values of each part, by its name."""
        return {
            part.name: self.source.values_for(part, self.request, self.outputs)
            for part in self.parts
        }


class StageRenderer:
    """Renders all stages; mistakes in plain files and in templates are kept apart.

    A plain file is wrong for ever; what a template renders to may be right for a request.
    """

    def __init__(self, wish: Wish, plain_errors: Findings, errors: Findings) -> None:
        self._wish = wish
        self._plain_errors = plain_errors
        self._errors = errors
        self._values = wish.values()
        self._shared = shared_names(wish.source, wish.request, wish.outputs)
        self._names = self._shared.names()
        self._plain_files: dict[str, Node | None] = {}  # by path
        self.names: dict[str, tuple[str, int]] = {}  # used by templates: file and line

    def render(self) -> dict[str, RenderedStage]:
        """Returns what each part executes, by its name."""
        args = self._read_all(lambda folder: folder.args, {})
        executed = self._read_all(lambda folder: folder.compose or folder.command, args)
        rendered = {}
        for part in self._wish.parts:
            folder = self._wish.source.folders.get(part.stage.id)
            if folder is not None:
                name = part.name
                found = self._rendered(
                    folder, self._values[name], args.get(name), executed.get(name)
                )
                rendered[name] = found
        return rendered

    def _rendered(
        self,
        folder: StageFolder,
        values: StageValues,
        found: Read | None,
        executed: Read | None,
    ) -> RenderedStage:
        is_read = all(one is None or one.is_whole for one in (found, executed))
        compose: str | None = None
        document: Json = None
        newer: tuple[str, ...] = ()
        places: Mapping[tuple[str, ...], Position] = {}
        command: tuple[str, ...] | None = None
        if executed is not None and folder.compose is not None:
            errors = self._errors if folder.compose.is_template else self._plain_errors
            node = adjusted_compose(executed.node, self._plain_errors)
            good = check_compose(
                node, folder.stage, errors, self._plain_errors, is_whole=executed.is_whole
            )
            typed = typed_compose(node)
            if good and isinstance(typed, Fields):
                before = errors.error_count
                checker = ComposeChecker(folder.stage, errors, self._plain_errors)
                checker.check(typed)
                compose, newer = emit_yaml(typed), tuple(checker.newer)
                places = dict(key_places(typed))
                document = known_document(typed) if errors.error_count == before else None
        elif executed is not None and folder.command is not None:
            errors = self._errors if folder.command.is_template else self._plain_errors
            command = _words(executed.node, folder.stage, errors)
            if isinstance(executed.node, Items):
                what = f"the command of stage {folder.stage}"
                check_shell(executed.node.items, what, "$1", self._plain_errors)
        rendered = RenderedStage(
            stage=folder.stage,
            folder=folder.folder,
            parameters=values.known,
            args=plain_value(found.node) if found is not None else {},
            compose=compose,
            document=document,
            newer=newer,
            places=places,
            command=command,
            script=folder.script.text if folder.script is not None else None,
            is_whole=is_read and not values.shown,
            to_come=values.to_come,
            secrets=_secrets(folder, values),
        )
        _check_words(rendered, folder, self._errors)
        _check_secrets(rendered, folder, self._errors)
        return rendered

    def _read_all(
        self, choose: Callable[[StageFolder], StageText | None], args: Mapping[str, Read]
    ) -> dict[str, Read]:
        """Returns the nodes of one file of each stage; templates know the arguments. ``args``
        are those that were read before, by stage."""
        read: dict[str, Read] = {}
        templates: list[tuple[StagePart, Template]] = []
        for part in self._wish.parts:
            folder = self._wish.source.folders.get(part.stage.id)
            file = choose(folder) if folder is not None else None
            if file is not None and file.is_template:
                templates.append((part, self._template(part, file, args)))
            elif file is not None and (node := self._plain(file)) is not None:
                read[part.name] = Read(node, True)
        texts = [template for _, template in templates]
        rendered = render_all(texts, self._names, self._errors, self._wish.moment)
        for (part, template), text in zip(templates, rendered, strict=True):
            if text is None:
                continue
            self._note_names(part, template.file, text)
            compose = self._wish.source.folders[part.stage.id].compose
            if compose is not None and compose.path == template.file:
                text = text.for_compose()  # noqa: PLW2901 - the same text, with plain dollars
            node = read_rendered(template.file, text, self._errors)
            if node is not None:
                is_whole = not any(value.unknown for value in text.values)
                is_whole = is_whole and not template.unknown
                is_whole = is_whole and not self._awaits_names(template, text)
                is_whole = is_whole and not self._may_change(template, text)
                read[part.name] = Read(node, is_whole)
        return read

    def _plain(self, file: StageText) -> Node | None:
        """Returns the nodes of a file that is no template: once for all elements."""
        if file.path not in self._plain_files:
            node = read_plain(file.path, file.text, self._plain_errors)
            self._plain_files[file.path] = node
        return self._plain_files[file.path]

    def _note_names(self, part: StagePart, file: str, text: RenderedText) -> None:
        for name, line in text.names.items():
            if name != ITEM or not part.stage.is_mapped:
                self.names.setdefault(name, (file, line))

    def _awaits_names(self, template: Template, text: RenderedText) -> bool:
        """Says whether a template looks at names that only a request brings: a loop over one of
        them has no turn yet."""
        known = {*template.own, *self._names.values, *JINJA_NAMES, "stages"}
        return self._wish.moment is RenderMoment.CHECK and not known.issuperset(text.names)

    def _may_change(self, template: Template, text: RenderedText) -> bool:
        """Says whether a template may look at values of other stages that are still to come.

        Any mention of parameters or of such a stage counts, because an `if` leaves no trace in
        the rendered text.
        """
        unknown = self._shared.unknown
        if self._wish.moment is not RenderMoment.REQUEST or not unknown:
            return False
        names_others = "stages" in text.names or not unknown.keys().isdisjoint(text.names)
        return names_others or "parameters" in template.text

    def _is_without_args(self, part: StagePart, file: StageText) -> bool:
        """Says whether the arguments of a stage could not be read; a finding says why."""
        folder = self._wish.source.folders[part.stage.id]
        return folder.args not in (None, file) or (
            folder.args is None and ARGS in folder.unread
        )

    def _template(self, part: StagePart, file: StageText, args: Mapping[str, Read]) -> Template:
        found = args.get(part.name)
        value = plain_value(found.node) if found is not None else {}
        declared = self._wish.source.declared
        own, unknown = own_names(part, self._values[part.name], self._shared, value, declared)
        if "stages" not in file.text:  # the same for each of many elements, and large
            own.pop("stages", None)
        if found is not None:
            unknown |= {("args", *way): text for way, text in _unknown_ways(found.node)}
        elif self._is_without_args(part, file):
            unknown[("args",)] = parameter_to_come("args")  # a finding says why
        return Template(file=file.path, text=file.text, own=own, unknown=unknown)


def _unknown_ways(node: Node, way: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yields the paths to scalars that have no value yet, and what people read there."""
    if isinstance(node, Scalar):
        if node.unknown:
            yield way, node.text
    elif isinstance(node, Items):
        for number, item in enumerate(node.items):
            yield from _unknown_ways(item, (*way, number))
    else:
        for key, value in node.entries:
            yield from _unknown_ways(value, (*way, key.text))


def _check_words(rendered: RenderedStage, folder: StageFolder, errors: Findings) -> None:
    """Reports arguments that are too long for an environment; containers have no such limit."""
    if rendered.command is None and rendered.script is None:
        return
    written = folder.args or folder.command
    place = Position(written.path if written is not None else folder.folder)
    for word in (text_of_value(rendered.args), *(rendered.command or ())):
        if len(word.encode()) > WORD_BYTES_MAX:
            errors.error(
                "words-too-long",
                f"stage {rendered.stage} has arguments of {len(word.encode())} bytes; a "
                f"process accepts at most {WORD_BYTES_MAX} in one argument",
                "put them into a file of the stage's folder, and its name into the arguments",
                place,
            )
            return


def _secrets(folder: StageFolder, values: StageValues) -> dict[str, str]:
    """Returns the parameters of a stage that are references to secrets.

    Only what a stage declares itself is given to it; and what jobs hand on is never a
    reference, as it may come from anywhere.
    """
    declared = {*folder.defaults, *folder.required} - values.made
    known = ((name, values.known.get(name)) for name in sorted(declared))
    return {name: str(value) for name, value in known if is_reference(value)}


def can_be_variable(parameter: str) -> bool:
    """Says whether a parameter has a name that a variable can have."""
    return parameter.isidentifier() and parameter.isascii()


def _check_secrets(rendered: RenderedStage, folder: StageFolder, errors: Findings) -> None:
    # Where the reference stands: among the defaults of the stage, or in the request.
    own = {
        name for name, value in rendered.secrets.items() if folder.defaults.get(name) == value
    }
    place = Position(folder.folder) if own == rendered.secrets.keys() else REQUEST
    for wrong in reference_findings(rendered.secrets):
        seen, _, hint = wrong.partition("; ")
        message = f"stage {rendered.stage}, parameter {seen}"
        errors.error("bad-secret", message, hint, place)
    for name in rendered.secrets:
        if not can_be_variable(name):
            seen = (
                f"{name} of stage {rendered.stage} is a secret, but no variable can have this "
                "name"
            )
            errors.error("bad-secret", seen, "use letters, digits and _ in its name", place)
    if rendered.secrets and folder.compose is not None:
        seen, _, hint = NO_SECRETS.format(runner="the container engine").partition(": ")
        name = next(iter(rendered.secrets))
        message = f"{name} of stage {rendered.stage}: {seen}"
        errors.error(SECRET_IN_CONTAINERS, message, hint, place)


def _words(node: Node, stage: str, errors: Findings) -> tuple[str, ...] | None:
    """Returns a command as a list of words, which no shell ever reads; None after a finding."""
    items = node.items if isinstance(node, Items) else ()
    words = [item.text for item in items if isinstance(item, Scalar)]
    if not words or len(words) != len(items) or not words[0].strip():
        where = node.entries[0].value if isinstance(node, Fields) and node.entries else node
        seen = f"the command of stage {stage} is not a list of strings"
        hint = (
            "write [program, argument, …]; to pass a list or a mapping as JSON, put it in "
            "quotes: '{{ args }}'"
        )
        errors.error("command-kind", seen, hint, where.position)
        return None
    return tuple(words)
