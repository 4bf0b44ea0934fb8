"""How far runs are is looked for once, a few at a time, and again when they change."""

import asyncio

from tidewheel.server.run_services import SummaryCache


def run(number, status="running", at="1", **more):
    facts = {"number": number, "name": f"r{number}", "status": status, "updated_at": at}
    return facts | {"definition": "d", "driven": True} | more


class Looking:
    """Says of each run how often it was looked into."""

    def __init__(self):
        self.looked = []
        self.known = SummaryCache(known_max=4)

    def at(self, *runs, looks_max=2):
        async def look(name):
            self.looked.append(name)
            return None if name == "r9" else {"times": self.looked.count(name)}

        shown, left = asyncio.run(self.known.added(list(runs), look, looks_max=looks_max))
        return [one["summary"] and one["summary"]["times"] for one in shown], left


def test_a_few_are_looked_into_for_each_list_and_open_ones_first():
    looking = Looking()
    runs = (run(1, "completed"), run(2), run(3, "completed"), run(4, "stalled"))
    assert looking.at(*runs) == ([None, 1, None, 1], 2)
    assert looking.at(*runs) == ([1, 1, 1, 1], 0)
    assert looking.at(*runs) == ([1, 1, 1, 1], 0)


def test_a_run_that_changed_is_looked_into_again():
    looking = Looking()
    looking.at(run(1), run(2))
    assert looking.at(run(1), run(2, at="2")) == ([1, 2], 0)
    assert looking.at(run(1, driven=False), run(2, at="2")) == ([2, 2], 0)


def test_one_that_cannot_be_read_is_not_tried_each_time():
    looking = Looking()
    assert looking.at(run(9)) == ([None], 0)
    assert looking.at(run(9)) == ([None], 0)
    assert looking.looked == ["r9"]


def test_no_more_are_remembered_than_may_be():
    looking = Looking()
    for number in range(1, 7):
        looking.at(run(number))
    assert looking.at(run(6), run(1)) == ([1, 2], 0)
