"""The commands about a definition, with a SIP definition."""

import pytest

from tests.support.workflow_folders import put, sip_files

DEFINITION = """\
schema_version: 2.0
stages:
  - id: fetch
    version: 1.0.0
    type: setup
    timeout: 1m
    resources_required: [{type: cpu, value: 0.5}]
  - id: reduce
    version: 1.0.0
    type: Processing
    timeout: {{ longest }}
    resources_required: []
    dependencies:
      - {type: stage, value: fetch, condition: complete}
      - {type: buffer_object, value: vis, condition: present}
"""
COMMAND = "[echo, '{{ args }}']\n"


@pytest.fixture
def flow(tidewheel):
    """Writes the definition and its stages; answers the path of the definition."""

    def write(text=DEFINITION, name="vis-1.0.0.yaml.j2"):
        for stage in ("fetch", "reduce"):
            folder = tidewheel.folder / "stages" / stage / "1.0.0"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "command.yaml.j2").write_text(COMMAND)
            (folder / "parameters.yaml").write_text("longest: 5m\nsky:\n")
        (tidewheel.folder / name).write_text(text)
        return name

    return write


@pytest.mark.req("R004-65")
def test_validate_shows_findings_and_both_verdicts(tidewheel, flow):
    answer = tidewheel("validate", flow())
    assert answer.status == 0
    assert "vis-1.0.0.yaml.j2:10: warning: type of stage reduce is 'Processing'" in answer.out
    assert "  | type: Processing" in answer.out
    assert (
        answer.out.splitlines()[-1]
        == "it can be registered and run; each request must give sky"
    )
    strict = tidewheel("validate", flow(), "--strict")
    assert strict.status == 2
    assert strict.out.splitlines()[-1] == "it cannot be registered"


@pytest.mark.req("R004-65")
def test_a_script_that_bash_cannot_read_is_told_with_its_own_line(tidewheel, flow):
    name = flow()
    folder = tidewheel.folder / "stages/fetch/1.0.0"
    (folder / "command.yaml.j2").unlink()
    (folder / "script.sh").write_text("# fetch\nfor one in a b; do\n  echo $one)\ndone\n")
    place = "stages/fetch/1.0.0/script.sh:3: warning: stage fetch: bash cannot read the script"
    answer = tidewheel("validate", name)
    assert answer.status == 0 and place in answer.out and "  | echo $one)" in answer.out
    assert place in tidewheel("register", name).err
    assert place in tidewheel("workflows", "check", "vis").out
    (folder / "script.sh").write_text("exit 3\n")
    assert "bash" not in tidewheel("validate", name).out


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_folder_of_definitions_is_answered_with_their_names(tidewheel, flow, command):
    flow()
    answer = tidewheel(command, ".", "-p", "sky=x")
    assert answer.status == 2
    assert "name the definition: vis-1.0.0.yaml.j2" in answer.out + answer.err


@pytest.mark.req("R004-30", "R004-31")
def test_validate_tells_registered_from_runnable(tidewheel, flow):
    dangling = flow(DEFINITION.replace("value: fetch", "value: fecth"))
    answer = tidewheel("validate", dangling)
    assert answer.status == 2
    assert "did you mean 'fetch'?" in answer.out
    assert answer.out.splitlines()[-1] == "it can be registered, but it cannot run"
    document = tidewheel("validate", dangling, "--json").json
    assert (document["registrable"], document["runnable"], document["valid"]) == (
        True,
        False,
        False,
    )
    circle = flow(DEFINITION.replace("value: fetch", "value: reduce"))
    assert tidewheel("validate", circle, "--json").json["registrable"] is False


@pytest.mark.req("R004-46", "R004-45")
def test_validate_judges_a_request(tidewheel, flow):
    good = tidewheel("validate", flow(), "-s", "sky='x'", "-s", "longest='2h'")
    assert good.status == 0
    missing = tidewheel("validate", flow(), "-s", "longest='2h'")
    assert missing.status == 2
    assert "stage fetch needs the parameter 'sky'" in missing.out
    wrong = tidewheel("validate", flow(), "-s", "sky='x'", "-s", "longest='soon'")
    assert "vis-1.0.0.yaml.j2:11: error: timeout of stage reduce is 'soon'" in wrong.out


def test_graph_and_list_show_stages_and_objects(tidewheel, flow):
    name = flow()
    edges = tidewheel("graph", name, "--json").json["edges"]
    assert {(one["parent"], one["child"]) for one in edges} == {
        ("1/fetch", "1/reduce"),
        ("1/object@vis", "1/reduce"),
    }
    listed = tidewheel("list", name).out.splitlines()
    assert [line.split()[0] for line in listed] == ["fetch", "object@vis", "reduce"]


def test_view_shows_the_text_with_and_without_its_values(tidewheel, flow):
    name = flow()
    assert "    timeout: 5m" in tidewheel("view", name).out.splitlines()
    assert "    timeout: {{ longest }}" in tidewheel("view", name, "--plain").out.splitlines()
    marked = tidewheel("view", name, "--mark", "-s", "longest='1h'", "-s", "sky=1").out
    assert "vis-1.0.0.yaml.j2:11 |     timeout: 1h" in marked


def test_config_shows_what_holds_for_each_stage(tidewheel, flow):
    name = flow()
    stages = tidewheel("config", name, "--json", "-s", "sky=3").json["config"]["stages"]
    assert stages["reduce"]["dependencies"] == "fetch complete\nvis present"
    assert stages["reduce"]["parameters"] == {"longest": "5m", "sky": "3"}
    assert stages["fetch"]["command"] == '["echo","{}"]'
    one = tidewheel("config", name, "--task", "fetch").out
    assert "timeout = 1m" in one and "reduce" not in one
    item = tidewheel("config", name, "-i", "[stages][fetch]resources_required")
    assert item.out == "cpu 0.5\n"
    assert "Did you mean 'fetch'?" in tidewheel("config", name, "--task", "fetsh").err


def test_a_definition_is_rehearsed(tidewheel, flow):
    plain = DEFINITION.replace("{{ longest }}", "5m").replace("Processing", "processing")
    plain = "\n".join(plain.splitlines()[:-1]) + "\n"
    answer = tidewheel("rehearse", flow(plain, "vis-1.0.0.yaml"), "--json")
    assert answer.status == 0, answer.err


def test_a_file_that_is_not_there_and_one_that_is_no_definition(tidewheel, flow):
    flow()
    missing = tidewheel("validate", "none.yaml")
    assert missing.status == 2
    assert "there is no file none.yaml" in missing.out
    (tidewheel.folder / "broken.json").write_text('{"schema_version": "2.0",\n "stages": [}')
    broken = tidewheel("validate", "broken.json")
    assert (
        "broken.json:2:13: error: this is not valid JSON: a value is missing before '}'"
        in broken.out
    )


@pytest.mark.req("R004-47")
def test_a_misspelt_parameter_is_told_beside_the_one_that_is_missing(tidewheel):
    put(tidewheel.folder, sip_files())
    refused = tidewheel("run", "vis-1.0.0.yaml", "-p", "siet=north")
    assert refused.status == 2
    assert "-p site=VALUE" in refused.err
    assert refused.err.count("error: the parameter 'siet' changes nothing") == 1
    assert "did you mean 'site'?" in refused.err


@pytest.mark.req("R004-47")
@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_misspelt_parameter_is_an_error_where_it_is_typed(tidewheel, command):
    put(tidewheel.folder, sip_files() | {"p.yaml": "noeds: 3\n"})
    for words in (["-p", "noeds=3"], ["-P", "p.yaml"]):
        refused = tidewheel(command, "vis-1.0.0.yaml", "-p", "site=north", *words)
        assert refused.status == 2, refused.out
        said = refused.out + refused.err
        assert "error: the parameter 'noeds' changes nothing" in said
        assert "did you mean 'nodes'?" in said
    assert tidewheel(command, "vis-1.0.0.yaml", "-p", "site=north").status == 0


@pytest.mark.req("R004-46")
@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_file_of_parameters_that_cannot_be_read_is_told_with_its_line(tidewheel, command):
    put(tidewheel.folder, sip_files() | {"given/p.yaml": "site: north\nnodes: [\n"})
    refused = tidewheel(command, "vis-1.0.0.yaml", "-P", "given/p.yaml")
    assert refused.status == 2
    said = refused.out + refused.err
    assert said.startswith("given/p.yaml:3:1: error: this is not valid YAML")
    assert "close the [" in said and "\\n" not in said


@pytest.mark.req("R011-11")
def test_every_mistake_of_all_files_is_told_at_once(tidewheel):
    put(
        tidewheel.folder,
        {
            "vis-1.0.0.yaml": DEFINITION.replace("type: setup", "type: setpu").replace(
                "{{ longest }}", "60s"
            ),
            "p.yaml": "sky: [\n",
            "stages/fetch/1.0.0/docker_compose.yaml": "services:\n  work:\n    command: [x]\n",
            "stages/fetch/1.0.0/args.json": '{"a": }',
            "stages/fetch/1.0.0/parameters.yaml": "- sky\n",
            "stages/reduce/1.0.0/script.sh": "if true; then\n",
        },
    )
    answer = tidewheel("validate", "vis-1.0.0.yaml", "-P", "p.yaml")
    assert answer.status == 2
    for said in (
        "p.yaml:2:1: error: this is not valid YAML",
        "vis-1.0.0.yaml:5:11: error: type of stage fetch is 'setpu'",
        "stages/fetch/1.0.0/args.json:1:7: error: this is not valid JSON",
        "stages/fetch/1.0.0/docker_compose.yaml:3:5: error: a service of stage fetch has no",
        "stages/fetch/1.0.0/parameters.yaml:1:1: error: stage fetch: the parameters are no",
        "script.sh:1: warning: stage reduce: bash cannot read the script",
    ):
        assert said in answer.out, answer.out
    assert answer.out.splitlines()[-1] == "it cannot be registered"
    registered = tidewheel("register", "vis-1.0.0.yaml")
    assert registered.status == 2
    assert "args.json:1:7" in registered.err and "'setpu'" in registered.err


@pytest.mark.req("R004-65")
def test_an_error_of_a_request_is_none_of_the_registration(tidewheel):
    put(tidewheel.folder, sip_files())
    words = ("validate", "vis-1.0.0.yaml", "-p", "site=north", "-p", "siet=north")
    for strictly in ((), ("--strict",)):
        refused = tidewheel(*words, *strictly)
        assert refused.status == 2
        assert refused.out.splitlines()[-1] == (
            "it can be registered, but it cannot run with these parameters"
        )


@pytest.mark.req("R004-46", "R004-47")
def test_a_parameter_is_given_to_one_stage_by_its_id(tidewheel):
    put(tidewheel.folder, sip_files())
    ran = tidewheel("run", "vis-1.0.0.yaml", "-p", 'a={"site": "north", "nodes": 7}')
    assert ran.status == 0, ran.err
    assert tidewheel("log", "vis/run1", "1/a").out == "at north with 7\n"
