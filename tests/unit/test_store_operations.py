"""Operations of a store agree with the rows by which a server does them for others."""

from inspect import Parameter, signature

import pytest

from tidewheel.api.operation import Listed, Operation, Place, ServiceName
from tidewheel.api.operations import OPERATIONS
from tidewheel.ports.runs import BlockDoor, BringsNotifications, RegistryDoor
from tidewheel.store.operations import LaterFunction
from tidewheel.store.remote import RemoteStore
from tidewheel.store.remote.runs import RemoteBlockDoor, RemoteRegistryDoor
from tidewheel.store.store import DatabaseStore

SERVICES = {
    ServiceName.BLOCKS: BlockDoor,
    ServiceName.REGISTRY: RegistryDoor,
    ServiceName.NOTIFICATIONS: BringsNotifications,
}
REMOTE = {
    ServiceName.STORE: RemoteStore,
    ServiceName.NOTIFICATIONS: RemoteStore,
    ServiceName.BLOCKS: RemoteBlockDoor,
    ServiceName.REGISTRY: RemoteRegistryDoor,
}
OF_CLIENTS = {"queue", "why"}  # which a store has no method for: a server composes them
LISTED = {
    name: method.operation
    for name, method in vars(DatabaseStore).items()
    if hasattr(method, "operation")
}


def function_of(name: str) -> object:
    """The function that does an operation of the store."""
    operation = LISTED.get(name, getattr(DatabaseStore, name))
    return operation.load() if isinstance(operation, LaterFunction) else operation


def asked(function: object, left_out: set[str]) -> list[tuple[str, object, object]]:
    """The parameters of a function: name, kind and default of each."""
    assert callable(function)
    return [
        (one.name, one.kind, one.default)
        for one in signature(function).parameters.values()
        if one.name not in left_out
    ]


def method_of(row: Operation) -> object:
    """The method that a server calls for a row."""
    if row.of is ServiceName.STORE:
        return function_of(row.name)
    return vars(SERVICES[row.of])[row.name]


def of_rows() -> list[Operation]:
    return [
        row
        for row in OPERATIONS
        if row.of is not ServiceName.STORE or row.name not in OF_CLIENTS
    ]


def shown(row: Operation) -> str:
    return f"{row.method} {row.path}"


@pytest.mark.parametrize("name", sorted(LISTED))
def test_an_operation_is_a_function_of_a_transaction(name):
    function = function_of(name)
    assert callable(function)
    first = next(iter(signature(function).parameters.values()))
    assert first == Parameter("tx", Parameter.POSITIONAL_OR_KEYWORD, annotation="Transaction")


@pytest.mark.parametrize("row", of_rows(), ids=shown)
def test_a_row_takes_what_its_method_takes(row):
    """In the same order where they may be given by position, and with the same defaults."""
    left_out = {"self", "tx", "effects", *row.fixed}
    taken = {name: default for name, _, default in asked(method_of(row), left_out)}
    named = [one.name for one in row.takes]
    # A version that the path does not name is the highest; clients have it by default. What the
    # caller may see a server knows by itself.
    assert [name for name in taken if name in named] == named
    assert taken.keys() - set(named) <= {"version", "names"}
    for one in row.takes:
        if one.place is Place.QUERY and taken[one.name] is not Parameter.empty:
            default = taken[one.name]
            assert (one.turn(default) if one.turn else default) == one.default


@pytest.mark.parametrize("row", of_rows(), ids=shown)
def test_a_row_answers_with_what_its_method_returns(row):
    """mypy sees no row: a remote store would hand out what its type does not say."""
    function = method_of(row)
    assert callable(function)
    returned = str(signature(function).return_annotation)
    if isinstance(row.answers, Listed):
        kind = row.answers.kind
        name = kind if isinstance(kind, str) else kind.__name__
        assert returned.endswith(f"{name.rpartition('.')[2]}]")
        assert returned.startswith("list[")
    elif isinstance(row.answers, type):
        wanted = row.answers.__name__ if row.returns else "None"
        assert returned.rpartition(".")[2] == wanted


@pytest.mark.parametrize("row", OPERATIONS, ids=shown)
def test_each_row_can_be_asked_of_a_server(row):
    method = getattr(REMOTE[row.of], row.name)
    assert method.__name__ == row.name
