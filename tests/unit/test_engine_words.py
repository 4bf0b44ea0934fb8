"""What engines say, as people are told it."""

from tidewheel.runners.containers.docker_cli import without_chatter


def test_the_inside_of_docker_compose_is_not_told():
    said = (
        "Creating network tw\nERROR: for work  The specified value for memory (lots) is wrong\n"
        'Traceback (most recent call last):\n  File "/usr/bin/docker-compose", line 33\n'
    )
    assert (
        without_chatter(said)
        == "ERROR: for work  The specified value for memory (lots) is wrong"
    )


def test_what_a_stack_says_of_each_service_is_not_told():
    said = (
        "Since --detach=false was not specified, tasks will be created in the background.\n"
        "In a future release, --detach=false will become the default.\n"
        "failed to create service a: port '80' is already in use by service 'b'\n"
    )
    told = "failed to create service a: port '80' is already in use by service 'b'"
    assert without_chatter(said) == told


def test_if_there_is_nothing_else_all_of_it_is_told():
    said = "Traceback (most recent call last):\nKeyError: 'x'\n"
    assert without_chatter(said) == said
