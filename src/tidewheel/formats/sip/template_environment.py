"""Provides Jinja2 for SIP files: an immutable sandbox without files that prints places.

While a definition is only checked, a parameter that the request will bring is unknown. An
unknown value prints as a place of its own, counts as nothing in loops and conditions, and stays
unknown whatever is done to it, so that the rest of the file can still be read and checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from tidewheel.core.graph.findings import meant
from tidewheel.formats.sip.placeholders import (
    OPEN,
    Json,
    output_to_come,
    parameter_to_come,
    place,
    text_of_value,
)
from tidewheel.formats.traced_environment import TracedEnvironment

# The values that a template works with: parameters, and names that have no value yet.

_OUTPUTS = "outputs"
_NAMED_MAX = 10  # keys in one message


class Structure(dict[str, Any]):
    """Is a mapping that prints as JSON, also where a template joins it to a text."""

    def __str__(self) -> str:
        return text_of_value(self)


class Listing(list[Any]):
    """Is a list that prints as JSON."""

    def __str__(self) -> str:
        return text_of_value(self)


class TemplateParameters(Structure):
    """Holds the parameters of a request; one that it lacks may still come."""


class JsonText(str):
    """Is the text that `| tojson` makes; printed alone, it counts as the value itself."""

    value: Json

    def __new__(cls, value: Json) -> JsonText:
        made = super().__new__(cls, text_of_value(value))
        made.value = value
        return made


class TemplateText(str):
    """Is text of the template itself (a macro, `{% set %}` … `{% endset %}`) and no value."""

    __slots__ = ()


def wrapped(value: Json) -> object:
    if isinstance(value, dict):
        return Structure({key: wrapped(one) for key, one in value.items()})
    if isinstance(value, list):
        return Listing(wrapped(one) for one in value)
    return value


def _self(self: Unknown, *_: object, **__: object) -> Unknown:
    return self


def _false(self: Unknown, *_: object) -> bool:
    del self
    return False


def _zero(self: Unknown) -> int:
    del self
    return 0


class Unknown(jinja2.Undefined):
    """Stands for a value that is not known yet; its name is what people read in its place."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a template asks for
        if name[:2] == "__":
            raise AttributeError(name)
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __str__(self) -> str:
        return str(self._undefined_name)

    __getitem__ = __call__ = _self  # type: ignore[assignment]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _self  # type: ignore[assignment]
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _self  # type: ignore[assignment]
    __mod__ = __rmod__ = __pow__ = __rpow__ = __pos__ = __neg__ = _self  # type: ignore[assignment]
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __contains__ = _false  # type: ignore[assignment]
    __int__ = __index__ = __len__ = _zero  # type: ignore[assignment]
    __hash__ = jinja2.Undefined.__hash__


class StageOutputs(Unknown):
    """Stands for the outputs that a stage will have made; its name is that of the stage."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a template asks for
        if name[:2] == "__":
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: object) -> Unknown:  # type: ignore[override]
        return Unknown(name=output_to_come(str(self._undefined_name), str(name)))

    def __str__(self) -> str:
        return output_to_come(str(self._undefined_name), "all of them")


class _Missing(jinja2.StrictUndefined):
    """Explains, in the words of SIP, a name that has no value."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint:
            return self._undefined_hint
        found: object = self._undefined_obj
        name: object = self._undefined_name
        if isinstance(found, list) and isinstance(name, int):
            return f"a list has no element {name}: it has {len(found)}"
        if isinstance(found, TemplateParameters):
            return f"the parameter {name!r} is undefined"
        if isinstance(found, dict):
            known = ", ".join(map(str, list(found)[:_NAMED_MAX])) or "nothing"
            return f"there is no {name!r} here, only {known}"
        if found is not missing:
            return f"{_kind(found)} has no {name!r}"
        return super()._undefined_message


def _kind(value: object) -> str:
    """Returns the kind of a value in the words of people who write YAML."""
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return "a number"
    return "a text" if isinstance(value, str) else "this"


class Awaited(_Missing):
    """Stands for a value that a stage returns later: it can be printed, nothing else."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        return f"{self._undefined_name!r} is known only when a stage has returned it"

    @property
    def shown(self) -> str:
        return parameter_to_come(str(self._undefined_name))


class AsRequested(_Missing):
    """Lets only outputs of stages be missing, as when a run is requested."""

    __slots__ = ()

    def __new__(
        cls,
        hint: str | None = None,
        obj: Any = missing,  # noqa: ANN401 - as Jinja2 has it
        name: str | None = None,
        exc: type[jinja2.TemplateRuntimeError] = jinja2.UndefinedError,
    ) -> Any:  # noqa: ANN401 - one of two classes
        if exc is jinja2.UndefinedError and cls._may_come(obj, name):
            if name == _OUTPUTS and isinstance(obj, Structure):
                return StageOutputs(name=str(obj.get("id")))
            return Unknown(name=parameter_to_come(str(name)))
        return _Missing(hint, obj, name, exc)

    @classmethod
    def _may_come(cls, obj: object, name: str | None) -> bool:
        return isinstance(obj, Structure) and name == _OUTPUTS


class AsChecked(AsRequested):
    """Lets parameters be missing, too, as when a definition is checked."""

    __slots__ = ()

    @classmethod
    def _may_come(cls, obj: object, name: str | None) -> bool:
        return (
            obj is missing
            or isinstance(obj, TemplateParameters)
            or super()._may_come(obj, name)
        )


class AsGlanced(AsRequested):
    """Lets anything be missing: after a mistake the rest is still looked at."""

    __slots__ = ()

    @classmethod
    def _may_come(cls, obj: object, name: str | None) -> bool:
        del obj, name
        return True


UNDEFINED: Mapping[str, type[jinja2.Undefined]] = {
    "check": AsChecked,
    "request": AsRequested,
    "due": _Missing,
    "glance": AsGlanced,
}

# The environment.

VALUES_MAX = 100_000  # printed by one template
_PARAMETERS = "parameters"
_UNDEFINED = re.compile(r"'([^']+)' is undefined")
_TAGS = (
    *("for", "endfor", "if", "elif", "else", "endif", "set", "endset", "macro", "endmacro"),
    *("raw", "endraw", "filter", "endfilter", "call", "endcall", "with", "endwith"),
)
_UNKNOWN_TAG = re.compile(r"Encountered unknown tag '([^']+)'")
_UNKNOWN_FILTER = re.compile(r"No (?:filter|test) named '([^']+)'")
_HAS_NO = re.compile(r"(?:a list|a text|a number|true|false|null) has no '([^']+)'")
_ABOUT_STAGES = ("id", "version", "type", "timeout", "parameters", "outputs")
_NOT_THERE = re.compile(r"there is no '([^']+)' here, only (.*)")


class TooManyValues(jinja2.TemplateError):
    """A template printed more values than a file may have."""


class SipEnvironment(ImmutableSandboxedEnvironment, TracedEnvironment):
    """Renders one text after another; `values` are those of the last text's places."""

    def __init__(self, moment: str) -> None:
        self.values: list[dict[str, Json]] = []
        self._names_used: dict[str, int] = {}
        super().__init__(
            undefined=UNDEFINED[moment],
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
        return super()._render(text, variables, marking=marking, macros=macros)

    def _printed(self, value: Any) -> str:  # noqa: ANN401 - whatever a template computes
        if isinstance(value, TemplateText) or (isinstance(value, str) and OPEN in value):
            return value
        if len(self.values) >= VALUES_MAX:
            raise TooManyValues(f"the template prints more than {VALUES_MAX} values")
        if isinstance(value, Unknown):
            self.values.append({"unknown": str(value)})
        elif isinstance(value, Awaited):
            self.values.append({"unknown": value.shown})
        else:
            self.values.append({"value": _as_json(value)})
        return place(len(self.values) - 1)

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
        return {"values": list(self.values), "names": self._names_used}

    def size_of(self, told: dict[str, object]) -> int:
        return len(json.dumps(told["values"]))

    def other_failure(self, error: Exception, text: str, line: int) -> tuple[str, str, str]:
        if isinstance(error, jinja2.TemplateNotFound):
            hint = "each file of a SIP workflow stands alone: copy the text into it"
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
        message = f"this is no Jinja2: {error.message}"
        if (tag := _UNKNOWN_TAG.match(error.message or "")) is not None:
            seen = f"Jinja2 has no {{% {tag[1]} %}}"
            return line, seen, meant(tag[1], _TAGS, _RAW_ADVICE)
        begin, seen, hint = super().syntax_failure(error, text, line)
        if hint:
            return begin, seen, hint
        if (unknown := _UNKNOWN_FILTER.match(error.message or "")) is not None:
            hint = f"{meant(unknown[1], self.filters)} Those of Jinja2 are known, and no others"
            return line, message, hint.lstrip()
        if (advice := _raw_advice(text, line) or _hyphen_advice(text, line)) != "":
            return line, message, advice
        if (begin := _unclosed_sign(text, line)) != 0:
            return begin, "the {{ that begins here is not closed", "write }} where it ends"
        return line, message, _SYNTAX_ADVICE


_OF_NO_VALUE = {"default", "d"}  # filters that are there for what has no value
_SYNTAX_ADVICE = "check that {{ … }}, {% … %}, brackets and quotes are closed in this line"
_COUNT_ADVICE = "elements are counted from 0: ask for fewer, or give the list more of them"
_RAW_ADVICE = (
    "what the engine shall read itself, such as {{.Name}}, stands between {% raw %} and "
    "{% endraw %}"
)
_VALUE_ADVICE = (
    "check the parameters that this line uses: one is of another kind than it needs; a number "
    "in quotes is a text, {{ name | float }} makes a number of it"
)
_OPERANDS = re.compile(
    r"unsupported operand type\(s\) for (\S+): '(\w+)' and '(\w+)'"
    r"|'(\S+)' not supported between instances of '(\w+)' and '(\w+)'"
)
_JOINED = re.compile(r"can only concatenate (\w+) \(not \"(\w+)\"\) to \w+")
_KINDS = {
    **{"str": "a text", "int": "a number", "float": "a number", "bool": "true or false"},
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
        f"a name with '-' is no Jinja2 name: write {{{{ parameters['{found[1]}'] }}}} "
        f"instead of {{{{ {found[1]} }}}}"
    )


def _advice(message: str, variables: dict[str, object]) -> str:
    found = _UNDEFINED.search(message)
    if found is not None:
        asked = (
            f"give the parameter {found[1]!r} in the request, or a default in parameters.yaml"
        )
        return meant(found[1], variables, asked)
    inside = _NOT_THERE.match(message)
    if inside is not None and inside[1] in variables:
        return f"write {{{{ {inside[1]} }}}}: it is known by its name alone"
    if inside is not None and (guess := meant(inside[1], inside[2].split(", "))):
        return guess
    if (of_value := _HAS_NO.match(message)) is not None:
        return _hidden_stage_advice(of_value[1], variables)
    empty = [
        name
        for name, value in variables.items()
        if isinstance(value, list) and not value and name != "args"
    ]
    if empty:
        return f"these parameters are empty: {', '.join(empty)}"
    return _COUNT_ADVICE if message.startswith("a list has no element") else ""


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
        f"a parameter is called like the stage {hidden[0]!r}, and means itself: write "
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
    environment = SipEnvironment(job["moment"])
    # Once for all of them: no template can change it, and it knows every stage.
    shared = {name: wrapped(value) for name, value in job["shared"].items()}
    _put_unknown(shared, job["unknown"])
    for template in job["templates"]:
        own = {name: wrapped(value) for name, value in template["own"].items()}
        known = own.get(_PARAMETERS)
        parameters = TemplateParameters(known if isinstance(known, dict) else {})
        own[_PARAMETERS] = parameters
        for name in template.get("awaited", ()):
            own[name] = parameters[name] = Awaited(name=name)
        _put_unknown(own, template["unknown"])
        yield environment.answer(template["text"], {**shared, **own}, job)


def _put_unknown(variables: dict[str, Any], unknown: list[tuple[list[str | int], str]]) -> None:
    """Puts an unknown value, which people read as its text, at the end of each path."""
    for path, shown in unknown:
        inner: Any = variables
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = Unknown(name=shown)
