"""flow.cylc: sections, items, texts, comments, continuations and includes."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.formats.flow_cylc.settings import FlowSettings, read_flow, read_settings
from tidewheel.formats.flow_cylc.source_loader import SourceOptions, read_source

GRAPH = '[scheduling]\n    [[graph]]\n        R1 = "a"\n'


def read(folder: Path, text: str, graph: str = GRAPH) -> tuple[FlowSettings, list[str]]:
    """Settings, and the findings as `line severity: message | hint`."""
    (folder / "flow.cylc").write_text(dedent(text) + graph)
    findings = Findings()
    settings = read_flow(folder, SourceOptions(), findings)
    return settings, shown(findings)


def shown(findings: Findings) -> list[str]:
    return [
        f"{one.position.line} {one.severity.word}: {one.message} | {one.hint}"
        for one in findings.sorted()
    ]


def script(folder: Path, text: str) -> str:
    settings, found = read(folder, f"[runtime]\n[[a]]\nscript = {text}\n")
    assert found == []
    return settings.nodes["a"].scripts.main


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("echo hello", "echo hello"),
        ("  echo hello  # a comment", "echo hello"),
        ("x=1 run", "x=1 run"),
        ('"echo # no comment"  # a comment', "echo # no comment"),
        ("'it is \"quoted\"'", 'it is "quoted"'),
        ('"""one line"""  # a comment', "one line"),
        (
            '"""\n    first\n      second # stays\n\n    third\n"""',
            "first\n  second # stays\n\nthird",
        ),
        ("'''\n  one\n  two\n'''", "one\ntwo"),
        ('"""first\n    second"""', "first\n    second"),
        ("one \\\n    two", "one     two"),
        ("", ""),
        ('"  inner blanks go  "', "inner blanks go"),
    ],
)
def test_a_text_is_what_stands_between_its_quotes(tmp_path, written, meant):
    assert script(tmp_path, written) == meant


def test_sections_of_one_name_are_one_section_and_the_later_item_counts(tmp_path):
    settings, found = read(
        tmp_path,
        """
        [runtime]
            [[a]]
                script = first
                [[[environment]]]
                    X = 1
                    Y = 2
            [[a]]
                script = second
                [[[environment]]]
                    X = 3
        """,
    )
    assert found == []
    assert settings.nodes["a"].scripts.main == "second"
    assert settings.nodes["a"].environment == (("X", "3"), ("Y", "2"))


def test_an_item_that_is_set_twice_under_one_heading_is_worth_a_warning(tmp_path):
    _, found = read(tmp_path, "[runtime]\n[[a]]\nscript = one\nscript = two\n")
    assert found == [
        "4 warning: 'script' is set twice under one heading; line 3 has no effect "
        "| remove one of the two"
    ]


def test_graph_texts_under_one_recurrence_add_up_and_know_their_lines(tmp_path):
    graph = dedent('''\
        [scheduling]
            [[graph]]
                R1 = "a => b"
                P1 = c
                R1 = """
                    b => d
                """
        ''')
    settings, found = read(tmp_path, "", graph)
    assert found == []
    first, second = settings.graph
    assert (first.recurrence, second.recurrence) == ("R1", "P1")
    assert [line.text.strip() for line in first.lines if line.text.strip()] == [
        "a => b",
        "b => d",
    ]
    places = [(line.position.line, line.position.column) for line in first.lines]
    assert places == [(3, 15), (5, 17), (6, 1), (7, 1)]


def test_a_graph_without_quotes_ends_at_a_comment(tmp_path):
    settings, _ = read(tmp_path, "", "[scheduling]\n[[graph]]\nR1 = a => b  # why\n")
    assert settings.graph[0].text == "a => b"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[runtime]\n[[a]\n", 2, "2 opening and 1 closing brackets | write [[a]]"),
        (
            "[runtime]\n[[[a]]]\n",
            2,
            "at level 3, but [runtime] above it is at level 1 | write [[a]]",
        ),
        ("[runtime]\n[[ ]]\n", 2, "this heading has no name"),
        ("[runtime]\n[[a]] b\n", 2, "not closed, or something follows it"),
        ("[runtime]\n[[a]]\nscript\n", 3, "neither a heading nor an item: 'script'"),
        (
            "[runtime]\n[[a]]\nscript=x\n[[b]]\nscript\n",
            5,
            "neither a heading nor an item: 'script'",
        ),
        ("[runtime]\n[[a]]\nscript = one\n  two\n", 4, "if this belongs to 'script'"),
        ("[scheduling]\n[[graph]]\na => b\n", 3, "a line of a graph, but it is not inside"),
        ("[runtime]\n[[a]]\nscript = 'x\n", 3, 'the quotes of "\'x" are not closed'),
        ('[runtime]\n[[a]]\nscript = "x" y\n', 3, "something follows them"),
        ('[runtime]\n[[a]]\nscript = """x""" y\n', 3, "'y' follows the closing quotes"),
        (
            '[runtime]\n[[a]]\nscript = """\nx\n""" y\n',
            5,
            "'y' follows the closing quotes",
        ),
        ('[runtime]\n"""\n', 2, "these quotes close nothing"),
        ("[runtime]\n[[a]]\nscript = one \\ \n  two\n", 3, "white space after the backslash"),
        ("{% set x = 1 %}\n", 1, "make #!jinja2 the first line"),
        ("[meta]\na = 1\n[[a]]\nb = 1\n", 3, "'a' is a section here and an item in line 2"),
        (
            "[meta]\n[[a]]\nb = 1\n[meta]\na = 1\n",
            5,
            "'a' is an item here and a section in line 2",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_named_with_a_way_out(tmp_path, text, line, words):
    _, found = read(tmp_path, text)
    assert any(one.startswith(f"{line} ") and words in one for one in found), found


def test_a_text_that_is_never_closed_is_reported_where_it_begins(tmp_path):
    settings, found = read(
        tmp_path,
        '''\
        [runtime]
            [[a]]
                script = """
                    echo a
            [[b]]
                script = """
                    echo b
                """
        ''',
    )
    assert found == [
        '3 error: the text of \'script\' begins with """ and is not closed before [[b]] in '
        'line 5 | add """ after its last line'
    ]
    assert settings.nodes["b"].scripts.main == "echo b"


def test_a_text_that_is_never_opened_is_reported_where_its_quotes_are_missing(tmp_path):
    settings, found = read(
        tmp_path,
        '''\
        [runtime]
            [[a]]
                script =
                    if [[ $X = 1 ]]; then
                        echo a
                    fi
                """
                platform =
            [[b]]
                script = """
                    echo b
                """
        ''',
    )
    assert found == [
        '3 error: the text of \'script\' is closed by """ in line 7, but has no opening quotes '
        '| write script = """'
    ]
    assert settings.nodes["b"].scripts.main == "echo b"


def test_a_quote_that_nothing_opens_is_worth_a_warning(tmp_path):
    _, found = read(tmp_path, '[runtime]\n[[a]]\nscript = run"\n[[b]]\nscript = say "x"\n')
    assert [one.split(":")[0] for one in found] == ["3 warning"]


def test_every_mistake_is_found_at_once(tmp_path):
    _, found = read(
        tmp_path, "[runtime]\n[[a]\nscrpt = x\nbad line\nexecution time limit = 5\n"
    )
    assert [one.split()[0] for one in found] == ["2", "3", "4", "5"]


def test_a_comment_that_swallows_the_next_line_is_noticed(tmp_path):
    _, found = read(tmp_path, "[runtime]\n# careful \\\n[[a]]\n[[b]]\n")
    assert found == [
        "2 warning: this comment ends in a backslash, so the next line is part of the comment "
        "| remove the backslash"
    ]


def test_a_backslash_joins_lines_inside_of_texts_too(tmp_path):
    assert script(tmp_path, '"""\nrun \\\n  --fast\n"""') == "run   --fast"


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path):
    content = "\ufeff" + GRAPH + "[runtime]\n[[a]]\nscript = one\n"
    (tmp_path / "flow.cylc").write_bytes(content.replace("\n", "\r\n").encode())
    findings = Findings()
    settings = read_flow(tmp_path, SourceOptions(), findings)
    assert list(findings) == []
    assert settings.nodes["a"].scripts.main == "one"


def test_includes_are_put_in_place_and_findings_name_the_included_file(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "tasks.cylc").write_text(
        "[runtime]\n%include 'parts/a.cylc'\n[[b]]\n"
    )
    (tmp_path / "parts" / "a.cylc").write_text("[[a]]\nscrpt = x\n")
    (tmp_path / "flow.cylc").write_text(
        GRAPH + '%include "parts/tasks.cylc"\n[[c]]\nscrpt = x\n'
    )
    findings = Findings()
    source = read_source(tmp_path, SourceOptions(), findings)
    settings = read_settings(source, findings)
    assert set(settings.nodes) == {"a", "b", "c", "root"}
    assert [str(one.position) for one in findings.sorted()] == [
        "flow.cylc:6:1",
        "parts/a.cylc:2:1",
    ]
    assert source.files == ("flow.cylc", "parts/tasks.cylc", "parts/a.cylc")


@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ("missing.cylc", "no-such-file"),
        ("../secret", "outside-source"),
        ("/etc/passwd", "outside-source"),
        ("link", "outside-source"),
        ("pipe", "not-a-file"),
        (".", "not-a-file"),
        ("x" * 5000, "unreadable"),
        ("'mixed\"", "bad-include"),
        ("binary", "not-text"),
        ("latin", "not-text"),
        ("flow.cylc", "include-loop"),
        ("loop.cylc", "include-loop"),
    ],
)
def test_an_include_reads_only_text_in_the_folder(tmp_path, argument, code):
    import os  # noqa: PLC0415 - for a pipe, in this one test

    folder = tmp_path / "flow"
    folder.mkdir()
    (tmp_path / "secret").write_text("[runtime]\n")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "binary").write_bytes(b"abc\0def")
    (folder / "latin").write_bytes("é".encode("latin-1"))
    (folder / "loop.cylc").write_text("%include 'loop.cylc'\n")
    os.mkfifo(folder / "pipe")
    _, found = read(folder, f"\n%include {argument}\n")
    findings = Findings()
    read_source(folder, SourceOptions(), findings)
    assert [one.code for one in findings] == [code], found
    assert all(one.severity is Severity.ERROR for one in findings)


def test_a_misspelled_include_names_the_file_that_is_there(tmp_path):
    (tmp_path / "tasks.cylc").write_text("")
    _, found = read(tmp_path, "%include tsks.cylc\n")
    assert found == [
        "1 error: there is no file tsks.cylc in the workflow's folder "
        "| did you mean tasks.cylc?"
    ]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "there is no flow.cylc in"),
        (["suite.rc"], "suite.rc is a file of Cylc 7"),
    ],
)
def test_a_folder_without_flow_cylc_gets_advice(tmp_path, names, words):
    for name in names:
        (tmp_path / name).write_text(GRAPH)
    findings = Findings()
    settings = read_flow(tmp_path, SourceOptions(), findings)
    assert [words in one for one in shown(findings)] == [True]
    assert settings.graph == ()


def test_a_file_may_be_named_instead_of_its_folder(tmp_path):
    (tmp_path / "other.cylc").write_text(GRAPH)
    findings = Findings()
    settings = read_flow(tmp_path / "other.cylc", SourceOptions(), findings)
    assert list(findings) == []
    assert settings.graph[0].recurrence == "R1"


def test_empy_is_refused_with_advice(tmp_path):
    _, found = read(tmp_path, "#!empy\n")
    assert [one.split(":")[0] for one in found] == ["1 error"]
    assert "Jinja2" in found[0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", 'schema_version: "2.0"\nstages: []\n', "NAME.yaml"),
        ("a", '# a remark\n{\n  "stages": [],\n  "schema_version": 2.0\n}\n', "NAME.json"),
        ("a.yaml.jinja", "{% set n = 1 %}\nstages:\n", ".j2"),
        ("flow.cylc", "from tidewheel import Workflow\n", "NAME.py"),
    ],
)
def test_another_kind_of_definition_is_told_what_to_be_called(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    findings = Findings()
    read_flow(tmp_path / name, SourceOptions(), findings)
    (error,) = findings
    assert error.code == "definition-file-kind"
    assert name in error.message and words in error.hint


def test_what_a_script_writes_is_no_other_kind_of_definition(tmp_path):
    _, found = read(tmp_path, GRAPH + '[runtime]\n[[a]]\nscript = """\nstages: x\n"""\n')
    assert found == []
