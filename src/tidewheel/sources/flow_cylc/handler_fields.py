"""Fields in the command of an event handler, as references to variables that a shell expands.

Theory of operation. What a field stands for may be anything: a message is written by a job. Put
into the command as text it would be read by the shell, and no quoting of ours helps, since the
author may have written quotes around the field. So the text of a command is made of what its
author wrote alone, and a field becomes a reference to a variable of its environment, which bash
expands and never reads again. How a reference is written depends on the quotes around it:

    tell %(message)s            tell "${V}"
    tell "it says %(message)s"  tell "it says ${V}"
    tell 'it says %(message)s'  tell 'it says '"${V}"''

A text for a second shell (`bash -c "…"`, `eval …`, `ssh HOST …`) is read once more, after the
expansion. There the reference is to a second variable, which holds the value quoted for a
shell, and quotes of the inner text are closed before it and opened again behind it. Where a
field could be read by something else (a third shell, a here-document, `python -c`), it is
refused. Should the quotes be misjudged, a value may be split into words, but is never run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

# A field with its conversion, %%, or whatever else begins with a percent sign.
FIELD = re.compile(
    r"%(?:%|\((?P<name>[^)]*)\)(?P<conversion>[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z])|.?)", re.DOTALL
)
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
_BECOMING = frozenset({"su", "runuser"})  # another user, whose name may be the next word
_REST_IS_READ = frozenset({"eval", "ssh", "rsh"})
_INTERPRETERS = re.compile(r"python[\d.]*|perl|ruby|node|php|lua")
_AWKS = re.compile(r"[gmn]?awk")
_PROGRAM_OPTION = re.compile(r"-[a-zA-Z]*[cer]")
_SCRIPT_OPTION = re.compile(r"-[a-zA-Z]*c|--command")
_BARE, _DOUBLE, _SINGLE, _ANSI = "", '"', "'", "$'"


class BadField(ValueError):
    """A field that stands where its value would be read as a program."""


Reference = Callable[[re.Match[str], bool], str]  # the variable of a field; True: quoted once


def with_references(command: str, variable: Reference) -> str:
    """The command with a reference instead of each field; BadField if one cannot be safe."""
    shell, made, at = _Shell(), [], 0
    for match in FIELD.finditer(command):
        made.append(shell.read(command[at : match.start()]))
        at = match.end()
        if match["name"] is None:
            made.append(shell.read("%" if match[0] == "%%" else match[0]))
        else:
            made.append(shell.place(match, variable))
    made.append(shell.read(command[at:]))
    return "".join(made)


@dataclass(slots=True)
class _Frame:
    """A command, or one within another: `$(…)`, `(…)` and backticks."""

    end: str = ""  # what closes it
    quote: str = _BARE
    words: list[str] = field(default_factory=list)  # of this simple command so far
    word: str | None = None
    inner: _Shell | None = None  # follows the text that a second shell will read


class _Shell:
    """Follows bash's quoting through a text, as far as fields need it."""

    def __init__(self) -> None:
        self._frames = [_Frame()]
        self._escaped = self._in_comment = self._has_document = False
        self._before = ""  # the character before, unless it was escaped

    def read(self, text: str) -> str:
        for letter in text:
            self._feed(letter)
        return text

    def place(self, match: re.Match[str], variable: Reference) -> str:
        """What stands for a field here."""
        frame = self._frames[-1]
        shown = match[0]
        if self._has_document:
            raise BadField(f"{shown} stands behind a here-document (<<); use printf instead")
        if self._in_comment:
            return ""
        if self._is_program(frame):
            raise BadField(f"{shown} stands in a program; let it read the variable instead")
        if not self._is_script(frame):
            self._add("x")
            return _reference(variable(match, False), frame.quote)
        inner = self._inner_of(frame)
        there = inner._frames[-1]
        if inner._is_script(there) or inner._is_program(there) or inner._has_document:
            raise BadField(f"{shown} would be read by a third shell; use the variable instead")
        self._add("x")
        closing, opening = {_ANSI: ("'", _ANSI)}.get(there.quote, (there.quote,) * 2)
        return (
            _literal(closing, frame.quote)
            + _reference(variable(match, True), frame.quote)
            + _literal(opening, frame.quote)
        )

    # ---- letter by letter ----

    def _feed(self, letter: str) -> None:
        frame = self._frames[-1]
        before, self._before = self._before, letter
        if self._escaped:
            self._escaped, self._before = False, ""
            kept = frame.quote == _DOUBLE and letter not in '$`"\\\n'
            self._add(f"\\{letter}" if kept else letter)
        elif self._in_comment:
            self._in_comment = letter != "\n"
        elif frame.quote in (_SINGLE, _ANSI):
            self._feed_single(frame, letter)
        elif letter == "\\":
            self._escaped = True
        elif letter == "`":
            self._frames.pop() if frame.end == "`" else self._open("`")
        elif letter == "(" and before == "$":
            self._open(")")
        elif frame.quote == _DOUBLE:
            self._end_quote(frame) if letter == '"' else self._add(letter)
        else:
            self._feed_bare(frame, letter, before)

    def _feed_single(self, frame: _Frame, letter: str) -> None:
        if letter == "\\" and frame.quote == _ANSI:
            self._escaped = True
        elif letter == "'":
            self._end_quote(frame)
        else:
            self._add(letter)

    def _feed_bare(self, frame: _Frame, letter: str, before: str) -> None:
        if letter in "'\"":
            self._add("")
            frame.quote = _ANSI if letter == "'" and before == "$" else letter
        elif letter == "#" and frame.word is None:
            self._in_comment = True
        elif letter in " \t<>":
            self._end_word(frame)
            if letter == "<":
                self._before = f"{before}<" if before.startswith("<") else "<"
        elif letter in ";&|\n(":
            self._end_command(frame)
            if letter == "(":
                self._open(")")
        elif letter == ")":
            self._end_command(frame)
            if frame.end == ")":
                self._frames.pop()
        else:
            self._add(letter)
        if before == "<<" and letter != "<":
            self._has_document = True

    def _end_quote(self, frame: _Frame) -> None:
        frame.quote = _BARE
        self._before = ""

    def _open(self, end: str) -> None:
        self._frames.append(_Frame(end))

    def _add(self, letters: str) -> None:
        frame = self._frames[-1]
        if self._is_script(frame):
            self._inner_of(frame).read(letters)
        frame.word = (frame.word or "") + letters

    def _end_word(self, frame: _Frame) -> None:
        if frame.word is not None:
            if self._is_script(frame):
                self._inner_of(frame).read(" ")
            frame.words.append(frame.word)
            frame.word = None

    def _end_command(self, frame: _Frame) -> None:
        self._end_word(frame)
        frame.words, frame.inner = [], None

    # ---- who reads the word that begins now ----

    def _inner_of(self, frame: _Frame) -> _Shell:
        if frame.inner is None:
            frame.inner = _Shell()
        return frame.inner

    def _is_script(self, frame: _Frame) -> bool:
        """Another shell reads it, here or elsewhere."""
        names = [_name(word) for word in frame.words]
        if not _REST_IS_READ.isdisjoint(names):
            return True
        if not _BECOMING.isdisjoint(names):
            return bool(_SCRIPT_OPTION.fullmatch(names[-1]))
        return any(
            one in _SHELLS and _are_options(names[at + 1 :], _SCRIPT_OPTION)
            for at, one in enumerate(names)
        )

    def _is_program(self, frame: _Frame) -> bool:
        """It is a program of another language, or a part of one."""
        names = [_name(word) for word in frame.words]
        return frame.quote != _BARE and any(
            (_INTERPRETERS.fullmatch(one) and _are_options(names[at + 1 :], _PROGRAM_OPTION))
            or (_AWKS.fullmatch(one) and _is_first_argument(names[at + 1 :]))
            for at, one in enumerate(names)
        )


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _are_options(words: list[str], last: re.Pattern[str]) -> bool:
    """Nothing but options so far, of which the last says what comes next."""
    return (
        bool(words)
        and all(word[:1] in ("-", "+") for word in words)
        and bool(last.fullmatch(words[-1]))
    )


def _is_first_argument(words: list[str]) -> bool:
    """Of awk, behind options and their values."""
    before = ["", *words]
    return all(
        word[:1] == "-" or before[at] in ("-v", "-F") for at, word in enumerate(words)
    ) and (not words or words[-1] not in ("-v", "-F", "-f"))


def _reference(name: str, quote: str) -> str:
    """Expanded wherever it stands, and read as one word."""
    if quote == _DOUBLE:
        return f"${{{name}}}"
    if quote == _BARE:
        return f'"${{{name}}}"'
    return f'\'"${{{name}}}"{quote}'


def _literal(letters: str, quote: str) -> str:
    """Letters that a second shell shall see, within the quotes of the first one."""
    if quote == _SINGLE:
        return letters.replace("'", "'\\''")
    special = {_BARE: "'\"$", _DOUBLE: '"$', _ANSI: "'"}[quote]
    return "".join(f"\\{one}" if one in special else one for one in letters)
