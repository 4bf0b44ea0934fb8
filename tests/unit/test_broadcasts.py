"""Broadcasts: which settings hold for a task, and what they make of its node."""

from contextlib import suppress

import pytest

from tidewheel.core.graph.definition import Events, NodeDef, Retries, RunMode, Scripts
from tidewheel.core.operator.requests import StoredBroadcast
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.items import NAMESPACE, SectionSpec
from tidewheel.scheduler.broadcasts import (
    matching_items,
    read_item,
    read_setting,
    settings_for,
    with_settings,
)

FOO = NodeDef(
    name="foo",
    lineage=("foo", "FAM", "root"),
    scripts=Scripts(main="true"),
    environment=(("A", "1"), ("B", "$A")),
)


def changed(*settings):
    return with_settings(FOO, [read_setting(one) for one in settings])


def test_a_nearer_namespace_and_a_point_of_its_own_count_more():
    def held(point, namespace, value):
        return StoredBroadcast(point, namespace, "script", value)

    def script(*broadcasts):
        return dict(settings_for(broadcasts, "2", FOO.lineage)).get("script")

    everywhere = [held("*", "foo", "1"), held("*", "FAM", "2"), held("*", "root", "3")]
    assert script(*everywhere) == "1"
    assert script(*everywhere, held("2", "root", "4")) == "4"
    assert script(held("3", "foo", "5"), held("*", "other", "6")) is None
    assert script(held("*", "root", "1"), held("*", "root", "2")) == "2"
    assert script(held("*", "root", None)) is None


def test_new_variables_stand_first_and_known_ones_stay_where_they_are():
    node = changed(
        "[environment]NEW=x", "[environment] B = two words", "[environment]NEW2=$NEW"
    )
    assert node.environment == (("NEW", "x"), ("NEW2", "$NEW"), ("A", "1"), ("B", "two words"))


def test_a_variable_may_become_empty():
    assert changed("[environment]A=").environment == (("A", ""), ("B", "$A"))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ('script="echo hi"', "echo hi"),
        ("script = echo ${X#*y}", "echo ${X#*y}"),
        ("script='''\n  a\n    b\n'''", "a\n  b"),
        ('script="a" && "b"', '"a" && "b"'),
    ],
)
def test_a_text_may_be_quoted_and_has_no_comments(setting, value):
    assert changed(setting).scripts.main == value


def test_values_are_read_as_in_a_definition():
    assert changed("execution retry delays=2*PT1M, PT5M").retries == Retries(
        execution=(60.0, 60.0, 300.0)
    )
    assert changed("[job]execution time limit = PT1H").time_limit_seconds == 3600.0
    assert changed("[events]execution timeout=PT1S").events == Events(
        execution_timeout_seconds=1.0
    )
    assert changed("[events]failed handlers=a, b").events.handlers == (("failed", ("a", "b")),)
    assert changed("run mode=skip").run_mode is RunMode.SKIP
    assert changed("[simulation]fail cycle points=all").simulation.fail_points == ("all",)
    assert changed("[meta]title=T").meta == (("title", "T"),)
    assert changed("[directives]-l=1").place.directives == (("-l", "1"),)
    assert changed("pre-script=a", "err-script=b").scripts.on_error == "b"
    assert changed("[skip]outputs=a, b").skip.outputs == ("a", "b")


def test_an_empty_value_means_what_it_means_in_a_definition():
    assert changed("execution time limit=").time_limit_seconds is None
    assert changed("[simulation]default run length=").simulation.run_seconds == 10.0
    assert changed("script=").scripts.main == ""


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("scrip=x", "did you mean script"),
        ("[environmen]X=1", "did you mean [environment]"),
        ("[events]executon timeout=PT1S", "did you mean [events]execution timeout"),
        ("execution time limit=10", "PT10S"),
        ("script", "no value"),
        ("inherit=X", "change them with reload"),
        ("[outputs]x=y", "reload"),
        ("[environment filter]include=A", "reload"),
        ("[remote]owner=me", "no longer accepted; name a platform"),
        ("[environment]=x", "name an item"),
        ("[environment]A-B=x", "not a valid variable name"),
        ("[environment]1X=x", "begin with a letter or _"),
        ("[environment]A;touch oops=x", "not a valid variable name"),
        ("[environment][A]B=x", "not a setting"),
    ],
)
def test_what_is_no_setting_is_refused_with_what_would_be(setting, said):
    with pytest.raises(Refused) as refused:
        read_setting(setting)
    assert said in str(refused.value)


def items_of(section, above=""):
    for name, one in section.entries.items():
        if isinstance(one, SectionSpec):
            yield from items_of(one, f"{above}[{name}]")
        else:
            yield f"{above}{name}"


@pytest.mark.parametrize("item", [*items_of(NAMESPACE)])
def test_an_item_that_would_change_nothing_is_refused_unless_it_never_does(item):
    with suppress(Refused):
        assert read_item(item)


def test_an_item_has_one_way_of_writing():
    assert read_item("[ environment ] X ") == "[environment]X"
    assert read_item("[events]late offset") == "[events]late offset"


def test_a_whole_section_can_be_taken_back():
    items = ["script", "[environment]A", "[environment]B"]
    assert matching_items("[environment]", items) == items[1:]
    assert matching_items("[environment] A", items) == ["[environment]A"]
    assert matching_items("pre-script", items) == []


def items_of(section, before=""):
    """The items that a task may have in a definition, as a broadcast writes them."""
    for name, spec in section.entries.items():
        if isinstance(spec, SectionSpec):
            yield from items_of(spec, f"{before}[{name}]")
        else:
            yield before + name
    if section.other is not None:
        yield before + "FOO"


def test_no_item_that_a_definition_accepts_is_taken_for_a_bug():
    """A scheduler that stopped for it would let the whole run stop."""
    for item in items_of(NAMESPACE):
        for value in ("live", "PT1S", "a", "True"):
            with suppress(Refused):
                changed(f"{item}={value}")
