"""Provides Jinja2 for SIP files: an immutable sandbox without files that prints places."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tidewheel.core.graph.findings import meant
from tidewheel.formats.sip.placeholders import OPEN, Json, parameter_to_come, place
from tidewheel.formats.sip.template_values import (
    UNDEFINED,
    Awaited,
    JsonText,
    KnownStage,
    Lacking,
    OwnStage,
    Structure,
    TemplateParameters,
    TemplateText,
    Unknown,
    wrapped,
)
from tidewheel.formats.traced_environment import TracedEnvironment

VALUES_MAX = 100_000  # printed by one template
_PARAMETERS = "parameters"
_STAGES = "stages"
_UNDEFINED = re.compile(r"'([^']+)' is undefined")
_TAGS = (
    *("for", "endfor", "if", "elif", "else", "endif", "set", "endset", "macro", "endmacro"),
    *("raw", "endraw", "filter", "endfilter", "call", "endcall", "with", "endwith"),
)
_UNKNOWN_TAG = re.compile(r"Encountered unknown tag '([^']+)'")
_UNKNOWN_FILTER = re.compile(r"No (?:filter|test) named '([^']+)'")
_HAS_NO = re.compile(r"(a list|a string|a number|true|false|null) has no '([^']+)'")
_ABOUT_STAGES = ("id", "version", "type", "timeout", "parameters", "outputs")
_NOT_THERE = re.compile(r"there is no '([^']+)' here(?:, only (.*)|: it is empty)")
_NOT_OF_STAGE = re.compile(r"(?:this stage|stage (\S+)) has no '([^']+)', only (.*)")
_NO_ELEMENT = "a list has no element"
LACKING_MAX = 100  # that are told of one template


class TooManyValues(jinja2.TemplateError):
    """A template printed more values than a file may have."""


class SipEnvironment(ImmutableSandboxedEnvironment, TracedEnvironment):
    """Renders one string after another; `values` are those of the last text's places."""

    def __init__(self, moment: str, *, glances: bool = False) -> None:
        self.values: list[dict[str, Json]] = []
        self._names_used: dict[str, int] = {}
        self._lacking: dict[tuple[int, str], str] = {}  # with what to do
        self._rendered: tuple[str, dict[str, object]] = "", {}
        usual = UNDEFINED[moment]
        # As a class of its own: Jinja2 makes such values wherever it meets a name.
        noting = {"__slots__": (), "usual": usual, "note": staticmethod(self._note)}
        super().__init__(
            undefined=type("Noted", (Lacking,), noting) if glances else usual,
            finalize=self._printed,
            loader=jinja2.FunctionLoader(lambda _: None),  # there is no file to include
            keep_trailing_newline=True,
        )
        self.filters["tojson"] = _to_json
        for name in self.filters.keys() - _OF_NO_VALUE:
            self.filters[name] = _staying_unknown(self.filters[name])

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Joins the parts that macros and `{% set %}` blocks print: text, not a value."""
        return TemplateText("".join(parts))

    def _render(
        self, text: str, variables: dict[str, object], *, marking: bool, macros: bool
    ) -> str:
        self.values.clear()  # so that the same place has the same number each time
        self._lacking.clear()
        self._rendered = text, variables
        return super()._render(text, variables, marking=marking, macros=macros)

    def _printed(self, value: Any) -> str:  # noqa: ANN401 - whatever a template computes
        if isinstance(value, TemplateText) or (isinstance(value, str) and OPEN in value):
            return value
        if len(self.values) >= VALUES_MAX:
            raise TooManyValues(f"the template prints more than {VALUES_MAX} values")
        if isinstance(value, Lacking):
            value.tell()
            self.values.append({"unknown": parameter_to_come(str(value._undefined_name))})
        elif isinstance(value, Unknown):
            self.values.append({"unknown": str(value)})
        elif isinstance(value, Awaited):
            self.values.append({"unknown": value.shown})
        else:
            self.values.append({"value": _as_json(value)})
        return place(len(self.values) - 1)

    def _note(self, message: str) -> None:
        line, (text, variables) = _line_of_template(), self._rendered
        if message.startswith(_NO_ELEMENT) and any(
            there == line and told.startswith(_NO_ELEMENT) for there, told in self._lacking
        ):
            return  # one turn of a loop after the other
        if (line, message) not in self._lacking and len(self._lacking) < LACKING_MAX:
            self._lacking[line, message] = self.advice(message, text, line, variables)

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401 - whatever there is
        """Returns an attribute or a key; a key counts more than a method.

        `args.items` is what the author has called `items`.
        """
        if isinstance(obj, Structure) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def names_in(self, text: str) -> dict[str, int]:
        """Returns the names that a template takes from outside, with the first line of each.

        `parameters.x` and `parameters["x"]` count as the name x, too.
        """
        tree = super()._parse(text, None, None)
        outside = meta.find_undeclared_variables(tree)
        found: dict[str, int] = {}
        for name, line in _names(tree):
            if name in outside or name.startswith(f"{_PARAMETERS}."):
                found.setdefault(name.removeprefix(f"{_PARAMETERS}."), line)
        return found

    def prepare(self, text: str) -> None:
        self._names_used = self.names_in(text)

    def told(self) -> dict[str, object]:
        lacking = [
            {"code": "template-undefined", "message": message, "hint": hint, "line": line}
            for (line, message), hint in self._lacking.items()
        ]
        return {"values": list(self.values), "names": self._names_used, "lacking": lacking}

    def size_of(self, told: dict[str, object]) -> int:
        return len(json.dumps(told["values"]))

    def other_failure(self, error: Exception, text: str, line: int) -> tuple[str, str, str]:
        if isinstance(error, jinja2.TemplateNotFound):
            hint = "a file of a SIP workflow cannot include another: copy the text into it"
            return "template-include", f"the file {error.name!r} cannot be included", hint
        if isinstance(error, TooManyValues):
            return "template-too-large", str(error), ""
        message = f"this cannot be computed: {_in_words(str(error), error)}"
        return "template-failed", message, _hyphen_advice(text, line) or _VALUE_ADVICE

    def advice(self, message: str, text: str, line: int, variables: dict[str, object]) -> str:
        return _hyphen_advice(text, line) or _advice(message, variables)

    def syntax_failure(
        self, error: jinja2.TemplateSyntaxError, text: str, line: int
    ) -> tuple[int, str, str]:
        message = f"this is not valid Jinja2: {error.message}"
        if (tag := _UNKNOWN_TAG.match(error.message or "")) is not None:
            seen = f"Jinja2 has no {{% {tag[1]} %}}"
            return line, seen, meant(tag[1], _TAGS, _RAW_ADVICE)
        begin, seen, hint = super().syntax_failure(error, text, line)
        if hint:
            return begin, seen, hint
        if (unknown := _UNKNOWN_FILTER.match(error.message or "")) is not None:
            hint = f"{meant(unknown[1], self.filters)} Only the filters of Jinja2 are known"
            return line, message, hint.lstrip()
        if (advice := _raw_advice(text, line) or _hyphen_advice(text, line)) != "":
            return line, message, advice
        if (begin := _unclosed_sign(text, line)) != 0:
            return begin, "the {{ that begins here is not closed", "write }} where it ends"
        return line, message, _SYNTAX_ADVICE


_OF_NO_VALUE = {"default", "d"}  # filters that are there for what has no value
_SYNTAX_ADVICE = "check that {{ … }}, {% … %}, brackets and quotes are closed in this line"
_COUNT_ADVICE = "elements are counted from 0: use a smaller index, or give a longer list"
_RAW_ADVICE = (
    "put text for the container engine, such as {{.Name}}, between {% raw %} and {% endraw %}"
)
_VALUE_ADVICE = (
    "check the types of the parameters in this line; a number in quotes is a string, and "
    "{{ name | float }} makes it a number"
)
_OPERANDS = re.compile(
    r"unsupported operand type\(s\) for (\S+): '(\w+)' and '(\w+)'"
    r"|'(\S+)' not supported between instances of '(\w+)' and '(\w+)'"
)
_JOINED = re.compile(r"can only concatenate (\w+) \(not \"(\w+)\"\) to \w+")
_KINDS = {
    **{"str": "a string", "int": "a number", "float": "a number", "bool": "true or false"},
    **{"list": "a list", "Listing": "a list", "dict": "a mapping", "Structure": "a mapping"},
    **{"Parameters": "a mapping", "NoneType": "null"},
}


def _raw_advice(text: str, line: int) -> str:
    lines = text.split("\n")
    is_one = 1 <= line <= len(lines) and "{{." in lines[line - 1].replace(" ", "")
    return _RAW_ADVICE if is_one else ""


def _unclosed_sign(text: str, line: int) -> int:
    """Returns the line of the last `{{` before a mistake, if nothing closes it; else 0."""
    before = "\n".join(text.split("\n")[:line])
    opened = before.rfind("{{")
    if opened == -1 or "}}" in before[opened:]:
        return 0
    return before.count("\n", 0, opened) + 1


_HYPHENATED = re.compile(r"\{\{-?\s*([A-Za-z_]\w*(?:-\w+)+)\s*(?:\|[^}]*)?-?\}\}")


def _hyphen_advice(text: str, line: int) -> str:
    """Returns advice on `{{ stage-01_duration }}`, a subtraction to Jinja2; "" for others."""
    lines = text.split("\n")
    found = _HYPHENATED.search(lines[line - 1]) if 1 <= line <= len(lines) else None
    if found is None:
        return ""
    return (
        f"a name with '-' is not a Jinja2 name: write {{{{ parameters['{found[1]}'] }}}} "
        f"instead of {{{{ {found[1]} }}}}"
    )


def _advice(message: str, variables: dict[str, object]) -> str:
    found = _UNDEFINED.search(message)
    if found is not None:
        asked = (
            f"give the parameter {found[1]!r} in the request, or a default in parameters.yaml"
        )
        return meant(found[1], variables, asked)
    if (inside := _NOT_THERE.match(message)) is not None:
        name, known = inside[1], (inside[2] or "").split(", ")
        return meant(name, known, f"add {name} where its value is given, or leave it out here")
    if (looked_in := _NOT_OF_STAGE.match(message)) is not None:
        return _stage_advice(looked_in[1], looked_in[2], looked_in[3], variables)
    if (of_value := _HAS_NO.match(message)) is not None:
        hidden = _hidden_stage_advice(of_value[2], variables)
        return hidden or _kind_advice(of_value[1], of_value[2])
    empty = [
        name
        for name, value in variables.items()
        if isinstance(value, list) and not value and name != "args"
    ]
    if empty:
        return f"these parameters are empty: {', '.join(empty)}"
    return _COUNT_ADVICE if message.startswith(_NO_ELEMENT) else ""


def _stage_advice(
    stage: str | None, name: str, known: str, variables: dict[str, object]
) -> str:
    """Returns advice on a name that a stage does not have, None for the template's own stage.

    What the own stage has is known by its name; by its name alone, what another has is not.
    """
    if stage is not None:
        asked = (
            f"name it in the parameters.yaml of {stage}, or give it with the request: "
            f"-p '{stage}={{\"{name}\": …}}'"
        )
        return meant(name, known.split(", "), asked)
    facts = variables.get("stage")
    own = facts.get(_PARAMETERS) if isinstance(facts, dict) else None
    if name == "args" or (isinstance(own, dict) and name in own):
        return f"write {{{{ {name} }}}}: in its own stage it has no prefix"
    asked = f"name it in the parameters.yaml of the stage, and write {{{{ {name} }}}}"
    return meant(name, known.split(", "), asked)


def _kind_advice(kind: str, name: str) -> str:
    """Returns advice on a name that is looked for in a value which has no names."""
    if kind == "a list":
        return (
            f"a list has elements, counted from 0: write [0].{name} for the first element, or "
            f"{{% for one in … %}}{{{{ one.{name} }}}}{{% endfor %}} for each"
        )
    return f"only a mapping has keys: give a mapping {{{name}: …}}, or leave out .{name}"


def _in_words(message: str, error: Exception) -> str:
    """Returns what Python says of kinds of values in words of people who write YAML."""
    if (found := _OPERANDS.match(message)) is not None:
        sign, left, right = found.groups()[:3] if found[1] else found.groups()[3:]
    elif (found := _JOINED.match(message)) is not None:
        sign, left, right = "+", found[1], found[2]
    else:
        return message or type(error).__name__
    kinds = [_KINDS.get(one, one) for one in (left, right)]
    return f"{kinds[0]} {sign.rstrip(':')} {kinds[1]}"


def _hidden_stage_advice(attribute: str, variables: dict[str, object]) -> str:
    """Returns advice on `beams.parameters` where a parameter has the name of a stage. It is ""
    where that is not so."""
    stages = variables.get("stages")
    ids = [str(one) for one in stages] if isinstance(stages, dict) else []
    hidden = [one for one in ids if not isinstance(variables.get(one), dict)]
    if not hidden or attribute not in _ABOUT_STAGES:
        return ""
    return (
        f"a parameter has the same name as the stage {hidden[0]!r} and hides it: write "
        f"stages['{hidden[0]}'].{attribute}"
    )


def _names(tree: nodes.Template) -> Iterator[tuple[str, int]]:
    for node in tree.find_all((nodes.Name, nodes.Getattr, nodes.Getitem)):
        match node:
            case nodes.Name(name=name, ctx="load"):
                yield name, node.lineno
            case nodes.Getattr(node=nodes.Name(name="parameters"), attr=attribute):
                yield f"{_PARAMETERS}.{attribute}", node.lineno
            case nodes.Getitem(
                node=nodes.Name(name="parameters"), arg=nodes.Const(value=str(key))
            ):
                yield f"{_PARAMETERS}.{key}", node.lineno
            case _:
                pass


def _line_of_template() -> int:
    """Returns the line of the template that is just being rendered; 0 if there is none."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        template = frame.f_globals.get("__jinja_template__")
        if template is not None:
            return int(template.get_corresponding_lineno(frame.f_lineno))
    return 0


def _staying_unknown(made: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a filter that returns a value unchanged if it is not known yet. Some filters get
    the environment or the context first, and the value after it."""

    @wraps(made)
    def filtered(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - any filter
        unknown = next((one for one in args[:2] if isinstance(one, Unknown)), None)
        return made(*args, **options) if unknown is None else unknown

    return filtered


def _to_json(value: Any, indent: int | None = None) -> object:  # noqa: ANN401 - a filter
    """Returns a value as JSON, without the escapes for HTML that Jinja2's own has."""
    del indent
    return value if isinstance(value, jinja2.Undefined) else JsonText(_as_json(value))


def _as_json(value: Any) -> Json:  # noqa: ANN401 - whatever a template computes
    if isinstance(value, JsonText):
        return value.value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): _as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in value]
    return str(value)  # of a name without a value it raises


def answers(job: dict[str, Any]) -> Iterator[dict[str, object]]:
    """Yields an answer for each template: lines, origins and values, or why there are none."""
    environment = SipEnvironment(job["moment"], glances=job["glance"])
    # Once for all of them: no template can change it, and it knows every stage.
    shared: dict[str, Any] = {name: wrapped(value) for name, value in job["shared"].items()}
    _put_unknown(shared, job["unknown"])
    shared = {**_stages_by_id(shared, job["hidden"]), **_with_stages(shared)}
    for template in job["templates"]:
        own = {name: wrapped(value) for name, value in template["own"].items()}
        known = own.get(_PARAMETERS)
        parameters = TemplateParameters(known if isinstance(known, dict) else {})
        own[_PARAMETERS] = parameters
        for name in template.get("awaited", ()):
            own[name] = parameters[name] = Awaited(name=name)
        _put_unknown(own, template["unknown"])
        if isinstance(stage := own.get("stage"), dict):
            own["stage"] = OwnStage(stage)
        yield environment.answer(template["text"], {**shared, **_with_stages(own)}, job)


def _stages_by_id(names: Mapping[str, Any], hidden: Iterable[str]) -> dict[str, Any]:
    """Returns each stage by its id; of the same name, a parameter counts more than a fact.

    Ids are ``hidden`` that mean something else to Jinja2.
    """
    stages = names.get(_STAGES, {})
    return {
        name: KnownStage(about, about.get(_PARAMETERS), facts_first=False)
        for name, about in stages.items()
        if name not in {*hidden}
    }


def _with_stages(names: dict[str, Any]) -> dict[str, Any]:
    """Returns names whose `stages` have their parameters, too; facts count more."""
    stages = names.get(_STAGES)
    if not isinstance(stages, dict):
        return names
    known = {
        name: KnownStage(about, about.get(_PARAMETERS), facts_first=True)
        for name, about in stages.items()
    }
    return {**names, _STAGES: Structure(known)}


def _put_unknown(variables: dict[str, Any], unknown: list[tuple[list[str | int], str]]) -> None:
    """Puts an unknown value, which people read as its text, at the end of each path."""
    for path, shown in unknown:
        inner: Any = variables
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = Unknown(name=shown)
