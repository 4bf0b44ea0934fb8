"""Makes dataclasses, named tuples and patterns that are compiled when they are used.

Theory of operation
-------------------
``dataclasses.dataclass`` writes up to six methods of each class as text and compiles them: 0.5
ms for a frozen class. A command loads 350 classes and uses a third of them: that was a third
of the time from its start to its end. Here each method is a stub that puts the compiled one in
its place, and ``dataclasses`` finds the fields when somebody first asks for them. The first few
instances of a class are filled field by field: many a class has no more. ``fields``,
``replace``, ``asdict``, pickle, msgspec and type checkers (for whom this *is*
``dataclasses.dataclass``) see no difference.
Offered is what is used here: slots always, no ordering, no ``InitVar``. A frozen instance is
filled through its slots, at two thirds of the cost of ``object.__setattr__``; one of many
fields, at a third of that, while it is an instance of a class below its own that refuses
nothing: nobody else has it yet. Figures are in docs/decisions/0048.

``maker`` compiles a function that makes an instance out of another, or out of a row, in the
same way: by the names of fields of classes of ours.

``NamedTuple`` is that of ``typing`` without its look at each annotation, which compiles it; a
class gets its ``__new__`` when the first instance is made. A command loads 126 of them.

``pattern`` is ``re.compile`` for modules: a command loads 110 patterns, which take 0.1 ms each
to compile, and uses a third of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["NamedTuple", "dataclass", "maker", "pattern"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass
    from re import compile as pattern
    from typing import NamedTuple
else:
    import dataclasses
    import re
    from _thread import RLock
    from collections import namedtuple
    from collections.abc import Callable, Iterable, Iterator
    from dataclasses import MISSING, Field, FrozenInstanceError
    from functools import partial
    from inspect import get_annotations
    from reprlib import recursive_repr
    from typing import NoReturn

    Fields = tuple[Field, ...]
    Method = Callable[..., object]
    Maker = Callable[[type, Fields], Method]
    Parameters = dict[str, tuple[object, object, bool, bool]]

    _LITERALS = {dict: "{}", list: "[]"}  # how these are made without a call
    FILLED_OPEN_MIN = 4  # fields of a frozen class: to change the class twice costs as much
    _become = object.__dict__["__class__"].__set__
    FILLED_BY_HAND_MAX = 6  # instances of a class; to compile costs as much as to fill twenty
    _NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")
    _FOUND = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
    _finding = RLock()  # one finds the fields of a class, and first those of its bases

    class _LazyPattern:
        """Is a regular expression that is compiled when one of its methods is first asked for;
        from then on that method is found at once."""

        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._written = text, flags

        def __getattr__(self, name: str) -> object:
            found = self.__dict__[name] = getattr(re.compile(*self._written), name)
            return found

    pattern = _LazyPattern

    class _Tuple(tuple):
        """Has what all named tuples share; ``collections`` makes it anew for each of them."""

        __slots__ = ()
        _fields = ()

        @classmethod
        def _make(cls, values: Iterable[object]) -> object:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changed: object) -> object:
            made = self._make(map(changed.pop, self._fields, self))
            if changed:
                raise ValueError(f"Got unexpected field names: {list(changed)!r}")
            return made

        def _asdict(self) -> dict[str, object]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            named = zip(self._fields, self, strict=True)
            shown = ", ".join(f"{name}={value!r}" for name, value in named)
            return f"{self.__class__.__name__}({shown})"

        def __getnewargs__(self) -> tuple[object, ...]:
            return tuple(self)

    _Getter = type(namedtuple("_Sample", ["value"]).value)  # reads by place, at C's speed
    _getters: list[object] = []  # by place; classes share them

    class _MakesNamedTuples(type):
        """Makes a class out of the annotations and defaults of one that names NamedTuple."""

        def __new__(
            cls, name: str, bases: tuple[type, ...], content: dict[str, object]
        ) -> type:
            if not bases:
                return super().__new__(cls, name, bases, content)
            assert "__new__" not in content and len(bases) == 1, name
            fields = tuple(content.get("__annotations__", ()))
            defaults = {field: content[field] for field in fields if field in content}
            assert [*defaults] == [*fields[len(fields) - len(defaults) :]], fields
            while len(_getters) < len(fields):
                place = len(_getters)
                _getters.append(_Getter(place, f"Alias for field number {place}"))
            content |= zip(fields, _getters, strict=False)
            content |= {"_fields": fields, "__match_args__": fields}
            content |= {"_field_defaults": defaults, "__slots__": (), "__new__": _first_new}
            return type(name, (_Tuple,), content)

    def _first_new(cls: type, /, *values: object, **named: object) -> object:
        """Puts the compiled ``__new__`` of a named tuple in its place, and calls it."""
        (owner,) = (one for one in cls.__mro__ if "_field_defaults" in one.__dict__)
        given = "".join(f"{field}, " for field in owner._fields)
        made = [f"return make(_cls, ({given}))"]
        compiled = _compiled(f"__new__(_cls, {given})", made, {"make": tuple.__new__})
        compiled.__defaults__ = tuple(owner._field_defaults.values())
        compiled.__qualname__ = f"{owner.__qualname__}.__new__"
        compiled.__module__ = owner.__module__
        owner.__new__ = staticmethod(compiled)
        return compiled(cls, *values, **named)

    class NamedTuple(metaclass=_MakesNamedTuples):
        """Stands for a named tuple where a class names its base."""

    def dataclass(
        *,
        slots: bool,
        frozen: bool = False,
        kw_only: bool = False,
        eq: bool = True,
        repr: bool = True,
    ) -> Callable[[type], type]:
        """Returns the decorator that makes a class with slots out of its annotations."""
        assert slots, "every dataclass has slots here: write slots=True"
        methods: dict[str, Maker | None]
        methods = {"__init__": _frozen_init if frozen else _plain_init}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}

        def decorated(cls: type) -> type:
            owner: list[type] = []
            stubs = {name: make and _stub(owner, name, make) for name, make in methods.items()}
            stubs["__init__"] = _first_init(owner, stubs["__init__"])
            written = get_annotations(cls)
            if _are_plain(written.values()):  # each is a field, whatever it is
                names = list(written)
                find = partial(_find_later, owner, cls, frozen=frozen, kw_only=kw_only)
                later = {name: _Later(name, find, cls, kw_only=kw_only) for name in _FOUND}
            else:
                found = _found_fields(cls, frozen=frozen, kw_only=kw_only)
                names, later = [one.name for one in found], {}
            content = stubs | dict(cls.__dict__) | later | (_FROZEN if frozen else {})
            if eq and content["__hash__"] is None:  # Python's own, beside a written __eq__
                content["__hash__"] = stubs["__hash__"]
            owner.append(_with_slots(cls, names, content))
            return owner[0]

        return decorated

    class _Later:
        """Is an attribute of a class that ``dataclasses`` makes when it is first asked for."""

        __slots__ = ("find", "kw_only", "name", "written")

        def __init__(
            self, name: str, find: Callable[[], None], written: type, *, kw_only: bool
        ) -> None:
            self.name, self.find = name, find
            self.written, self.kw_only = written, kw_only  # the class as it is in the source

        def __get__(self, _: object, of: type) -> object:
            self.find()
            return getattr(of, self.name)

    def _find_later(owner: list[type], cls: type, *, frozen: bool, kw_only: bool) -> None:
        """Lets ``dataclasses`` find the fields of a class as it was written; once."""
        (made,) = owner
        with _finding:
            if isinstance(made.__dict__[_FOUND[0]], _Later):
                _found_fields(cls, frozen=frozen, kw_only=kw_only)
                for name in reversed(_FOUND):  # the one that is looked at last of all
                    setattr(made, name, cls.__dict__[name])

    def _found_fields(cls: type, *, frozen: bool, kw_only: bool) -> Fields:
        """Lets ``dataclasses`` find the fields, and note them in the class."""
        # It refuses a class that is not as frozen as its base, and compiles two methods if so.
        has_base = any(dataclasses.is_dataclass(base) for base in cls.__bases__)
        kind = {"frozen": frozen and has_base, "kw_only": kw_only}
        # It searches the text of each annotation for what is no field, and finds out the
        # signature of a class that says nothing of itself: both take longer than all the rest.
        written = get_annotations(cls)
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__
        cls.__annotations__ = {name: _plain(hint) for name, hint in written.items()}
        dataclasses.dataclass(init=False, repr=False, eq=False, **kind)(cls)
        cls.__annotations__ = written
        cls.__dataclass_params__.frozen = frozen
        found = dataclasses.fields(cls)
        for one in found:
            if one.name in written:
                one.type = written[one.name]
        return found

    def _plain(hint: object) -> object:
        """Returns a type in place of the text of one that can be no more than that."""
        return object if _are_plain([hint]) else hint

    def _are_plain(hints: Iterable[object]) -> bool:
        """Says whether annotations are texts that can be nothing but the types of fields."""
        try:
            text = " ".join(hints)
        except TypeError:
            return False
        return not any(word in text for word in _NO_FIELDS)

    def _with_slots(cls: type, names: list[str], content: dict[str, object]) -> type:
        """Makes the class again, with slots for its own fields in place of their defaults."""
        above = {at for base in cls.__mro__[1:-1] for at in base.__dict__.get("__slots__", ())}
        for name in (*names, "__dict__", "__weakref__"):
            content.pop(name, None)
        content["__slots__"] = tuple(name for name in names if name not in above)
        content["__qualname__"] = cls.__qualname__
        return type(cls)(cls.__name__, cls.__bases__, content)

    def _stub(owner: list[type], name: str, make: Maker) -> Method:
        """Returns a method that puts the compiled one in its place, and calls it."""

        def stub(self: object, *values: object, **named: object) -> object:
            (cls,) = owner
            compiled = make(cls, dataclasses.fields(cls))
            compiled.__qualname__ = f"{cls.__qualname__}.{name}"
            compiled.__module__ = cls.__module__
            setattr(cls, name, compiled)
            return compiled(self, *values, **named)

        return stub

    def _first_init(owner: list[type], compiling: Method) -> Method:
        """Returns an ``__init__`` that fills the first instances by hand, and then compiles.

        A call that is wrong is left to the compiled one, which says what is wrong with it.
        """
        filled = 0

        def stub(self: object, *values: object, **named: object) -> None:
            nonlocal filled
            (cls,) = owner
            filled += 1
            found = None
            if filled <= FILLED_BY_HAND_MAX:
                found = _given(_parameters(cls), values, named)
            if found is None:
                compiling(self, *values, **named)
                return
            for name, value in found.items():
                object.__setattr__(self, name, value)
            if hasattr(cls, "__post_init__"):
                self.__post_init__()

        return stub

    def _parameters(cls: type) -> Parameters:
        """Returns for each field its default, its factory, and whether it is given, and by name
        only; as far as possible without ``dataclasses``, which takes ten times as long."""
        found: Parameters = {}
        for one in cls.__mro__[-2::-1]:
            fields = one.__dict__.get(_FOUND[0])
            if isinstance(fields, _Later):
                found |= _written_parameters(fields.written, fields.kw_only)
            elif fields is not None:
                for of in dataclasses.fields(one):
                    found[of.name] = (of.default, of.default_factory, of.init, of.kw_only)
        return found

    def _written_parameters(cls: type, kw_only: bool) -> Parameters:
        found: Parameters = {}
        for name in get_annotations(cls):
            default = cls.__dict__.get(name, MISSING)
            if isinstance(default, Field):
                by_name = kw_only if default.kw_only is MISSING else default.kw_only
                found[name] = (default.default, default.default_factory, default.init, by_name)
            else:
                found[name] = (default, MISSING, True, kw_only)
        return found

    def _given(
        parameters: Parameters, values: tuple[object, ...], named: dict[str, object]
    ) -> dict[str, object] | None:
        """Returns the value of each field that gets one; None if the call is wrong."""
        places = [
            name for name, (_, _, init, by_name) in parameters.items() if init and not by_name
        ]
        given = dict(zip(places, values, strict=False))
        if len(values) > len(places) or not given.keys().isdisjoint(named):
            return None
        given |= named
        found = {}
        for name, (default, factory, init, _) in parameters.items():
            if init and name in given:
                found[name] = given.pop(name)
            elif factory is not MISSING:
                found[name] = factory()
            elif default is not MISSING:
                found[name] = default
            elif init:
                return None
        return None if given else found

    def _compiled(head: str, lines: Iterable[str], known: dict[str, object]) -> Method:
        """Compiles a method whose lines may use what is known, by its name."""
        body, name = "\n  ".join(lines), head.partition("(")[0]
        text = f"def made({', '.join(known)}):\n def {head}:\n  {body}\n return {name}"
        namespace: dict[str, Method] = {}
        exec(text, namespace)
        return namespace["made"](**known)

    def _plain_init(cls: type, fields: Fields) -> Method:
        return _init(cls, fields, "self.{} = {}", {})

    def _frozen_init(cls: type, fields: Fields) -> Method:
        if len(fields) < FILLED_OPEN_MIN:
            setters = {f"set_{one.name}": getattr(cls, one.name).__set__ for one in fields}
            return _init(cls, fields, "set_{}(self, {})", setters)
        known = {"CLASS": cls, "OPEN": _open(cls), "BECOME": _become, "FILL": _fill}
        return _init(cls, fields, "self.{} = {}", known)

    def _open(cls: type) -> type:
        """Returns a class whose instances are those of another while they are being filled."""
        content = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
        return type(cls)(cls.__name__, (cls,), {"__slots__": (), **content})

    def _fill(self: object, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _init(cls: type, fields: Fields, assignment: str, known: dict[str, object]) -> Method:
        for one in fields:
            if one.default_factory is not MISSING:
                known[f"make_{one.name}"] = one.default_factory
            elif one.default is not MISSING:
                known[f"default_{one.name}"] = one.default
        given = [_parameter(one) for one in fields if one.init and not one.kw_only]
        named = [_parameter(one) for one in fields if one.init and one.kw_only]
        head = ", ".join(["self", *given, *(["*", *named] if named else [])])
        pairs = [pair for one in fields for pair in _first_value(one)]
        lines = [assignment.format(*pair) for pair in pairs]
        if "OPEN" in known:
            values = ", ".join("{}={}".format(*pair) for pair in pairs)
            lines = [
                "if self.__class__ is CLASS:",
                " BECOME(self, OPEN)",
                *(f" {line}" for line in lines),
                " self.__class__ = CLASS",
                f"else: FILL(self, {values})",  # of a class below, which may have more slots
            ]
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        known["MISSING"] = MISSING
        return _compiled(f"__init__({head})", [*lines, "return"], known)

    def _parameter(one: Field) -> str:
        if one.default_factory is not MISSING:
            return f"{one.name}=MISSING"
        return one.name if one.default is MISSING else f"{one.name}=default_{one.name}"

    def _first_value(one: Field) -> Iterator[tuple[str, str]]:
        """Yields a field's name and the expression of its value; nothing if it stays unset."""
        if one.default_factory is not MISSING:
            made = _LITERALS.get(one.default_factory) or f"make_{one.name}()"
            yield (
                one.name,
                f"{made} if {one.name} is MISSING else {one.name}" if one.init else made,
            )
        elif one.init:
            yield one.name, one.name
        elif one.default is not MISSING:
            yield one.name, f"default_{one.name}"

    def _repr(_: type, fields: Fields) -> Method:
        shown = ", ".join(f"{one.name}={{self.{one.name}!r}}" for one in fields if one.repr)
        line = f"return self.__class__.__qualname__ + f'({shown})'"
        return recursive_repr()(_compiled("__repr__(self)", [line], {}))

    def _eq(_: type, fields: Fields) -> Method:
        mine, other = (
            _values(at, (one.name for one in fields if one.compare)) for at in ("self", "other")
        )
        same = (
            f"return {mine} == {other} if other.__class__ is self.__class__ else NotImplemented"
        )
        return _compiled("__eq__(self, other)", [same], {})

    def _hash(_: type, fields: Fields) -> Method:
        names = (one.name for one in fields if (one.compare if one.hash is None else one.hash))
        return _compiled("__hash__(self)", [f"return hash({_values('self', names)})"], {})

    def _values(of: str, names: Iterable[str]) -> str:
        return "(" + "".join(f"{of}.{name}, " for name in names) + ")"

    def _refuse_to_set(_: object, name: str, __: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_to_delete(_: object, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _state(self: object) -> list[object]:
        return [getattr(self, one.name) for one in dataclasses.fields(self)]

    def _set_state(self: object, state: list[object]) -> None:
        for one, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, one.name, value)

    # Unpickling would fill an instance by setattr, which a frozen one refuses.
    _FROZEN = {
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _state,
        "__setstate__": _set_state,
    }


if TYPE_CHECKING:
    # A field, the places of its value (the attributes that lead there, or the number of a
    # column), what is made of them, and whether that is asked for None, too.
    Place = tuple[str, ...] | int
    MadeField = tuple[str, tuple[Place, ...], Callable[..., object] | None, bool]


def maker(kind: Callable[..., object], fields: Iterable[MadeField]) -> Callable[..., object]:
    """Returns a function of one value that makes an instance of a class out of its parts: it is
    compiled from the names of the fields, as for things that are made all the time."""
    known: dict[str, object] = {"kind": kind}
    lines = []
    for name, places, convert, takes_none in fields:
        values = ["value" + _way(place) for place in places]
        text = ", ".join(values)
        if convert is not None:
            known[f"make_{name}"] = convert
            text = f"make_{name}({text})"
            if not takes_none:
                text = f"None if {values[0]} is None else {text}"
        assert name.isidentifier(), name
        lines.append(f"{name}={text}")
    exec(f"def make(value): return kind({', '.join(lines)})", known)
    made = known["make"]
    assert callable(made)
    return made


def _way(place: Place) -> str:
    """Returns how a part of a value is reached; nothing but names and numbers becomes code."""
    if isinstance(place, int):
        return f"[{place:d}]"
    assert all(one.isidentifier() for one in place), place
    return "".join(f".{one}" for one in place)
