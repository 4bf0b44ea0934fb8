"""Checks the compose files of stages, types their values and writes them for engines.

Engines refuse `version: 3.7`, `command: [run, 4]` and `environment: {DEBUG: true}`, since YAML
makes numbers and flags of them, and take 1.10 for 1.1; a template prints such values all the
time. A structure that a template prints as a command is one word of it: `command: {{ args }}`
means what `command: ['{{ args }}']` says, in quotes or not.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tidewheel.core.graph.findings import Findings, meant
from tidewheel.core.queue.secret_references import NO_SECRETS, is_reference
from tidewheel.formats.sip.compose_keys import DEPLOY, FILE, IMAGE_ID, IMAGE_TEXT, SERVICE
from tidewheel.formats.sip.document import (
    KINDS,
    Entry,
    Fields,
    Items,
    Node,
    Scalar,
    is_null,
    plain_value,
)
from tidewheel.formats.sip.placeholders import text_of_value
from tidewheel.lazy_dataclasses import NamedTuple

# Types: what a value is follows from its key, not from YAML.

WORDS_KEYS = ("command", "entrypoint")  # a text, or a list of words
_TEXT_KEYS = (
    *("container_name", "hostname", "image", "platform", "restart", "stop_signal"),
    *("user", "working_dir"),
)
SECRET_IN_CONTAINERS = "secret-in-containers"
_TEXTS_KEYS = ("environment", "labels")  # texts by name, or a list of them

_Change = Callable[[Node], Node]


def typed_compose(root: Node) -> Node:
    """Returns a compose file with strings wherever engines want strings."""
    texts = partial(_each, change=_told)
    service: dict[str, _Change] = {
        **dict.fromkeys(WORDS_KEYS, _words),
        **dict.fromkeys(_TEXT_KEYS, _text),
        **dict.fromkeys(_TEXTS_KEYS, texts),
        "deploy": partial(_changed, changes={"labels": texts}),
    }
    services = partial(_each, change=partial(_changed, changes=service))
    others = partial(_each, change=partial(_changed, changes={"labels": texts}))
    sections = dict.fromkeys(_SECTIONS, others)
    return _changed(root, {"version": _text, "services": services, **sections})


def _words(node: Node) -> Node:
    if isinstance(node, Fields) or is_printed_json(node):
        return Items((_word(node),), node.position)
    return _each(node, _word) if isinstance(node, Items) else _text(node)


def is_printed_json(node: Node) -> bool:
    """Says whether a template printed JSON and nothing else here, such as '{{ args }}'.

    Engines would split it into words.
    """
    if not isinstance(node, Scalar) or not node.printed or node.text[:1] not in ("{", "["):
        return False
    try:
        json.loads(node.text)
    except (ValueError, RecursionError):
        return False
    return True


def _word(node: Node) -> Node:
    if isinstance(node, Scalar):
        return replace(node, quoted=True)  # there is no empty place between words
    return Scalar(text_of_value(plain_value(node)), True, node.position)


def _told(node: Node) -> Node:
    """Returns a variable's value as a string; `SITE: {{ site }}` gives one even if empty."""
    if isinstance(node, Scalar) and node.printed:
        return replace(node, quoted=True)
    return _text(node)


def _text(node: Node) -> Node:
    """Returns a scalar as a text in quotes; a key with nothing behind it keeps nothing. To an
    engine an empty text would be a value."""
    return node if not isinstance(node, Scalar) or is_null(node) else replace(node, quoted=True)


def _changed(node: Node, changes: Mapping[str, _Change]) -> Node:
    """Returns a mapping with the values of some keys changed."""
    if not isinstance(node, Fields):
        return node
    entries = (one._replace(value=changes.get(one.key.text, _same)(one.value)) for one in node)
    return replace(node, entries=tuple(entries))


def _same(node: Node) -> Node:
    return node


def _each(node: Node, change: _Change) -> Node:
    """Returns a mapping or list with all of its values changed."""
    if isinstance(node, Items):
        return replace(node, items=tuple(map(change, node.items)))
    if isinstance(node, Fields):
        return replace(
            node, entries=tuple(entry._replace(value=change(entry.value)) for entry in node)
        )
    return node


# What SIP's own programs passed over, and engines refuse, is moved to its place or dropped.

_VERSION = re.compile(r"[23]+(\.\d+)?", re.ASCII)
_SECTIONS = frozenset(FILE.known) - {"version", "services"}


def adjusted_compose(root: Node, warnings: Findings) -> Node:
    """Returns a compose file as engines take it, where its meaning is certain; each change is
    a warning."""
    if not isinstance(root, Fields):
        return root
    kept = []
    for entry in root:
        key, value = entry
        if key.text == "version" and not _is_version(value):
            why = "engines accept only the versions 2 and 3"
            _warn_dropped(key, "the compose file", why, warnings)
        elif key.text == "name":
            why = "tidewheel names the containers of a stage itself"
            _warn_dropped(key, "the compose file", why, warnings)
        elif key.text in _SECTIONS and is_null(value):
            _warn_dropped(key, "the compose file", "it has no value", warnings)
        elif key.text == "services" and isinstance(value, Fields):
            services = _each(value, partial(_adjusted_service, warnings=warnings))
            kept.append(entry._replace(value=services))
        else:
            kept.append(entry)
    return replace(root, entries=tuple(kept))


def _is_version(node: Node) -> bool:
    is_open = isinstance(node, Scalar) and bool(node.unknown)
    return is_open or (isinstance(node, Scalar) and bool(_VERSION.fullmatch(node.text)))


def _adjusted_service(service: Node, warnings: Findings) -> Node:
    if not isinstance(service, Fields):
        return service
    there = {key.text for key, _ in service}
    image = service.get("image")
    has_image = image is not None and not is_null(image)
    kept: list[Entry] = []
    moved: list[Entry] = []
    for entry in service:
        key, value = entry
        if key.text == "deploy" and isinstance(value, Fields):
            deploy, out = _adjusted_deploy(value, there, warnings)
            moved += out
            kept.append(entry._replace(value=deploy))
        elif key.text == "build" and has_image:
            why = "a stage does not build images; it uses the image that `image` names"
            _warn_dropped(key, "a service", why, warnings)
        elif key.text != "image" and is_null(value) and not value.printed:
            _warn_dropped(key, "a service", "it has no value", warnings)
        else:
            kept.append(entry)
    return replace(service, entries=(*kept, *moved))


def _adjusted_deploy(
    deploy: Fields, there: set[str], warnings: Findings
) -> tuple[Fields, list[Entry]]:
    """Returns `deploy` without keys of the service, and those that the service lacks."""
    kept: list[Entry] = []
    moved: list[Entry] = []
    for entry in deploy:
        key = entry.key
        if key.text in DEPLOY.known or key.text not in SERVICE.known:
            if is_null(entry.value) and not entry.value.printed:
                _warn_dropped(key, "deploy", "it has no value", warnings)
            else:
                kept.append(entry)
            continue
        if key.text in there:
            _warn_dropped(key, "deploy", "the service itself has this key, too", warnings)
            continue
        seen = (
            f"deploy has the key {key.text!r}, which engines accept only on the service itself"
        )
        hint = "it is used as a key of the service: move it out of deploy"
        warnings.warning("compose-key", seen, hint, key.position)
        moved.append(entry)
    return replace(deploy, entries=tuple(kept)), moved


def _warn_dropped(key: Scalar, where: str, why: str, warnings: Findings) -> None:
    seen = f"{where} has the key {key.text!r}: {why}, so it is ignored"
    warnings.warning("compose-key", seen, "remove it", key.position)


# Mistakes that can be found before an engine sees the file.

_JSON = re.compile(r'[{\[]\s*"')
_SHELL = re.compile(r"(?:/\S*/)?(?:ba|da|a|k|z|fi)?sh")
_CODE_OPTION = re.compile(r"-[A-Za-z]*c[A-Za-z]*|--command")
_SERVICE_NAME = re.compile(r"[A-Za-z0-9._-]+")
EXTENDED_MAX = 32  # services, one after another
DEPLOY_MODES = ("replicated", "global", "replicated-job", "global-job")


def check_compose(
    root: Node, stage: str, errors: Findings, warnings: Findings, *, is_whole: bool
) -> bool:
    """Says whether a compose file has services, and reports mistakes in it.

    What engines refuse is `compose_schema`'s. ``is_whole`` is false where values are still
    missing: then services may be, too.
    """
    services = root.get("services") if isinstance(root, Fields) else None
    if services is not None and not is_whole and _is_empty(services):
        return False
    if not isinstance(root, Fields) or not isinstance(services, Fields) or _is_empty(services):
        errors.error(
            "compose-services",
            f"the compose file of stage {stage} has no services",
            "write services: and under it each service with its image; without containers "
            "use command.yaml or script.sh instead",
            (root if services is None else services).position,
        )
        return False
    what = f"a service of stage {stage}"  # without its name: a loop makes many of one line
    bodies = {key.text: value for key, value in services}
    for name, service in services.entries:
        if not name.unknown and not _SERVICE_NAME.fullmatch(name.text):
            seen = f"{what} is called {name.text[:60]!r}"
            hint = "names of services have letters, digits and _ . -"
            errors.error("compose-service", seen, hint, name.position)
        if isinstance(service, Fields):
            _check_image(_image_of(service, bodies), service, what, errors)
            _check_service(service, what, errors, warnings)
        else:
            seen = f"{what} is {'empty' if is_null(service) else KINDS[type(service)]}"
            hint = "write image: and the other keys of the service under its name"
            errors.error("compose-service", seen, hint, service.position)
    return True


def _is_empty(node: Node) -> bool:
    return is_null(node) or (isinstance(node, Fields) and not node.entries)


def _check_service(service: Fields, what: str, errors: Findings, warnings: Findings) -> None:
    for key in WORDS_KEYS:
        _check_words(service.get(key), f"{key} of {what}", errors)
        _check_quotes(service.get(key), f"{key} of {what}", warnings)
        _check_ends(service.get(key), f"{key} of {what}", errors)
    # In a compose file $$ is a $ for the shell.
    check_shell(_shell_words(service), what, "$$1", warnings)
    _check_variables(service.get("environment"), what, warnings)
    _check_secrets(service.get("environment"), what, errors)
    deploy = service.get("deploy")
    if not isinstance(deploy, Fields):
        return
    mode = deploy.get("mode")
    if isinstance(mode, Scalar) and not mode.unknown and mode.text not in DEPLOY_MODES:
        seen = f"mode of deploy is {mode.text!r}"
        guess = meant(mode.text, DEPLOY_MODES)
        hint = f"{guess} Expected one of {', '.join(DEPLOY_MODES)}".lstrip()
        warnings.warning("compose-mode", seen, hint, mode.position)


def _image_of(service: Fields, services: Mapping[str, Node]) -> Node | None:
    """Returns the image of a service, which may be that of the service that it extends."""
    for _ in range(EXTENDED_MAX):
        image, base = service.get("image"), service.get("extends")
        if image is not None or base is None:
            return image
        name = base.get("service") if isinstance(base, Fields) else base
        found = services.get(name.text) if isinstance(name, Scalar) else None
        if not isinstance(found, Fields) or (isinstance(base, Fields) and base.get("file")):
            return name  # told elsewhere, or in another file
        service = found
    return None


def _check_image(image: Node | None, service: Fields, what: str, errors: Findings) -> None:
    """Reports a service without an image, or one whose name no image can have."""
    if image is None or is_null(image):
        seen = f"{what} has no image"
        hint = "write image: name:tag"
        if service.get("build") is not None:
            hint = "write image: name:tag of the built image; a stage does not build images"
        place = service.position if image is None else image.position
        errors.error("compose-image", seen, hint, place)
    elif isinstance(image, Scalar) and not _can_be_image(image):
        seen = f"{what} has the image {image.text[:60]!r}, which is not a valid image name"
        hint = "write NAME:TAG or HOST/FOLDER/NAME:TAG; FOLDER and NAME are in lower case"
        errors.error("compose-image", seen, hint, image.position)


def _can_be_image(node: Scalar) -> bool:
    is_open = bool(node.unknown) or "$" in node.text
    return is_open or any(one.fullmatch(node.text) for one in (IMAGE_TEXT, IMAGE_ID))


def _check_variables(node: Node | None, what: str, warnings: Findings) -> None:
    """Warns of variables without a value, which docker-compose would take from its caller."""
    valueless: list[Scalar] = []
    if isinstance(node, Fields):
        valueless = [key for key, value in node if is_null(value) and not value.printed]
    elif isinstance(node, Items):
        texts = (one for one in node.items if isinstance(one, Scalar) and not one.unknown)
        valueless = [one for one in texts if one.text and "=" not in one.text]
    for name in valueless:
        short = name.text[:60]
        lost = "the container does not get it, not even from the worker's environment"
        seen = f"the variable {short!r} of {what} has no value: {lost}"
        hint = f"write {short}=VALUE, or {short}= for an empty value"
        if isinstance(node, Fields):
            hint = "write the value, or '' for an empty value"
        warnings.warning("compose-variable", seen, hint, name.position)


def _check_secrets(node: Node | None, what: str, errors: Findings) -> None:
    """Reports a reference to a secret, of which an engine would keep the value in clear."""
    values: list[Node] = []
    if isinstance(node, Fields):
        values = [value for _, value in node]
    elif isinstance(node, Items):
        values = list(node.items)
    for value in values:
        text = value.text if isinstance(value, Scalar) else ""
        if is_reference(text if isinstance(node, Fields) else text.partition("=")[2]):
            seen, _, hint = NO_SECRETS.format(runner="the container engine").partition(": ")
            errors.error(SECRET_IN_CONTAINERS, f"{what}: {seen}", hint, value.position)


def _check_words(node: Node | None, what: str, errors: Findings) -> None:
    """Reports a structure among words, which no engine takes."""
    words = node.items if isinstance(node, Items) else () if node is None else (node,)
    wrong = next(
        (one for one in words if not isinstance(one, Scalar) and not one.printed), None
    )
    if wrong is not None:
        seen = f"{what} {'has' if isinstance(node, Items) else 'is'} {KINDS[type(wrong)]}"
        hint = "write a string, or a list of strings: [program, argument]"
        errors.error("compose-command", seen, hint, wrong.position)


def _check_quotes(node: Node | None, what: str, warnings: Findings) -> None:
    """Warns of JSON in a string that loses its quotes: engines split it as a shell would."""
    if not isinstance(node, Scalar) or not _JSON.search(node.text) or is_printed_json(node):
        return
    try:
        words = shlex.split(node.text)
    except ValueError:
        words = []
    if not any('"' in word for word in words):
        split = "which engines split at spaces and quotes: the JSON in it loses its quotes"
        seen = f"{what} is one string, {split}"
        hint = "write a list of words: [program, --option, '{{ args }}']"
        warnings.warning("compose-words", seen, hint, node.position)


def _check_ends(node: Node | None, what: str, errors: Findings) -> None:
    """Reports a string that engines cannot split into words."""
    if not isinstance(node, Scalar) or node.unknown or is_printed_json(node):
        return
    try:
        shlex.split(filled(node.text).text)
    except ValueError:
        seen = f"{what} has a quote that is not closed, or ends with a backslash"
        hint = "close the quote, or write a list of words: [program, --option, value]"
        errors.error("compose-command", seen, hint, node.position)


def _shell_words(service: Fields) -> list[Node]:
    """Returns the words that a container executes: those of its entrypoint, then its command.

    Of a text that a template printed, or a part of it, each word may be what was printed.
    """
    words: list[Node] = []
    for node in map(service.get, ("entrypoint", "command")):
        if isinstance(node, Items):
            words += node.items
        elif isinstance(node, Scalar):
            try:
                words += [replace(node, text=one) for one in shlex.split(node.text)]
            except ValueError:
                words.append(node)
    return words


def check_shell(words: Sequence[Node], what: str, word: str, warnings: Findings) -> None:
    """Warns of a value inside the code of a shell, where it could be code itself.

    Everywhere else a value stays in its word, whatever is in it. ``word`` is how the code names
    the first of the words that follow it.
    """
    texts = [one.text if isinstance(one, Scalar) else "" for one in words]
    shells = [place for place, text in enumerate(texts) if _SHELL.fullmatch(text)]
    if not shells:
        return
    place = shells[0] + 1
    while place < len(texts) and texts[place].startswith(("-", "+")):
        place += 1
        if _CODE_OPTION.fullmatch(texts[place - 1]) and place < len(texts):
            code = words[place]
            if isinstance(code, Scalar) and code.printed:
                seen = f"{what} has a value inside shell code, where it could run as code"
                hint = (
                    "pass it as a separate word: "
                    f"[bash, -c, 'echo \"{word}\"', bash, '{{{{ site }}}}']"
                )
                warnings.warning("shell-value", seen, hint, code.position)
            return
        if texts[place - 1].endswith("o"):
            place += 1  # of `-o pipefail`


# Variables, with their values in their places, as docker-compose puts them in. Nothing of a
# worker's environment reaches a stage but a few names, so nearly every value is known before an
# engine sees the file; those that only a job has stay as they were written.

# What a job has of its worker, and what it is told itself: TIDEWHEEL_RUN_DIR and others.
OF_WORKERS = frozenset({"HOME", "PATH", "LANG", "DOCKER_CONFIG"})
OF_JOBS = "TIDEWHEEL_"
_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<named>[_a-z][_a-z0-9]*)"
    r"|\{(?P<braced>[_a-z][_a-z0-9]*)(?:(?P<how>:?[-?])(?P<rest>[^}]*))?\}|(?P<bad>))",
    re.ASCII | re.IGNORECASE,
)


_SAMPLES = {"${TIDEWHEEL_ATTEMPT}": "1"}  # all others are texts


def with_samples(text: str) -> str:
    """Returns a string with values of the kind that variables of jobs will have."""
    for name, value in _SAMPLES.items():
        text = text.replace(name, value)
    return text


class FilledText(NamedTuple):
    """Holds a string with the values of variables in their places."""

    text: str
    is_known: bool = True  # False: it has variables of jobs, which stay as they were written
    is_wrong: bool = False  # it has a `$` with which no variable begins
    empty: tuple[str, ...] = ()  # variables that have no value in a stage
    missing: tuple[str, ...] = ()  # and those of them without which an engine refuses the file


def filled(text: str) -> FilledText:
    """Returns a string of a compose file as a stage would have it."""
    if "$" not in text:
        return FilledText(text)
    empty: list[str] = []
    missing: list[str] = []
    is_known, is_wrong = True, False

    def value(found: re.Match[str]) -> str:
        nonlocal is_known, is_wrong
        if found["dollar"]:
            return "$"
        name, how = found["named"] or found["braced"], found["how"] or ""
        if name is None:
            is_wrong = True
            return "$"
        if name in OF_WORKERS or name.startswith(OF_JOBS):
            is_known = False
            return f"${{{name}}}"
        if how.endswith("-"):
            return str(found["rest"])
        (missing if how else empty).append(name)
        return ""

    done = _VARIABLE.sub(value, text)
    return FilledText(done, is_known, is_wrong, tuple(empty), tuple(missing))


# YAML for an engine: it has exactly the structure that was checked.

# What is one word to every reader of YAML; everything else is put in quotes.
# A text to docker-compose 1, whose YAML is 1.1, and a number to version 2.
_UNSURE = re.compile(r"[-+]?(\d+|\d*\.\d*)[eE]\d+|[-+]?\d+[eE][-+]\d+", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@%=-]*|-?[0-9][0-9.eE+-]*", re.ASCII)
# Fine in JSON, but line breaks or refused in YAML.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INDENT = "  "


def emit_yaml(node: Node) -> str:
    """Returns YAML in block style; scalars that were plain stay plain where that is safe."""
    if isinstance(node, Scalar):
        return _scalar(node) + "\n"
    return "\n".join(_lines(node, "")) + "\n"


def _lines(node: Items | Fields, lead: str) -> Iterator[str]:
    if isinstance(node, Items):
        heads = [("-", item) for item in node.items]
    else:
        heads = [(f"{_scalar(key)}:", value) for key, value in node.entries]
    if not heads:
        yield lead + ("[]" if isinstance(node, Items) else "{}")
    for head, value in heads:
        if isinstance(value, Scalar):
            yield f"{lead}{head} {_scalar(value)}"
        elif not (value.items if isinstance(value, Items) else value.entries):
            yield f"{lead}{head} {'[]' if isinstance(value, Items) else '{}'}"
        else:
            yield f"{lead}{head}"
            yield from _lines(value, lead + _INDENT)


def is_plain(text: str) -> bool:
    """Says whether a scalar that was plain stays so."""
    return _PLAIN.fullmatch(text) is not None and not _UNSURE.fullmatch(text)


def _scalar(node: Scalar) -> str:
    if is_null(node):
        return "null"
    if not node.quoted and is_plain(node.text):
        return node.text
    return quoted(node.text)


def quoted(text: str) -> str:
    """Returns a string in double quotes, with escapes that JSON and YAML share."""
    return _ESCAPED.sub(
        lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False)
    )
