"""Broken definitions end in findings: never a traceback, a hang or a half-read workflow.

A failure names its seed; SIM_SEED=… replays it. CI draws from the fixed one.
"""

from __future__ import annotations

import random

import pytest

from tests.sim.seeds import FIXED_SEED, fresh_seed
from tests.support.flows import load_with_findings
from tidewheel.core.graph.findings import Severity

MUTANTS = 150  # of each definition
FORECAST = """\
[scheduler]
    UTC mode = True
    cycle point format = CCYYMMDDThhmmZ
[task parameters]
    member = 1..3
    region = nz, au
    [[templates]]
        member = _m%(member)02d
[scheduling]
    initial cycle point = 20300101T00Z
    final cycle point = +P3D
    runahead limit = P3
    [[queues]]
        [[[heavy]]]
            limit = 2
            members = MODEL
    [[xtriggers]]
        data = wall_clock(offset=PT1H):PT10S
    [[special tasks]]
        clock-expire = obs(PT6H)
    [[graph]]
        R1 = "install => obs"
        T00, T12 = \"\"\"
            @data & install[^] => obs
            obs => model<member>
            model<member-1>? | recover[-PT12H] => model<member>?
            model<member>:fail? => recover
            MODEL:finish-all => product<region> => !recover
        \"\"\"
        +PT6H/PT12H!(20300102T06Z) = "product<region>[-PT6H] => archive<region>"
        R1/$ = archive<region=nz>:succeed => done  # the end
[runtime]
    [[root]]
        script = true
        [[[environment]]]
            A = "x # y"
    [[MODEL]]
        execution retry delays = 2*PT1M, PT10M
    [[model<member>]]
        inherit = MODEL
    [[obs, install, recover, done]]
    [[product<region>]]
        completion = succeeded or failed
        [[[outputs]]]
            ready = data are ready
    [[archive<region>]]
"""
NUMBERS = """\
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 10
    [[graph]]
        P1 = \"\"\"
            a[-P1] => a => b & c
            (b & c) | d[^+P1] => e
            a:start => !f
        \"\"\"
        R/2/P3!(5,P2) = e[-P2]:finish & f[3] => g
        R1/2 = d
        R1/3 = f
[runtime]
    [[a, b]]
        [[[meta]]]
            title = 'some text'
    [[d, e, f, g]]
    [[FAM]]
    [[c]]
        inherit = None, FAM
"""
PIECES = (
    "[", "]", "[[", "]]]", "=", "=>", "&", "|", "!", "?", ":", "<", ">", "(", ")", '"',
    '\"\"\"', "'", "#", ",", "\\", "\\\n", "%", "%include x", "@", "^", "$", "\0", "\x7f",
    "é", "\t", "P1",
    "R99999999999/PT1S", "P0", "-P1", "P9999999999Y", "T24", "1..999999999", "%(m)s", "{{ x }}",
    "<member-9>", "[-P1D]", ":fail-any", "00000000000000000000000", "inherit = MODEL", "\n",
)  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + rng.randint(1, 8) :]
            case 2:
                text = text[:at] + rng.choice(PIECES) + text[at + rng.randint(1, 4) :]
            case 3:
                lines = text.split("\n")
                line = rng.choice(lines)
                lines.insert(rng.randrange(len(lines) + 1), line)
                text = "\n".join(lines)
            case _:
                lines = text.split("\n")
                del lines[rng.randrange(len(lines))]
                text = "\n".join(lines) or "x"
    return text


@pytest.mark.slow
@pytest.mark.parametrize("text", [FORECAST, NUMBERS], ids=["forecast", "numbers"])
def test_a_definition_broken_at_random_ends_in_findings(text: str) -> None:
    fresh = fresh_seed()
    seed = FIXED_SEED if fresh is None else fresh
    rng = random.Random(seed)
    for number in range(MUTANTS):
        broken = mutated(text, rng)
        try:
            loaded, findings = load_with_findings(broken)
        except Exception as error:
            error.add_note(f"SIM_SEED={seed}, mutant {number}:\n{broken}")
            raise
        assert all(finding.message and finding.code for finding in findings.sorted())
        assert loaded.graph is not None or findings.has_errors, broken


@pytest.mark.parametrize("text", [FORECAST, NUMBERS], ids=["forecast", "numbers"])
def test_the_unbroken_definition_has_no_error(text: str) -> None:
    _, findings = load_with_findings(text)
    errors = [one for one in findings.sorted() if one.severity is Severity.ERROR]
    assert not errors, [str(one) for one in errors]


HUGE = {
    "a recurrence of each second for a thousand years": (
        "[scheduling]\n    initial cycle point = 2000\n    final cycle point = 3000\n"
        "    [[graph]]\n        PT1S = a[-PT1S] => a => b[-P1D] => c\n        PT7S = b\n"
    ),
    "an offset of a million years": (
        "[scheduling]\n    initial cycle point = 2000\n    [[graph]]\n"
        "        P1D = a[-P1000000Y] => a\n"
    ),
    "a million repetitions that are all excluded": (
        "[scheduling]\n    cycling mode = integer\n    initial cycle point = 1\n"
        "    [[graph]]\n        R1000000/1/P1!P1 = a\n        R1 = b\n"
    ),
    "parameters with a billion combinations": (
        "[task parameters]\n    a = 1..1000\n    b = 1..1000\n    c = 1..1000\n"
        "[scheduling]\n    [[graph]]\n        R1 = t<a,b,c> => u<a,b,c>\n"
    ),
    "a line of parentheses": (
        "[scheduling]\n    [[graph]]\n        R1 = " + "(" * 5000 + "a" + ")" * 5000 + " => b\n"
    ),
    "a thousand tasks that wait for a thousand": (
        "[scheduling]\n    [[graph]]\n        R1 = FAM:succeed-all => KIN\n[runtime]\n"
        "    [[FAM]]\n    [[KIN]]\n"
        + "".join(
            f"    [[f{n}]]\n        inherit = FAM\n    [[k{n}]]\n        inherit = KIN\n"
            for n in range(1000)
        )
    ),
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_huge_definitions_are_read_or_refused_without_being_walked_through(text: str) -> None:
    loaded, findings = load_with_findings(text)
    assert loaded.graph is not None or findings.has_errors
