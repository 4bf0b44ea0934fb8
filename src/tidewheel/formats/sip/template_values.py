"""Defines the values that templates of SIP files work with, and those that are missing.

While a definition is only checked, a parameter that the request will bring is unknown. An
unknown value prints as a place of its own, counts as nothing in loops and conditions, and stays
unknown whatever is done to it, so that the rest of the file can still be read and checked.

A template that fails because a value is missing is rendered once more, *glanced* at: each such
value is noted where it is used and is unknown from there on: one mistake hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from itertools import islice
from typing import Any

import jinja2
from jinja2.utils import missing

from tidewheel.formats.sip.placeholders import (
    Json,
    output_to_come,
    parameter_to_come,
    text_of_value,
)

_OUTPUTS = "outputs"
_NAMED_MAX = 10  # keys in one message


class Structure(dict[str, Any]):
    """Is a mapping that prints as JSON, also where a template joins it to a string."""

    def lacks(self, name: str) -> str:
        """Returns what people read who look for a name that it does not have."""
        known = f", only {_listed(self)}" if self else ": it is empty"
        return f"there is no {name!r} here{known}"

    def __str__(self) -> str:
        return text_of_value(self)


class Listing(list[Any]):
    """Is a list that prints as JSON."""

    def __str__(self) -> str:
        return text_of_value(self)


class TemplateParameters(Structure):
    """Holds the parameters of a request; one that it lacks may still come."""


class KnownStage(Structure):
    """Holds what is known of a stage: its parameters, and facts such as its version."""

    def __init__(
        self, about: Mapping[str, Any], parameters: object, *, facts_first: bool
    ) -> None:
        own = parameters if isinstance(parameters, dict) else {}
        super().__init__({**own, **about} if facts_first else {**about, **own})
        self.stage, self.own = str(about.get("id")), [*own]
        self.is_open = not isinstance(parameters, dict)  # its parameters could not be read

    def lacks(self, name: str) -> str:
        others = (one for one in self if one not in self.own)
        return f"stage {self.stage} has no {name!r}, only {_listed([*self.own, *others])}"


class OwnStage(Structure):
    """Holds the facts of the stage whose template it is."""

    def lacks(self, name: str) -> str:
        return f"this stage has no {name!r}, only {_listed(self)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(str, islice(names, _NAMED_MAX)))


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
        if isinstance(found, Structure):
            return found.lacks(str(name))
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
    return "a string" if isinstance(value, str) else "this"


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
                of = obj.stage if isinstance(obj, KnownStage) else obj.get("id")
                return StageOutputs(name=str(of))
            return Unknown(name=parameter_to_come(str(name)))
        return _Missing(hint, obj, name, exc)

    @classmethod
    def _may_come(cls, obj: object, name: str | None) -> bool:
        is_open = isinstance(obj, KnownStage) and obj.is_open
        return is_open or (isinstance(obj, Structure) and name == _OUTPUTS)


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


UNDEFINED: Mapping[str, type[jinja2.Undefined]] = {
    "check": AsChecked,
    "request": AsRequested,
    "due": _Missing,
}


class Lacking(Unknown):
    """Stands for a value that is missing by mistake: its first use is told, then it is unknown.

    A subclass says whom to tell, and what is no mistake.
    """

    __slots__ = ()
    usual: type[jinja2.Undefined] = _Missing
    note: Callable[[str], None] = staticmethod(lambda _: None)

    def __new__(
        cls,
        hint: str | None = None,
        obj: Any = missing,  # noqa: ANN401 - as Jinja2 has it
        name: str | None = None,
        exc: type[jinja2.TemplateRuntimeError] = jinja2.UndefinedError,
    ) -> Any:  # noqa: ANN401 - one of two classes
        usual = cls.usual(hint, obj, name, exc)
        is_mistake = exc is jinja2.UndefinedError and not isinstance(usual, Unknown)
        return super().__new__(cls) if is_mistake else usual

    def tell(self) -> None:
        seen = self.usual(self._undefined_hint, self._undefined_obj, self._undefined_name)
        self.note(seen._undefined_message)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a template asks for
        if name[:2] == "__":
            raise AttributeError(name)
        self.tell()
        return self


def _telling(act: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an operation on a missing value that tells of it before it does what it does."""

    @wraps(act)
    def told(self: Lacking, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - any operation
        self.tell()
        return act(self, *args, **options)

    return told


_USES = (
    *("iter", "str", "getitem", "call", "bool", "int", "index", "len", "contains", "hash"),
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv"),
    *("rfloordiv", "mod", "rmod", "pow", "rpow", "pos", "neg", "lt", "le", "gt", "ge", "eq"),
)
for _use in _USES:
    setattr(Lacking, f"__{_use}__", _telling(getattr(Unknown, f"__{_use}__")))
