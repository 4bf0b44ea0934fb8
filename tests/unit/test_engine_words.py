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


def test_if_there_is_nothing_else_all_of_it_is_told():
    said = "Traceback (most recent call last):\nKeyError: 'x'\n"
    assert without_chatter(said) == said
