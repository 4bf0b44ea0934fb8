"""Seed 004, scheduling block instances: what their texts may say, and each mistake in one."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.core.operator.blocks import BlockCondition, BlockNeed
from tidewheel.formats.sip.scheduling_block import is_block_id, read_sbi
from tidewheel.services.blocks.requests import fingerprint

A, B, C = (f"PB-20261115-sip-{letter}" for letter in "abc")


def block(name=A, **changed):
    return {
        "id": name,
        "type": "offline",
        "workflow": {"id": "vis", "version": "1.0.0"},
        **changed,
    }


def sbi(*blocks, **changed):
    return {
        "id": "SBI-20261115-sip-1",
        "version": "2.0",
        "scheduling_block": {"id": "SB-1"},
        "processing_blocks": list(blocks or [block()]),
        **changed,
    }


def needs(parent, condition="complete", kind="processing_block"):
    return {"type": kind, "value": parent, "condition": condition}


def read(document, file="sbi.json"):
    findings = Findings()
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_sbi(file, content, findings), findings


def codes(findings, severity=Severity.ERROR):
    return [one.code for one in findings.sorted() if one.severity is severity]


@pytest.mark.req("R004-53")
def test_an_instance_is_read_with_all_of_its_blocks():
    workflow = {"id": "vis", "version": "1.0.0", "parameters": {"n": 3, "x": [1, "a"]}}
    request, findings = read(
        sbi(
            block(A, priority=100, workflow=workflow, version="1.2.3"),
            block(B, type="realtime", dependencies=[needs(A), needs(A, "running")]),
            subarray_id="s1",
            scans=[{"duration": 7}],
        )
    )
    assert not list(findings)
    first, second = request.blocks
    assert (request.id, first.id, first.type) == ("SBI-20261115-sip-1", A, "offline")
    assert (first.workflow, first.version, first.priority) == ("vis", "1.0.0", 100)
    assert first.parameters == {"n": 3, "x": [1, "a"]}
    assert (second.priority, second.type) == (0, "realtime")
    assert second.needs == (
        BlockNeed(A, BlockCondition.COMPLETE),
        BlockNeed(A, BlockCondition.STARTED),
    )
    assert request.body["scans"] == [{"duration": 7}]


@pytest.mark.req("R004-53")
@pytest.mark.parametrize(
    ("word", "condition"),
    [
        *[("complete", "complete"), ("completed", "complete"), ("running", "started")],
        *[("started", "started"), ("failed", "failed"), ("aborted", "aborted")],
        *[("finished", "finished"), ("ended", "finished")],
    ],
)
def test_conditions_are_those_of_stages(word, condition):
    request, _ = read(sbi(block(A), block(B, dependencies=[needs(A, word)])))
    assert request.blocks[1].needs == (BlockNeed(A, BlockCondition(condition)),)


@pytest.mark.req("R004-53")
@pytest.mark.parametrize("priority", [-1, 0, 7, 100, 5.0])
def test_priorities_are_whole_numbers_from_minus_one_to_a_hundred(priority):
    request, findings = read(sbi(block(priority=priority)))
    assert request.blocks[0].priority == priority and not findings.has_errors


WRONG = [
    (sbi(block(priority=-2)), ["bad-priority"]),
    (sbi(block(priority=101)), ["bad-priority"]),
    (sbi(block(priority=1.5)), ["bad-priority"]),
    (sbi(block(priority="high")), ["bad-priority"]),
    (sbi(block(priority=[])), ["bad-priority"]),
    (sbi(block("PB-1")), ["bad-id"]),
    (sbi(block("PB-2026111-sip-1")), ["bad-id"]),
    (sbi(block(f"{A}/b")), ["bad-id"]),
    (sbi(block(f"{A} b")), ["bad-id"]),
    (sbi(id="SBI-x"), ["bad-id"]),
    (sbi(version="3.0"), ["unknown-version"]),
    (sbi(block(type="later")), ["unknown-type"]),
    (sbi(block(workflow="vis")), ["value-kind"]),
    (sbi(block(workflow={"version": "1"})), ["missing-key"]),
    (sbi(block(workflow={"id": "vis", "version": "1", "parameters": 3})), ["value-kind"]),
    (sbi(block(A), block(A)), ["duplicate-block"]),
    (sbi(block(A, dependencies=[needs(A)])), ["waits-for-itself"]),
    (sbi(block(A, dependencies=[needs(B, "soon")]), block(B)), ["unknown-condition"]),
    (
        sbi(block(A, dependencies=[needs("x", "present", "buffer_object")])),
        ["block-waits-for-object"],
    ),
    (sbi(block(A, dependencies=[needs(B, kind="stage")]), block(B)), ["unknown-type"]),
    (sbi(block(A, dependencies=["b"])), ["entry-kind"]),
    (sbi(block(A, dependencies={})), ["value-kind"]),
    (
        sbi(
            block(A, dependencies=[needs(B)]),
            block(B, dependencies=[needs(C)]),
            block(C, dependencies=[needs(A)]),
        ),
        ["circle"],
    ),
    (sbi(processing_blocks=[]), ["no-blocks"]),
    (sbi(processing_blocks=[1]), ["entry-kind"]),
    (sbi(processing_blocks={}), ["value-kind"]),
    (sbi(procesing_blocks=[]), ["unknown-key"]),
    (sbi(block(prority=1)), ["unknown-key"]),
    (sbi(*(block(f"{A}{n}") for n in range(1001))), ["too-many"]),
    ([1], ["sbi-kind"]),
    (b"", ["empty-file"]),
    (b"{", ["json-syntax"]),
]


@pytest.mark.slow
@pytest.mark.req("R004-53", "R004-54", "R004-56")
@pytest.mark.parametrize(("document", "expected"), WRONG)
def test_each_mistake_is_found_with_its_place_and_what_to_write(document, expected):
    _, findings = read(document)
    assert codes(findings) == expected
    for one in findings:
        assert one.position.file == "sbi.json"
        assert one.hint or one.code == "json-syntax"


@pytest.mark.req("R004-54")
def test_every_mistake_is_found_at_once():
    wrong = [block("PB-1", priority=200, type="x"), block(B, dependencies=[needs(B)])]
    _, findings = read(sbi(*wrong, id="?", extra=1))
    assert sorted(codes(findings)) == [
        *("bad-id", "bad-id", "bad-priority", "unknown-key", "unknown-type"),
        "waits-for-itself",
    ]


def test_what_is_wrong_with_a_block_does_not_hide_the_rest_of_it():
    request, findings = read(
        sbi(block("PB-1", priority=200, dependencies=[needs(B)]), block(C, workflow="vis"))
    )
    assert findings.error_count == 3
    first, second = request.blocks
    assert (first.workflow, first.needs) == ("vis", (BlockNeed(B, BlockCondition.COMPLETE),))
    assert second.workflow == ""  # the registry has nothing to say about it


@pytest.mark.req("R004-53")
def test_a_workflow_definition_is_no_instance_and_told_what_to_do_with_it():
    request, findings = read({"schema_version": "2.0", "stages": []}, "vis-1.0.0.json")
    assert request is None
    (error,) = findings
    assert error.code == "sbi-kind"
    assert "tidewheel register vis-1.0.0.json" in error.hint


@pytest.mark.parametrize("missing", ["processing_blocks", "scheduling_block"])
@pytest.mark.parametrize("there", [False, True])
def test_what_is_advised_is_accepted(missing, there):
    document = sbi() | ({missing: None} if there else {})
    if not there:
        del document[missing]
    _, findings = read(document)
    (one,) = findings
    advised = re.search(r"[\[{].*[\]}]", one.hint).group()
    text = json.dumps({key: value for key, value in document.items() if key != missing})
    _, again = read(f"{text[:-1]}, {missing}: {advised}}}".encode(), "sbi.yaml")
    assert not list(again)


def test_what_is_plainly_meant_is_tolerated_with_a_warning():
    workflow = {"id": "vis", "configuration": {"n": 1}}
    document = sbi(
        block(A, type="Offline", workflow=workflow),
        block(B, dependencies=[needs(A, kind="PB")]),
    )
    del document["scheduling_block"]
    request, findings = read(document)
    assert request.blocks[0].parameters == {"n": 1}
    assert request.blocks[0].version == ""
    assert request.blocks[1].needs == (BlockNeed(A, BlockCondition.COMPLETE),)
    assert sorted(codes(findings, Severity.WARNING)) == [
        *("capital-letters", "no-scheduling", "no-version", "other-spelling"),
        "other-spelling",
    ]


def test_json_and_yaml_in_any_order_are_the_same_request():
    text = """
    processing_blocks:
      - {type: offline, id: PB-20261115-sip-a, workflow: {version: 1.10, id: vis}}
    version: 2.0
    scheduling_block: {id: SB-1}
    id: SBI-20261115-sip-1
    """
    written, _ = read(sbi(block(workflow={"id": "vis", "version": "1.10"})))
    other, findings = read(text.encode(), "sbi.yaml")
    assert not list(findings)
    assert other.blocks[0].version == "1.10"
    assert fingerprint(other) == fingerprint(written)
    changed, _ = read(sbi(block(workflow={"id": "vis", "version": "1.1"})))
    assert fingerprint(changed) != fingerprint(written)


def test_a_template_or_another_kind_of_file_is_refused():
    for file in ("sbi.txt", "sbi.json.j2", "sbi"):
        assert codes(read(sbi(), file)[1]) == ["sbi-file-kind"]


_KEYS = st.sampled_from(
    [*sbi(), *block(), *needs("x"), "parameters", "configuration", "priority", "dependencies"]
)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from([A, "2.0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(_KEYS, _VALUES), st.dictionaries(_KEYS, _VALUES))
def test_whatever_is_written_is_a_request_or_has_findings(top, inner):
    for document in (top, sbi(block(**inner)) | top):
        request, findings = read(document)
        assert request is not None
        whole = [is_block_id(one.id) and one.type and one.workflow for one in request.blocks]
        assert findings.has_errors or (whole and all(whole))
