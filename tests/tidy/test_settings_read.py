"""Whatever a definition may say is read by somebody, or it is told that it has no effect.

A setting that is accepted, and that nobody reads, would make its author believe that it works.
"""

import ast
import re
from collections.abc import Iterator

from tests.tidy.repository import PACKAGE, parsed, python_files, read_text
from tidewheel.core.graph import checks, definition
from tidewheel.formats.flow_cylc import settings
from tidewheel.formats.flow_cylc.items import FLOW, ItemSpec, SectionSpec
from tidewheel.formats.sip import keys, scheduling_block

READERS = PACKAGE / "formats" / "flow_cylc"
# Items without a field, and the module that reads them, or their section, by name.
READ_BY_HAND = {
    "[meta]": "settings",
    "[task parameters]": "settings",
    "[task parameters][templates]": "settings",
    "[scheduling]sequential xtriggers": "settings",
    "[scheduling][queues][…]limit": "settings",
    "[scheduling][queues][…]members": "settings",
    "[scheduling][xtriggers]": "settings",
    "[scheduling][graph]": "settings",
    "[runtime][…]inherit": "runtime",
    "[runtime][…][remote]owner": "node_checks",  # refused
    "[runtime][…][parameter environment templates]": "node_checks",
}
# Keys of scheduling block instances that are stored and shown, and change nothing, as they say.
KEPT_AS_IT_IS = re.compile(r"stored unchanged|its id|what it is an instance of")
# Fields that are read as a whole: a job runs all scripts in the order of the fields.
READ_TOGETHER = frozenset(definition.Scripts.__dataclass_fields__)


def items(
    spec: SectionSpec, above: str = "", to: str = "", idle: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Yields each item, the field that it fills and why it has no effect."""
    rows = [*spec.entries.items(), *([("…", spec.other)] if spec.other is not None else [])]
    for name, one in rows:
        field, because = one.to or to, one.idle_because or idle
        if isinstance(one, SectionSpec):
            yield from items(one, f"{above}[{name}]", field, because)
        else:
            assert isinstance(one, ItemSpec)
            yield (above if name == "…" else f"{above}{name}"), field, because


def read_attributes() -> frozenset[str]:
    """The attributes that somebody reads, but for those who define and fill them."""
    fillers = {READERS / "runtime.py", PACKAGE / "core" / "graph" / "definition.py"}
    return frozenset(
        one.attr
        for path in python_files("src")
        if path not in fillers
        for one in ast.walk(parsed(read_text(path)))
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load)
    )


def test_every_item_of_flow_cylc_fills_a_field_is_read_by_hand_or_says_why_not():
    unread = []
    for item, field, idle in items(FLOW):
        by_hand = next((one for one in READ_BY_HAND if item.startswith(one)), "")
        if not (field or idle or by_hand):
            unread.append(item)
    assert not unread, "accepted, and nobody reads it"


def test_items_that_are_read_by_hand_are_named_where_they_are_read():
    for item, module in READ_BY_HAND.items():
        name = re.split(r"[\[\]]+", item.removesuffix("]"))[-1]
        assert f'"{name}"' in read_text(READERS / f"{module}.py"), item


def test_every_field_that_an_item_fills_is_read():
    attributes = read_attributes()
    known = {one for section in (definition, settings) for one in dir(section)}
    assert "NodeDef" in known
    dead = {
        f"{item}: {field}"
        for item, field, _ in items(FLOW)
        if field and {*field.split(".")} - attributes - READ_TOGETHER
    }
    assert not dead, "a field that nobody reads: let the item say idle_because"


def test_every_key_of_sip_is_read_by_its_name_or_kept_as_it_says():
    tables = {
        "definition": (keys.DEFINITION, keys.STAGE, keys.DEPENDENCY, *keys.RESOURCES.values()),
        "scheduling_block": (
            *(scheduling_block.SBI, scheduling_block.SCHEDULING_BLOCK),
            *(scheduling_block.PROCESSING_BLOCK, scheduling_block.WORKFLOW),
            scheduling_block.DEPENDENCY,
        ),
    }
    for module, known in tables.items():
        text = read_text(PACKAGE / "formats" / "sip" / f"{module}.py")
        for name, key in ((name, key) for table in known for name, key in table.items()):
            is_read = re.search(rf'\w+\((?:reader, )?"{name}"', text) or KEPT_AS_IT_IS.search(
                key.about
            )
            assert key.to or is_read, f"{module}: {name} is accepted, and nobody reads it"


def test_every_check_of_the_graph_is_called():
    called = read_text(PACKAGE / "core" / "graph" / "checks" / "__init__.py")
    for path in python_files("src/tidewheel/core/graph/checks"):
        for one in parsed(read_text(path)).body:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("check_"):
                assert re.search(rf"^    .*\b{one.name}\(", called, re.MULTILINE) or (
                    one.name == checks.check_workflow.__name__
                ), f"{path.name}: nobody calls {one.name}"


def test_an_item_that_nobody_reads_is_found():
    planted = SectionSpec({"new item": ItemSpec(FLOW.entries["meta"].entries["title"].kind)})
    assert list(items(planted, "[scheduler]")) == [("[scheduler]new item", "", "")]
