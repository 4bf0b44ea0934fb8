"""What a page of the documentation shows to be typed, written or read, block by block.

A block of code is an example that a test tries, and says by its first line what it is:

- ```console: lines that begin with `$ ` are typed; the lines below are what comes back.
- any other with `title="FILE"`: the file is written as it stands.
- ```python: executed. ```text: read only; nothing in it may look like a command.

What else a test needs to know stands in a comment above the block, which readers do not see:

- `<!-- test: stays -->`: the last command goes on; the next block follows when its lines came.
- `<!-- test: exits 1 -->`: the last command ends with this status.
- `<!-- test: by tests/… -->`: needs parts that the tests of that file or folder have.
- `<!-- test: read only: REASON -->`: is no example to be tried.
- `<!-- test: run` and commands up to `-->`: are typed, too, and not shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for folder, pattern in (("docs", "**/*.md"), ("deploy", "*.md"), (".", "*.md"))
    for path in (ROOT / folder).glob(pattern)
)
FENCE = re.compile(r"^ *```(\w*)(?: title=\"([^\"]+)\")?$")
DIRECTIVE = re.compile(r"^<!-- test: ([^\n]*?)(?: -->)?$")
LANGUAGES = {
    "console",
    "python",
    "text",
    "cylc",
    "yaml",
    "json",
    "ini",
    "toml",
    "jinja",
    "bash",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One line that is typed, and what it is shown to answer."""

    line: str
    answer: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Block:
    """One block of code of a page."""

    page: Path
    number: int  # of its first line
    language: str
    title: str | None = None
    directive: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.number}"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def elsewhere(self) -> str | None:
        """The tests that try it instead of ours."""
        return self.directive[3:] if self.directive.startswith("by ") else None

    @property
    def is_tried(self) -> bool:
        """Whether our own tests do something with it."""
        if self.elsewhere or self.directive.startswith("read only:"):
            return False
        return self.language in ("console", "python") or self.title is not None

    @property
    def exit_status(self) -> int:
        """Of its last command."""
        return int(self.directive[6:]) if self.directive.startswith("exits ") else 0

    def commands(self) -> list[Command]:
        """What is typed; a line that ends in a backslash goes on in the next."""
        found: list[tuple[str, list[str]]] = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and not found[-1][1] and found[-1][0].endswith("\\"):
                found[-1] = (found[-1][0] + "\n" + line.removeprefix("> "), [])
            elif found and line.startswith("> ") and not found[-1][1]:
                found[-1] = (found[-1][0] + "\n" + line[2:], [])
            elif found:
                found[-1][1].append(line)
            else:
                raise AssertionError(f"{self.place}: {line!r} comes before any command")
        return [Command(line=line, answer=_trimmed(answer)) for line, answer in found]


def _trimmed(lines: list[str]) -> tuple[str, ...]:
    text = "\n".join(lines).strip("\n")
    return tuple(text.split("\n")) if text else ()


def blocks_of(page: Path) -> list[Block]:
    """Every block of code of a page, and what comments hide, in order."""
    blocks: list[Block] = []
    open_block: Block | None = None
    directive, hidden = "", False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if open_block is not None:
            ends = line == "-->" if hidden else line.strip() == "```"
            if ends:
                open_block, hidden = None, False
            else:
                open_block.lines.append(f"$ {line}" if hidden else line)
        elif said := DIRECTIVE.match(line):
            if said[1] == "run":
                hidden = True
                open_block = Block(page=page, number=number, language="console")
                blocks.append(open_block)
            else:
                directive = said[1]
        elif line.lstrip().startswith("```"):
            fence = FENCE.match(line)
            assert fence, (
                f"{page.relative_to(ROOT)}:{number}: {line!r} is no fence that we know"
            )
            open_block = Block(
                page=page,
                number=number,
                language=fence[1],
                title=fence[2],
                directive=directive,
            )
            blocks.append(open_block)
            directive = ""
    assert open_block is None, f"{page.relative_to(ROOT)}: a block has no end"
    return blocks
