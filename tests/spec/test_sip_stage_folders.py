"""Seed 004, "Stage configuration directories": the files of a stage, under all their names."""

import os

import pytest

from tests.support.sips import (
    COMPOSE,
    codes,
    definition,
    found,
    graph_of,
    sip,
    stage,
    with_compose,
    yaml_value,
)
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.formats.sip.bundle import read_folder
from tidewheel.formats.sip.text_files import SipSource
from tidewheel.formats.sip.validation import validate

ONE = definition(stage("a"))


def judged_with(**files):
    names = {name.replace("__", "."): text for name, text in files.items()}
    return validate(sip(ONE, {"a": names}))


@pytest.fixture
def folder(tmp_path):
    """Writes files below a folder of their own."""

    def write(files):
        for path, text in files.items():
            target = tmp_path / "flows" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        return tmp_path / "flows"

    return write


def read(path):
    findings = Findings()
    return read_folder(path, findings), findings


@pytest.mark.req("R004-36")
@pytest.mark.parametrize(
    "name",
    [
        "docker_compose.yaml",
        "docker_compose.yml",
        "docker_compose.yaml.j2",
        "docker_compose.yml.j2",
    ],
)
def test_the_compose_file_has_four_names(name):
    judgement = validate(sip(ONE, {"a": {name: COMPOSE}}))
    assert judgement.runnable
    assert not list(judgement.findings)


@pytest.mark.req("R004-36")
@pytest.mark.parametrize(
    "name", ["docker-compose.yml", "docker-compose.yaml.j2", "compose.yaml"]
)
def test_the_engines_own_spelling_is_tolerated(name):
    judgement = validate(sip(ONE, {"a": {name: COMPOSE}}))
    assert judgement.runnable
    assert codes(judgement.findings) == ["compose-spelling"]


@pytest.mark.req("R004-36", "R004-8")
def test_a_stage_without_a_compose_file_is_refused():
    (error,) = judged_with(**{"parameters.json": "{}"}).findings.sorted()
    assert (error.code, error.position.file) == ("no-compose-file", "stages/a/1.0.0")
    assert "docker_compose.yaml" in error.hint


@pytest.mark.req("R004-8")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("args.txt", "args-file-kind"),
        ("args", "args-file-kind"),
        ("parameters.txt", "parameters-file-kind"),
        ("parameters.json.j2", "parameters-file-kind"),
        ("outputs.xml", "outputs-file-kind"),
        ("command.sh", "command-file-kind"),
        ("script.py", "script-file-kind"),
        ("script.sh.j2", "script-file-kind"),
        ("docker_compose.json", "compose-file-kind"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_those_that_are_accepted(name, code):
    refused = validate(sip(ONE, with_compose(a={name: "x"})))
    (error,) = found(refused.findings, Severity.ERROR)
    assert error.code == code
    assert "expected" in error.hint


@pytest.mark.req("R004-37", "R004-38")
def test_arguments_and_parameters_are_optional():
    assert not list(validate(sip(ONE, with_compose("a"))).findings)


@pytest.mark.req("R004-37", "R004-38", "R004-41")
@pytest.mark.parametrize(
    ("parameters", "args"),
    [
        ("parameters.json", "args.json"),
        ("parameters.yaml", "args.yaml"),
        ("parameters.yml", "args.yml.j2"),
        ("parameters.json", "args.json.j2"),
    ],
)
def test_arguments_and_parameters_are_yaml_or_json(parameters, args):
    source = sip(ONE, with_compose(a={parameters: '{"n": 3}', args: '{"x": [1]}'}))
    rendered = validate(source).rendered["a"]
    assert (rendered.parameters, rendered.args) == ({"n": 3}, {"x": [1]})


@pytest.mark.req("R004-37", "R004-38")
@pytest.mark.parametrize(
    "name", ["parameters.yaml", "parameters.json", "args.yaml", "args.json.j2", "outputs.yaml"]
)
@pytest.mark.parametrize(
    ("text", "warned"),
    [("", ["blank-file"]), ("\n\n", ["blank-file"]), ("# nothing yet\n", [])],
)
def test_an_optional_file_that_says_nothing_is_as_if_it_were_not_there(name, text, warned):
    judgement = validate(sip(ONE, with_compose(a={name: text})))
    assert judgement.runnable
    assert codes(judgement.findings) == warned  # a remark says that it is meant so


@pytest.mark.parametrize("text", ["", "#!/bin/bash\n# later\n"])
def test_a_script_that_does_nothing_is_tolerated_with_a_warning(text):
    judgement = validate(sip(ONE, {"a": {"script.sh": text}}))
    assert judgement.runnable
    (one,) = judgement.findings
    assert (one.code, one.severity) == ("blank-file", Severity.WARNING)
    assert one.position.file == "stages/a/1.0.0/script.sh" and "does nothing" in one.hint


@pytest.mark.req("R004-8")
@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"parameters.json": "{"}, "json-syntax"),
        ({"parameters.yaml": "- 1\n"}, "parameters-kind"),
        ({"args.json": '{"a": }'}, "json-syntax"),
        ({"args.yaml": "a: b: c"}, "yaml-syntax"),
        ({"outputs.yaml": "3"}, "outputs-kind"),
        ({"args.json": "{}", "args.yaml": "{}"}, "two-files"),
        ({"script.sh": "true"}, "two-executions"),
    ],
)
def test_a_broken_file_refuses_the_registration(files, code):
    judgement = validate(sip(ONE, with_compose(a=files)))
    assert codes(judgement.findings, Severity.ERROR) == [code]
    assert not judgement.registrable


@pytest.mark.req("R004-50")
@pytest.mark.parametrize(
    ("compose", "code"),
    [
        ("version: '3'\n", "compose-services"),
        ("serivces: {a: {image: x}}\n", "compose-services"),
        ("services: {}\n", "compose-services"),
        ("services: []\n", "compose-services"),
        ("- a\n", "compose-services"),
        ("services: {a: busybox}\n", "compose-service"),
        ("services: {a: }\n", "compose-service"),
        ("services: {a b: {image: x}}\n", "compose-service"),
        ("services: {a: {command: x}}\n", "compose-image"),
        ("services: {a: {image: }}\n", "compose-image"),
        ("services: {a: {image: x, command: {python: run.py}}}\n", "compose-command"),
        ("services: {a: {image: x, entrypoint: [run, {n: 1}]}}\n", "compose-command"),
        ("services: [\n", "yaml-syntax"),
        ("", "empty-file"),
    ],
)
def test_a_compose_file_is_yaml_with_services(compose, code):
    judgement = validate(sip(ONE, {"a": {"docker_compose.yaml": compose}}))
    assert codes(judgement.findings, Severity.ERROR) == [code]
    # The same mistake in a template may come from the parameters: only the run is refused.
    template = validate(sip(ONE, {"a": {"docker_compose.yaml.j2": compose}}))
    assert codes(template.obstacles) == [code]
    assert template.registrable


@pytest.mark.req("R004-39")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("{{ args }}", ['{"n":1,"words":["a","b"]}']),
        ("['{{ args }}']", ['{"n":1,"words":["a","b"]}']),
        ("[run, {{ args }}]", ["run", '{"n":1,"words":["a","b"]}']),
        ("{{ args.words }}", ["a", "b"]),
        ("run {{ args.n }}", "run 1"),
        ("'{{ args }}'", ['{"n":1,"words":["a","b"]}']),
        ('"{{ args.words }}"', ['["a","b"]']),
        ("[run, {{ '' }}, {{ 'null' }}]", ["run", "", "null"]),
    ],
)
def test_arguments_that_are_printed_as_a_command_are_one_word_of_it(command, words):
    compose = f"services:\n  work:\n    image: x\n    command: {command}\n"
    files = {"docker_compose.yaml.j2": compose, "args.yaml": "n: 1\nwords: [a, b]\n"}
    judgement = validate(sip(ONE, {"a": files}))
    assert judgement.runnable and not list(judgement.findings)
    read = yaml_value(judgement.rendered["a"].compose)
    assert read["services"]["work"]["command"] == words


@pytest.mark.req("R004-50", "R004-57")
@pytest.mark.parametrize(
    ("command", "is_warned"),
    [
        ("run --config {{ args | tojson }}", True),
        ('run --config [ "a" ]', True),
        ("sh -c 'run {{ args }}'", False),
        ("run {{ args.n }}", False),
        ("[run, '{{ args }}']", False),
    ],
)
def test_json_that_would_lose_its_quotes_in_a_command_is_warned_of(command, is_warned):
    compose = f"services:\n  work:\n    image: x\n    command: {command}\n"
    files = {"docker_compose.yaml.j2": compose, "args.yaml": "n: 1\n"}
    judgement = validate(sip(ONE, {"a": files}))
    assert [one for one in codes(judgement.findings) if one != "shell-value"] == [
        "compose-words"
    ] * is_warned
    assert judgement.runnable


IN_SHELL = {
    '[bash, -c, "echo {{ site }}"]': True,
    "[/bin/sh, -ec, '{{ site }}']": True,
    "[env, A=1, bash, -eo, pipefail, -c, 'x {{ site }}']": True,
    "[bash, run.sh, -c, '{{ site }}']": False,
    "[bash, --norc, -c, 'x {{ site }}']": True,
    "[bash, -c, 'echo \"$1\"', bash, '{{ site }}']": False,
    "[bash, '{{ site }}']": False,
    "[convert, -c, '{{ site }}']": False,
    "[bash, -c, 'echo plain']": False,
}


@pytest.mark.parametrize(("command", "is_warned"), IN_SHELL.items())
@pytest.mark.parametrize("kind", ["command", "compose", "entrypoint"])
def test_a_value_inside_the_code_of_a_shell_is_warned_of(command, is_warned, kind):
    """Security audit: everywhere else a value stays in its word; there it can be code."""
    files = {"command.yaml.j2": command}
    if kind != "command":
        head = "services:\n  work:\n    image: x\n"
        command = command.replace("$", "$$")
        lines = f"    command: {command}\n"
        if kind == "entrypoint" and command.startswith("[bash, -c, "):
            rest = command.removeprefix("[bash, -c, ")
            lines = f"    entrypoint: [bash, -c]\n    command: [{rest}\n"
        files = {"docker_compose.yaml.j2": head + lines}
    files["parameters.yaml"] = "site: {default: here}\n"
    judgement = validate(sip(ONE, {"a": files}))
    assert codes(judgement.findings) == ["shell-value"] * is_warned
    assert judgement.runnable


def test_a_value_in_a_text_that_an_engine_splits_for_a_shell_is_warned_of():
    compose = "services:\n  work:\n    image: x\n    command: sh -c 'run {{ site }}'\n"
    files = {"docker_compose.yaml.j2": compose, "parameters.yaml": "site: {default: here}\n"}
    assert codes(validate(sip(ONE, {"a": files})).findings) == ["shell-value"]


@pytest.mark.req("R004-50", "R004-57")
def test_values_of_a_compose_file_are_what_engines_want_in_their_places():
    compose = """
        version: 3.7
        services:
          work:
            image: x
            command: [run, --nodes, {{ n }}, 1.10, true]
            environment: {DEBUG: true, RELEASE: {{ release }}, SITE: no, HOME: }
            labels: [{{ n }}]
            user: 1000
            restart: no
            deploy: {replicas: {{ n }}, labels: {n: {{ n }}}}
    """
    files = {"docker_compose.yaml.j2": compose, "parameters.yaml": "n: 2\nrelease: '1.10'\n"}
    judgement = validate(sip(ONE, {"a": files}))
    assert judgement.runnable, [str(one) for one in judgement.all_findings()]
    assert codes(judgement.findings) == ["compose-variable"]  # HOME
    read = yaml_value(judgement.rendered["a"].compose)
    assert read["version"] == "3.7"
    assert read["services"]["work"] == {
        "image": "x",
        "command": ["run", "--nodes", "2", "1.10", "true"],
        "environment": {"DEBUG": "true", "RELEASE": "1.10", "SITE": "no", "HOME": None},
        "labels": ["2"],
        "user": "1000",
        "restart": "no",
        "deploy": {"replicas": 2, "labels": {"n": "2"}},
    }


@pytest.mark.req("R004-50", "R004-57")
@pytest.mark.parametrize("value", ["''", "null", "'~'", "'null'", "' '"])
def test_a_variable_whose_value_is_printed_has_that_value_even_if_it_is_empty(value):
    """`SITE:` alone would be taken from the environment of whoever calls docker-compose."""
    compose = """
        services:
          work:
            image: x
            environment: {SITE: {{ args.site }}, BOTH: {{ args.site }}{{ args.site }}}
            labels: {site: {{ args.site }}}
          other:
            image: x
            environment: {{ args.all }}
    """
    files = {
        "docker_compose.yaml.j2": compose,
        "args.yaml": f"site: {value}\nall: {{SITE: {value}}}\n",
    }
    judgement = validate(sip(ONE, {"a": files}))
    assert judgement.runnable and not list(judgement.findings)
    services = yaml_value(judgement.rendered["a"].compose)["services"]
    told = value.strip("'")
    assert services["work"]["environment"] == {"SITE": told, "BOTH": told + told}
    assert services["work"]["labels"] == {"site": told}
    assert services["other"]["environment"] == {"SITE": told}


@pytest.mark.req("R004-57")
@pytest.mark.parametrize(
    ("environment", "hint"),
    [
        ("{SITE: }", "or '' for an empty value"),
        ("{SITE: ~, LEVEL: 1}", "or '' for an empty value"),
        ("[SITE, LEVEL=1, EMPTY=]", "SITE=VALUE"),
    ],
)
def test_a_variable_that_is_only_named_is_warned_of(environment, hint):
    compose = f"services:\n  work:\n    image: x\n    environment: {environment}\n"
    (warning,) = validate(sip(ONE, {"a": {"docker_compose.yaml": compose}})).findings
    assert (warning.code, warning.severity) == ("compose-variable", Severity.WARNING)
    assert warning.position.line == 4 and "'SITE'" in warning.message
    assert hint in warning.hint


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("    deploy: {mode: replciated}", "did you mean 'replicated'?"),
        ("    deploy: {stop_signal: INT}", "it is used as a key of the service"),
    ],
)
def test_an_unknown_word_in_a_compose_file_is_warned_of(line, hint):
    judgement = validate(sip(ONE, {"a": {"docker_compose.yaml": COMPOSE + line + "\n"}}))
    (warning,) = judgement.findings.sorted()
    assert warning.severity is Severity.WARNING
    assert warning.hint.startswith(hint)
    assert judgement.runnable


@pytest.mark.req("R004-35")
def test_id_and_version_must_be_those_of_the_folder():
    source = sip(ONE, with_compose("a"), version="1.0.1")
    (error,) = validate(source).findings.sorted()
    assert error.code == "no-stage-folder"
    assert error.hint == "found: 1.0.1; the version must be the folder's name"
    near = sip(definition(stage("stage_a")), with_compose("stage-a"))
    (error,) = validate(near).findings.sorted()
    assert error.hint == "did you mean 'stage-a'? The id must be the folder's name"


@pytest.mark.req("R004-8", "R004-35")
def test_without_any_folder_of_stages_that_is_said():
    (error,) = validate(sip(ONE)).findings.sorted()
    assert error.code == "no-stages-folder"


@pytest.mark.req("R004-35")
def test_a_folder_of_a_stage_outside_of_stages_is_tolerated():
    files = {"f-1.0.0.yaml": ONE.encode(), "a/1.0.0/docker_compose.yaml": COMPOSE.encode()}
    judgement = validate(SipSource(file="f-1.0.0.yaml", files=files))
    assert codes(judgement.findings) == ["stage-folder-place"]
    assert judgement.runnable


def test_a_stage_can_run_without_containers_as_a_command():
    files = {
        "command.yaml.j2": "[convert, --in, '{{ place }}', '{{ args }}']",
        "parameters.yaml": "place: /data/in put\n",
        "args.yaml": "deep: {er: [1, true]}\n",
    }
    judgement = validate(sip(ONE, {"a": files}))
    words = ("convert", "--in", "/data/in put", '{"deep":{"er":[1,true]}}')
    assert judgement.rendered["a"].command == words
    node = graph_of(judgement).nodes["a"].definition
    words = "convert --in '/data/in put' '{\"deep\":{\"er\":[1,true]}}'"
    assert node.scripts.main == f"(exec -- {words})"


@pytest.mark.req("R004-52")
def test_a_dollar_in_a_value_is_no_variable_of_the_compose_file():
    files = {
        "docker_compose.yaml.j2": COMPOSE
        + "    command: [echo, '{{ pattern }}', '{{ args }}', '${TIDEWHEEL_JOB_FILES}']\n",
        "parameters.yaml": "pattern: '^obs$'\n",
        "args.yaml": "home: ${HOME}\n",
    }
    document = yaml_value(validate(sip(ONE, {"a": files})).rendered["a"].compose)
    service = document["services"]["work"]
    words = ["echo", "^obs$$", '{"home":"$${HOME}"}', "${TIDEWHEEL_JOB_FILES}"]
    assert service["command"] == words


def test_a_script_finds_its_parameters_in_its_environment_and_never_in_its_text():
    files = {"script.sh": 'echo "$PARAMETER_word"\n', "parameters.yaml": "word: $(id)\n"}
    scripts = graph_of(validate(sip(ONE, {"a": files}))).nodes["a"].definition.scripts
    assert scripts.main == 'echo "$PARAMETER_word"\n'
    assert "export PARAMETER_word='$(id)'" in scripts.env.splitlines()


@pytest.mark.parametrize("command", ["[]", "a b", "{a: 1}", "[a, [b]]", "['']"])
def test_a_command_is_a_list_of_words(command):
    judgement = validate(sip(ONE, {"a": {"command.yaml": command}}))
    assert codes(judgement.findings) == ["command-kind"]


def test_arguments_that_no_process_can_be_given_are_refused():
    files = {"command.yaml": "[x]", "args.yaml": "a: " + "x" * 120_000}
    judgement = validate(sip(ONE, {"a": files}))
    assert codes(judgement.obstacles) == ["words-too-long"]
    assert validate(sip(ONE, with_compose(a={"args.yaml": files["args.yaml"]}))).runnable


@pytest.mark.req("R004-5")
def test_everything_is_read_from_a_folder_and_nothing_else_is_needed_then(folder):
    place = folder(
        {
            "f-1.0.0.yaml": ONE,
            "stages/a/1.0.0/docker_compose.yaml.j2": COMPOSE,
            "stages/a/1.0.0/conf/deep/er.txt": "kept\n",
            "stages/other/1.0.0/docker_compose.yaml": COMPOSE,
        }
    )
    source, findings = read(place / "f-1.0.0.yaml")
    assert not list(findings)
    assert sorted(source.files) == [
        "f-1.0.0.yaml",
        "stages/a/1.0.0/conf/deep/er.txt",
        "stages/a/1.0.0/docker_compose.yaml.j2",
    ]
    stored = SipSource(file=source.file, files=source.files)
    assert validate(stored).definition == validate(source).definition
    assert validate(stored).runnable


@pytest.mark.req("R004-8", "R004-3")
@pytest.mark.parametrize("name", ["f.txt", "f.j2", "f.yaml.txt", "f"])
def test_a_definition_with_another_ending_is_refused(folder, name):
    place = folder({name: ONE})
    source, findings = read(place / name)
    assert source is None
    assert codes(findings) == ["definition-file-kind"]


def test_a_missing_file_is_a_finding(folder):
    source, findings = read(folder({"x.yaml": ""}) / "f.yaml")
    assert source is None
    assert codes(findings) == ["unreadable"]


@pytest.mark.parametrize("way", ["file", "version", "stage", "stages"])
def test_a_link_is_refused_wherever_it_stands(folder, tmp_path, way):
    place = folder({"f-1.0.0.yaml": ONE, "stages/a/1.0.0/docker_compose.yaml": COMPOSE})
    outside = tmp_path / "outside"
    link = {
        "file": place / "stages/a/1.0.0/parameters.yaml",
        "version": place / "stages/a/1.0.0",
        "stage": place / "stages/a",
        "stages": place / "stages",
    }[way]
    if way == "file":
        outside.write_text("secret: 1\n")
    else:
        link.rename(outside)
    link.symlink_to(outside)
    source, findings = read(place / "f-1.0.0.yaml")
    assert codes(findings) == ["link"]
    assert b"secret: 1\n" not in source.files.values()
    assert not validate(source).findings.has_errors  # nothing untrue follows


def test_a_pipe_is_not_waited_for(folder):
    place = folder({"f-1.0.0.yaml": ONE, "stages/a/1.0.0/docker_compose.yaml": COMPOSE})
    os.mkfifo(place / "stages/a/1.0.0/args.json")
    source, findings = read(place / "f-1.0.0.yaml")
    assert codes(findings) == ["not-a-file"]
    assert not validate(source).findings.has_errors


def test_a_large_file_and_a_deep_folder_are_refused(folder):
    deep = "stages/a/1.0.0/" + "d/" * 10 + "x"
    place = folder({"f-1.0.0.yaml": ONE, deep: ""})
    assert codes(read(place / "f-1.0.0.yaml")[1]) == ["folder-too-deep"]
    large = {"g-1.0.0.yaml": definition(stage("b")), "stages/b/1.0.0/x": "x" * 1_100_000}
    assert codes(read(folder(large) / "g-1.0.0.yaml")[1]) == ["file-too-large"]
