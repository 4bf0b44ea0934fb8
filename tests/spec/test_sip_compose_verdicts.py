"""Whether a stage can run: what engines refuse of its file, and what it asks of its host."""

import pytest

from tests.support.sips import codes, definition, found, needed, needs, service, sip, stage
from tidewheel.core.graph.findings import Severity
from tidewheel.formats.sip.validation import validate
from tidewheel.runners.containers.needs import asked_of_host, need_labels
from tidewheel.services.definitions.sip import note_needs

FILE = "stages/a/1.0.0/docker_compose.yaml"


def judged(compose, request=None, name="docker_compose.yaml", **files):
    folder = {name: compose, **{one.replace("_yaml", ".yaml"): it for one, it in files.items()}}
    return validate(sip(definition(stage("a")), {"a": folder}), request)


def errors(judgement):
    return found(judgement.findings, Severity.ERROR)


@pytest.mark.req("R004-49")
@pytest.mark.parametrize(
    ("lines", "place", "words", "advice"),
    [
        (
            ["deploy:", "  restart_policy:", "    delay: 0"],
            7,
            "services.work.deploy.restart_policy.delay is 0, a number",
            "expected a string such as 30s or 1m30s, in quotes",
        ),
        (
            ["ports: 80"],
            5,
            "services.work.ports is 80, a number",
            "expected a list of ports",
        ),
        (
            ["init: 'yes'"],
            5,
            "services.work.init is the text 'yes'",
            "expected true or false",
        ),
        (["comand: run"], 5, "which no engine accepts there", "did you mean 'command'?"),
        (["args: ['0.1']"], 5, "has the key 'args'", "write command: [word, word]"),
        (["volumes: [data:/data]"], 5, "the volume 'data', which the file", "under volumes:"),
        (["networks: [inner]"], 5, "the network 'inner', which the file", "under networks:"),
        (
            ["depends_on: [nobody]"],
            5,
            "the service 'nobody', which the file",
            "under services:",
        ),
        (
            ["command: echo $(date)"],
            5,
            "a $ that does not begin a variable",
            "write $$ for a $",
        ),
        (["cap_drop: [ALL, ALL]"], 5, "services.work.cap_drop has 'ALL' twice", "remove one"),
        (["storage_opt: {size: 1g}"], 5, "which workers refuse", "remove it"),
    ],
)
def test_what_every_engine_refuses_is_an_error_with_its_line_and_what_is_accepted(
    lines, place, words, advice
):
    judgement = judged(service(*lines))
    (error,) = errors(judgement)
    assert (error.position.file, error.position.line) == (FILE, place)
    assert words in error.message and advice in error.hint
    assert not judgement.runnable


@pytest.mark.req("R004-49")
def test_all_mistakes_of_a_compose_file_are_told_at_once():
    text = service("ports: 80", "init: 'yes'", "comand: run", "image2: x", "tty: 5")
    assert len(errors(judged(text))) == 5


@pytest.mark.parametrize(
    "image", ["BusyBox", "a b", "busybox:", "http://host/name:1", "-x", "a//b", "a@sha256:12"]
)
def test_an_image_with_an_impossible_name_is_an_error(image):
    (error,) = errors(judged(f"services: {{work: {{image: '{image}'}}}}"))
    assert error.code == "compose-image" and repr(image) in error.message


@pytest.mark.parametrize(
    "image",
    [
        *("busybox", "busybox:1.36", "skasip/ingest:1.0.0-rc_1", "localhost:5000/a/b__c.d:x"),
        *("host.org/a", "Host:80/a:T", "a@sha256:" + "0" * 64, "0" * 64, "${IMAGE:-busybox}"),
    ],
)
def test_an_image_is_called_as_engines_call_it(image):
    assert judged(f"services: {{work: {{image: '{image}'}}}}").runnable


def test_a_service_has_the_image_of_the_one_that_it_extends():
    text = "services:\n  base: {image: busybox}\n  work: {extends: base}\n"
    assert judged(text).runnable
    circle = judged("services:\n  a: {extends: b}\n  b: {extends: a}\n")
    assert {one.code for one in errors(circle)} == {"compose-image", "compose-names"}


@pytest.mark.req("R004-49")
def test_keys_that_sip_tolerated_under_deploy_are_taken_as_the_services_own():
    text = service("deploy:", "  networks: [inner]", "  stop_signal: SIGINT", "  mode: global")
    judgement = judged(f"{text}networks: {{inner: {{}}}}\n")
    moved = found(judgement.findings, Severity.WARNING)
    assert [(one.code, one.position.line) for one in moved] == [
        ("compose-key", 6),
        ("compose-key", 7),
    ]
    assert "move it out of deploy" in moved[0].hint
    document = judgement.rendered["a"].document["services"]["work"]
    assert (document["networks"], document["stop_signal"]) == (["inner"], "SIGINT")
    assert document["deploy"] == {"mode": "global"}
    assert judgement.runnable


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            service("hostname: a", "deploy: {hostname: b}"),
            "the service itself has this key, too",
        ),
        (service("build: ."), "a stage does not build images"),
        (service("command:"), "it has no value"),
        (service() + "networks:\n", "it has no value"),
        (service() + "name: mine\n", "tidewheel names the containers"),
        ("version: '9'\nservices: {a: {image: b}}", "engines accept only the versions 2 and 3"),
    ],
)
def test_what_says_nothing_to_a_stage_is_left_out_with_a_warning(text, words):
    judgement = judged(text)
    (warning,) = found(judgement.findings, Severity.WARNING)
    assert words in warning.message and "so it is ignored" in warning.message
    assert judgement.runnable


def test_a_value_that_is_still_to_come_is_judged_when_it_is_known():
    text = service("tty: {{ tty }}", "volumes: ['{{ data }}:/data']")
    name, parameters = "docker_compose.yaml.j2", "tty:\ndata:\n"
    assert judged(text, name=name, parameters_yaml=parameters).runnable
    bad = judged(text, {"tty": 5, "data": "x"}, name=name, parameters_yaml=parameters)
    assert sorted(codes(bad.obstacles)) == ["compose-names", "compose-value"]
    good = judged(text, {"tty": True, "data": "/mnt"}, name=name, parameters_yaml=parameters)
    assert good.runnable
    assert asked_of_host(good.rendered["a"].document, "a", is_for_swarm=False) == [
        "bind-mounts"
    ]


@pytest.mark.req("R004-50")
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["network_mode: host"], ["host-network"]),
        (["network_mode: none", "pid: service:work2"], []),
        (["privileged: true", "volumes: [/mnt/ceph:/data]"], ["bind-mounts", "privileged"]),
        (["privileged: no"], []),
        (["privileged: 'false'"], []),
        (["volumes: ['./data:/data', '/anonymous', '~/x:/y']"], ["bind-mounts"]),
        (["volumes: ['${TIDEWHEEL_RUN_DIR}/share:/s', '${TIDEWHEEL_JOB_FILES}/x:/x']"], []),
        (["volumes: ['${TIDEWHEEL_RUN_DIR}/work/1/a:/s']"], []),
        (["volumes: ['${TIDEWHEEL_RUN_DIR}/work/1/b:/s']"], ["bind-mounts"]),
        (["volumes: ['${WHERE:-/mnt}:/data']"], ["bind-mounts"]),
        (["volumes: ['${HOME}:/data']"], ["bind-mounts"]),
        (["volumes: ['/var/run/docker.sock:/s']"], ["bind-mounts", "engine-socket"]),
        (["volumes: ['/mnt/a/../../run:/s']"], ["bind-mounts", "engine-socket"]),
        (["volumes: [{type: bind, source: ./a, target: /b}]"], []),
        (["volumes: [{type: bind, source: /a, target: /b}]"], ["bind-mounts"]),
        (["env_file: /etc/env", "cap_add: [ALL]"], ["cap-add", "files"]),
        (["extends: {service: a, file: other.yaml}"], ["files"]),
        (["ports: ['80:80']"], ["ports"]),
        (["ports: ['127.0.0.1:80:80']"], []),
        (["logging: {driver: syslog}"], ["logging"]),
        (["shm_size: 2g", "devices: [/dev/a:/dev/a]"], ["devices", "limits"]),
        (["gpus: all"], ["devices"]),
        (["deploy: {replicas: 101}"], ["limits"]),
        (["deploy: {replicas: '${TIDEWHEEL_ATTEMPT}'}"], []),
    ],
)
def test_what_a_file_asks_of_its_host_is_known_before_an_engine_sees_it(lines, words):
    judgement = judged(service(*lines) + "  work2: {image: busybox}\n")
    assert judgement.runnable, [str(one) for one in judgement.findings]
    assert asked_of_host(judgement.rendered["a"].document, "a", is_for_swarm=False) == words


@pytest.mark.req("R004-50")
@pytest.mark.parametrize("port", ["80:80", "127.0.0.1:80:80"])
def test_a_stage_that_only_a_swarm_can_run_asks_for_each_port_that_it_publishes(port):
    document = judged(service(f"ports: ['{port}']")).rendered["a"].document
    assert asked_of_host(document, "a", is_for_swarm=True) == ["ports"]
    assert need_labels(document, (), "a", is_for_swarm=True) == {"allow:ports"}
    assert asked_of_host(judged(service()).rendered["a"].document, "a", is_for_swarm=True) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("networks: {inner: {driver: macvlan}}", ["host-network"]),
        ("networks: {inner: {external: true}}", ["external"]),
        ("networks: {inner: {external: 'no'}}", []),
        ("networks: {inner: {name: mine}}", ["external"]),
        ("volumes: {data: {driver_opts: {o: bind}}}", ["volume-drivers"]),
        ("secrets: {key: {file: '${TIDEWHEEL_RUN_DIR}/share/key'}}", ["files"]),
        ("secrets: {key: {file: /etc/shadow}}", ["files"]),
        ("include: [other.yaml]", ["files"]),
    ],
)
def test_so_is_what_it_asks_for_beside_its_services(more, words):
    judgement = judged(f"{service()}{more}\n")
    assert judgement.runnable, [str(one) for one in judgement.findings]
    assert asked_of_host(judgement.rendered["a"].document, "a", is_for_swarm=False) == words


def test_a_key_that_only_docker_compose_2_knows_is_a_need_and_no_error():
    judgement = judged(
        service("annotations: {a: b}", "deploy: {resources: {limits: {pids: 5}}}")
    )
    assert judgement.runnable
    assert judgement.rendered["a"].newer == ("annotations", "pids")


NODES = "[{type: nodes, number: %d, flavour: compute, exclusive: true}]"


@pytest.mark.parametrize(
    ("compose", "key"),
    [
        (service("configs: [c]") + "configs: {c: {file: /etc/c}}\n", "configs"),
        (service("configs: [{source: c}]") + "configs: {c: {file: /etc/c}}\n", "configs"),
    ],
)
def test_what_docker_compose_1_leaves_out_needs_docker_compose_2_but_for_a_swarm(compose, key):
    told = f"stage a needs a worker with docker compose 2, because of {key}"
    assert told in needs(compose)
    assert not any("docker compose 2" in one for one in needs(compose, NODES % 2))
    document = judged(compose).rendered["a"].document
    assert "compose:2" in need_labels(document, (), "a", is_for_swarm=False)
    assert "compose:2" not in need_labels(document, (), "a", is_for_swarm=True)


@pytest.mark.req("R004-50")
@pytest.mark.parametrize("entry", ["[key]", "[{source: key, target: k}]"])
@pytest.mark.parametrize("kind", ["secret", "config"])
def test_secrets_and_configs_that_others_made_need_a_swarm_which_alone_has_them(kind, entry):
    """docker-compose 1 leaves them out, docker compose 2 refuses them."""
    compose = service(f"{kind}s: {entry}") + f"{kind}s: {{key: {{external: true}}}}\n"
    told = needs(compose)
    assert "stage a needs a worker for a Swarm (--runner swarm)" in told
    assert not any("docker compose 2" in one for one in told)
    there = f"stage a: {kind} key must exist on the Swarm of the worker that runs the stage"
    assert f"{there} (docker {kind} create key FILE)" in told
    alone = service(f"privileged: true\n    {kind}s: {entry}")
    text = alone + f"{kind}s: {{key: {{external: true}}}}\n"
    source = sip(definition(stage("a")), {"a": {"docker_compose.yaml": text}})
    judgement = validate(source)
    note_needs(judgement, source)
    assert not judgement.runnable
    hints = [one.hint for one in judgement.obstacles]
    assert any(f"remove {kind} key, which only a Swarm has" in one for one in hints)


OVERLAY = "docker network create --driver overlay --attachable"
ENGINE, EITHER = (
    "the engine of the worker that runs the stage",
    "the engine or Swarm of the worker",
)
HOSTS = "the host of the worker, or the nodes of the Swarm, that runs the stage"
THERE = {
    "networks: [lab]|networks: {lab: {external: true}}": (
        f"network lab must exist on {EITHER} that runs the stage "
        f"(docker network create lab; on a Swarm: {OVERLAY} lab)"
    ),
    "init: true|networks: {default: {external: {name: 'a b'}}}": (
        f"network a b must exist on {EITHER} that runs the stage "
        f"(docker network create 'a b'; on a Swarm: {OVERLAY} 'a b')"
    ),
    "privileged: true|networks: {default: {external: true, name: lab}}": (
        f"network lab must exist on {ENGINE} (docker network create lab)"
    ),
    "init: true|volumes: {sky: {external: true, name: all-sky}}": (
        f"volume all-sky must exist on {EITHER} that runs the stage "
        "(docker volume create all-sky, on each node of a Swarm)"
    ),
    "network_mode: container:db|": f"container db must exist on {ENGINE}",
    "external_links: ['db:sql']|": f"container db must exist on {ENGINE}",
    "volumes: ['../sky:/sky']|": (
        "../sky (from the job's folder) must exist on each Swarm node that runs the stage"
    ),
    "volumes: ['../../../../sky:/sky', '../see:/see']|": (
        "../../../../sky (from the job's folder), ../see (from the job's folder) must exist on "
        "each Swarm node that runs the stage"
    ),
    "ports: ['8080:80', '127.0.0.1:53:53/udp', {target: 9, published: 90}, '7-8:7-8']|": (
        f"ports 8080, 53/udp, 90, 7-8 must be free on {HOSTS}; only one such stage can run at "
        "a time"
    ),
    "privileged: true\n    ports: ['8080:80']|": (
        "port 8080 must be free on the host of the worker that runs the stage; only one such "
        "stage can run at a time"
    ),
    "networks: [lab]\n    ports: ['80:80']|networks: {lab: {driver: overlay}}": (
        "port 80 must be free on the nodes of the Swarm that runs the stage; only one such "
        "stage can run at a time"
    ),
    "deploy: {placement: {constraints: [node.hostname == deep-sky.local]}}|": (
        "on a Swarm, a node must meet node.hostname == deep-sky.local"
    ),
    "logging: {driver: fluentd}|": "fluentd must listen at localhost:24224 for its logs",
    "logging: {driver: fluentd, options: {fluentd-address: 'a:1'}}|": (
        "fluentd must listen at a:1 for its logs"
    ),
    "deploy: {placement: {constraints: [node.labels.send == 01]}}|": (
        "on a Swarm, a node must have the label send=01 "
        "(docker node update --label-add send=01 NODE)"
    ),
    "volumes: [{type: bind, source: /mnt/sky, target: /sky}]|": (
        f"/mnt/sky must exist on {HOSTS}"
    ),
    "volumes: ['/mnt/sky:/sky']|": "/mnt/sky must exist on each Swarm node that runs the stage",
}


@pytest.mark.req("R004-50")
@pytest.mark.parametrize("case", THERE)
def test_what_a_file_uses_and_nothing_makes_is_told_with_the_command_that_makes_it(case):
    own, _, top = case.partition("|")
    assert f"stage a: {THERE[case]}" in needs(service(own) + top + "\n")


@pytest.mark.parametrize(
    "case",
    [
        *(
            "networks: [lab]|networks: {lab: {}}",
            "init: true|networks: {lab: {external: true}}",
        ),
        "networks: [host]|networks: {host: {external: true}}",
        "networks: [lab]|networks: {lab: {external: 'false'}}",
        *(
            "network_mode: host|",
            "network_mode: none|",
            "volumes: ['./x:/x', 'y:/y']|volumes: {y: }",
        ),
        "volumes: ['/mnt/sky:/sky']\n    privileged: true|",
        "logging: {driver: fluentd, options: {fluentd-async: 'true'}}|",
        "ports: ['80', '8000-8010:80', '127.0.0.1::80', {target: 80}, '0:80']|",
        "network_mode: host\n    ports: ['80:80']|",
        *("logging: {driver: json-file}|", "logging: {driver: syslog}|"),
        "deploy: {placement: {constraints: [node.role == worker, node.labels.a != b]}}|",
    ],
)
def test_what_the_engine_has_or_makes_itself_is_not_asked_for(case):
    own, _, top = case.partition("|")
    told = needs(service(own) + top + "\n")
    assert not any(" must " in one for one in told), told


NEW = "stage a: containers find a new, empty folder at"


@pytest.mark.req("R004-50")
@pytest.mark.parametrize(
    ("volumes", "places"),
    [
        ("['./sky:/sky:ro', './sky:/again', './out/b:/b']", "/sky (./sky), /b (./out/b)"),
        ("[{type: bind, source: ., target: /app/output}]", "/app/output (.)"),
        ("['${TIDEWHEEL_JOB_FILES}/x:/x']", "/x (./x)"),
    ],
)
def test_a_folder_of_the_job_that_is_mounted_is_told_to_be_empty_at_first(volumes, places):
    (note,) = needed(service(f"volumes: {volumes}"), **{"README.md": "none of these"})
    assert (note.severity, note.message) == (Severity.NOTE, f"{NEW} {places}")
    assert note.position.file == FILE and "kept with the job" in note.hint


@pytest.mark.req("R004-50")
@pytest.mark.parametrize("file", ["sky/map.fits", "sky"])
def test_files_of_the_stage_that_a_mount_seems_to_mean_and_does_not_are_warned_of(file):
    compose = service("volumes: ['./sky:/sky', './out:/out']")
    warning, note = sorted(needed(compose, **{file: "stars"}), key=lambda one: one.severity)
    assert (note.severity, note.message) == (Severity.NOTE, f"{NEW} /out (./out)")
    assert warning.severity is Severity.WARNING
    assert warning.message == f"{NEW} /sky (./sky), not stages/a/1.0.0/sky"
    own = "${TIDEWHEEL_RUN_DIR}/stages/a/1.0.0/sky:/sky:ro"
    assert own in warning.hint
    allowed = "stage a needs a worker that allows bind-mounts (--allow-compose bind-mounts)"
    assert allowed in needs(service(f"volumes: ['{own}']"))


@pytest.mark.parametrize("source", ["/mnt/sky", "../sky", "${TIDEWHEEL_RUN_DIR}/share", "y"])
def test_what_others_have_is_not_told_to_be_empty(source):
    told = needs(service(f"volumes: ['{source}:/sky']") + "volumes: {y: }\n")
    assert not any("empty" in one for one in told), told


def test_a_mounted_path_that_a_request_gives_is_not_told_before_it_is_known():
    text = service("volumes: [{type: bind, source: {{ where }}, target: /data}]")
    folder = {"docker_compose.yaml.j2": text, "parameters.yaml": "where:\n"}
    source = sip(definition(stage("a")), {"a": folder})
    for request, is_told in ((None, False), ({"where": "/mnt/sky"}, True)):
        judgement = validate(source, request)
        note_needs(judgement, source)
        told = [one.message for one in judgement.findings]
        assert is_told == any(" must exist " in one for one in told), told


@pytest.mark.req("R004-49")
@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ("['80:80']", "['80:8080']", True),
        ("['127.0.0.1:80:80']", "[{target: 8080, published: 80}]", True),
        ("['80:80', '80:81']", "[]", True),
        ("['127.0.0.1:80:80']", "['127.0.0.2:80:80']", False),
        ("['80:80']", "['80:80/udp', '81:80', '80']", False),
        ("['80:80']\n    profiles: [never]", "['80:80']", False),
    ],
)
def test_a_port_of_the_host_that_two_services_publish_is_told_with_its_line(
    first, second, clash
):
    other = f"  other:\n    image: busybox\n    ports: {second}\n"
    found_errors = errors(judged(service(f"ports: {first}") + other))
    assert [one.position.line > 4 for one in found_errors] == [True] * clash
    assert all("publishes port 80" in one.message for one in found_errors)


@pytest.mark.req("R004-49")
@pytest.mark.parametrize("name", ["host", "bridge", "none"])
def test_a_network_cannot_be_made_with_the_name_of_one_that_each_engine_has(name):
    text = service("networks: [lab]") + f"networks: {{lab: {{name: {name}}}}}\n"
    judgement = validate(sip(definition(stage("a")), {"a": {"docker_compose.yaml": text}}))
    (error,) = found(judgement.all_findings(), Severity.ERROR)
    assert f"networks.lab has the name '{name}'" in error.message
    assert "add external: true" in error.hint
    assert needs(text.replace("name: ", "external: true, name: "))


def test_a_secret_from_a_file_or_of_no_service_needs_no_docker_compose_2():
    own = service("secrets: [s]") + "secrets: {s: {file: /etc/s}, key: {external: true}}\n"
    assert not any("docker compose 2" in one for one in needs(own))


def test_a_stage_for_several_nodes_or_a_label_needs_a_worker_for_a_swarm():
    told = "stage a needs a worker for a Swarm"
    assert needs(service()) == needs(service(), NODES % 1) == []
    assert needs(service(), NODES % 3) == [f"{told} (--runner swarm --nodes compute=3)"]
    labelled = "[{type: nodes, number: 1, label: fast, exclusive: false}]"
    assert needs(service(), labelled) == [f"{told} (--runner swarm)"]


@pytest.mark.parametrize(
    ("lines", "words", "advice"),
    [
        (["stop_signal: SIGFOO"], "stop_signal is the text 'SIGFOO'", "such as SIGTERM"),
        (["stop_signal: 65"], "stop_signal is the text '65'", "or its number"),
        (["working_dir: rel"], "working_dir is the text 'rel'", "absolute path"),
        (["extra_hosts: ['a:notip']"], "the address 'notip'", "such as 10.1.0.7"),
        (["extra_hosts: {a: notip}"], "the address 'notip'", "host-gateway"),
        (["extra_hosts: [a]"], "the address ''", "NAME:ADDRESS"),
        (["ports: [99999]"], "ports has '99999'", "from 1 to 65535"),
        (["ports: ['127.0.0.1:99999:80']"], "ports has '127.0.0.1:99999:80'", "to 65535"),
        (["ports: ['80:0']"], "ports has '80:0'", "from 1 to 65535"),
        (["ports: ['[::1]:65536:80']"], "ports has '[::1]:65536:80'", "from 1 to 65535"),
        (["ports: [{target: 65536}]"], "ports has '65536'", "from 1 to 65535"),
        (["expose: ['" + "1" * 5000 + "']"], "expose has '111", "from 1 to 65535"),
        (["expose: [70000]"], "expose has '70000'", "from 1 to 65535"),
        (["command: run 'it"], "a quote that is not closed", "a list of words"),
        (["mem_limit: 5m"], "mem_limit is '5m'", "at least 6m"),
        (["deploy: {resources: {limits: {memory: 1M}}}"], "memory is '1M'", "at least 6m"),
    ],
)
def test_what_engines_refuse_only_when_they_make_containers_is_an_error_too(
    lines, words, advice
):
    judgement = judged(service(*lines))
    (error,) = errors(judgement)
    assert words in error.message and advice in error.hint
    assert error.position.line == 5 and not judgement.runnable


@pytest.mark.parametrize(
    "line",
    [
        *("stop_signal: sigusr1", "stop_signal: 9", "stop_signal: SIGRTMIN+3", "mem_limit: 6m"),
        *("working_dir: /data", "working_dir: '${TIDEWHEEL_RUN_DIR}'", "mem_limit: 0"),
        *("extra_hosts: ['a:10.0.0.1', 'b:host-gateway', 'c:::1']", "extra_hosts: {a: '::1'}"),
        *(
            "ports: ['127.0.0.1::80', '0:81', '1-2:3-4/udp', '[::1]:65535:65535']",
            "expose: [1]",
        ),
        *("ports: ['::1:80:80']", "command: run 'it' \"now\"", "mem_limit: 1g"),
    ],
)
def test_what_engines_take_when_they_make_containers_is_none(line):
    judgement = judged(service(line))
    assert judgement.runnable, [str(one) for one in judgement.findings]


@pytest.mark.parametrize("section", ["secrets", "configs"])
@pytest.mark.parametrize("path", ["./s.txt", "s.txt", "${TIDEWHEEL_JOB_FILES}/s.txt"])
def test_a_secret_or_config_cannot_come_from_the_folder_of_the_attempt(section, path):
    judgement = judged(f"{service(f'{section}: [s]')}{section}: {{s: {{file: '{path}'}}}}\n")
    (error,) = errors(judgement)
    assert f"{section}.s.file is the text" in error.message
    assert "expected the absolute path of a file on the worker's host" in error.hint


@pytest.mark.parametrize(
    "body", ["host: {external: true}", "host: {external: true, name: host}"]
)
def test_a_service_is_not_in_the_network_of_the_host_and_in_another(body):
    text = service("networks: [host, inner]") + f"networks: {{inner: {{}}, {body}}}\n"
    (error,) = errors(judged(text))
    assert "the network of the host, 'host', and in another" in error.message
    assert judged(text.replace("[host, inner]", "[host]")).runnable


def test_a_service_with_a_profile_never_runs_and_that_is_told():
    judgement = judged(service() + "  b:\n    image: busybox\n    profiles: [debug]\n")
    (warning,) = found(judgement.findings, Severity.WARNING)
    assert "service b has a profile and never runs" in warning.message
    assert (warning.hint, warning.position.line) == ("remove profiles", 5)
    assert judgement.runnable


@pytest.mark.parametrize(
    "line",
    [
        *("depends_on: [b]", "depends_on: {b: {condition: service_started}}", "links: [b:c]"),
        "network_mode: service:b",
    ],
)
def test_a_service_that_another_needs_may_not_have_a_profile(line):
    judgement = judged(service(line) + "  b: {image: busybox, profiles: [debug]}\n")
    (error,) = errors(judgement)
    assert "'b', which has a profile and never runs" in error.message
    assert (error.hint, error.position.line) == ("remove profiles", 5)
    assert not found(judgement.findings, Severity.WARNING)


def test_a_variable_that_no_stage_has_is_empty_and_told():
    judgement = judged(service("command: run $SITE"))
    (warning,) = found(judgement.findings, Severity.WARNING)
    assert warning.code == "compose-variable" and "is empty in every stage" in warning.message
    assert judgement.runnable


def hostile():
    """Large files in which everything names everything, or nothing that is there."""
    chain = "".join(f"  s{n}: {{extends: s{n + 1}}}\n" for n in range(3000))
    yield f"services:\n{chain}"
    waits = "".join(f"  s{n}: {{image: a, depends_on: [s{n + 1}]}}\n" for n in range(3000))
    yield f"services:\n{waits}"
    yield service(f"volumes: [{', '.join(f'v{n}:/{n}' for n in range(4000))}]")
    unknown = "".join(f"    k{n}: 1\n" for n in range(4000))
    yield f"services:\n  a:\n    image: b\n{unknown}"
    yield service("command: '" + "$" * 100_001 + "'")
    yield service("image2: " + "[" * 20 + "]" * 20, "ports: ['" + "1" * 5000 + "-2:3']")


@pytest.mark.parametrize("text", list(hostile()), ids=lambda text: str(len(text)))
@pytest.mark.timeout(120)
def test_a_hostile_compose_file_is_refused_without_taking_long(text):
    judgement = judged(text)
    assert errors(judgement) and not judgement.runnable
    assert all(one.position.file == FILE for one in errors(judgement))


@pytest.mark.parametrize(
    ("lines", "words", "advice"),
    [
        (
            ["mem_limit: 64m", "deploy: {resources: {limits: {cpus: '1'}}}"],
            "has both mem_limit",
            "",
        ),
        (
            ["cpus: 1", "deploy: {resources: {limits: {cpus: '2'}}}"],
            "has both cpus and",
            "once",
        ),
        (["scale: 2", "deploy: {replicas: 3}"], "has both scale and deploy", "deploy.replicas"),
        (["cpu_quota: 50ms"], "cpu_quota is the text '50ms'", "microseconds, such as 50000"),
        (["pids_limit: many"], "pids_limit is the text", "a whole number, such as 512"),
        (["volumes_from: [nobody]"], "names the service 'nobody'", "under services:"),
        (["ports: [{published: 80}]"], "services.work.ports has no target", "target: …"),
    ],
)
def test_what_only_one_of_the_two_docker_composes_takes_is_an_error(lines, words, advice):
    """A stage does not choose which of them its worker has."""
    (error,) = errors(judged(service(*lines)))
    assert words in error.message and advice in error.hint


def test_the_same_limit_may_stand_in_both_places():
    assert judged(service("cpus: 1", "deploy: {resources: {limits: {cpus: 1}}}")).runnable
    assert judged(service("mem_limit: 64m", "deploy: {replicas: 2}")).runnable


def test_a_secret_or_config_says_what_is_in_it():
    for section in ("secrets", "configs"):
        (error,) = errors(judged(f"{service()}{section}: {{abc: {{name: x}}}}\n"))
        assert f"{section}.abc does not say where its content comes from" in error.message
        assert judged(f"{service()}{section}: {{abc: {{file: /etc/x}}}}\n").runnable


def test_a_text_that_some_readers_of_yaml_take_for_a_number_is_written_in_quotes():
    compose = judged(service("cgroup_parent: 1e3", "dns: 1.5e3")).rendered["a"].compose
    assert 'cgroup_parent: "1e3"' in compose and 'dns: "1.5e3"' in compose
