"""Defines the form of an operation that a server does for others: a row of ``operations``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, field
from enum import Enum, auto
from importlib import import_module
from typing import Any

import msgspec

from tidewheel.core.queue.access import Scope
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

REQUIRED: Any = msgspec.NODEFAULT
# The scopes of most operations: one is enough.
READ, SUBMIT, OPERATE = (Scope.READ,), (Scope.SUBMIT,), (Scope.OPERATE,)
WORKER, ADMIN = (Scope.WORKER,), (Scope.ADMIN,)


class ServiceName(Enum):
    """Names the service whose method an operation is."""

    STORE = auto()
    BLOCKS = auto()
    REGISTRY = auto()
    NOTIFICATIONS = auto()


class Concern(Enum):
    """Names what the guard of an operation looks at, beside the scope."""

    NOTHING = auto()  # or the answer is filtered: `Listed.seen`
    TASK = auto()  # the queue of the task in the path, which its own job may see, too
    CHANGED_TASK = auto()  # the queue of the task in the path, which no job may change so
    QUEUE = auto()  # the queue in the path
    WORKER = auto()  # the worker in the path, which must be the caller's own
    NAME = auto()  # the workflow or the object in the path
    BLOCK = auto()  # the block in the path, which is a run
    SBI = auto()  # all blocks of the instance in the path


class Work(Enum):
    """Says how a server does an operation, so that heartbeats are answered meanwhile."""

    HERE = auto()
    APART = auto()  # in the thread of views: it reads the definition of a run


class Place(Enum):
    """Says where a request carries a parameter."""

    PATH = auto()
    QUERY = auto()
    BODY = auto()
    CALLER = auto()  # nowhere: a server knows the caller by the token


class Parameter(NamedTuple):
    """Describes an argument of an operation's method, and how a request carries it."""

    name: str
    place: Place
    key: str  # its name in the path, the query or the body
    kind: Any = str
    default: Any = REQUIRED
    check: Callable[[Any], object] | None = None  # raises before anything is sent
    turn: Callable[[Any], Any] | None = None  # converts the value to what is sent, and back


class Listed(NamedTuple):
    """Describes an answer that holds a list of things under a key."""

    title: str  # of the type in the OpenAPI document
    key: str
    kind: Any
    says: str | None = None
    seen: str | None = None  # by what of each thing a caller may see it: queue or worker
    # A page: the parameter of the next one, and the field of the last thing that it has.
    goes_on: tuple[str, str] | None = None
    beside: tuple[tuple[str, Any], ...] = ()  # what its handler adds


class Part(NamedTuple):
    """Describes an answer of several parts; a client's method returns the one under `key`."""

    title: str
    key: str
    parts: Mapping[str, Any]
    says: str | None = None


class Echo(NamedTuple):
    """Describes the answer for a method that returns nothing: the name in the path again."""

    title: str
    key: str


class ListedDocuments(NamedTuple):
    """Describes a document that holds a list of documents; a caller sees those that its token
    covers."""

    kind: str
    key: str
    name: str  # the field that has the name of each


Answer = Listed | Part | Echo | ListedDocuments | type | str


@dataclass(frozen=True, slots=True)
class Operation:
    """Describes an operation that a server does for others: one row of ``api.operations``."""

    name: str  # of the method
    route: str  # a method of HTTP, and a path below the API
    says: str  # one line of documentation
    answers: Answer  # a type is that of a thing, a text that of a document
    _: KW_ONLY
    scopes: tuple[Scope, ...] = READ
    of: ServiceName = ServiceName.STORE
    concerns: Concern = Concern.NOTHING
    takes: tuple[Parameter, ...] = ()  # in the order of the method's arguments
    form: tuple[str, str] = ("", "")  # what the type of the body is called, and what it says
    fixed: Mapping[str, Any] = field(default_factory=dict)  # arguments that the path implies
    returns: bool = True  # False: the method returns nothing, and its handler has the answer
    missing: Callable[[], Any] | None = None  # the method's answer where there is no such thing
    again: bool | None = None  # whether it may be done twice; None: as its method says
    audited: bool = True
    target: Callable[[Mapping[str, Any]], str] | None = None  # named in the audit, of arguments
    only_reads: bool = False  # and is as urgent, though it is a POST
    work: Work = Work.HERE
    seconds_max: float | None = None

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.route.partition(" ")[2]

    @property
    def may_be_repeated(self) -> bool:
        """Says whether a request whose answer was lost may be sent again."""
        return self.method == "GET" if self.again is None else self.again


def resolved(kind: Any) -> Any:  # noqa: ANN401 - any type
    """Returns a type; one that is named by a text is loaded only now."""
    if not isinstance(kind, str):
        return kind
    module, _, name = kind.rpartition(".")
    return getattr(import_module(f"tidewheel.{module}"), name)
