"""The list of operations of a store agrees with its port."""

from inspect import Parameter, signature

import pytest

from tidewheel.ports.store import Store
from tidewheel.store.store import DatabaseStore, _LaterFunction

PROMISED = sorted(
    name
    for port in Store.__mro__
    for name, value in vars(port).items()
    if not name.startswith("_") and callable(value)
)
LISTED = sorted(name for name in PROMISED if hasattr(getattr(DatabaseStore, name), "operation"))


def asked(function: object, left_out: set[str]) -> list[tuple[str, object, object]]:
    """The parameters of a function: name, kind and default of each."""
    assert callable(function)
    return [
        (one.name, one.kind, one.default)
        for one in signature(function).parameters.values()
        if one.name not in left_out
    ]


def test_a_store_can_be_asked_what_its_port_promises():
    assert len(PROMISED) > 90
    assert [name for name in PROMISED if not hasattr(DatabaseStore, name)] == []


@pytest.mark.parametrize("name", LISTED)
def test_an_operation_is_asked_for_as_its_port_says(name):
    """mypy compares the types; names and defaults of what is loaded later are compared here."""
    operation = getattr(DatabaseStore, name).operation
    if isinstance(operation, _LaterFunction):
        operation = operation.load()
    first = next(iter(signature(operation).parameters.values()))
    assert first == Parameter("tx", Parameter.POSITIONAL_OR_KEYWORD, annotation="Transaction")
    assert asked(operation, {"tx", "effects"}) == asked(getattr(Store, name), {"self"})
