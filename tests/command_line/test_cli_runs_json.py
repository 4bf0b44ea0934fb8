"""The shapes of JSON about runs that docs/json.md promises are those of the program."""

from tests.support import json_page, many_commands
from tests.support.json_page import promised
from tests.support.prepared_run import PreparedRun
from tidewheel.core.operator.requests import StoredBroadcast

# What is in them depends on what there is to say.
FREE = {"counts", "options", "arguments", "answer", "scheduler"}


def shape(document):
    return json_page.shape(document, FREE)


def test_every_answer_about_runs_has_the_keys_of_its_example(tidewheel):
    run = PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")
    run.starts_job("1/model_b").broadcasts(StoredBroadcast("*", "root", "[environment]X", "2"))
    run.writes_log("1/model_a", "job.err", "no space left\n")
    commands = {
        "runs": ["runs"],
        "why": ["why", "1/post"],
        "show": ["show"],
        "show ID": ["show", "1/model_a"],
        "log": ["log", "1/model_a", "--err"],
        "tree": ["tree"],
        "trigger --dry-run": ["trigger", "1/model_a", "--reflow", "--dry-run"],
        "broadcast": ["broadcast"],
        "trigger": ["trigger", "1/model_a"],
        "show --history": ["show", "--history"],
    }
    with run.answering():
        tidewheel("hold", "3/prep")
        asked = [["--json", *words] for words in commands.values()]
        told = many_commands.answers(tidewheel, asked)
        answers = {name: one.json for name, one in zip(commands, told, strict=True)}
    run.is_let_go()
    older = ("runs", "--delete-older", "0s", "--json")
    answers["runs --delete-older"] = tidewheel(*older, "--dry-run").json
    answers["runs --delete"] = tidewheel("runs", "--delete", run.name, "--yes", "--json").json
    examples = promised()
    # Of the example, a family as the second child shows what families have.
    example = examples["tidewheel tree"]["points"][0]["children"]
    found = answers["tree"]["points"][0]["children"]
    assert shape(example[1]) | {"children": None} == shape(found[1]) | {"children": None}
    # Nothing waits after the triggered task here, nor did its job say anything.
    answers["trigger --dry-run"]["waits"] = examples["tidewheel trigger --dry-run"]["waits"]
    [submission] = answers["show ID"]["tasks"][0]["submissions"]
    promised_task = examples["tidewheel show ID"]["tasks"][0]
    submission["messages"] = promised_task["submissions"][0]["messages"]
    for name, answer in answers.items():
        assert shape(answer) == shape(examples[f"tidewheel {name}"]), name
