"""What was measured, as Markdown: a section per goal, then what could not be measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.goals import Verdict, judged, shown
from bench.machine import facts_text
from bench.markdown import table


@dataclass(slots=True, kw_only=True)
class Section:
    """The figures of one part."""

    title: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    not_measured: list[str] = field(default_factory=list)

    def judge(self, goal: str, value: float, beside: str = "") -> None:
        self.verdicts.append(Verdict(goal, value, beside))

    def text(self) -> str:
        parts = [f"### {self.title}"]
        if self.rows:
            parts.append(table(self.header, self.rows))
        if self.verdicts:
            parts.append(judged(self.verdicts))
        return "\n\n".join(parts)


def render(
    sections: Sequence[Section],
    facts: Mapping[str, str],
    versions: Mapping[str, str],
    remarks: Sequence[str],
) -> str:
    """The whole report."""
    machine = facts_text(facts)
    systems = ", ".join(f"{name} {version}" for name, version in versions.items())
    parts = [f"{machine}. Systems: {systems}.", *remarks]
    parts += [section.text() for section in sections]
    missing = [f"- {reason}" for section in sections for reason in section.not_measured]
    if missing:
        parts.append("### Not measured\n\n" + "\n".join(missing))
    return "\n\n".join(parts) + "\n"


def count(number: float) -> str:
    return shown(number, "")


def times(ratio: float) -> str:
    return shown(ratio, "×")


def pair(ours: float, theirs: float, unit: str) -> str:
    """Returns the two figures that a ratio is made of."""
    return f"{shown(ours, '')} to {shown(theirs, unit)}"
