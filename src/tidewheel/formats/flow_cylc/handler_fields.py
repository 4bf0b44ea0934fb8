"""Turns fields in an event handler's command into references that a shell expands.

Theory of operation. What a field stands for may be anything: a message is written by a job. Put
into the command as text it would be read by the shell, and no quoting of ours helps, since the
author may have written quotes around the field. So the text of a command is made of what its
author wrote alone, and a field becomes a reference to a variable of its environment, which bash
expands and does not read again. How a reference is written depends on the quotes around it:

    tell %(message)s            tell "${V}"
    tell "it says %(message)s"  tell "it says ${V}"
    tell 'it says %(message)s'  tell 'it says '"${V}"''

In the text of a second shell, `bash -c "tell %(message)s"`, the reference is escaped for the
first one, so that the second expands it, from the environment that it inherits.

That is safe where the value is an argument of a plain command. It is not where something reads
its arguments, its input or a name as a program: other shells and interpreters, `eval`, `ssh`,
arithmetic, here-documents, a command whose name is not known. There are more of these than a
list can hold, so the forms that are understood are listed instead: a plain command,
`SHELL [-flags] -c "…"` and `INTERPRETER FILE …`. If any command of a handler has another form
and names a program that is known to read what it is given, or if its text is not understood,
every field of the handler is refused. What a plain command does with its arguments is its own
business: a script of the author that evaluates them is not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field

from tidewheel.lazy_dataclasses import dataclass, pattern

# A field with its conversion, %%, or whatever else begins with a percent sign.
FIELD = pattern(
    r"%(?:%|\((?P<name>[^)]*)\)(?P<conversion>[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z])|.?)", re.DOTALL
)
_BARE, _DOUBLE, _SINGLE, _ANSI = "", '"', "'", "$'"
_MARK = "\ue000"  # stands for a field in a word

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
_FLAGS = pattern(r"-[aefluvx]+")
_SCRIPT_FLAG = pattern(r"-[aefluvx]*c")
# They take the name of a file, and then what that file is given.
_RUNS_A_FILE = pattern(r"(?:(?:ba|da|a|k|z)?sh|python|pypy|perl|ruby|node|php|Rscript)[-\d.]*")
_FILE = pattern(
    r"(?!.*\b(?:dev|proc)\b)(?:(?:\$\w+|\$\{\w+\}|~)?/)?[\w.][\w./:@%+,=-]*", re.ASCII
)
# Whatever their arguments or their input are, these may run it: as any word of a command, since
# another program may call them.
_READERS = pattern(
    r"(?:(?:rb|ba|da|a|k|pdk|mk|z|c|tc|ya|po|fi|pw|la)?sh|busybox|toybox|xonsh"
    r"|python|pypy|ipython|perl|ruby|irb|node|nodejs|deno|bun|php|lua|luajit|R|Rscript|julia"
    r"|octave|tclsh|wish|expect|osascript|guile|ghci|groovy|[gmn]?awk|sed|gsed)[-\d.]*"
    r"|eval|source|\.|trap|ssh|rsh|mosh|pssh|pdsh|clush|su|sudo|doas|pkexec|runuser|chroot"
    r"|unshare|nsenter|watch|flock|xargs|parallel|systemd-run"
)
# The same, where they are the command itself; they are common words, too.
_READING_COMMANDS = pattern(
    r"at|batch|crontab|find|g?make|m4|ed|ex|vim?|emacs|dc|sqlite3|psql|mysql|gdb|gnuplot|script"
    r"|screen|tmux|srun|sbatch|salloc|qsub|docker|podman|kubectl|entr|[ls]trace|alias|bind"
    r"|complete|compgen|coproc|declare|enable|export|fc|function|getopts|hash|history|let|local"
    r"|mapfile|read|readarray|readonly|set|shopt|typeset|unset|wait"
)
_WRAPPERS = pattern(
    r"nice|nohup|timeout|setsid|exec|command|builtin|time|env|stdbuf|ionice|chrt|taskset"
)
_KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "!"})
_ASSIGNMENT = pattern(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_POWERFUL = pattern(
    r"PATH|ENV|IFS|PS\d|PROMPT_COMMAND|SHELL|SHELLOPTS|EDITOR|VISUAL|PAGER|LESSOPEN"
    r"|[A-Z]*SECONDS|S?RANDOM|LINENO|OPTIND|HIST\w*|EPOCH\w*"  # numbers: arithmetic
    r"|(?:BASH|LD|DYLD|PYTHON|PERL5?|RUBY|NODE|GIT)_?\w*"
)
_COMMAND = pattern(
    r"(?:\$\w+/|\$\{\w+\}/|~/)?[\w./:@%+,=-]*[\w:.@%+,-]|\[\[?|\]\]?|\}", re.ASCII
)
_EXPANSION = pattern(r"#?\w+|\w+(?::?[-=+]|##?|%%?)[\w ./*@,-]*", re.ASCII)
_DESCRIPTOR = pattern(r"\d*-?")
_NUMBER = pattern(r"[\d.]+[smhd]?")
_THIS_SHELL = frozenset({"$SHELL", "${SHELL}", "$BASH", "${BASH}", "$0", "${0}"})
_COMMAND_OPTIONS = frozenset({"-c", "--command", "-exec", "--exec", "--eval", "--rsh"})
_MAILERS = frozenset({"mail", "mailx", "s-nail", "mutt"})  # -c is a copy


class BadField(ValueError):
    """A field that stands where its value could be read as a program."""


Reference = Callable[[re.Match[str]], str]  # the variable of a field


def variable_of(name: str) -> str:
    """Returns the environment variable from which a handler reads a field."""
    return "TIDEWHEEL_EVENT_" + re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def with_references(command: str, variable: Reference) -> str:
    """Returns the command with a reference instead of each field; BadField if one is unsafe."""
    shell, made, at, fields = _Shell(), [], 0, []
    for match in FIELD.finditer(command):
        made.append(shell.read(command[at : match.start()]))
        at = match.end()
        if match["name"] is None:
            made.append(shell.read("%" if match[0] == "%%" else match[0]))
        else:
            fields.append(match)
            made.append(shell.place(match, variable))
    made.append(shell.read(command[at:]))
    shell.finish()
    if fields and shell.danger:
        raise BadField(
            f"{fields[0][0]} cannot be filled in safely, since {shell.danger}; remove the "
            f"fields, and let a script read the variable {variable_of(fields[0]['name'])}"
        )
    return "".join(made)


def quoted_field(command: str) -> str:
    """Returns the first field of a command that stands within quotes; "" if none does.

    Its value is filled in as safely as any other. But Cylc puts quotes of its own around it.
    """
    shell, at = _Shell(), 0
    for match in FIELD.finditer(command):
        shell.read(command[at : match.start()])
        at = match.end()
        if match["name"] is not None and shell.is_quoted:
            return match[0]
        shell.read("%" if match["name"] is None else _MARK)
    return ""


@dataclass(slots=True)
class _Frame:
    """Holds the state of a command, or of one within another: `$(…)`, `(…)` and backticks."""

    end: str = ""  # what closes it
    quote: str = _BARE
    words: list[str] = field(default_factory=list)  # of this simple command so far
    word: str | None = None
    inner: _Shell | None = None  # follows the text that a second shell will read
    is_target: bool = False  # the next word is a file of a redirection
    copies: bool = False  # and it is one of >& or <&, which bash expands twice
    braces: str | None = None  # what stands in ${… so far
    in_test: bool = False  # of [[ … ]]


class _Shell:
    """Follows bash's quoting through a text, as far as fields need it."""

    def __init__(self, depth: int = 0) -> None:
        self.danger = ""  # why no field of this text is safe
        self._depth = depth
        self._frames = [_Frame()]
        self._escaped = self._in_comment = False
        self._before = ""  # the character before, unless it was escaped

    def read(self, text: str) -> str:
        for letter in text:
            self._feed(letter)
        return text

    def place(self, match: re.Match[str], variable: Reference) -> str:
        """Returns the text for a field here: a reference to its variable, "" in a comment."""
        frame = self._frames[-1]
        if self._in_comment:
            return ""
        if self._escaped or self._before == "$":
            self._refuse(f"a {'backslash' if self._escaped else 'dollar'} is before it")
        if frame.braces is not None:
            self._refuse("${…} can be arithmetic")
        self._before = ""
        if not self._is_script(frame):
            self._add(_MARK)
            return _reference(variable(match), frame.quote)
        if self._depth:
            self._refuse("a third shell would read it")
        text = self._inner_of(frame).place(match, variable)
        frame.word = (frame.word or "") + _MARK
        return _literal(text, frame.quote)

    @property
    def is_quoted(self) -> bool:
        """Says whether quotes are open, of this command or of one around it."""
        return any(frame.quote or frame.end == "`" for frame in self._frames)

    def finish(self) -> None:
        """Ends the text: refuses what is not closed, and ends every command."""
        if self._escaped or self._frames[-1].quote or len(self._frames) > 1:
            self._refuse("a quote or a bracket is not closed")
        for frame in self._frames:
            self._end_command(frame)

    def _refuse(self, why: str) -> None:
        self.danger = self.danger or why

    # ---- letter by letter ----

    def _feed(self, letter: str) -> None:
        frame = self._frames[-1]
        before, self._before = self._before, letter
        if self._escaped:
            self._feed_escaped(frame, letter)
        elif self._in_comment:
            self._in_comment = letter != "\n"
            if letter == "\n":
                self._end_command(frame)
        elif frame.quote in (_SINGLE, _ANSI):
            self._feed_single(frame, letter)
        elif letter == "\\":
            self._escaped = True
            if self._in_backquotes():
                self._refuse("a backslash within backquotes is read twice")
        elif letter == "`":
            self._feed_backquote(frame)
        elif (before == "$" and letter in "([{") or frame.braces is not None:
            self._feed_expansion(frame, letter)
        elif frame.quote == _DOUBLE:
            self._end_quote(frame) if letter == '"' else self._add_expanded(frame, letter)
        else:
            self._feed_bare(frame, letter, before)

    def _feed_expansion(self, frame: _Frame, letter: str) -> None:
        if frame.braces is not None:
            self._add(letter)
            if letter != "}":
                frame.braces += letter
                return
            if not _EXPANSION.fullmatch(frame.braces):
                self._refuse(
                    "${…} can be arithmetic, except in simple forms such as ${name} and "
                    "${name:-text}"
                )
            frame.braces = None
        elif letter == "{":
            frame.braces = ""
            self._add(letter)
        else:
            self._open(")")
            if letter == "[":
                self._refuse("$[…] is arithmetic")

    def _feed_escaped(self, frame: _Frame, letter: str) -> None:
        self._escaped, self._before = False, ""
        if frame.quote == _ANSI:
            if self._is_script(frame):
                self._refuse("$'…' with a backslash is not understood here")
            self._add(letter)
        elif letter != "\n":  # which joins two lines
            kept = frame.quote == _DOUBLE and letter not in '$`"\\'
            self._add(f"\\{letter}" if kept else letter)

    def _feed_single(self, frame: _Frame, letter: str) -> None:
        if letter == "\\" and frame.quote == _ANSI:
            self._escaped = True
        elif letter == "'":
            self._end_quote(frame)
        else:
            self._add(letter)

    def _feed_backquote(self, frame: _Frame) -> None:
        if frame.end == "`":
            if frame.quote:
                self._refuse("a quote or a bracket is not closed")
            self._end_command(frame)
            self._frames.pop()
        else:
            self._add_expanded(frame, "`")
            self._open("`")

    def _feed_bare(self, frame: _Frame, letter: str, before: str) -> None:
        if letter in "'\"":
            self._add("")
            frame.quote = _ANSI if letter == "'" and before == "$" else letter
        elif letter == "#" and frame.word is None:
            self._in_comment = True
        elif letter in " \t":
            self._end_word(frame)
        elif letter in "<>":
            self._feed_redirection(frame, letter, before)
        elif f"{before}{letter}" in ("<&", ">&", ">|"):
            self._before, frame.copies = "", letter == "&"
        elif letter in ";&|\n()":
            self._feed_end(frame, letter, before)
        else:
            self._add_expanded(frame, letter)

    def _feed_end(self, frame: _Frame, letter: str, before: str) -> None:
        self._end_command(frame)
        if letter == "(":
            if before in ("<", ">", "("):
                self._refuse("((…)), <(…) and >(…) are not understood")
            self._open(")")
        elif letter == ")" and frame.end == ")":
            self._frames.pop()

    def _feed_redirection(self, frame: _Frame, letter: str, before: str) -> None:
        if before == "<" and letter == "<":
            self._refuse("<< and <<< can be the input of a shell (use printf and a pipe)")
        if frame.word is not None and frame.word.isdecimal():
            frame.word = None  # a descriptor
        self._end_word(frame)
        frame.is_target = True

    def _end_quote(self, frame: _Frame) -> None:
        frame.quote = _BARE
        self._before = ""

    def _open(self, end: str) -> None:
        if len(self._frames) > 1 and self._frames[-1].end == "`" and end == "`":
            self._refuse("backquotes within backquotes are not understood")
        self._frames.append(_Frame(end))

    def _add_expanded(self, frame: _Frame, letter: str) -> None:
        """Adds a letter that this shell may expand, such as $ or *."""
        special = "$`" if frame.quote else "$`*?[{~"
        if letter in special and self._is_script(frame):
            self._refuse("the text that a second shell runs has an expansion, such as $NAME")
        self._add(letter)

    def _add(self, letters: str) -> None:
        frame = self._frames[-1]
        if self._is_script(frame):
            self._inner_of(frame).read(letters)
        frame.word = (frame.word or "") + letters

    def _end_word(self, frame: _Frame) -> None:
        if frame.word is None:
            return
        if frame.inner is not None:
            frame.inner.finish()
            self._refuse(frame.inner.danger)
            frame.inner = None
        if not frame.is_target:
            frame.words.append(frame.word)
        elif frame.copies and not _DESCRIPTOR.fullmatch(frame.word):
            self._refuse("the file after >& is expanded twice (use > FILE 2>&1)")
        frame.word, frame.is_target, frame.copies = None, False, False

    def _end_command(self, frame: _Frame) -> None:
        self._end_word(frame)
        self._refuse(_danger(frame.words, in_test=frame.in_test))
        if frame.end and {"case", "esac"} & set(frame.words):
            self._refuse("case within brackets is not understood")
        if self._in_backquotes() and _reads_script(_called(frame.words)[0]):
            self._refuse("a shell within backquotes reads its text twice")
        for word in frame.words:
            frame.in_test = word != "]]" and (frame.in_test or word == "[[")
        frame.words, frame.is_target, frame.copies = [], False, False

    def _in_backquotes(self) -> bool:
        return any(frame.end == "`" for frame in self._frames)

    # ---- who reads the word that begins now ----

    def _inner_of(self, frame: _Frame) -> _Shell:
        if frame.inner is None:
            frame.inner = _Shell(self._depth + 1)
        return frame.inner

    def _is_script(self, frame: _Frame) -> bool:
        """Says whether another shell reads the word that begins now."""
        return not frame.is_target and _takes_script(_called(frame.words)[0])


def _danger(words: Sequence[str], *, in_test: bool) -> str:
    """Says why a field is not safe in a handler with this command; empty if it is safe."""
    for word in words:
        match = _ASSIGNMENT.match(word)
        if match and _MARK in word and _POWERFUL.fullmatch(match[1]):
            return f"{match[1]} can change what is run"
    called, is_wrapped = _called(words)
    if not called:
        return ""
    name = _name(called[0])
    found = ""
    if not _COMMAND.fullmatch(called[0]):
        found = (
            "the options of another program hide which word is the command"
            if is_wrapped
            else f"{called[0]} is not a plain command name"
        )
    elif is_wrapped and any(word[:1] in ("$", "`") for word in called):
        found = "a variable in a command that another program runs may name a command"
    elif (in_test or name == "[[") and any(word[:1] == "-" for word in called):
        found = (
            "in [[ … ]], bash may evaluate a field as arithmetic, which can run commands "
            "(use [ … ])"
        )
    elif _READING_COMMANDS.fullmatch(name):
        found = f"{name} may run its arguments or its input as commands"
    elif not _reads_script(called) and not _runs_file(called):
        found = _danger_of_words(called, name)
    return found


def _danger_of_words(called: Sequence[str], name: str) -> str:
    for before, word in zip(["", *called], called, strict=False):
        if _READERS.fullmatch(_name(word).lstrip("$")) or word in _THIS_SHELL:
            return f"{word} may run its arguments or its input as commands"
        if before[:1] in ("$", "`") and _SCRIPT_FLAG.fullmatch(word):
            return f"{before} may be a shell"
        if _MARK in word and before in _COMMAND_OPTIONS and name not in _MAILERS:
            return f"it is the value of {before}, which may be a command"
    if "-v" in called and name in ("printf", "test", "["):
        return f"{name} -v evaluates a name"
    return ""


def _called(words: Sequence[str]) -> tuple[list[str], bool]:
    """Returns the words from the called program on, and whether another program calls it."""
    rest, is_wrapped = list(words), False
    while rest:
        is_number = is_wrapped and _NUMBER.fullmatch(rest[0])
        is_keyword = not is_wrapped and rest[0] in _KEYWORDS
        if is_number or is_keyword or _ASSIGNMENT.match(rest[0]):
            del rest[0]
        elif _WRAPPERS.fullmatch(_name(rest[0])):
            is_wrapped = True
            del rest[0]
            if rest and rest[0][:1] == "-":  # it may have a value
                return ["$"], True
        else:
            break
    return rest, is_wrapped


def _takes_script(called: Sequence[str]) -> bool:
    """Says whether the next word is the text that a shell runs."""
    return (
        len(called) > 1
        and _name(called[0]) in _SHELLS
        and all(map(_FLAGS.fullmatch, called[1:-1]))
        and bool(_SCRIPT_FLAG.fullmatch(called[-1]))
    )


def _reads_script(called: Sequence[str]) -> bool:
    """Says whether a call is exactly `SHELL -flags -c TEXT`, perhaps with arguments."""
    return any(
        _takes_script(called[:at]) and called[at][:1] not in ("-", "+")
        for at in range(2, len(called))
    )


def _runs_file(called: Sequence[str]) -> bool:
    return (
        len(called) > 1
        and bool(_RUNS_A_FILE.fullmatch(_name(called[0])))
        and bool(_FILE.fullmatch(called[1]))
    )


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _reference(name: str, quote: str) -> str:
    """Returns a reference to a variable: expanded wherever it stands, and read as one word."""
    if quote == _DOUBLE:
        return f"${{{name}}}"
    if quote == _BARE:
        return f'"${{{name}}}"'
    return f'\'"${{{name}}}"{quote}'


def _literal(letters: str, quote: str) -> str:
    """Returns letters for a second shell, escaped for the quotes that the first one reads."""
    if quote == _SINGLE:
        return letters.replace("'", "'\\''")
    special = {_BARE: "'\"${}", _DOUBLE: '"$', _ANSI: "'"}[quote]
    return "".join(f"\\{one}" if one in special else one for one in letters)
