"""Two texts are compared line by line, and what is told leads from one to the other."""

from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.operator.definition import StoredDefinition, StoredFile
from tidewheel.services.definitions.diff import STEPS_MAX, compared, definitions_diff

TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30)


def shown(old, new):
    return [
        {"same": " ", "added": "+", "removed": "-"}[kind]
        + (new[b] if kind == "added" else old[a])
        for kind, a, b in compared(old, new)
    ]


@given(TEXTS, TEXTS)
def test_what_is_told_leads_from_one_text_to_the_other(old, new):
    lines = shown(old, new)
    assert [line[1:] for line in lines if line[0] in " -"] == old
    assert [line[1:] for line in lines if line[0] in " +"] == new


def test_only_what_changed_is_told_as_changed():
    assert shown(list("abcd"), list("abxd")) == [" a", " b", "-c", "+x", " d"]
    assert shown(list("ad"), list("abcd")) == [" a", "+b", "+c", " d"]
    assert shown(list("abc"), list("abc")) == [" a", " b", " c"]


def test_texts_that_have_too_little_in_common_are_told_as_replaced():
    count = STEPS_MAX
    old, new = [f"old {n}" for n in range(count)], [f"new {n}" for n in range(count)]
    lines = shown(["head", *old, "tail"], ["head", *new, "tail"])
    assert lines[0] == " head" and lines[-1] == " tail"
    assert [line[0] for line in lines[1:-1]] == ["-"] * count + ["+"] * count


def definition(**files):
    stored = tuple(
        StoredFile(path.replace("_", "."), content, executable=False)
        for path, content in sorted(files.items())
    )
    return StoredDefinition(
        digest="", workflow="w", kind="flow.cylc", text="", variables="[]", files=stored
    )


def test_files_are_added_removed_and_changed_with_lines_around_each_change():
    old = definition(flow_cylc=b"\n".join(b"%d" % n for n in range(30)), old_txt=b"x")
    changed = [b"%d" % n if n not in (5, 25) else b"!" for n in range(30)]
    new = definition(flow_cylc=b"\n".join(changed), new_bin=b"\0")
    told = {one["path"]: one for one in definitions_diff(old, new)["files"]}
    assert {path: one["change"] for path, one in told.items()} == {
        "flow.cylc": "changed",
        "new.bin": "added",
        "old.txt": "removed",
    }
    first, second = told["flow.cylc"]["hunks"]
    assert [line["text"] for line in first] == ["2", "3", "4", "5", "!", "6", "7", "8"]
    assert [(line["old"], line["new"]) for line in second][3:5] == [(26, None), (None, 26)]
    assert told["new.bin"]["hunks"] is None
    assert definitions_diff(old, old) == {"files": []}
