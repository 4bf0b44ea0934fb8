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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tidewheel.core.graph.findings import Findings, meant
from tidewheel.core.queue.secret_references import NO_SECRETS, is_reference
from tidewheel.formats.sip.document import (
    KINDS,
    Fields,
    Items,
    Node,
    Scalar,
    is_null,
    plain_value,
)
from tidewheel.formats.sip.placeholders import text_of_value

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
    """Returns a compose file with texts wherever engines want texts."""
    texts = partial(_each, change=_told)
    service: dict[str, _Change] = {
        **dict.fromkeys(WORDS_KEYS, _words),
        **dict.fromkeys(_TEXT_KEYS, _text),
        **dict.fromkeys(_TEXTS_KEYS, texts),
        "deploy": partial(_changed, changes={"labels": texts}),
    }
    services = partial(_each, change=partial(_changed, changes=service))
    return _changed(root, {"version": _text, "services": services})


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
    """Returns the value of a variable as a text; `SITE: {{ site }}` gives one even if empty."""
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


# Mistakes that can be found before an engine sees the file.

TOP_KEYS = (
    *("version", "name", "services", "networks", "volumes", "configs", "secrets", "include"),
)
SERVICE_KEYS = (
    *("annotations", "attach", "blkio_config", "build", "cap_add", "cap_drop", "cgroup"),
    *("cgroup_parent", "command", "configs", "container_name", "cpu_count", "cpu_percent"),
    *("cpu_period", "cpu_quota", "cpu_rt_period", "cpu_rt_runtime", "cpu_shares", "cpus"),
    *("cpuset", "credential_spec", "depends_on", "deploy", "develop"),
    *("device_cgroup_rules", "devices", "dns", "dns_opt", "dns_search", "domainname"),
    *("entrypoint", "env_file", "environment", "expose", "extends", "external_links"),
    *("extra_hosts", "gpus", "group_add", "healthcheck", "hostname", "image", "init", "ipc"),
    *("isolation", "label_file", "labels", "links", "logging", "mac_address", "mem_limit"),
    *("mem_reservation", "mem_swappiness", "memswap_limit", "models", "network_mode"),
    *("networks", "oom_kill_disable", "oom_score_adj", "pid", "pids_limit", "platform"),
    *("ports", "post_start", "pre_stop", "privileged", "profiles", "provider", "pull_policy"),
    *("read_only", "restart", "runtime", "scale", "secrets", "security_opt", "shm_size"),
    *("stdin_open", "stop_grace_period", "stop_signal", "storage_opt", "sysctls", "tmpfs"),
    *("tty", "ulimits", "use_api_socket", "user", "userns_mode", "uts", "volumes"),
    *("volumes_from", "working_dir"),
)
DEPLOY_KEYS = (
    *("mode", "replicas", "labels", "update_config", "rollback_config", "resources"),
    *("restart_policy", "placement", "endpoint_mode"),
)
_JSON = re.compile(r'[{\[]\s*"')
_SHELL = re.compile(r"(?:/\S*/)?(?:ba|da|a|k|z|fi)?sh")
_CODE_OPTION = re.compile(r"-[A-Za-z]*c[A-Za-z]*|--command")
_SERVICE_NAME = re.compile(r"[A-Za-z0-9._-]+")
DEPLOY_MODES = ("replicated", "global", "replicated-job", "global-job")


def check_compose(
    root: Node, stage: str, errors: Findings, warnings: Findings, *, is_whole: bool
) -> bool:
    """Says whether a compose file has services, and reports mistakes in it.

    Unknown keys are warnings, since some engines ignore them. ``is_whole`` is false where
    values are still missing: then services may be, too.
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
        if isinstance(root, Fields):
            _check_keys(root, "a compose file", TOP_KEYS, warnings)
        return False
    _check_keys(root, "a compose file", TOP_KEYS, warnings)
    what = f"a service of stage {stage}"  # without its name: a loop makes many of one line
    for name, service in services.entries:
        if not name.unknown and not _SERVICE_NAME.fullmatch(name.text):
            seen = f"{what} is called {name.text[:60]!r}"
            hint = "names of services have letters, digits and _ . -"
            errors.error("compose-service", seen, hint, name.position)
        if isinstance(service, Fields):
            _check_service(service, what, errors, warnings)
        else:
            seen = f"{what} is {'empty' if is_null(service) else KINDS[type(service)]}"
            hint = "write image: and what else it needs under its name"
            errors.error("compose-service", seen, hint, service.position)
    return True


def _is_empty(node: Node) -> bool:
    return is_null(node) or (isinstance(node, Fields) and not node.entries)


def _check_service(service: Fields, what: str, errors: Findings, warnings: Findings) -> None:
    _check_keys(service, "a service", SERVICE_KEYS, warnings)
    image = service.get("image")
    if (image is None or is_null(image)) and service.get("build") is None:
        seen = f"{what} has no image"
        hint = "write image: name:tag"
        errors.error(
            "compose-image", seen, hint, service.position if image is None else image.position
        )
    for key in WORDS_KEYS:
        _check_words(service.get(key), f"{key} of {what}", errors)
        _check_quotes(service.get(key), f"{key} of {what}", warnings)
    # In a compose file $$ is a $ for the shell.
    check_shell(_shell_words(service), what, "$$1", warnings)
    _check_variables(service.get("environment"), what, warnings)
    _check_secrets(service.get("environment"), what, errors)
    deploy = service.get("deploy")
    if not isinstance(deploy, Fields):
        return
    _check_keys(deploy, "deploy", DEPLOY_KEYS, warnings)
    mode = deploy.get("mode")
    if isinstance(mode, Scalar) and not mode.unknown and mode.text not in DEPLOY_MODES:
        seen = f"mode of deploy is {mode.text!r}"
        guess = meant(mode.text, DEPLOY_MODES)
        hint = f"{guess} Accepted are {', '.join(DEPLOY_MODES)}".lstrip()
        warnings.warning("compose-mode", seen, hint, mode.position)


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
        lost = "the container does not get it, since nothing is taken from the worker"
        seen = f"the variable {short!r} of {what} has no value: {lost}"
        hint = f"write {short}=VALUE; {short}= is an empty one"
        if isinstance(node, Fields):
            hint = "write the value; an empty one is ''"
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
        hint = "write a text, or a list of texts: [program, argument]"
        errors.error("compose-command", seen, hint, wrong.position)


def _check_quotes(node: Node | None, what: str, warnings: Findings) -> None:
    """Warns of JSON in a text that loses its quotes: engines split texts as a shell would."""
    if not isinstance(node, Scalar) or not _JSON.search(node.text) or is_printed_json(node):
        return
    try:
        words = shlex.split(node.text)
    except ValueError:
        words = []
    if not any('"' in word for word in words):
        split = "which engines split at blanks and quotes: the JSON in it loses its quotes"
        seen = f"{what} is one text, {split}"
        hint = "write a list of words: [program, --option, '{{ args }}']"
        warnings.warning("compose-words", seen, hint, node.position)


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
                seen = f"{what} has a value inside the code of a shell, where it can be code"
                hint = (
                    "hand it over as a word of its own: "
                    f"[bash, -c, 'echo \"{word}\"', bash, '{{{{ site }}}}']"
                )
                warnings.warning("shell-value", seen, hint, code.position)
            return
        if texts[place - 1].endswith("o"):
            place += 1  # of `-o pipefail`


def _check_keys(fields: Fields, what: str, known: Iterable[str], warnings: Findings) -> None:
    names = tuple(known)
    for key, _ in fields.entries:
        if key.text in names or key.text.startswith("x-"):
            continue
        if what == "deploy" and key.text in SERVICE_KEYS:
            hint = "it belongs to the service itself: move it out of deploy"
        else:
            hint = meant(key.text, names, "remove it")
        seen = f"{what} has the key {key.text!r}, which is unknown there"
        warnings.warning("compose-key", seen, hint, key.position)


# YAML for an engine: it has exactly the structure that was checked.

# What is one word to every reader of YAML; everything else is put in quotes.
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


def _scalar(node: Scalar) -> str:
    if is_null(node):
        return "null"
    if not node.quoted and _PLAIN.fullmatch(node.text):
        return node.text
    return quoted(node.text)


def quoted(text: str) -> str:
    """Returns a text in double quotes, with escapes that JSON and YAML share."""
    return _ESCAPED.sub(
        lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False)
    )
