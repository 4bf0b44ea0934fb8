"""A workflow as a user writes it: what both type checkers know of it, and what they find."""

from typing import reveal_type

from tidewheel import Workflow, all_of

flow = Workflow("etl", initial=1, final=3)


@flow.task
def fetch(count: int) -> list[int]:
    return list(range(count))


@flow.task(retries=["1m", "5m"], timeout="1h")
def total(rows: list[int], scale: int = 1) -> int:
    return sum(rows) * scale


@flow.task("renamed")
def report(total: int) -> None:
    print("the total is", total)


@flow.task
async def tell(text: str) -> str:
    return text


@flow.task
async def several() -> list[str]:
    return ["a"]


obs = flow.task("obs", script="get-obs", environment={"REGION": "north"}, retries=3)
family = flow.family("ENSEMBLE", script="perturb")

report(total(fetch(5), scale=10))
with flow.cycle("P1"):
    all_of(obs, total.failed.optional) >> flow.task("mail", family=family)
    obs[-1] >> obs

scaled = flow.task("scaled")(total.function)
plot = flow.task("plot", script="plot $CYLC_TASK_PARAM_row")
results = report.map(fetch(5), max=50)
scaled(tell.map(several()))
tell.map(results)
report.map(total=obs.value("rows"))
plot.map(row=fetch)
flow.limit("few", 2, [results, plot])
with flow.cycle("P1"):
    results.any.failed.optional >> obs
    results[-1].all >> report

reveal_type(results)  # is MappedTask[None]
reveal_type(total)  # is FunctionTask[(rows: list[int], scale: int = 1), int]
reveal_type(total.function([1], scale=2))  # is int
reveal_type(report.function)  # is (total: int) -> None
reveal_type(tell.function)  # is (text: str) -> Coroutine[Any, Any, str]
reveal_type(obs)  # is Task
reveal_type(fetch(5))  # is FunctionTask[(count: int), list[int]]

total.function("x")  # mistake: a text is no list of numbers
total.function([1], scal=2)  # mistake: the parameter is called scale
flow.task("a", scripts="true")  # mistake: the setting is called script
flow.task("b", timeout=["1h"])  # mistake: a list is no duration
flow.family(3)  # mistake: a name is a text
report.map([1, 2])  # mistake: a list that no task returns
report.map(total([1]))  # mistake: what it returns is no list
report.map(fetch(5), max="50")  # mistake: a text is no number
report.map(fetch.failed)  # mistake: an output has no value
obs >> 3  # mistake: a number is no task
Workflow("x", first=1)  # mistake: it is called initial
