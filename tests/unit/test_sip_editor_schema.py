"""The schema for editors says what the reader accepts."""

from tidewheel.formats.sip.keys import DEFINITION, DEPENDENCY, RESOURCES, STAGE, sip_json_schema

SCHEMA = sip_json_schema()
STAGE_SCHEMA = SCHEMA["properties"]["stages"]["items"]


def test_every_key_is_there_and_no_other_spelling():
    assert list(SCHEMA["properties"]) == list(DEFINITION)
    assert list(STAGE_SCHEMA["properties"]) == list(STAGE)
    dependency = STAGE_SCHEMA["properties"]["dependencies"]["items"]
    assert list(dependency["properties"]) == list(DEPENDENCY)


def test_what_is_required_is_required():
    assert SCHEMA["required"] == ["schema_version", "stages"]
    assert STAGE_SCHEMA["required"] == ["id", "version", "type"]


def test_each_resource_has_its_own_keys():
    kinds = STAGE_SCHEMA["properties"]["resources_required"]["items"]["oneOf"]
    named = {one["properties"]["type"]["const"]: list(one["properties"]) for one in kinds}
    assert named == {kind: list(keys) for kind, keys in RESOURCES.items()}


def test_the_schema_version_is_a_text_or_a_number():
    assert SCHEMA["properties"]["schema_version"]["enum"] == ["2.0", 2.0]
