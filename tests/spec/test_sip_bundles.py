"""Definitions that come as a bundle or in a folder of several (RELIABILITY S13)."""

import pytest

from tests.support.sips import COMPOSE, codes, definition, stage
from tidewheel.core.graph.findings import Findings
from tidewheel.core.operator.definition import stored_files
from tidewheel.formats.sip.bundle import find_definitions, sources_in
from tidewheel.formats.sip.validation import validate
from tidewheel.services.definitions.sip import source_of

BUNDLE = {
    "one-1.0.0.yaml": definition(stage("a")).encode(),
    "two-1.0.0.json": b'{"schema_version": "2.0", "stages": []}',
    "stages/a/1.0.0/docker_compose.yaml": COMPOSE.encode(),
    "stages/a/1.0.0/bin/run": b"#!/bin/sh\n",
    "stages/b/1.0.0/docker_compose.yaml": COMPOSE.encode(),
    "README.md": b"about",
}


def read(files):
    findings = Findings()
    return sources_in(files, findings, frozenset({"stages/a/1.0.0/bin/run"})), findings


@pytest.mark.req("R004-1", "R004-5")
def test_a_bundle_holds_several_definitions_each_with_the_files_of_its_stages():
    (one, two), findings = read(BUNDLE)
    assert not list(findings)
    assert sorted(one.files) == [
        "one-1.0.0.yaml",
        "stages/a/1.0.0/bin/run",
        "stages/a/1.0.0/docker_compose.yaml",
    ]
    assert (one.executable, two.executable) == ({"stages/a/1.0.0/bin/run"}, frozenset())
    assert list(two.files) == ["two-1.0.0.json"]
    assert validate(one).runnable and validate(two).runnable


@pytest.mark.req("R004-5")
def test_what_is_stored_of_a_definition_is_all_that_it_needs():
    (one, _), _ = read(BUNDLE)
    again = source_of(one.file, stored_files(one.files, one.executable))
    assert again == one
    assert validate(again).runnable


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/passwd",
        "stages/../../x",
        "stages//x",
        "./x",
        "stages/a/",
        "",
        "a\0b",
        "a\nb",
        "a\\b",
        "x/" * 20 + "y",
        "x" * 300,
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path):
    sources, findings = read({**BUNDLE, path: b""})
    assert sources == []
    assert codes(findings) == ["bad-path"]


def test_a_bundle_that_is_too_large_or_has_nothing_in_it_is_refused():
    many = {f"f{number}": b"" for number in range(1_001)}
    assert codes(read(many)[1])[0] == "too-many-files"
    assert codes(read({**BUNDLE, "stages/a/1.0.0/x": b"x" * 1_100_000})[1]) == [
        "file-too-large"
    ]
    large = {f"stages/a/1.0.0/{number}": b"x" * 1_000_000 for number in range(35)}
    assert codes(read({**BUNDLE, **large})[1]) == ["file-too-large"]
    assert codes(read({"README.md": b""})[1]) == ["no-definitions"]


@pytest.mark.req("R004-1")
def test_a_folder_holds_several_definitions(tmp_path):
    for name in ("b.json", "a.yaml.j2", ".hidden.yaml", "c.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "stages").mkdir()
    findings = Findings()
    found = find_definitions(tmp_path, findings)
    assert [path.name for path in found] == ["a.yaml.j2", "b.json"]
    assert find_definitions(tmp_path / "c.txt", findings) == [tmp_path / "c.txt"]
    assert not list(findings)
    assert find_definitions(tmp_path / "stages", findings) == []
    assert find_definitions(tmp_path / "none", findings) == []
    assert sorted(codes(findings)) == ["no-definitions", "no-such-file"]
