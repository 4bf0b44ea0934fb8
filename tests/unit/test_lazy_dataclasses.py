"""Lazy dataclasses and named tuples are what Python would have made of the same classes."""

from __future__ import annotations

import dataclasses
import pickle
import typing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, FrozenInstanceError, field
from typing import ClassVar

import msgspec
import pytest

from tidewheel.lazy_dataclasses import NamedTuple, dataclass

Decorator = Callable[..., Callable[[type], type]]
BOTH = pytest.mark.parametrize("made_by", [dataclass, dataclasses.dataclass])
OPTIONS = [
    {"frozen": True, "kw_only": True},
    {"frozen": True},
    {},
    {"eq": False},
    {"eq": False, "repr": False},
    {"kw_only": True, "eq": False},
    {"frozen": True, "eq": False},
]


def made(by: Decorator, **options: bool) -> type:
    """A class with every kind of field that is used here."""

    @by(slots=True, **options)
    class Station:
        kind: ClassVar[str] = "station"
        name: str
        height: float = 0.0
        _: KW_ONLY
        masts: list[str] = field(default_factory=list)
        key: str = field(default="", repr=False)
        seen: int = field(default=0, compare=False)
        total: int = field(init=False, default=7)
        unset: str = field(init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "unset", self.name.upper())

    return Station


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_an_instance_says_compares_and_hashes_as_with_dataclasses(options):
    lazy, eager = made(dataclass, **options), made(dataclasses.dataclass, **options)
    for one, other in [
        ({"name": "a"}, {"name": "a"}),
        ({"name": "a", "seen": 1}, {"name": "a", "seen": 2}),
        ({"name": "a"}, {"name": "a", "height": 2.0}),
        ({"name": "a", "masts": ["x"]}, {"name": "a", "masts": ["x"]}),
    ]:
        mine, theirs = [(kind(**one), kind(**other)) for kind in (lazy, eager)]
        assert (mine[0] == mine[1]) == (theirs[0] == theirs[1])
        if options.get("repr", True):
            assert repr(mine[0]) == repr(theirs[0])
        assert dataclasses.asdict(mine[0]) == dataclasses.asdict(theirs[0])
    assert (lazy.__hash__ is None) == (eager.__hash__ is None)
    assert lazy.__slots__ == eager.__slots__
    assert lazy.__match_args__ == eager.__match_args__
    assert not hasattr(lazy(name="a"), "__dict__")


@BOTH
def test_a_frozen_instance_cannot_be_changed_and_equal_ones_have_one_hash(made_by):
    @made_by(frozen=True, slots=True)
    class Pair:
        a: int
        b: str = "x"

    pair = Pair(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        pair.a = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'b'"):
        del pair.b
    assert hash(pair) == hash(Pair(1)) == hash((1, "x"))
    assert {pair, Pair(1), Pair(2)} == {Pair(2), pair}
    assert dataclasses.replace(pair, b="y") == Pair(1, "y")


@BOTH
def test_a_frozen_instance_of_many_fields_is_frozen_and_so_is_one_of_a_class_below(made_by):
    @made_by(frozen=True, slots=True)
    class Mast:
        a: int
        b: int
        c: int
        d: int = 4
        found: list[int] = field(default_factory=list)

    class Tall(Mast):
        """Has the constructor of its base, and room for more."""

    for kind in (Mast, Tall):
        for _ in range(20):  # also those whose constructor is compiled
            mast = kind(1, 2, c=3)
            assert type(mast) is kind
            assert (mast.a, mast.b, mast.c, mast.d, mast.found) == (1, 2, 3, 4, [])
            with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
                mast.a = 2
            with pytest.raises(FrozenInstanceError, match="cannot delete field 'found'"):
                del mast.found
        assert mast == kind(1, 2, 3)
        assert mast != kind(1, 2, 4)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'c'"):
        Mast(1, 2)


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that is pickled by its name."""

    a: int
    b: tuple[str, ...] = ()


def test_a_frozen_instance_is_pickled_and_read_by_msgspec():
    kept = Kept(1, ("x",))
    assert pickle.loads(pickle.dumps(kept)) == kept
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Kept) == kept


@BOTH
def test_a_subclass_has_the_fields_of_its_base_first(made_by):
    @made_by(frozen=True, slots=True)
    class Base:
        a: int
        b: int = 2

    @made_by(frozen=True, slots=True)
    class Sub(Base):  # noqa: PLW1641 - that it gets one is asserted
        b: int = 3
        c: int = 4

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Sub) and self.a == other.a

    assert repr(Sub(1))[-20:].endswith("Sub(a=1, b=3, c=4)")
    assert Sub.__slots__ == ("c",)
    assert Sub(1) == Sub(1, c=9)
    assert hash(Sub(1)) == hash((1, 3, 4))
    assert Base(1) != Sub(1)
    with pytest.raises(FrozenInstanceError):
        Sub(1).c = 2


def test_a_class_may_be_a_base_of_one_that_dataclasses_makes():
    @dataclasses.dataclass(frozen=True, slots=True)
    class More(Kept):
        c: int = 0

    assert More(1, c=2) == More(1, (), 2)


@BOTH
def test_what_a_class_writes_itself_is_kept(made_by):
    @made_by(slots=True)
    class Written:
        a: int

        def __repr__(self) -> str:
            return "written"

        def __hash__(self) -> int:
            return 7

    assert repr(Written(1)) == "written"
    assert hash(Written(1)) == 7
    assert Written(1) == Written(1)


@BOTH
def test_a_wrong_call_names_the_class_and_the_argument(made_by):
    @made_by(slots=True, kw_only=True)
    class Station:
        name: str

    with pytest.raises(TypeError, match=r"Station\.__init__\(\) missing 1 .* 'name'"):
        Station()
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'nme'"):
        Station(nme="x")


def test_the_first_instances_are_filled_as_all_later_ones():
    lazy, eager = made(dataclass, frozen=True), made(dataclasses.dataclass, frozen=True)
    calls = [(("a",), {}), (("a", 2.0), {"masts": ["x"]}), ((), {"name": "a", "seen": 3})]
    for _ in range(5):
        for values, named in calls:
            ours, theirs = lazy(*values, **named), eager(*values, **named)
            assert repr(ours) == repr(theirs)
            assert (ours.key, ours.seen, ours.total) == (theirs.key, theirs.seen, theirs.total)
            assert ours.unset == "A"
    assert lazy("a").masts is not lazy("a").masts


@pytest.mark.parametrize("before", [0, 20], ids=["the first call", "a later call"])
@pytest.mark.parametrize(
    ("values", "named", "said"),
    [
        (("a", 1.0, []), {}, "from 2 to 3 positional arguments but 4 were given"),
        (("a",), {"name": "b"}, "multiple values for argument 'name'"),
        (("a",), {"total": 1}, "unexpected keyword argument 'total'"),
        ((), {}, "missing 1 required positional argument: 'name'"),
    ],
)
def test_a_wrong_call_is_refused_in_the_words_of_python(before, values, named, said):
    lazy = made(dataclass, frozen=True)
    for _ in range(before):
        lazy("a")
    with pytest.raises(TypeError, match=said):
        lazy(*values, **named)


def test_fields_have_the_types_that_were_written():
    lazy, eager = made(dataclass), made(dataclasses.dataclass)
    ours, theirs = [[(f.name, f.type) for f in dataclasses.fields(c)] for c in (lazy, eager)]
    assert ours == theirs
    assert lazy.__annotations__ == eager.__annotations__


@BOTH
def test_an_instance_that_holds_itself_can_be_shown(made_by):
    @made_by(slots=True)
    class Ring:
        held: list[object] = field(default_factory=list)

    ring = Ring()
    ring.held.append(ring)
    assert repr(ring).endswith("Ring(held=[...])")


def test_slots_are_asked_for():
    with pytest.raises(AssertionError, match="write slots=True"):
        dataclass(slots=False)


def test_the_first_instances_are_made_without_looking_for_fields(monkeypatch):
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Base:
        name: str
        masts: list[str] = field(default_factory=list)

    @dataclass(frozen=True, slots=True)
    class Mast(Base):
        height: float = 1.0
        total: int = field(init=False, default=7)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("somebody looks for fields")

    with monkeypatch.context() as patch:
        patch.setattr(dataclasses, "dataclass", refuse)
        one, other = Mast(2.0, name="a"), Mast(name="b", masts=["x"])
    assert (one.name, one.masts, one.height, one.total) == ("a", [], 2.0, 7)
    assert (other.name, other.masts, other.height, other.total) == ("b", ["x"], 1.0, 7)
    assert [of.name for of in dataclasses.fields(Mast)] == ["name", "masts", "height", "total"]
    assert Mast(2.0, name="a") == one
    assert Mast.__match_args__ == ("height",)


def test_threads_that_ask_for_fields_at_once_find_the_same():
    kinds = []
    for _ in range(20):

        @dataclass(frozen=True, slots=True)
        class Pair:
            a: int
            b: str = "x"

        kinds.append(Pair)
    with ThreadPoolExecutor(4) as pool:
        for kind in kinds:
            found = list(pool.map(lambda _, kind=kind: dataclasses.fields(kind), range(4)))
            assert all(one == found[0] for one in found)
            assert [of.type for of in found[0]] == ["int", "str"]


class Mast(NamedTuple):
    """Holds up what is measured."""

    height: float
    station: str = "?"

    @property
    def label(self) -> str:
        return f"{self.station} at {self.height}"


class EagerMast(typing.NamedTuple):
    height: float
    station: str = "?"


class TallMast(Mast):
    def __str__(self) -> str:
        return "tall"


def test_a_named_tuple_is_what_typing_makes():
    for mast in (Mast, EagerMast):
        one = mast(10.0, station="a")
        assert one == (10.0, "a") == mast._make([10.0, "a"])
        assert (one.height, one.station) == tuple(one)
        assert one._replace(station="b") == mast(10.0, "b")
        assert one._asdict() == {"height": 10.0, "station": "a"}
        assert repr(one) == f"{mast.__name__}(height=10.0, station='a')"
        assert mast._fields == mast.__match_args__ == ("height", "station")
        assert mast._field_defaults == {"station": "?"}
        assert typing.get_type_hints(mast) == {"height": float, "station": str}
        assert msgspec.json.decode(msgspec.json.encode(one), type=mast) == one
        assert pickle.loads(pickle.dumps(one)) == one
        assert not hasattr(one, "__dict__")
    assert Mast(2.0).label == "? at 2.0"
    assert Mast.__doc__ == "Holds up what is measured."


def test_a_class_below_a_named_tuple_is_made_first_or_last():
    class Low(Mast):
        pass

    assert isinstance(TallMast(1.0), TallMast)
    assert isinstance(Mast(1.0), Mast)
    assert not isinstance(Mast(1.0), TallMast)
    assert isinstance(Low(1.0)._replace(height=2.0), Low)
    assert str(TallMast(1.0, "b")) == "tall"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda mast: mast(),
        lambda mast: mast(1, 2, 3),
        lambda mast: mast(1, place=2),
        lambda mast: mast(1, height=2),
        lambda mast: mast._make([1]),
        lambda mast: mast(1)._replace(place=2),
        lambda mast: setattr(mast(1), "height", 2),
        lambda mast: setattr(mast(1), "place", 2),
    ],
)
def test_a_named_tuple_refuses_in_the_words_of_python(wrong):
    said = []
    for mast in (Mast, EagerMast):
        with pytest.raises((TypeError, ValueError, AttributeError)) as refused:
            wrong(mast)
        said.append((refused.type, str(refused.value).replace("Eager", "")))
    assert said[0] == said[1]


def test_threads_that_make_the_first_named_tuple_at_once_make_the_same():
    for _ in range(20):

        class Pair(NamedTuple):
            one: int
            other: int = 2

        with ThreadPoolExecutor(4) as threads:
            assert set(threads.map(Pair, range(4))) == {(n, 2) for n in range(4)}
