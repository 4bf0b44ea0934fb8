"""What is said of a compose file before, compared with what the real docker-compose says."""

import itertools
import json
import re

import pytest

from tests.support.compose_program import interpreter, refusals
from tests.support.sips import definition, sip, stage
from tidewheel.core.graph.findings import Severity
from tidewheel.core.queue.task import TaskId
from tidewheel.formats.sip import compose_keys
from tidewheel.formats.sip.compose_schema import SERVICE_NAME_LENGTH_MAX
from tidewheel.formats.sip.validation import validate
from tidewheel.runners.containers import policy, project

pytestmark = pytest.mark.skipif(
    interpreter() is None, reason="docker-compose 1, a program in Python, is not here"
)

VALUES = (
    *("abc", "'abc'", "''", "5", "'5'", "-1", "0", "1.5", "'1.5'", "true", "yes", "'true'"),
    *("1e3", "012", "0x1f", "1_000", "2020-01-01", "~", "10s", "64m", "80", "'80:80'"),
    *("[]", "[abc]", "[abc, def]", "[abc, abc]", "[5]", "[5, 5]", "[true]", "[null]", "[[a]]"),
    *("['80:80']", "['80-81:90-91']", "['80-81:90-95']", "[a:b]", "[{target: 80}]"),
    *("[{target: x}]", "['1.2.3.4:80:80/tcp']", "['80/xyz']", "[{}]", "[{source: a}]"),
    *("{}", "{abc: def}", "{abc: 5}", "{abc: true}", "{abc: null}", "{abc: [a]}", "{abc: {}}"),
    *("{A b: c}", "{abc: {soft: 1, hard: 2}}", "{abc: {soft: 2, hard: 1}}", "{abc: {soft: 1}}"),
    *("[{type: bind, source: ./a, target: /b}]", "[./a:/b, ./c:/b]", "[/a]", "[a:b:c:d]"),
    *("[{type: tmpfs, target: /b, tmpfs: {size: 1k}}]", "{test: [CMD, a], interval: 5s}"),
    *("{test: [a]}", "{test: a, retries: 3}", "{interval: 5}", "{disable: true}"),
    *("{replicas: 2}", "{replicas: two}", "{mode: global}", "{resources: {limits: {cpus: 1}}}"),
    *("{restart_policy: {delay: 0}}", "{restart_policy: {delay: 5s}}", "{unknown: 1}"),
    *("{resources: {limits: {memory: 5}}}", "{placement: {constraints: [a == b]}}"),
    *("{driver: json-file, options: {max-size: 1m}}", "{driver: [a]}", "{x-mine: 1}"),
    *("{work: {condition: service_started}}", "{other: {condition: service_healthy}}"),
    *("{other: {condition: never}}", "[other]", "[nobody]", "other", "'service:other'"),
    *("'service:nobody'", "{default: {aliases: [a]}}", "[default]", "{default: }"),
    *("$HOME", "$$HOME", "${X:-5}", "$(date)", "[echo, '${X'] ", "${X?}", "a$", "{A: $(x)}"),
)
FEW = 12
# Nothing is named; a file of the host, which is not there.
NOT_ASKED = {("image", "~"), ("env_file", "[/a]"), ("extends", "$HOME")}
# What docker-compose accepts here and nothing executes, or what fails only later.
STRICTER = {
    "an image with an impossible name": r"which is not a valid image name",
    "a duration that no engine can read": r"expected a string such as 30s",
    "a time that no engine can read": r"expected microseconds",
    "a size that no engine can read": r"expected a size such as",
    "networks, secrets and configs, which are looked up when containers are made": (
        r"names the (network|secret|config) "
    ),
    "a key that is known, and that no worker executes": r"which workers refuse",
    "a service that nobody would start": r"(every service|which) has a profile",
    "more or fewer containers than are run": r"replicas ",
    "a structure where words are wanted": r"(has|is) a (list|mapping); write a string, or ",
    "a file beside the definition": r"expected the absolute path of a file on the",
    "names that engines refuse only when they make something": r"has the name '",
    "a secret or config of which nothing is said": r"with the keys of a (secret|config)",
    "a signal that no engine knows": r"expected a signal such as",
    "a folder from nowhere": r"expected an absolute path in the container",
    "hosts without an address": r"with an address such as",
    "a number that only containers are refused for": r"expected a whole number, such as 512",
    "what fails when it is looked up": r"has no (source|target)|volumes_from names the service",
    "a secret or config of which nobody knows what is in it": r"does not say where its content",
    "limits in two places, which docker compose 2 refuses": r" has both \w+ and deploy",
    "a port that only one service can have": r"publishes port \d+, as",
    "a port that there is not": r"ports are numbers from 1 to",
    "less memory than a container has": r"expected at least 6m",
    "an image that is not named, but built": r"has no image",
}


def judged(compose):
    """The verdict on one compose file, as the only file of a stage."""
    return validate(sip(definition(stage("a")), {"a": {"docker_compose.yaml": compose}}))


def one_service(key, value):
    image = "" if key == "image" else "    image: busybox\n"
    rest = "  other:\n    image: busybox\n"
    return f"version: '3.7'\nservices:\n  work:\n{image}    {key}: {value}\n{rest}"


def cases():
    """Of keys that take the same kind of values only one is tried with all of them."""
    known = {**compose_keys.SERVICE.known, "unknown": None, "x-mine": 0}
    tried = set()
    for key, kind in known.items():
        for value in VALUES if id(kind) not in tried else VALUES[:: len(VALUES) // FEW]:
            if (key, value) not in NOT_ASKED:
                yield one_service(key, value)
        tried.add(id(kind))
    head = "services: {work: {image: busybox}}\n"
    sections = ("networks", "volumes", "secrets", "configs")
    bodies = (
        *("~", "{}", "5", "{abc: }", "{abc: {}}", "{abc: {driver: x}}", "{abc: {driver: 5}}"),
        *("{abc: {external: true}}", "{abc: {external: true, labels: [a]}}", "{a b: {}}"),
        *("{abc: {external: {name: x}}}", "{abc: {name: x}}", "{abc: {file: ./x}}", "[abc]"),
        *("{abc: {ipam: {config: [{subnet: 10.0.0.0/8}]}}}", "{abc: {driver_opts: {a: 1}}}"),
        *("{abc: {ipam: {config: [{subnet: x}]}}}", "{abc: {internal: 'yes'}}", "{abc: 5}"),
        *("{abc: {unknown: 1}}", "{abc: {labels: {a: true}}}", "{abc: {external: maybe}}"),
    )
    for section, body in itertools.product(sections, bodies):
        yield f"{head}{section}: {body}\n"
    for version in ("3", "'3.7'", "2.1", "'2.4'", "1", "4", "three", "~", "3.10", "{}", "[]"):
        yield f"version: {version}\n{head}"
    for more in ("name: x", "include: [a]", "unknown: 1", "x-mine: 1", "models: {}"):
        yield f"{head}{more}\n"
    deploy = "services: {work: {image: busybox, deploy: {%s: %s}}}\n"
    for key, value in itertools.product((*compose_keys.DEPLOY.known, "networks"), VALUES[::3]):
        yield deploy % (key, value)


def short(text):
    return json.dumps(text.removeprefix("version: '3.7'\nservices:\n  work:\n"))


@pytest.mark.req("R004-49", "R004-50")
def test_what_is_said_to_run_is_accepted_by_docker_compose_and_what_is_refused_is_not(tmp_path):
    """Both ways, for each key with values of every kind."""
    told, texts, refused = [], [], []
    for text in cases():
        found = judged(text)
        errors = [one for one in found.all_findings() if one.severity is Severity.ERROR]
        if any(one.code.startswith(("yaml", "duplicate-key", "key-kind")) for one in errors):
            continue  # no YAML at all
        made = found.rendered.get("a")
        if made is not None and made.newer:
            continue  # docker compose 2 alone knows it: a need
        told.append(text)
        texts.append(text if made is None or made.compose is None else made.compose)
        refused.append([f"{one.message}; {one.hint}" for one in errors])
    said = refusals(texts, tmp_path)
    assert sum(map(bool, said)) > 1000 and sum(not one for one in said) > 500
    false_hopes = [
        f"{short(text)}: {words}"
        for text, own, words in zip(told, refused, said, strict=True)
        if words and not own
    ]
    false_alarms = [
        f"{short(text)}: {own}"
        for text, own, words in zip(told, refused, said, strict=True)
        if own and not words and not any(map(stricter, own))
    ]
    assert (false_hopes, false_alarms) == ([], [])


def stricter(words):
    return any(re.search(one, words) for one in STRICTER.values())


def test_each_key_that_is_known_is_one_that_workers_run_or_is_said_not_to_be():
    """A key that the policy refuses whatever is allowed must not be called fit to run."""
    service = compose_keys.SERVICE
    judged_keys = policy.HARMLESS | policy.SERVICE_RULES.keys() | {"logging"}
    everything = service.known.keys() | service.newer
    assert everything - judged_keys == service.unrun - {"credential_spec"}  # of Windows
    top = compose_keys.FILE
    assert (top.known.keys() | top.newer) - policy.TOP_LEVEL == top.unrun | {"include"}


def test_the_longest_name_of_a_service_is_the_one_that_the_runner_takes():
    made = project.project_name("store", TaskId("flow/run1/1/a/1"), 1, SERVICE_NAME_LENGTH_MAX)
    assert len(made) + 1 + SERVICE_NAME_LENGTH_MAX == project.NAME_LENGTH_MAX
