"""What the template of a SIP file works with: parameters, and names that have no value yet.

While a definition is only checked, a parameter that the request will bring is unknown. An
unknown value prints as a place of its own, counts as nothing in loops and conditions, and stays
unknown whatever is done to it, so that the rest of the file can still be read and checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateRuntimeError, Undefined, UndefinedError
from jinja2.utils import missing

from tidewheel.formats.sip.places import Json, output_to_come, parameter_to_come, text_of_value

_OUTPUTS = "outputs"
_NAMED_MAX = 10  # keys in one message


class Structure(dict[str, Any]):
    """A mapping that prints as JSON, also where a template joins it to a text."""

    def __str__(self) -> str:
        return text_of_value(self)


class Listing(list[Any]):
    """A list that prints as JSON."""

    def __str__(self) -> str:
        return text_of_value(self)


class Parameters(Structure):
    """The parameters: what it lacks may still come with the request."""


class JsonText(str):
    """What `| tojson` made; alone in its place it is the value itself, as JSON would be."""

    value: Json

    def __new__(cls, value: Json) -> JsonText:
        made = super().__new__(cls, text_of_value(value))
        made.value = value
        return made


class TemplateText(str):
    """Text of the template itself (of a macro, of `{% set %}` … `{% endset %}`): no value."""

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


class Unknown(Undefined):
    """A value that is not known yet; its name is what people read in its place."""

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
    __hash__ = Undefined.__hash__


class Outputs(Unknown):
    """What a stage will have made; its name is that of the stage."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a template asks for
        if name[:2] == "__":
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: object) -> Unknown:  # type: ignore[override]
        return Unknown(name=output_to_come(str(self._undefined_name), str(name)))

    def __str__(self) -> str:
        return output_to_come(str(self._undefined_name), "all of them")


class _Missing(StrictUndefined):
    """Says what is there instead, in the words of SIP."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint:
            return self._undefined_hint
        found: object = self._undefined_obj
        name: object = self._undefined_name
        if isinstance(found, list) and isinstance(name, int):
            return f"a list has no element {name}: it has {len(found)}"
        if isinstance(found, Parameters):
            return f"the parameter {name!r} is undefined"
        if isinstance(found, dict):
            known = ", ".join(map(str, list(found)[:_NAMED_MAX])) or "nothing"
            return f"there is no {name!r} here, only {known}"
        if found is not missing:
            return f"{_kind(found)} has no {name!r}"
        return super()._undefined_message


def _kind(value: object) -> str:
    """What a value is, in the words of people who write YAML."""
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return "a number"
    return "a text" if isinstance(value, str) else "this"


class AsDue(_Missing):
    """When a stage is due, every name must have a value."""

    __slots__ = ()


class AsRequested(_Missing):
    """When a run is requested, only outputs of stages may still be missing."""

    __slots__ = ()

    def __new__(
        cls,
        hint: str | None = None,
        obj: Any = missing,  # noqa: ANN401 - as Jinja2 has it
        name: str | None = None,
        exc: type[TemplateRuntimeError] = UndefinedError,
    ) -> Any:  # noqa: ANN401 - one of two classes
        if exc is UndefinedError and cls._may_come(obj, name):
            if name == _OUTPUTS and isinstance(obj, Structure):
                return Outputs(name=str(obj.get("id")))
            return Unknown(name=parameter_to_come(str(name)))
        return _Missing(hint, obj, name, exc)

    @classmethod
    def _may_come(cls, obj: object, name: str | None) -> bool:
        return isinstance(obj, Structure) and name == _OUTPUTS


class AsChecked(AsRequested):
    """When a definition is checked, parameters may be missing, too."""

    __slots__ = ()

    @classmethod
    def _may_come(cls, obj: object, name: str | None) -> bool:
        return obj is missing or isinstance(obj, Parameters) or super()._may_come(obj, name)


class AsGlanced(AsRequested):
    """After a mistake the rest is still looked at: anything may be missing."""

    __slots__ = ()

    @classmethod
    def _may_come(cls, obj: object, name: str | None) -> bool:
        del obj, name
        return True


UNDEFINED: Mapping[str, type[Undefined]] = {
    "check": AsChecked,
    "request": AsRequested,
    "due": AsDue,
    "glance": AsGlanced,
}
