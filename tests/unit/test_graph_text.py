"""Graph text: tokens, chains and the chains that parameters stand for."""

from __future__ import annotations

import pytest

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.graph_text import (
    Both,
    Chain,
    Either,
    Expression,
    GraphLine,
    GraphTokenKind,
    Token,
    read_chains,
)
from tidewheel.formats.flow_cylc.names import Parameters
from tidewheel.formats.flow_cylc.workflow import variants

TABLE = Parameters(
    values={"m": (1, 2, 3), "animal": ("cat", "dog")},
    templates={"m": "_m%(m)d", "animal": "_%(animal)s"},
)


def lines(text: str) -> list[GraphLine]:
    return [
        GraphLine(line, Position("flow.cylc", number, 1))
        for number, line in enumerate(text.splitlines(), start=1)
    ]


def written(side: Expression) -> str:
    """A side as text again, with the parentheses that its structure needs."""
    if isinstance(side, Token):
        mark = "@" if side.kind is GraphTokenKind.XTRIGGER else "!" * side.suicide
        offset = "" if side.offset is None else f"[{side.offset}]"
        qualifier = "" if side.qualifier is None else f":{side.qualifier}"
        return f"{mark}{side.text}{offset}{qualifier}{'?' * side.optional}"
    sign = " & " if isinstance(side, Both) else " | "
    return "(" + sign.join(written(term) for term in side.terms) + ")"


def chains(text: str) -> list[str]:
    findings = Findings()
    found = read_chains(lines(text), findings)
    assert not list(findings), [str(finding) for finding in findings]
    return [show(chain) for chain in found]


def show(chain: Chain) -> str:
    return " => ".join(written(side) for side in chain.sides)


def mistakes(text: str) -> list[str]:
    findings = Findings()
    read_chains(lines(text), findings)
    return [f"{one.position.line}:{one.position.column} {one.message}" for one in findings]


def expanded(text: str) -> list[str]:
    findings = Findings()
    found = [
        show(variant)
        for chain in read_chains(lines(text), findings)
        for variant in variants(chain, TABLE, findings)
    ]
    return found or [finding.message for finding in findings]


@pytest.mark.req("R001-2")
def test_a_node_has_a_name_parameters_an_offset_an_output_and_a_question_mark() -> None:
    assert chains("a<m> [ -P1D ] : fail ? => !b+c%d@e-f") == ["a<m>[-P1D]:fail? => !b+c%d@e-f"]


@pytest.mark.req("R001-2")
def test_and_binds_tighter_than_or() -> None:
    assert chains("a & b | c => d") == ["((a & b) | c) => d"]
    assert chains("a & (b | c) => d") == ["(a & (b | c)) => d"]


@pytest.mark.req("R001-2")
def test_a_chain_is_as_long_as_its_arrows() -> None:
    assert chains("a => b & c => d") == ["a => (b & c) => d"]


@pytest.mark.req("R001-2")
def test_a_line_goes_on_before_and_behind_an_operator_over_blank_lines_and_comments() -> None:
    text = """
        a =>   # the first

        b
        & c
        | @x => d
        e
    """
    assert chains(text) == ["a => ((b & c) | @x) => d", "e"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b => c", "1:3 an operator is missing before 'b'"),
        ("a => => b", "1:6 a task is missing before '=>'"),
        ("=> b", "1:1 a task is missing before '=>'"),
        ("a =>", "1:3 nothing follows '=>'"),
        ("a && b => c", "1:3 '&&' is not understood in: a && b => c"),
        ("a || b => c", "1:3 '||' is not understood in: a || b => c"),
        ("(a & b => c", "1:1 '(' is not closed"),
        ("a & b) => c", "1:6 ')' closes nothing"),
        ("a -> b", "1:3 '->' is not understood in: a -> b"),
        ("a.1 => b", "1:2 '.' is not understood in: a.1 => b"),
        ("a[-P1 => b", "1:2 '[' is not understood in: a[-P1 => b"),
        ("a, b => c", "1:2 ',' is not understood in: a, b => c"),
        ("(" * 60 + "a" + ")" * 60, "1:51 parentheses are nested more than 50 deep"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, message: str) -> None:
    assert mistakes(text) == [message]


def test_every_line_with_a_mistake_is_named_and_the_good_ones_are_read() -> None:
    findings = Findings()
    found = read_chains(lines("a b\nc => d\ne ||\nf => g\nh"), findings)
    assert [finding.position.line for finding in findings] == [1, 3]
    assert [show(chain) for chain in found] == ["c => d", "f => g", "h"]


@pytest.mark.req("R001-2")
def test_a_chain_with_a_parameter_stands_for_one_chain_of_each_value() -> None:
    assert sorted(set(expanded("a<animal> => b<m=2>_x<animal>"))) == [
        "a_cat => b_m2_x_cat",
        "a_dog => b_m2_x_dog",
    ]


def test_two_parameters_stand_for_every_combination() -> None:
    assert len(expanded("a<m,animal>")) == 6
    assert "a_m3_dog" in expanded("a<m,animal>")


def test_a_task_before_the_first_value_is_left_out_of_its_side() -> None:
    assert expanded("a<m-1> & b => c<m>") == [
        "b => c_m1",
        "(a_m1 & b) => c_m2",
        "(a_m2 & b) => c_m3",
    ]


def test_a_chain_ends_before_a_side_without_a_task() -> None:
    assert expanded("a => b<m+1> => c<m>") == ["a => b_m2 => c_m1", "a => b_m3 => c_m2", "a"]
    assert expanded("b<m-1> => c<m>") == ["b_m1 => c_m2", "b_m2 => c_m3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a<x>", "parameter 'x' in a<x> is not defined"),
        ("a<m=7>", "m=7 in a<m=7> is not a value of that parameter"),
        ("a<m*2>", "<m*2> in a<m*2> is not understood"),
    ],
)
def test_a_wrong_parameter_is_named(text: str, message: str) -> None:
    assert expanded(text) == [message]


def test_a_line_that_stands_for_too_many_chains_is_refused() -> None:
    table = Parameters(
        values={name: tuple(range(100)) for name in "abc"},
        templates={name: f"_%({name})d" for name in "abc"},
    )
    findings = Findings()
    (chain,) = read_chains(lines("t<a,b,c>"), findings)
    assert list(variants(chain, table, findings)) == []
    assert [finding.code for finding in findings] == ["too-many-tasks"]


def test_the_structure_of_a_side_is_kept() -> None:
    (chain,) = read_chains(lines("a | b"), Findings())
    assert isinstance(chain.sides[0], Either)


def test_blanks_behind_a_line_are_passed_over_at_once() -> None:
    assert chains("a => b" + 1_000_000 * " ") == ["a => b"]  # to try each of them takes hours
