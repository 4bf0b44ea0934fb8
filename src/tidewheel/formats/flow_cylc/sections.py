"""Reads the sections and items of a definition, before anything is known of their meaning.

A heading's depth is its number of brackets. Sections of one name are one section; a later item
replaces an earlier one of its name, except in the graph, where texts under one recurrence add
up. After a mistake reading goes on with the next line: all mistakes are found at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.lazy_dataclasses import dataclass, pattern

SECTION_DEPTH_MAX = 20  # brackets in a heading; the language has four
SET_TWICE_MAX = 50  # warnings: they must not crowd out errors

_END = pattern(r"\s*(?:#|\Z)")
_NAME = pattern(r"[\w+\-:.,!/()^$ ]+")
_PARAMETERS = pattern(r"\s*<[^<>]*>\s*\Z")
_TRIPLE_QUOTES = ('"""', "'''")
# With which a text begins that may be longer than its line, or no text: quotes, none, `=>`.
_OPENS_MORE = frozenset({'"', "'", "", ">"})
# The last line of a text that was never closed: the next item's opening quotes end it.
_OPENING = pattern(r"\s*[\w+\-:.,!/()^$ ]+=\s*(\"\"\"|''')\s*\Z")
_ODD_ITEM = pattern(r"\s*([^=\[\]\"'#{<>]+?)\s*=\s*(?:\"\"\"|''')")
_GRAPHS = (("scheduling", "graph"), ("scheduling", "dependencies"))


@dataclass(slots=True)
class Item:
    """Holds `name = value`: the value with its quotes and comments, as written."""

    name: str
    text: str
    line: int  # of the source's lines, from 0
    earlier: Item | None = None  # graph texts under the same recurrence


@dataclass(slots=True)
class Section:
    """Holds a heading and what stands under it, in order."""

    name: str
    line: int
    entries: dict[str, Item | Section] = field(default_factory=dict)

    def items(self) -> Iterator[Item]:
        return (entry for entry in self.entries.values() if isinstance(entry, Item))

    def sections(self) -> Iterator[Section]:
        return (entry for entry in self.entries.values() if isinstance(entry, Section))

    def section(self, name: str) -> Section | None:
        entry = self.entries.get(name)
        return entry if isinstance(entry, Section) else None


Path = tuple[str, ...]  # names of sections, and of an entry of the last one


def where(path: Path, entry: Item | Section) -> str:
    """Returns the path of an entry as people write it: `[runtime][foo]script`.

    For a section it ends in brackets: `[runtime][foo][events]`.
    """
    *sections, last = path
    named = "".join(f"[{name}]" for name in sections)
    return f"{named}[{last}]" if isinstance(entry, Section) else f"{named}{last}"


@dataclass(frozen=True, slots=True)
class PlacedFindings:
    """Collects findings about entries of one text, with the places where they were written."""

    source: SourceText
    all: Findings

    def error(self, code: str, seen: str, hint: str, entry: Item | Section, *path: str) -> None:
        self.all.error(code, seen, hint, self.position(entry, *path))

    def warning(
        self, code: str, seen: str, hint: str, entry: Item | Section, *path: str
    ) -> None:
        self.all.warning(code, seen, hint, self.position(entry, *path))

    def position(self, entry: Item | Section, *path: str) -> Position:
        """Returns the position of the entry that the path leads to.

        Where the path names nothing, it is that of the last entry on it that exists.
        """
        for name in path:
            inner = entry.entries.get(name) if isinstance(entry, Section) else None
            if inner is None:
                break
            entry = inner
        return self.position_of_line(entry.line)

    def position_of_line(self, index: int) -> Position:
        source = self.source
        lines = source.lines
        line = lines[index] if 0 <= index < len(lines) else ""
        return source.position(index, len(line) - len(line.lstrip()) + 1)


def parse_sections(findings: PlacedFindings) -> Section:
    """Returns the sections and items of a text as a tree; its root has no name."""
    return _Parser(findings).parse()


class _Parser:
    def __init__(self, findings: PlacedFindings) -> None:
        self._source = findings.source
        self._lines = findings.source.lines
        self._findings = findings
        self._root = Section("", -1)
        self._path = [self._root]
        # Items set since the last heading: one that is set twice there is hardly meant so.
        self._set_here: set[str] = set()
        self._set_twice = 0
        self._stop = 0
        self._last_item: Item | None = None
        self._names: dict[str, str] = {}  # what stands before `=`, and the name that it is
        self._headings: dict[str, tuple[int, str]] = {}  # those that are sound

    def parse(self) -> Section:
        index = 0
        lines = self._lines
        count = len(lines)
        while index < count:
            line = lines[index]
            stripped = line.lstrip()
            if not stripped or stripped[0] == "#":
                index += 1
            elif stripped[0] == "[":
                self._heading(index, stripped)
                index += 1
            else:
                index = self._item(index, line)
        return self._root

    def _heading(self, index: int, line: str) -> None:
        heading = self._headings.get(line) or self._new_heading(index, line)
        if heading is None:
            return
        depth, name = heading
        path = self._path
        if depth > len(path):
            parent, allowed = path[-1].name, len(path)
            seen = f"this heading is at level {depth}, but " + (
                f"[{parent}] above it is at level {allowed - 1}"
                if parent
                else "no heading is above it"
            )
            hint = f"write {'[' * allowed}{name}{']' * allowed}, or add the missing heading"
            self._error("skipped-level", seen, hint, index)
            depth = allowed
        del path[depth:]
        entries = path[-1].entries
        section = entries.get(name)
        if type(section) is not Section:
            if section is not None:
                seen = f"{name!r} is a section here and an item {self._in_line(section.line)}"
                self._error("item-and-section", seen, "", index)
            section = entries[name] = Section(name, index)
        path.append(section)
        self._set_here.clear()

    def _new_heading(self, index: int, line: str) -> tuple[int, str] | None:
        """Returns the depth and the name of a heading; None, with a finding, if it is none. One
        that is sound is known from then on: many are like earlier ones."""
        heading = split_heading(line)
        if heading is None:
            seen = "this heading is not closed, or something follows it"
            self._error("bad-heading", seen, "write for example [[name]]", index)
            return None
        depth, name, closed = heading
        if not name:
            self._error("bad-heading", "this heading has no name", "", index)
            return None
        if depth != closed:
            seen = f"this heading has {depth} opening and {closed} closing brackets"
            hint = f"write {'[' * depth}{name}{']' * depth}"
            self._error("bracket-mismatch", seen, hint, index)
        if depth > SECTION_DEPTH_MAX:
            hint = f"a heading has at most {SECTION_DEPTH_MAX} brackets on each side"
            self._error("bad-heading", f"{depth} brackets are too many", hint, index)
            return None
        if depth == closed:
            self._headings[line] = (depth, name)
        return depth, name

    def _item(self, index: int, line: str) -> int:
        """Reads one item; returns the index of the next line to read."""
        before, equals, text = line.partition("=")
        name = self._names.get(before) if equals else None
        if name is not None:  # most names are those of earlier items
            text = text.strip()
        else:
            name, text = split_item(line)
            if name is None:
                return self._odd_item(index, line)
            if "<" not in before:
                self._names[before] = name
        following = index + 1
        if text[:1] in _OPENS_MORE:
            if text.startswith(_TRIPLE_QUOTES):
                text, following = self._long_text(index, text)
            elif not text:
                text, following = self._unopened_text(index, name)
            elif text[0] == ">":
                seen = "this is a line of a graph, but it is not inside of quotes"
                hint = 'write graphs as R1 = """ … """ under [scheduling] [[graph]]'
                self._error("graph-outside-text", seen, hint, index)
                return following
        item = Item(name, text, index)
        entries = self._path[-1].entries
        if name in entries:
            self._set_again(item)
        else:
            self._set_here.add(name)
            self._last_item = entries[name] = item
        return following

    def _odd_item(self, index: int, line: str) -> int:
        """Reports a name that no item can have; returns the index of the next line to read. A
        long text behind the name is passed over whole."""
        found = _ODD_ITEM.match(line)
        if found is None:
            self._bad_line(index, line)
            return index + 1
        text, following = self._long_text(index, line[found.end() - 3 :].strip())
        if self._in_graph():
            # The reader of recurrences says what is wrong.
            self._set_again(Item(found[1], text, index))
        else:
            hint = "names have letters, digits, spaces and the signs + - : . , ! / ( ) ^ $"
            self._error("bad-name", f"{found[1]!r} cannot be the name of an item", hint, index)
        return following

    def _set_again(self, item: Item) -> None:
        """Puts an item into its section, in which there may be something of its name."""
        section = self._path[-1]
        before = section.entries.get(item.name)
        if before is not None:
            if isinstance(before, Section):
                there = self._in_line(before.line)
                seen = f"{item.name!r} is an item here and a section {there}"
                self._error("item-and-section", seen, "", item.line)
                return
            if self._in_graph():
                item.earlier = before
            elif item.name in self._set_here and self._set_twice < SET_TWICE_MAX:
                self._set_twice += 1
                first, place = map(self._source.position, (before.line, item.line))
                idle = f"line {first.line} has no effect"
                seen = f"{item.name!r} is set twice under one heading; {idle}"
                self._findings.all.warning("set-twice", seen, "remove one of the two", place)
        self._set_here.add(item.name)
        self._last_item = item
        section.entries[item.name] = item

    def _in_graph(self) -> bool:
        path = self._path
        return len(path) > 2 and (path[1].name, path[2].name) in _GRAPHS  # noqa: PLR2004

    def _long_text(self, index: int, text: str) -> tuple[str, int]:
        """Returns a text in triple quotes, however long, and the index of the next line."""
        quotes = text[:3]
        end = text.find(quotes, 3)
        if end >= 0:
            self._check_after(text, end + 3, index)
            return text[: end + 3], index + 1
        lines = self._lines
        for last in range(index + 1, len(lines)):
            end = lines[last].find(quotes)
            if end < 0:
                continue
            if _OPENING.match(lines[last]):
                break  # the quotes of another item: they do not close this one
            self._check_after(lines[last], end + 3, last)
            body = [text, *lines[index + 1 : last], lines[last][: end + 3]]
            return "\n".join(body), last + 1
        return self._unclosed(index, text, quotes)

    def _unclosed(self, index: int, text: str, quotes: str) -> tuple[str, int]:
        """Reports a text without closing quotes; returns it and the index of the next line. It
        ends before the next heading, or before an item that opens a text: it was meant so."""
        lines = self._lines
        stop = index + 1
        while stop < len(lines) and not (
            _OPENING.match(lines[stop]) or _is_plain_heading(lines[stop])
        ):
            stop += 1
        name = split_item(lines[index])[0]
        seen = (
            f"before {lines[stop].strip()} in line {self._source.position(stop).line}"
            if stop < len(lines)
            else "before the end of the file"
        )
        message = f"the text of {name!r} begins with {quotes} and is not closed {seen}"
        self._error("unclosed-quotes", message, f"add {quotes} after its last line", index)
        return "\n".join([text, *lines[index + 1 : stop], quotes]), stop

    def _unopened_text(self, index: int, name: str) -> tuple[str, int]:
        """Returns the text of an item with nothing behind `=`, and the index of the next line.
        The text is "". If closing quotes come next, they are reported, and it ends there."""
        last = self._next_stop(index)
        line = self._lines[last] if last < len(self._lines) else ""
        quotes = next((one for one in _TRIPLE_QUOTES if one in line), "")
        if not quotes or line.count(quotes) > 1 or "=" in line.partition(quotes)[0]:
            return "", index + 1
        closed = f"is closed by {quotes} {self._in_line(last)}"
        seen = f"the text of {name!r} {closed}, but has no opening quotes"
        self._error("unopened-quotes", seen, f"write {name} = {quotes}", index)
        body = [quotes, *self._lines[index + 1 : last], line.partition(quotes)[0] + quotes]
        return "\n".join(body), last + 1

    def _next_stop(self, index: int) -> int:
        """Returns the index of the next line with triple quotes or a heading. It is kept, so
        that a file is searched once."""
        if self._stop <= index:
            self._stop = index + 1
            while self._stop < len(self._lines):
                line = self._lines[self._stop]
                if any(one in line for one in _TRIPLE_QUOTES) or _is_plain_heading(line):
                    break
                self._stop += 1
        return self._stop

    def _check_after(self, line: str, column: int, index: int) -> None:
        rest = line[column:].strip()
        if rest and not rest.startswith("#"):
            seen = f"{rest!r} follows the closing quotes"
            self._error("text-after-quotes", seen, "only a comment may follow", index)

    def _bad_line(self, index: int, line: str) -> None:
        stripped = line.strip()
        hint = "expected [section] headings, NAME = VALUE, comments and blank lines"
        if "=>" in line:
            hint = 'write graphs as R1 = """ … """ under [scheduling] [[graph]]'
        elif stripped.startswith(("{%", "{{", "{#")):
            hint = "this looks like Jinja2: make #!jinja2 the first line of the file"
        elif stripped.startswith(_TRIPLE_QUOTES):
            hint = "these quotes close nothing; is a pair of quotes missing above?"
        elif self._last_item is not None and self._last_item.line == index - 1:
            hint = (
                f"if this belongs to {self._last_item.name!r}, put the whole text in triple "
                "quotes, or a backslash at the end of the line before"
            )
        self._error(
            "bad-line", f"this is neither a heading nor an item: {stripped!r}", hint, index
        )

    def _in_line(self, index: int) -> str:
        return f"in line {self._source.position(index).line}"

    def _error(self, code: str, message: str, hint: str, index: int) -> None:
        self._findings.all.error(code, message, hint, self._findings.position_of_line(index))


def split_item(line: str) -> tuple[str | None, str]:
    """Returns name and value of `name = value`; the name is None for any other line.

    A name may end in parameters, which may contain an equals sign: `foo<m=1> = x`.
    """
    name, equals, text = line.partition("=")
    if not equals:
        return None, ""
    if "<" in name:
        opening = name.index("<")
        closing = line.find(">", opening)
        equals_at = line.find("=", closing)
        if closing < 0 or equals_at < 0:
            return None, ""
        name, text = line[:equals_at], line[equals_at + 1 :]
        plain = name[:opening]
        if not _PARAMETERS.match(name[opening:]):
            return None, ""
    else:
        plain = name
    plain = plain.strip()
    if not _NAME.fullmatch(plain):
        return None, ""
    return name.strip(), text.strip()


def split_heading(line: str) -> tuple[int, str, int] | None:
    """Returns the number of opening brackets, the name and the number of closing brackets.

    Returns None if the line is no heading; only a comment may follow one.
    """
    stripped = line.strip()
    inner = stripped.lstrip("[")
    opened = len(stripped) - len(inner)
    name = inner.rstrip("]")
    if opened and name != inner and "]" not in name:  # nothing follows it
        return opened, name.strip(), len(inner) - len(name)
    at = stripped.find("]", opened)
    while opened and at >= 0:
        after = at
        while after < len(stripped) and stripped[after] == "]":
            after += 1
        if _END.match(stripped, after):
            return opened, stripped[opened:at].strip(), after - at
        at = stripped.find("]", after)
    return None


def _is_plain_heading(line: str) -> bool:
    heading = split_heading(line)
    return heading is not None and heading[0] == heading[2] and bool(heading[1])
