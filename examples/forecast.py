"""A small forecast that repeats four times, as a definition in Python."""

from tidewheel import Workflow, all_of

flow = Workflow("forecast", initial=1, final=4, runahead="P2")
flow.defaults(environment={"REGION": "north"})

obs = flow.task("obs", script="get-obs --at $CYLC_TASK_CYCLE_POINT", retries=["PT1M", "PT5M"])
model = flow.task("model", run=["model", "--days", "5"], outputs={"tomorrow": "day 1 is there"})
charts = [flow.task(f"chart_{what}", script=f"draw {what}") for what in ("rain", "wind")]

ensemble = flow.family("ENSEMBLE", script="perturb $CYLC_TASK_NAME", time_limit="PT30M")
for number in range(1, 4):
    flow.task(f"member_{number}", family=ensemble)


@flow.task(environment={"COLUMNS": 72})
def bulletin() -> None:
    """A function is a task, too: its job imports this file and calls it."""
    print("tomorrow will be like today")


mail = flow.task("mail", script="mail-operators")

with flow.cycle("P1"):
    # A cycle needs its observations and the forecast of the cycle before.
    (obs & model[-1]) >> model >> all_of(*charts)
    model.output("tomorrow") >> bulletin
    model >> ensemble
    ensemble.all.finished >> mail

with flow.cycle("R1/$"):
    all_of(*charts) >> flow.task("archive", script="tar -cf charts.tar charts")

if __name__ == "__main__":
    graph, findings = flow.compile()
    print(f"{len(graph.nodes)} nodes, {len(graph.arrows)} arrows")
    for finding in findings:
        print(finding)
