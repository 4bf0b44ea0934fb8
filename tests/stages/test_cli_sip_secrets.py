"""Parameters of SIP stages that are references to secrets."""

import pytest

VALUE = "hunter2-is-not-a-password"
DEFINITION = """\
schema_version: "2.0"
stages:
  - id: make
    version: 1.0.0
    type: setup
    timeout: 60s
    resources_required: []
  - id: use
    version: 1.0.0
    type: processing
    timeout: 60s
    resources_required: []
    dependencies:
      - {type: stage, value: make, condition: complete}
"""
FILE = "vis-1.0.0.yaml"
MAKE = """\
echo "given $PARAMETER_password, told $TIDEWHEEL_PARAMETERS"
test "$PARAMETER_password" = hunter2-is-not-a-"password"
echo '{"place": "secret:db"}' > "$TIDEWHEEL_OUTPUTS"
"""
USE = """\
echo "place is $PARAMETER_place, password is $PARAMETER_password, key is $PARAMETER_key"
"""


@pytest.fixture
def secrets(tmp_path):
    folder = tmp_path / "secrets"
    folder.mkdir()
    for name, value in (("db", VALUE), ("key", "the-key-of-use")):
        (folder / name).touch(mode=0o600)
        (folder / name).write_text(value)
    return str(folder)


@pytest.fixture
def flow(tidewheel, stage):
    (tidewheel.folder / FILE).write_text(DEFINITION)
    stage("make", "script.sh", MAKE)
    stage("make", "parameters.yaml", "password:\n")
    stage("make", "outputs.yaml", "- place\n")
    stage("use", "script.sh", USE)
    stage("use", "parameters.yaml", "place:\nkey: secret:key\n")
    return FILE


def test_a_stage_is_given_the_secrets_that_it_declares_and_no_other(tidewheel, flow, secrets):
    given = ("-p", "password=secret:db")
    ran = tidewheel("run", flow, "--name", "x", "--secrets", secrets, *given)
    assert ran.status == 0, (ran, tidewheel("log", "x").out)
    made = tidewheel("log", "x", "1/make").out
    assert made.startswith("given ***, told {")
    assert '"password":"secret:db"' in made
    # What a job handed on is a text, whatever it looks like; parameters of others stay, too.
    used = "place is secret:db, password is secret:db, key is ***\n"
    assert tidewheel("log", "x", "1/use").out == used
    everything = (one.read_bytes() for one in tidewheel.state.rglob("*") if one.is_file())
    assert not any(VALUE.encode() in one for one in everything)


def test_a_reference_that_names_nothing_is_a_mistake_of_the_request(tidewheel, flow):
    ran = tidewheel("run", flow, "--name", "x", "-p", "password=secret:../db")
    assert ran.status != 0
    assert "password: 'secret:../db' is not a reference to a secret" in ran.err


COMPOSE = "services:\n  work:\n    image: nothing/like-this:1\n"


def test_no_secret_is_given_to_containers(tidewheel, flow, stage):
    folder = tidewheel.folder / "stages" / "use" / "1.0.0"
    (folder / "script.sh").unlink()
    stage("use", "docker-compose.yml", COMPOSE)
    told = tidewheel("validate", flow)
    assert (
        "key of stage use: the container engine would store a secret as plain text" in told.out
    )
    stage("use", "parameters.yaml", "place:\n")
    environment = "    environment:\n      KEY: secret:key\n"
    stage("use", "docker-compose.yml", COMPOSE + environment)
    told = tidewheel("validate", flow)
    assert (
        "a service of stage use" in told.out
        and "would store a secret as plain text" in told.out
    )
    stage("use", "docker-compose.yml", COMPOSE + "    environment: [KEY=secret:key]\n")
    assert "would store a secret as plain text" in tidewheel("validate", flow).out
    stage("use", "docker-compose.yml", COMPOSE + "    environment: [KEY=x]\n")
    assert tidewheel("validate", flow).status == 0
