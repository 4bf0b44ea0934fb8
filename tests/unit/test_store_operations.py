"""Operations of a store agree with the ports, and with the rows by which a server does them."""

from inspect import Parameter, signature

import pytest

from tidewheel.api.operation import Place, ServiceName
from tidewheel.api.operations import OPERATIONS
from tidewheel.ports.runs import BlockDoor, BringsNotifications, RegistryDoor
from tidewheel.ports.store import TokenStore
from tidewheel.ports.tasks import TaskStore
from tidewheel.store.store import DatabaseStore, _LaterFunction

PROMISED = {
    name: value
    for port in (TaskStore, TokenStore)
    for name, value in vars(port).items()
    if not name.startswith("_") and callable(value)
}
LISTED = sorted(name for name in PROMISED if hasattr(getattr(DatabaseStore, name), "operation"))
SERVICES = {
    ServiceName.BLOCKS: BlockDoor,
    ServiceName.REGISTRY: RegistryDoor,
    ServiceName.NOTIFICATIONS: BringsNotifications,
}
OF_CLIENTS = {"queue"}  # which a store has no method for: the list of queues tells it


def asked(function: object, left_out: set[str]) -> list[tuple[str, object, object]]:
    """The parameters of a function: name, kind and default of each."""
    assert callable(function)
    return [
        (one.name, one.kind, one.default)
        for one in signature(function).parameters.values()
        if one.name not in left_out
    ]


def test_a_store_can_be_asked_what_its_ports_promise():
    assert len(PROMISED) > 40
    assert [name for name in PROMISED if not hasattr(DatabaseStore, name)] == []


@pytest.mark.parametrize("name", LISTED)
def test_an_operation_is_asked_for_as_its_port_says(name):
    """mypy compares the types; names and defaults of what is loaded later are compared here."""
    operation = getattr(DatabaseStore, name).operation
    if isinstance(operation, _LaterFunction):
        operation = operation.load()
    first = next(iter(signature(operation).parameters.values()))
    assert first == Parameter("tx", Parameter.POSITIONAL_OR_KEYWORD, annotation="Transaction")
    assert asked(operation, {"tx", "effects"}) == asked(PROMISED[name], {"self"})


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: f"{row.method} {row.path}")
def test_a_row_takes_what_its_method_takes(row):
    """In the same order where they may be given by position, and with the same defaults."""
    if row.of is ServiceName.STORE and row.name in OF_CLIENTS:
        return
    method = (
        PROMISED[row.name] if row.of is ServiceName.STORE else vars(SERVICES[row.of])[row.name]
    )
    taken = {name: default for name, _, default in asked(method, {"self", *row.fixed})}
    named = [one.name for one in row.takes]
    # A version that the path does not name is the highest; clients have it by default.
    assert [name for name in taken if name in named] == named
    assert taken.keys() - set(named) <= {"version"}
    for one in row.takes:
        if one.place is Place.QUERY and taken[one.name] is not Parameter.empty:
            default = taken[one.name]
            assert (one.turn(default) if one.turn else default) == one.default
