"""The OpenAPI document holds: what schemathesis makes of it is answered as it says (S35)."""

import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.conftest import register
from tests.support.http_server import running_server
from tidewheel.server.openapi import document
from tidewheel.server.route_table import ROUTES

DOCUMENT = msgspec.json.decode(msgspec.json.encode(document(ROUTES)))  # as it is sent
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 10
KNOWN = {"id": ["known", "held", "nobody"], "queue": ["q", "other"], "number": ["1", "99"]}


def is_stream(operation):
    """Who listens to it is not answered before it ends."""
    responses = operation.get("responses", {}).values()
    return any("text/event-stream" in one.get("content", {}) for one in responses)


OPERATIONS = [
    pytest.param(method.upper(), path, id=f"{method.upper()} {path}")
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
    if not is_stream(operation)
]


def test_the_document_is_one_of_openapi_3_1():
    errors = [error.message for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()]
    assert errors == []


def test_every_type_has_a_name_of_its_own():
    """Generators of clients make a class of each."""
    names = [name for name in DOCUMENT["components"]["schemas"] if "." in name]
    assert names == []


def schemas_in(document):
    """Every value that stands where a schema may stand as `items`."""
    match document:
        case dict():
            yield from (document[key] for key in ("items",) if key in document)
            yield from (found for one in document.values() for found in schemas_in(one))
        case list():
            yield from (found for one in document for found in schemas_in(one))


def test_no_schema_is_a_mere_yes_or_no():
    """It is allowed, but generators of clients stumble over it."""
    assert [one for one in schemas_in(DOCUMENT) if isinstance(one, bool)] == []


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """With something in it, and without patience."""
    url = f"sqlite:///{tmp_path_factory.mktemp('schema')}/tidewheel.db"
    with running_server(
        url, failures_max=100_000, wait_seconds_max=0.01, request_seconds_max=15.0
    ) as running:
        caller = running.caller("submit", "worker")
        worker = register(caller, "q")
        caller.post("/tasks", {"id": "held", "queue": "q", "spec": 1})
        caller.post("/queues/q/claim", {"worker": worker})
        caller.post("/tasks", {"id": "known", "queue": "q", "spec": {"a": [1, None]}})
        yield running


@pytest.fixture(scope="module", params=["admin", "read"])
def caller(server, request):
    made = server.caller(request.param)
    made.session = requests.Session()
    made.session.headers["Authorization"] = f"Bearer {made.token}"
    yield made
    made.session.close()


@pytest.fixture(scope="module")
def schema():
    return schemathesis.openapi.from_dict(DOCUMENT)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_what_fits_the_document_or_breaks_it_is_answered_as_it_says(
    schema, server, caller, method, path
):
    """No 5xx, no status, no media type and no body that the document does not name."""
    operation = schema[path][method]
    cases = operation.as_strategy()
    if operation.body or operation.query:
        wrong = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
        cases = st.one_of(cases, wrong)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, named=st.data())
    def ask(case, named):
        for name in case.path_parameters:
            if name in KNOWN:
                case.path_parameters[name] = named.draw(st.sampled_from(KNOWN[name]))
        response = case.call(base_url=f"http://{server.address}", session=caller.session)
        case.validate_response(response, checks=CHECKS)

    ask()
