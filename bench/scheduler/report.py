"""What was measured, as Markdown: a section per goal, then what could not be measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.machine import facts_text
from bench.markdown import table

DIGITS = 3


@dataclass(frozen=True, slots=True)
class Goal:
    """One promise and whether it was kept."""

    wording: str
    seen: str
    is_met: bool

    def line(self) -> str:
        return f"- {self.wording}: {self.seen}: {'met' if self.is_met else 'MISSED'}"


@dataclass(slots=True, kw_only=True)
class Section:
    """The figures of one part."""

    title: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    not_measured: list[str] = field(default_factory=list)

    def promise(self, wording: str, seen: str, *, is_met: bool) -> None:
        self.goals.append(Goal(wording, seen, is_met))

    def text(self) -> str:
        parts = [f"### {self.title}"]
        if self.rows:
            parts.append(table(self.header, self.rows))
        if self.goals:
            parts.append("\n".join(goal.line() for goal in self.goals))
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
    """With three digits that say something."""
    decimals = max(0, DIGITS - len(str(int(number))))
    return f"{number:,.{decimals}f}"


def times(ratio: float) -> str:
    return f"{count(ratio)}×"
