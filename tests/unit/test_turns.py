"""Who may do what takes long, and when: fair turns."""

import asyncio
import threading

import pytest

from tidewheel.formats.growth import GivenUp, bounded_growth, grow
from tidewheel.formats.templates import TemplateJob, render
from tidewheel.wiring.limited_process import Turns


def order_of(places, each_max, *asked):
    """The order in which pieces of work begin that all wait when the first is over."""
    begun = []

    async def work(turns, keys):
        turn = await turns.begin(keys)
        begun.append(keys)
        await asyncio.sleep(0)
        turn.end()

    async def everything():
        turns = Turns(places, each_max)
        first = [await turns.begin((f"first {number}",)) for number in range(places)]
        tasks = [asyncio.create_task(work(turns, keys)) for keys in asked]
        await asyncio.sleep(0)
        for turn in first:
            turn.end()
        await asyncio.gather(*tasks)
        assert turns.held == 0

    asyncio.run(everything())
    return begun


def test_who_asks_once_comes_behind_one_of_those_who_ask_often():
    begun = order_of(1, 1, *[("a",)] * 5, ("b",))
    assert begun[:2] == [("a",), ("b",)]


def test_invented_names_bring_no_turns_since_these_go_by_token_first():
    invented = [("token 1", f"names 'x{number}'") for number in range(9)]
    begun = order_of(1, 1, *invented, ("token 2", "names 'y'"))
    assert begun[1] == ("token 2", "names 'y'")


def test_names_of_one_token_take_turns_among_themselves():
    begun = order_of(1, 1, *[("token 1", "a")] * 3, ("token 1", "b"))
    assert begun[1] == ("token 1", "b")


def test_of_each_key_only_so_many_are_at_work_however_many_places_are_free():
    async def everything():
        turns = Turns(4, 1)
        one = await turns.begin(("token 1", "a"))
        other = asyncio.create_task(turns.begin(("token 1", "b")))
        beside = await turns.begin(("token 2", "c"))
        await asyncio.sleep(0)
        assert not other.done()
        one.end()
        (await other).end()
        beside.end()
        assert turns.held == 0

    asyncio.run(everything())


def test_who_goes_away_leaves_no_turn_behind():
    """Whether the turn was still waited for, or just given."""

    async def everything():
        turns = Turns(1, 1)
        first = await turns.begin(("a",))
        waiting = [asyncio.create_task(turns.begin((f"b{number}",))) for number in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        first.end()  # the turn of the second now, who has not heard of it yet
        waiting[1].cancel()
        (await waiting[2]).end()
        await asyncio.gather(*waiting[:2], return_exceptions=True)
        assert turns.held == 0
        first.end()  # again: nothing happens
        (await turns.begin(("c",))).end()
        assert turns.held == 0

    asyncio.run(everything())


# ---- work that nobody waits for any more ----


def test_a_template_is_ended_and_nothing_grows_once_nobody_waits_for_it(tmp_path):
    given_up = threading.Event()
    text = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    job = TemplateJob(text=text, folder=tmp_path)
    with bounded_growth(10, given_up):
        grow(1)
        given_up.set()
        with pytest.raises(GivenUp):
            render(job)
        with pytest.raises(GivenUp):
            grow(1)
    failure = render(job)  # with somebody who waits, it is ended at its limit
    assert failure.code == "template-too-slow"
