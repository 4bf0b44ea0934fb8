"""A report of sensor readings, made again at each of three cycle points.

Run it:  tidewheel run starter/starter.py
"""

from tidewheel import Workflow

flow = Workflow("starter", initial=1, final=3)


@flow.task(retries=["2s"])
def fetch() -> list[float]:
    """Returns the readings; what a function returns is handed to the tasks that take it."""
    return [20.5, 21.0, 19.5]


@flow.task
def average(readings: list[float]) -> float:
    """Computes the mean of what fetch returned."""
    return sum(readings) / len(readings)


@flow.task
def report(mean: float, unit: str) -> None:
    """Prints the result into the log of its job."""
    print(f"The mean is {mean:.1f} {unit}.")


with flow.cycle("P1"):
    report(average(fetch()), "degrees")
