"""Reads the folder of a stage: how it is executed, its parameters, arguments and outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from tidewheel.core.graph.findings import Findings, Position, nearest
from tidewheel.formats.sip.document import Fields, Items, Scalar, is_null, plain_value
from tidewheel.formats.sip.model import Stage
from tidewheel.formats.sip.placeholders import Json, text_of_value
from tidewheel.formats.sip.text_files import (
    STAGES_FOLDER,
    FileName,
    SipSource,
    decoded,
    file_name,
    folders_for,
    read_plain,
)
from tidewheel.lazy_dataclasses import dataclass

COMPOSE, ARGS, PARAMETERS, OUTPUTS = "docker_compose", "args", "parameters", "outputs"
COMMAND, SCRIPT = "command", "script"
# What may say nothing, with a warning, and what to do instead.
_BLANK = {
    SCRIPT: "the stage does nothing and succeeds; write its commands",
    ARGS: "write the arguments, or remove it",
    PARAMETERS: "write name: default for each parameter, or remove it",
    OUTPUTS: "write a line '- NAME' for each value that the stage provides, or remove it",
}
# Spelled as the engines spell it; tolerated with a warning.
_COMPOSE_SPELLINGS = ("docker-compose", "compose")
# What people call files that are then not read.
_DATA_SPELLINGS = {
    **dict.fromkeys(("parameter", "params", "param"), PARAMETERS),
    **dict.fromkeys(("arguments", "argument", "arg"), ARGS),
    **dict.fromkeys(("output", "outs"), OUTPUTS),
}
_TEMPLATE_SIGNS = ("{{", "{%")
# Those of Jinja2: engines have {{.Node.Hostname}} themselves.
_TEMPLATE_SIGN = re.compile(r"\{\{-?\s*[A-Za-z_('\"\[]|\{%")
_SCRIPT_ADVICE = (
    "expected a bash script called script.sh, which finds each value in $PARAMETER_name and "
    "is never a template; give a program in another language another name, and call it in "
    'script.sh: "$TIDEWHEEL_STAGE_DIR"/NAME'
)
_YAML = (".yaml", ".yml")
_DATA = (*_YAML, ".json")


@dataclass(frozen=True, slots=True)
class StageText:
    """Holds one file of a stage, as text."""

    path: str
    text: str
    is_template: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFolder:
    """Holds the files of one stage: one of compose, command and script is what is executed."""

    stage: str
    folder: str
    compose: StageText | None = None
    command: StageText | None = None
    script: StageText | None = None
    args: StageText | None = None
    defaults: Mapping[str, Json] = field(default_factory=dict)
    required: tuple[str, ...] = ()  # parameters without a default
    places: Mapping[str, Position] = field(default_factory=dict)  # of its parameters
    outputs: tuple[str, ...] = ()  # what it provides for later stages
    # What is there and could not be read, of ARGS, PARAMETERS and OUTPUTS.
    unread: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Says whether all of its parameters and outputs are known."""
        return self.unread.isdisjoint((PARAMETERS, OUTPUTS))


def read_stage_folder(
    stage: Stage, source: SipSource, findings: Findings
) -> StageFolder | None:
    """Returns the folder of a stage; None, with a finding, if there is none."""
    if not source.refused.isdisjoint(folders_for(stage.id, stage.version)):
        return None  # it was reported when the files were read
    folder = source.folder_of(stage.id, stage.version)
    if folder is None:
        _report_missing(stage, source, findings)
        return None
    if folder != folders_for(stage.id, stage.version)[0]:
        seen = f"the folder of stage {stage.id} is {folder}"
        hint = f"move it to {folders_for(stage.id, stage.version)[0]}"
        findings.warning("stage-folder-place", seen, hint, stage.position)
    lead = f"{folder}/"
    refused = (one.removeprefix(lead) for one in source.refused if one.startswith(lead))
    files = {**dict.fromkeys(refused), **source.inside(folder)}
    return _Folder(stage, folder, files, findings).read()


class _Folder:
    """Reads the files of one stage's folder, each under one of its names."""

    def __init__(
        self, stage: Stage, folder: str, files: Mapping[str, bytes | None], findings: Findings
    ) -> None:
        """``files`` are by name; None stands for one that was refused before."""
        self._stage = stage
        self._folder = folder
        self._files = files
        self._names = [file_name(name) for name in sorted(files)]
        self._findings = findings
        self._unread: set[str] = set()
        self._places: dict[str, Position] = {}

    def read(self) -> StageFolder:
        self._check_spellings()
        compose = self._text(COMPOSE, _YAML, "compose")
        command = self._text(COMMAND, _DATA, "command")
        script = self._text(SCRIPT, (".sh",), "script", template=False)
        self._check_execution(compose, command, script)
        defaults, required = self._parameters()
        args, outputs = self._text(ARGS, _DATA, "args"), self._outputs()
        return StageFolder(
            stage=self._stage.id,
            folder=self._folder,
            compose=compose,
            command=command,
            script=script,
            args=args,
            defaults=defaults,
            required=required,
            places=self._places,
            outputs=outputs,
            unread=frozenset(self._unread),
        )

    def _text(
        self, stem: str, suffixes: tuple[str, ...], kind: str, *, template: bool = True
    ) -> StageText | None:
        """Returns the file with this stem, or None; reports another kind and a second file."""
        accepted = ", ".join(stem + suffix for suffix in suffixes)
        found: list[FileName] = []
        for name in self._names:
            if name.stem not in _stems(stem):
                continue
            if name.suffix in suffixes and (template or not name.is_template):
                found.append(name)
                continue
            optional = ", each also with .j2" if template else ""
            ending = (name.suffix or "its name") + (".j2" if name.is_template else "")
            wrong = f"cannot be read as {kind}: {ending} is not accepted"
            seen = f"stage {self._stage.id}: {name.path} {wrong}"
            hint = f"expected {accepted}{optional}" if stem != SCRIPT else _SCRIPT_ADVICE
            self._findings.error(f"{kind}-file-kind", seen, hint, self._position(name.path))
            self._unread.add(stem)
        if len(found) > 1:
            seen = f"stage {self._stage.id} has both {found[0].path} and {found[1].path}"
            hint = "keep one of them"
            self._findings.error("two-files", seen, hint, self._position(found[1].path))
        if not found:
            return None
        path, content = f"{self._folder}/{found[0].path}", self._files[found[0].path]
        text = decoded(path, content, self._findings) if content is not None else None
        if text is None:
            self._unread.add(stem)
        if text is None or (stem in _BLANK and self._is_blank(stem, path, text)):
            return None
        if template and not found[0].is_template:
            self._check_signs(path, text)
        return StageText(path, text, found[0].is_template)

    def _check_signs(self, path: str, text: str) -> None:
        """Warns of a file that looks like a template, but whose name does not say so."""
        if (sign := _TEMPLATE_SIGN.search(text)) is not None:
            name = path.rpartition("/")[2]
            but = "looks like a template, but its name says that it is not one"
            place = Position(path, text.count("\n", 0, sign.start()) + 1)
            hint = f"call it {name}.j2 if it is a template"
            seen = f"stage {self._stage.id}: {name} {but}"
            self._findings.warning("template-name", seen, hint, place)

    def _is_blank(self, stem: str, path: str, text: str) -> bool:
        """Says whether a file counts as absent: it has only comments. Warns of an empty one.

        A script is never absent: one that has only comments does nothing and succeeds, with a
        warning.
        """
        lines = (line.strip() for line in text.splitlines())
        blank = all(not line or line.startswith("#") for line in lines)
        if blank and (stem == SCRIPT or not text.strip()):
            how = "has only comments" if text.strip() else "is empty"
            seen = f"stage {self._stage.id}: {path.rpartition('/')[2]} {how}"
            self._findings.warning("blank-file", seen, _BLANK[stem], Position(path))
        return blank and stem != SCRIPT

    def _check_spellings(self) -> None:
        stems = {name.stem for name in self._names}
        for name in self._names:
            meant = _DATA_SPELLINGS.get(name.stem.lower(), "")
            if meant and meant not in stems and name.suffix in _DATA:
                kept = f"{name.path} is stored with the stage, but not read"
                hint, place = (
                    f"call it {meant}{name.suffix} if it should be read",
                    self._position(name.path),
                )
                self._findings.warning(
                    "unread-file", f"stage {self._stage.id}: {kept}", hint, place
                )
            if name.stem in _COMPOSE_SPELLINGS and name.suffix in _YAML:
                seen = f"stage {self._stage.id}: the compose file is called {name.path}"
                hint = f"call it {COMPOSE}.yaml{'.j2' if name.is_template else ''}"
                place = self._position(name.path)
                self._findings.warning("compose-spelling", seen, hint, place)

    def _check_execution(self, *texts: StageText | None) -> None:
        named = [one.path.rpartition("/")[2] for one in texts if one is not None]
        if len(named) > 1:
            seen = f"stage {self._stage.id} has {' and '.join(named)}"
            hint = "keep only the file that the stage should execute"
            self._findings.error("two-executions", seen, hint, Position(self._folder))
        known = {stem for kind in (COMPOSE, COMMAND, SCRIPT) for stem in _stems(kind)}
        if not named and not any(one.stem in known for one in self._names):
            stems = {one.stem.lower(): one.path for one in reversed(self._names)}
            near = stems.get(nearest(COMPOSE, stems) or "", "")
            message = f"stage {self._stage.id}: there is no {COMPOSE}.yaml in {self._folder}"
            advice = (
                (f"{near} is there: rename it, or " if near else "")
                + f"add {COMPOSE}.yaml or {COMPOSE}.yaml.j2; or, to run without containers, "
                f"{COMMAND}.yaml with a list of words or {SCRIPT}.sh"
            )
            self._findings.error("no-compose-file", message, advice, Position(self._folder))

    def _parameters(self) -> tuple[dict[str, Json], tuple[str, ...]]:
        """Returns the defaults of parameters, and the names of those without a default. A
        request or an earlier stage must give these."""
        file = self._text(PARAMETERS, _DATA, "parameters", template=False)
        root = read_plain(file.path, file.text, self._findings) if file else None
        if file is not None and any(sign in file.text for sign in _TEMPLATE_SIGNS):
            name = file.path.rpartition("/")[2]
            but = "looks like a template, but files of parameters are not rendered"
            seen = f"stage {self._stage.id}: {name} {but}"
            hint = "write plain values, and compute with them where they are used"
            self._findings.warning("parameters-template", seen, hint, Position(file.path))
        if file is not None and not isinstance(root, Fields):
            self._unread.add(PARAMETERS)
        if file is None or root is None:
            return {}, ()
        if not isinstance(root, Fields):
            seen = f"stage {self._stage.id}: the parameters are not a mapping"
            hint = (
                "write each parameter as `name: default`; for one with `name:` alone, the user "
                "must give a value"
            )
            self._findings.error("parameters-kind", seen, hint, root.position)
            return {}, ()
        self._places = {entry.key.text: entry.key.position for entry in root}
        empty = {
            entry.key.text
            for entry in root
            if is_null(entry.value)
            or (isinstance(entry.value, Scalar) and not entry.value.text.strip())
        }
        defaults = {
            entry.key.text: plain_value(entry.value)
            for entry in root
            if entry.key.text not in empty
        }
        return defaults, tuple(sorted(empty))

    def _outputs(self) -> tuple[str, ...]:
        """Returns the names of outputs, written as a list or as the keys of a mapping."""
        file = self._text(OUTPUTS, _DATA, "outputs", template=False)
        root = read_plain(file.path, file.text, self._findings) if file else None
        if root is None:
            if file is not None:
                self._unread.add(OUTPUTS)
            return ()
        if isinstance(root, Fields):
            return tuple(entry.key.text for entry in root)
        if isinstance(root, Items) and all(isinstance(one, Scalar) for one in root.items):
            return tuple(text_of_value(plain_value(one)) for one in root.items)
        seen = f"stage {self._stage.id}: the outputs are not a list of names"
        hint = "write a line '- NAME' for each value that the stage provides"
        self._findings.error("outputs-kind", seen, hint, root.position)
        self._unread.add(OUTPUTS)
        return ()

    def _position(self, name: str) -> Position:
        return Position(f"{self._folder}/{name}")


def _stems(stem: str) -> tuple[str, ...]:
    return (stem, *_COMPOSE_SPELLINGS) if stem == COMPOSE else (stem,)


def _report_missing(stage: Stage, source: SipSource, findings: Findings) -> None:
    wanted = folders_for(stage.id, stage.version)[0]
    if STAGES_FOLDER not in source.folders:
        if all(one.code != "no-stages-folder" for one in findings):  # once for all stages
            beside = {one.lower(): one for one in sorted(source.folders) if "/" not in one}
            like = STAGES_FOLDER if STAGES_FOLDER in beside else nearest(STAGES_FOLDER, beside)
            message = f"there is no folder {STAGES_FOLDER} beside {source.file}"
            advice = f"create {wanted} with a {COMPOSE}.yaml in it, and the same for each stage"
            if like:
                advice = f"{beside[like]} is there: rename it to {STAGES_FOLDER}"
            findings.error("no-stages-folder", message, advice, stage.position)
        return
    lead = f"{STAGES_FOLDER}/{stage.id}/"
    versions = sorted(one.removeprefix(lead) for one in source.folders if one.startswith(lead))
    others = [one.split("/")[1] for one in source.folders if one.count("/") == 1]
    if versions:
        hint = f"found: {', '.join(versions)}; the version must be the folder's name"
    elif stage.id in others:
        hint = f"create it, and move the files of {STAGES_FOLDER}/{stage.id} into it"
    elif near := nearest(stage.id, others):
        hint = f"did you mean {near!r}? The id must be the folder's name"
    else:
        hint = "create it: stages/<id>/<version>, with id and version of the stage"
    seen = f"stage {stage.id} {stage.version} has no folder {wanted}"
    findings.error("no-stage-folder", seen, hint, stage.position)
