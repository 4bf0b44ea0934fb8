"""flow.cylc: whatever is in the file, the answer is settings or findings, no exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidewheel.core.graph.findings import Findings
from tidewheel.formats.flow_cylc.settings import read_flow, read_settings
from tidewheel.formats.flow_cylc.source_loader import SourceOptions, read_source
from tidewheel.formats.flow_cylc.source_text import (
    LINE_LENGTH_MAX,
    LINES_MAX,
    SourceText,
    join_continued,
)

WHOLE = '''\
[meta]
    title = "all sorts"
[scheduler]
    UTC mode = True
    [[events]]
        stall timeout = PT1M
        stall handlers = 'a, b', c
[task parameters]
    m = 1..3
    n = cat, dog
    [[templates]]
        m = _%(m)02d
[scheduling]
    initial cycle point = 2030
    [[queues]]
        [[[q]]]
            limit = 3
            members = foo<m>, bar
    [[special tasks]]
        clock-expire = foo<m>(PT1H)
    [[xtriggers]]
        x = wall_clock(offset=PT1H):PT10S
    [[graph]]
        R1 = """
            a => foo<m> => bar \\
                => last
        """
        P1D = a[-P1D] => a  # more
[runtime]
    [[root]]
        pre-script = echo
    [[FAM, OTHER]]
        execution retry delays = 3*PT1M, PT1H
    [[foo<m>]]
        inherit = FAM, OTHER
        [[[environment]]]
            M = %(m)s
        [[[outputs]]]
            x = made x
    [[bar]]
        inherit = None, FAM
        completion = succeeded or x
'''
PIECES = st.sampled_from(
    [
        *("[", "]", "[[", "]]", "[[[", '"""', "'''", '"', "'", "=", "\\", "\n", "#", "<", ">"),
        *("<m>", "<m=", ",", "..", "*", "PT1H", "%(m)s", "%", "(", ")", "None", "root", "é"),
        *("[runtime]\n", "[[a]]\n", "\x85", "\u2028", "9" * 5000, "²", "1..99999999999", "\t"),
        *("{{", "}}", "{%", "[[" * 40, "%include x", "=>", "script = ", "\n[cylc]\n", "\x1b"),
        *("inherit = ", "-"),
    ]
)


def settle(text: str) -> Findings:
    """Reads as far as it goes, and lets every finding be shown."""
    lines = text.split("\n")
    findings = Findings()
    source = SourceText(Path("flow"), ("flow.cylc",), lines, range(1, len(lines) + 1))
    read_settings(join_continued(source, findings), findings)
    assert all(str(finding) for finding in findings.sorted())
    return findings


def test_the_whole_example_is_right_to_begin_with():
    assert [str(one) for one in settle(WHOLE)] == []


@pytest.mark.slow
@given(st.text(max_size=200))
@example("[")
@example("[runtime]\n[[a]]\nscript = '''")
@example("\\")
def test_any_text_is_read(text):
    settle(text)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(WHOLE)), st.integers(0, 40), st.one_of(PIECES, st.just(""))
        ),
        min_size=1,
        max_size=6,
    )
)
def test_a_definition_with_pieces_lost_and_put_in_is_read(changes):
    text = WHOLE
    for start, length, piece in changes:
        text = text[:start] + piece + text[start + length :]
    settle(text)


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_a_definition_with_its_lines_in_disorder_is_read(seed):
    chance = random.Random(seed)
    lines = WHOLE.split("\n")
    chance.shuffle(lines)
    settle("\n".join(lines[: chance.randrange(len(lines))] * chance.randrange(1, 4)))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[a" + " " * 90_000 + "b", "bad-heading"),
        ("[a" + "] " * 40_000 + "b", "bad-heading"),
        ("[" * 90_000 + "a" + "]" * 90_000, "bad-heading"),
        ("a" + " b" * 40_000, "bad-line"),
        ("[runtime]\n[[" + "<" * 90_000 + "]]", "bad-parameter"),
        ("[runtime]\n[[a]]\nscript = '" + "\\'" * 40_000, "bad-value"),
        ("[runtime]\n[[a]]\ninherit = " + "b," * 40_000, "bad-value"),
        ("[runtime]\n[[a]]\nexecution retry delays = 99999999*PT1M", "bad-value"),
        ("[runtime]\n[[a]]\nexecution retry delays = ²*PT1M", "bad-value"),
        ("[runtime]\n[[a]]\nexecution time limit = P" + "9" * 5000 + "D", "bad-value"),
        ("[scheduling]\n[[queues]]\n[[[q]]]\nlimit = " + "9" * 5000, "bad-value"),
        ("[task parameters]\nm = 1.." + "9" * 5000, "bad-value"),
        (
            "[task parameters]\nm = 1..3\n[runtime]\n[[a<m=" + "9" * 5000 + ">]]",
            "bad-parameter",
        ),
        ("[runtime]\n[[a]]\n" + "script =\n" * 30_000 + "[[b", "bad-heading"),
        ("[task parameters]\nm = 1\n[[templates]]\nm = %(m)999999999d", "bad-parameter"),
        (
            "[task parameters]\na = 1..300\nb = 1..300\n[runtime]\n[[x<a,b>]]\n[[y<a,b>]]",
            "too-many-namespaces",
        ),
        ("[scheduling]\n[[xtriggers]]\nx = f(" + "(" * 90_000, "bad-value"),
        (
            "[runtime]\n" + "".join(f"[[a{n}]]\ninherit = a{n + 1}\n" for n in range(500)),
            "unknown-parent",
        ),
    ],
)
def test_what_is_too_large_or_too_deep_is_refused(text, code):
    assert code in {finding.code for finding in settle(text)}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"abc\0def", "not-text"),
        (b"\xff\xfe[\0", "not-text"),
        (b"title = \xe9\n", "not-text"),
        (b"x" * (LINE_LENGTH_MAX + 1), "line-too-long"),
        (b"\n" * (LINES_MAX + 1), "too-many-lines"),
        (b"#" * 8_000_001, "source-too-large"),
    ],
)
def test_files_that_are_no_text_or_too_large_are_refused(tmp_path, content, code):
    (tmp_path / "flow.cylc").write_bytes(content)
    findings = Findings()
    read_flow(tmp_path, SourceOptions(), findings)
    assert code in {finding.code for finding in findings}


def test_a_file_that_includes_another_a_thousand_times_is_refused(tmp_path):
    (tmp_path / "flow.cylc").write_text("%include a\n" * 1001)
    (tmp_path / "a").write_text("# nothing\n")
    findings = Findings()
    read_source(tmp_path, SourceOptions(), findings)
    assert [one.code for one in findings] == ["too-many-includes"]


def test_a_flow_cylc_that_is_a_link_out_of_its_folder_is_not_read(tmp_path):
    folder = tmp_path / "flow"
    folder.mkdir()
    (tmp_path / "secret").write_text("title = secret\n")
    (folder / "flow.cylc").symlink_to(tmp_path / "secret")
    findings = Findings()
    source = read_source(folder, SourceOptions(), findings)
    assert [one.code for one in findings] == ["outside-source"]
    assert list(source.lines) == []


def test_a_flow_cylc_that_is_a_folder_or_a_pipe_is_not_waited_for(tmp_path):
    import os  # noqa: PLC0415 - for a pipe, in this one test

    (tmp_path / "flow.cylc").mkdir()
    os.mkfifo(tmp_path / "pipe.cylc")
    for path in (tmp_path, tmp_path / "pipe.cylc"):
        findings = Findings()
        read_flow(path, SourceOptions(), findings)
        assert [one.code for one in findings] in (["not-a-file"], ["no-such-file"])
