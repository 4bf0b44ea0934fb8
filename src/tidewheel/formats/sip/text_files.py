"""Reads the files of a definition: their names, their texts and the nodes of each text.

The files are what is registered, and all that is read afterwards: a run needs no folder.

YAML is read from the parser's events, so that an alias is refused before it could stand for a
billion nodes and a tag before it could name anything. Scalars are texts; the schema types them.

One mistake does not hide the next, where a person would be sure what is meant. It is reported,
and the rest is read as if it were right. In JSON a text whose closing quote is missing is taken
to end with its line, and a comma that is missing between two values to be there. In YAML the
same is done for quotes and brackets, for a key without its colon, for a colon inside a value,
and for a key that stands too far to the right.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

import yaml
from yaml import events

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.document import Builder, Node, Scalar, Unreadable
from tidewheel.formats.sip.model import JSON_BYTES_MAX, YAML_BYTES_MAX
from tidewheel.formats.sip.placeholders import PLACE, RESERVED
from tidewheel.formats.sip.templates import RenderedText
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

# YAML and JSON: one document of plain texts, lists and mappings.

EMPTY = (
    "empty-file",
    "the file has no content",
    "write its content, or remove the file",
)
PositionOf = Callable[[int, int], Position]  # line and column, both from 0


def read_yaml(
    text: str, position_of: PositionOf, builder: Builder, findings: Findings
) -> Node | None:
    """Returns the only document of a file; None, with a finding, if there is none."""
    for _ in range(_MISTAKES_MAX):
        reader = _YamlReader(position_of, builder.anew(), findings)
        try:
            return reader.read(text)
        except Unreadable:
            return None
        except yaml.MarkedYAMLError as error:
            seen, hint, mark = _described(error, text, position_of)
            at = (mark.line, mark.column) if mark is not None else (0, 0)
            findings.error("yaml-syntax", seen, hint, position_of(*at))
            lines = text.split("\n")
            meant = _meant_line(lines, *at) if at[0] < len(lines) else None
            if meant is None:
                return None
            number, line = meant
            text = "\n".join([*lines[:number], line, *lines[number + 1 :]])
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            place = position_of(before.count("\n"), len(before) - before.rfind("\n") - 1)
            seen = f"a character is not accepted in YAML: {error.reason}"
            hint = "remove it, or write it as an escape in double quotes"
            findings.error("yaml-syntax", seen, hint, place)
            return None
    return None


_MISTAKES_MAX = 20  # of one file that are reported; each is a reading of it
_WORD_AND_VALUE = re.compile(r"(?P<key>[A-Za-z_][\w.-]*)(?P<colon>:?)[ ]*(?P<value>[^\s:#].*)?")
_KEY_AND_VALUE = re.compile(r"[A-Za-z_][\w.-]*:(?P<value> .*)?")
_BRACKETS = {"[": "]", "{": "}"}


def _meant_line(lines: list[str], line: int, column: int) -> tuple[int, str] | None:
    """Returns the line that the parser could not read, or the one before it, as its author
    meant it, with its number; None if that is not certain."""
    written = lines[line].rstrip()
    sign, column_of_key = written[column : column + 1], _key_column(written)
    begun, rest = written[:column_of_key], written[column_of_key:]
    after = next((one for one in lines[line + 1 :] if one.strip()), "")
    if sign and sign in "'\"" and written.count(sign, column) == 1:
        return line, written + sign
    if sign in _BRACKETS and written.count(sign) == written.count(_BRACKETS[sign]) + 1:
        is_over = not after or _KEY_AND_VALUE.match(after.lstrip(" -")) is not None
        return (line, written + _BRACKETS[sign]) if is_over else None
    if column == column_of_key and ": " not in rest:
        lacking = _with_colon(rest, is_above=_key_column(after) > column_of_key)
        return (line, begun + lacking) if lacking is not None else None
    found = _KEY_AND_VALUE.fullmatch(rest)
    if found is None or column < column_of_key:
        return None
    value = (found["value"] or "").strip()
    if ": " in value and not value.startswith(("'", '"', "[", "{", "|", ">")):
        quoted = value.replace("'", "''")
        return line, f"{begun}{rest[: found.start('value')]} '{quoted}'"
    return _key_beside(lines, line)


def _with_colon(rest: str, *, is_above: bool) -> str | None:
    """Returns a key that lacks its colon, or the blank behind it, with both; ``is_above`` says
    that what belongs to it stands below it."""
    found = _WORD_AND_VALUE.fullmatch(rest)
    if found is None or (found["value"] is None) != is_above:
        return None
    return f"{found['key']}: {found['value'] or ''}".rstrip()


def _key_beside(lines: list[str], line: int) -> tuple[int, str] | None:
    """Returns a line whose key the parser takes for a part of the value before it: that one
    lacks its colon, or this one stands too far to the right."""
    number = next((one for one in range(line - 1, -1, -1) if lines[one].strip()), None)
    if number is None:
        return None
    written, before = lines[line], lines[number].rstrip()
    key, above = _key_column(written), _key_column(before)
    if key >= above and ": " not in before:
        lacking = _with_colon(before[above:], is_above=key > above)
        return (number, before[:above] + lacking) if lacking is not None else None
    found = _KEY_AND_VALUE.fullmatch(before[above:])
    is_pair = found is not None and bool((found["value"] or "").strip())
    is_plain = written[:key].strip() == "" and key > above
    return (line, " " * above + written[key:]) if is_pair and is_plain else None


@dataclass(frozen=True, slots=True)
class _YamlReader:
    """Builds nodes from events, without recursion."""

    _position_of: PositionOf
    _builder: Builder
    _findings: Findings

    def read(self, text: str) -> Node | None:
        documents = 0
        # Open lists and mappings, the innermost last: (is it a mapping, where, nodes so far).
        opened: list[tuple[bool, Position, list[Node]]] = [(False, Position(""), [])]
        for event in self._events(text):
            match event:
                case events.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        self._refuse(event, "several-documents", *_SEVERAL_DOCUMENTS)
                case events.ScalarEvent():
                    quoted = event.style not in (None, "")
                    here = self._position(event)
                    opened[-1][2].append(self._builder.scalar(event.value, quoted, here))
                case events.SequenceStartEvent() | events.MappingStartEvent():
                    here = self._position(event)
                    self._builder.check_depth(len(opened), here)
                    opened.append((isinstance(event, events.MappingStartEvent), here, []))
                case events.SequenceEndEvent() | events.MappingEndEvent():
                    is_mapping, here, nodes = opened.pop()
                    opened[-1][2].append(self._builder.collection(is_mapping, nodes, here))
                case _:
                    pass  # beginnings and ends of streams and documents
        found = opened[0][2]
        if not found:
            self._findings.error(*EMPTY, self._position_of(0, 0))
        return found[0] if found else None

    def _events(self, text: str) -> Iterator[events.Event]:
        parsed: Any = yaml.parse(text, Loader=yaml.CSafeLoader)
        for event in parsed:
            anchor = isinstance(event, events.NodeEvent) and event.anchor is not None
            if anchor or isinstance(event, events.AliasEvent):
                self._refuse(event, "yaml-alias", *_ALIAS)
            if getattr(event, "tag", None) is not None:
                self._refuse(event, "yaml-tag", f"the tag {event.tag} is not accepted", _TAG)
            yield event

    def _position(self, event: events.Event) -> Position:
        mark: Any = event.start_mark
        return self._position_of(mark.line, mark.column)

    def _refuse(self, event: events.Event, code: str, message: str, hint: str) -> None:
        self._findings.error(code, message, hint, self._position(event))
        raise Unreadable


_ALIAS = (
    "anchors and aliases (&name, *name) are not accepted",
    "write the value itself at each place; a string that begins with & or * needs quotes",
)
_TAG = "remove the tag; a string that begins with ! needs quotes"
_SEVERAL_DOCUMENTS = (
    "a second document begins here",
    "write one definition in each file, without ---",
)


def _described(
    error: yaml.MarkedYAMLError, text: str, position_of: PositionOf
) -> tuple[str, str, Any]:
    """Returns what is wrong, what to do, and the parser's mark of the place, or None."""
    opened: Any = error.context_mark
    mark: Any = error.problem_mark or opened
    if opened is not None and "quoted scalar" in (error.context or ""):
        # The parser stops where the text ends; the author looks for where the quote is.
        return *_QUOTE_OPENED, opened
    if opened is not None and error.context in _OPENED:
        # The parser goes on as long as it can; what is wrong stands where it began.
        seen, hint = _OPENED[error.context]
        if mark.line > opened.line + 1:
            seen = f"{seen}: {error.problem} in line {position_of(mark.line, mark.column).line}"
        return seen, hint, opened
    around = f" {error.context}" if error.context else ""
    seen = f"this is not valid YAML: {error.problem or 'it ends too early'}{around}"
    if error.context == "while parsing a flow node":
        return seen, _FLOW_ADVICE, mark
    return seen, _yaml_advice(text, mark.line if mark is not None else 0), mark


_QUOTE_OPENED = (
    "this is not valid YAML: a quote is opened here and not closed",
    "close it; inside '…' write a quote as '', inside \"…\" as \\\"",
)
_FLOW_ADVICE = "write a value there, or close the [ or { that was opened before"
_OPENED = {
    "while scanning a simple key": (
        "this is not valid YAML: a key has no ': ' after it",
        "write key: value, with a space after the colon, or indent the line as a part of the "
        "text before it",
    ),
    "while parsing a flow mapping": (
        "this is not valid YAML: the { that begins here does not end as it should",
        "write {name: value, name: value}, and close it with }; a string with { needs quotes",
    ),
    "while parsing a flow sequence": (
        "this is not valid YAML: the [ that begins here does not end as it should",
        "write [value, value], and close it with ]; a string with [ needs quotes",
    ),
}


def _yaml_advice(text: str, line: int) -> str:
    lines = text.split("\n")
    written = lines[line] if line < len(lines) else ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return "indent with spaces: YAML does not accept tabs there"
    before = next((one for one in reversed(lines[:line]) if one.strip()), "")
    if written.strip() and _key_column(written) != _key_column(before):
        here, above = _key_column(written) + 1, _key_column(before) + 1
        if here > above and re.fullmatch(r"[ -]*[\w./-]+ *", before):
            return f"if the line before is its key, write a colon there: {before.strip(' -')}:"
        seen = f"the key begins in column {here}, the key of the line before in column {above}"
        return f"{seen}: all keys of a mapping must begin in the same column"
    return "check indentation, colons and quotes of this line and of the one before it"


def _key_column(line: str) -> int:
    """Returns the column where the first key of a line begins: behind the signs of lists."""
    return len(line) - len(line.lstrip(" -"))


# JSON. The standard library tells no places and stops at the first mistake; a YAML parser
# takes much for good that is no JSON (decision 0037).

_TOKEN = re.compile(
    r'[ \t\r\n]*(?:([{}\[\],:])|"([^"\\\n]*(?:\\.[^"\\\n]*)*)("?)|([^\s{}\[\],:"]+)|\Z)'
)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_KEY_OF_YAML = re.compile(r"\s*(?:#.*\n\s*|---\s*)*([A-Za-z_][\w-]*) *:(?:\s|$)")
_ENDS = {"{": "}", "[": "]"}
_WORDS = frozenset({"true", "false", "null"})
_COMMAS_MISSING_MAX = 20  # that are reported; an author who leaves out more does not write JSON
_NUMBERS_ONLY_PYTHON_WRITES = frozenset({"NaN", "Infinity", "-Infinity"})


class _Bad(Exception):
    """Raised where the rest cannot be read."""

    def __init__(self, at: int, message: str, hint: str) -> None:
        self.at, self.hint = at, hint
        super().__init__(message)


class _Token(NamedTuple):
    at: int
    sign: str = ""  # one of { } [ ] , : or, at the end of the file, ""
    node: Node | None = None


def read_json(
    text: str, position_of: PositionOf, builder: Builder, findings: Findings
) -> Node | None:
    """Returns the value of a file, as far as it can be read; None if nothing can."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def position(at: int) -> Position:
        line = bisect_right(starts, at) - 1
        return position_of(line, at - starts[line])

    if not text.strip():
        findings.error(*EMPTY, position(0))
        return None
    if (key := _KEY_OF_YAML.match(text)) is not None:
        hint = 'call the file .yaml instead of .json, or write JSON: {"key": "value"}'
        findings.error(*_refusal("it reads like YAML", hint), position(key.start(1)))
        return None
    try:
        return _JsonReader(text, position, builder, findings).read()
    except _Bad as bad:
        findings.error(*_refusal(str(bad), bad.hint), position(bad.at))
    except Unreadable:
        pass
    return None


@dataclass(slots=True)
class _JsonReader:
    """Builds nodes from tokens, by recursion; how deep they may be nested is limited."""

    _text: str
    _position: Callable[[int], Position]
    _builder: Builder
    _findings: Findings
    _tokens: Iterator[_Token] = field(init=False)
    _ends: tuple[int, int] = (0, 0)  # of the last two tokens
    _commas_missing: int = 0

    def __post_init__(self) -> None:
        self._tokens = self._scanned()

    def read(self) -> Node:
        node = self._value(next(self._tokens), 1)
        token = next(self._tokens)
        if token.sign or token.node is not None:
            raise _Bad(token.at, "something follows the end of the value", "remove it")
        return node

    def _value(self, token: _Token, depth: int) -> Node:
        if token.node is not None:
            return token.node
        if token.sign not in _ENDS:
            hint = "write one: a string in double quotes, a number, true, false, null, [] or {}"
            raise _Bad(token.at, f"a value is missing {_before(token.sign)}", hint)
        here = self._position(token.at)
        self._builder.check_depth(depth, here)
        begin, nodes = token.sign, list[Node]()
        token = next(self._tokens)
        goes_on = token.sign != _ENDS[begin]
        while goes_on:
            if begin == "{":
                nodes.append(self._key(token))
                token = next(self._tokens)
            elif token.sign == "]":
                raise _Bad(token.at, "a value is missing after the last ','", "remove the ','")
            nodes.append(self._value(token, depth + 1))
            token = next(self._tokens)
            goes_on = token.sign == "," or self._lacks_comma(token, begin, here)
            if token.sign == ",":
                token = next(self._tokens)
        return self._builder.collection(begin == "{", nodes, here)

    def _lacks_comma(self, token: _Token, begin: str, opened: Position) -> bool:
        """Says whether another entry follows without a comma, which is then reported."""
        end = _ENDS[begin]
        if token.node is not None or (token.sign in _ENDS and begin == "["):
            self._report_comma(end)
            return True
        if token.sign != end:
            at = token.at if token.sign else self._ends[0]
            hint = f"the '{begin}' of line {opened.line} is not closed before that"
            raise _Bad(at, f"',' or '{end}' is missing {_before(token.sign)}", hint)
        return False

    def _report_comma(self, end: str) -> None:
        """Reports a missing comma at the end of the value before, even in an earlier line."""
        message = f"',' or '{end}' is missing after this value"
        hint = "write ',' there, since another value follows"
        at = self._ends[0] - 1
        self._commas_missing += 1
        if self._commas_missing >= _COMMAS_MISSING_MAX:
            raise _Bad(at, message, hint)
        self._findings.error(*_refusal(message, hint), self._position(at))

    def _key(self, token: _Token) -> Node:
        """Returns the next key of a mapping, and passes over the colon behind it."""
        if token.node is None:
            hint = 'write "key": value, or close the mapping with }'
            if token.sign == "}":
                hint = "remove the ',' before it"
            seen = f"a key in double quotes is missing {_before(token.sign)}"
            raise _Bad(token.at, seen, hint)
        if isinstance(token.node, Scalar) and not token.node.quoted:
            raise _Bad(token.at, "a key has no double quotes", f'write "{token.node.text}"')
        colon = next(self._tokens)
        if colon.sign != ":":
            hint = 'write "key": value'
            raise _Bad(colon.at, "':' is missing after a key", hint)
        return token.node

    def _scanned(self) -> Iterator[_Token]:
        at = 0
        while found := _TOKEN.match(self._text, at):
            at = found.end()
            self._ends = (self._ends[1], at)
            if found[1]:
                yield _Token(found.start(1), found[1])
            elif found[2] is not None:
                yield from self._quoted(found)
            elif found[4]:
                yield self._bare(found.start(4), found[4])
            else:
                yield _Token(at)
        hint = "remove it, or put it in double quotes as a part of a string"
        raise _Bad(at, "this character is not accepted here", hint)

    def _quoted(self, found: re.Match[str]) -> Iterator[_Token]:
        at, written = found.start(2) - 1, found[2]
        here = self._position(at)
        sign = ""
        if not found[3]:
            hint = f'write "{written.strip().rstrip(":,")}"'
            self._findings.error("json-quote", "this text has no closing quote", hint, here)
            sign = written.rstrip()[-1:]
            written = written.rstrip().rstrip(":,")
        yield _Token(at, "", self._builder.scalar(self._unescaped(written, at), True, here))
        if sign in (":", ","):
            yield _Token(found.end(), sign)

    @staticmethod
    def _unescaped(written: str, at: int) -> str:
        try:
            text = str(json.loads(f'"{written}"')) if "\\" in written else written
            text.encode()  # refuses halves of characters
        except ValueError:
            raise _Bad(
                at,
                "a string has an escape that JSON does not know",
                r"write \\ for a backslash",
            ) from None
        return text

    def _bare(self, at: int, word: str) -> _Token:
        if word in _NUMBERS_ONLY_PYTHON_WRITES:
            raise _Bad(at, f"{word} is not a JSON number", "write null or a number")
        known = word in _WORDS or _NUMBER.fullmatch(word) or PLACE.search(word)
        if not known:
            raise _Bad(at, f"{word[:60]!r} is not a value", _json_advice(word))
        return _Token(at, "", self._builder.scalar(word, False, self._position(at)))


def _json_advice(word: str) -> str:
    """Returns advice on a word that is no JSON, such as None or a comment."""
    if word.startswith(("//", "/*", "#")):
        return "JSON has no comments: remove it, or write the file in YAML"
    meant = "null" if word in ("None", "~") else word.lower()
    return f"write {meant}" if meant in _WORDS else "put strings in double quotes"


def _refusal(message: str, hint: str) -> tuple[str, str, str]:
    return "json-syntax", f"this is not valid JSON: {message}", hint


def _before(sign: str) -> str:
    return f"before '{sign}'" if sign else "at the end of the file"


# The files of one definition: its own and those of its stages, by their paths.

STAGES_FOLDER = "stages"


@dataclass(frozen=True, slots=True, kw_only=True)
class SipSource:
    """Holds the files of a definition by path from its folder; `file` is the definition."""

    file: str
    files: Mapping[str, bytes]
    executable: frozenset[str] = frozenset()
    # Folders that were seen, for advice about those that are missing.
    folders: frozenset[str] = field(default=frozenset(), compare=False)
    # Files and folders that are there and are not kept, such as links; findings say why.
    refused: frozenset[str] = field(default=frozenset(), compare=False)
    _by_folder: Mapping[str, Mapping[str, bytes]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        found: dict[str, dict[str, bytes]] = {}
        for path, content in self.files.items():
            folder, _, name = path.rpartition("/")
            found.setdefault(folder, {})[name] = content
            while folder := folder.rpartition("/")[0]:
                found.setdefault(folder, {})
        object.__setattr__(self, "_by_folder", found)
        object.__setattr__(self, "folders", self.folders | (found.keys() - {""}))

    def folder_of(self, stage: str, version: str) -> str | None:
        """Returns the folder of a stage; None if there is none."""
        wanted = folders_for(stage, version)
        return next((folder for folder in wanted if folder in self.folders), None)

    def inside(self, folder: str) -> Mapping[str, bytes]:
        """Returns the files that lie directly in a folder, by name."""
        return self._by_folder.get(folder, {})


def folders_for(stage: str, version: str) -> tuple[str, str]:
    """Returns the folder where a stage belongs, and the one where it is tolerated."""
    return f"{STAGES_FOLDER}/{stage}/{version}", f"{stage}/{version}"


# From the text of one SIP file, rendered if it is a template, to its nodes.

TEMPLATE_SUFFIX = ".j2"
YAML_SUFFIXES = (".yaml", ".yml")
JSON_SUFFIX = ".json"
SUFFIXES = (*YAML_SUFFIXES, JSON_SUFFIX)
BYTES_MAX = max(YAML_BYTES_MAX, JSON_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class FileName:
    """Holds the parts of a file's name: `args.json.j2` is args, .json and a template."""

    path: str
    stem: str
    suffix: str
    is_template: bool

    @property
    def is_known(self) -> bool:
        return self.suffix in SUFFIXES


def file_name(path: str) -> FileName:
    name = path.rpartition("/")[2]
    is_template = name.endswith(TEMPLATE_SUFFIX)
    name = name.removesuffix(TEMPLATE_SUFFIX)
    for suffix in (*SUFFIXES, ".sh"):
        if name.endswith(suffix) and name != suffix:
            return FileName(path, name.removesuffix(suffix), suffix, is_template)
    stem, dot, suffix = name.partition(".")
    return FileName(path, stem, dot + suffix, is_template)


def decoded(path: str, content: bytes, findings: Findings) -> str | None:
    """Returns the text of a file; None after a finding if it is too large or no text."""
    suffix = file_name(path).suffix
    limit = JSON_BYTES_MAX if suffix == JSON_SUFFIX else YAML_BYTES_MAX
    if len(content) > limit:
        json_hint = f", or write JSON (up to {JSON_BYTES_MAX} bytes)"
        hint = "make it shorter" + (json_hint if suffix in YAML_SUFFIXES else "")
        seen = f"{path} has {len(content)} bytes; at most {limit} are accepted"
        findings.error("file-too-large", seen, hint, Position(path))
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        seen = f"this is not UTF-8 text: byte {content[error.start]:#04x}"
        findings.error("not-text", seen, "save the file as UTF-8", Position(path, line))
        return None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        hint = "save the file as UTF-8; if it is a program or other data, give it another name"
        findings.error("not-text", "this is not a text file", hint, Position(path, line))
        return None
    if (reserved := RESERVED.search(text)) is not None:
        line = text.count("\n", 0, reserved.start()) + 1
        found = f"the file has the character U+{ord(reserved[0]):X}"
        seen = f"{found}, which is reserved"
        findings.error("reserved-character", seen, "remove it", Position(path, line))
        return None
    return text.replace("\r\n", "\n")


def read_plain(path: str, text: str, findings: Findings) -> Node | None:
    """Returns the nodes of a file that is no template; None after a finding."""

    def position(line: int, column: int) -> Position:
        return Position(path, line + 1, column + 1)

    return _reader_of(path)(text, position, Builder(findings), findings)


def read_rendered(path: str, rendered: RenderedText, findings: Findings) -> Node | None:
    """Returns the nodes of a rendered template; positions are lines of the template.

    Returns None after a finding.
    """

    def position(line: int, column: int) -> Position:
        del column  # a template moves columns
        at = min(line, len(rendered.origins) - 1)
        return Position(path, rendered.origins[at] if at >= 0 else 0)

    builder = Builder(findings, rendered.values)
    return _reader_of(path)(rendered.text, position, builder, findings)


def _reader_of(path: str) -> Callable[[str, PositionOf, Builder, Findings], Node | None]:
    return read_json if file_name(path).suffix == JSON_SUFFIX else read_yaml
