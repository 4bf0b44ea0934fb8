"""RELIABILITY 27: a damaged file is named and left as it is; it is never made anew."""

import os
import re
import stat

import apsw
import pytest

from tests.conformance.door import Door
from tests.support.volumes import folder_in_memory
from tidewheel.config import StoreSettings
from tidewheel.errors import CorruptStore, StoreUnreachable, UnsafeStore
from tidewheel.store.sqlite import open_sqlite_store

PAGE_BYTES = 4096
NAME = "tidewheel.db"


@pytest.fixture
def folder():
    with folder_in_memory() as folder:
        yield folder


def open_door(folder):
    store = open_sqlite_store(StoreSettings(url=f"sqlite:///{folder}/{NAME}"))

    async def opening():
        return store

    return Door(opening)


@pytest.fixture
def database(folder):
    """A store with some work in it, closed in order."""
    door = open_door(folder)
    door.put(*(f"t{n}" for n in range(200)))
    for held in door.take(100):
        door.finish(held)
    door.leave()
    assert [path.name for path in folder.iterdir()] == [NAME]
    return folder / NAME


def refused(folder, error=CorruptStore):
    """Opening it is refused, and changes nothing."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(error) as caught:
        open_door(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    return str(caught.value)


def overwrite(path, offset, content):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def test_the_message_says_what_was_seen_and_what_to_do(folder, database):
    overwrite(database, 0, b"some other file!")
    message = refused(folder)
    assert str(database) in message
    assert "file is not a database" in message
    assert "was left as it is" in message and "Restore a backup" in message


def test_any_lost_page_is_noticed_at_the_start(folder, database):
    whole = database.read_bytes()
    pages = len(whole) // PAGE_BYTES
    assert pages > 30
    for page in range(pages):
        overwrite(database, page * PAGE_BYTES, bytes(PAGE_BYTES))
        refused(folder)
        database.write_bytes(whole)
    open_door(folder).leave()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_refused(folder, database, share):
    whole = database.read_bytes()
    database.write_bytes(whole[: int(len(whole) * share)])
    assert "is damaged" in refused(folder)


def test_a_file_that_is_missing_beside_its_log_is_refused(folder):
    door = open_door(folder)
    door.put("a")
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    door.leave()
    for path in folder.iterdir():
        path.unlink()
    (folder / f"{NAME}-wal").write_bytes(kept[f"{NAME}-wal"])
    assert "its -wal file is there" in refused(folder)


@pytest.mark.parametrize("content", [b"hello\n", b"\0" * 8192, b"x" * 8192])
def test_a_file_that_is_no_database_is_refused(folder, content):
    (folder / NAME).write_bytes(content)
    assert "is damaged" in refused(folder)


def test_a_folder_in_its_place_is_refused(folder):
    (folder / NAME).mkdir()
    with pytest.raises(StoreUnreachable, match="cannot be read or written"):
        open_door(folder)


def test_a_database_of_another_program_is_left_alone(folder):
    connection = apsw.Connection(str(folder / NAME))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    assert "another program" in refused(folder, UnsafeStore)


def test_an_index_that_does_not_fit_its_table_is_found_by_verify(folder, database):
    """The quick check at the start does not compare them: that takes long in a large store."""
    places = [found.start() for found in re.finditer(b"t164", database.read_bytes())]
    assert len(places) > 1
    overwrite(database, places[0], b"t16x")
    door = open_door(folder)
    seen = [one.seen for one in door.verify() if one.invariant == "file"]
    door.leave()
    assert any("index" in one for one in seen)


@pytest.mark.usefixtures("permissive_umask")
def test_a_row_that_cannot_be_read_stops_nobody_but_the_operation_that_reads_it(folder):
    """RELIABILITY 27: what a later version wrote, say, into one task."""
    door, other = open_door(folder), open_door(folder)
    door.put(*(f"t{n}" for n in range(4)))
    with apsw.Connection(str(folder / NAME)) as connection:
        connection.execute(
            "UPDATE task SET retry = '{\"of_a_later_version\": 1}' WHERE id = 't0'"
        )
    with pytest.raises(TypeError):
        door.cancel(["t0", "t1", "t2", "t3"])
    other.put("of another process")
    door.put("new")
    assert door.get("new").status == "ready"
    door.leave()
    other.leave()


def test_nobody_else_may_read_any_of_its_files(folder):
    """S31: whatever the umask says."""
    home = folder / "new" / "home"
    door = open_door(home)
    door.put("a")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}
    door.leave()
    assert modes == dict.fromkeys((NAME, f"{NAME}-wal", f"{NAME}-shm"), 0o600)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_store_that_every_user_can_open_is_refused(folder, database):
    """S31."""
    folder.chmod(0o755)
    database.chmod(0o644)
    with pytest.raises(UnsafeStore, match=r"mode 0644.*chmod o="):
        open_door(folder)
    folder.chmod(0o700)
    open_door(folder).leave()  # nobody can reach it
    folder.chmod(0o755)
    database.chmod(0o660)
    open_door(folder).leave()  # a group was chosen by somebody


@pytest.fixture
def permissive_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_restored_backup_is_a_store(folder, database):
    """The drill: a copy made while somebody writes, put in the place of the lost file."""
    door = open_door(folder)
    connection = apsw.Connection(str(database))
    door.put("before")
    connection.execute("VACUUM INTO ?", (str(folder / "copy"),))
    door.put("after")
    connection.close()
    door.leave()
    database.write_bytes((folder / "copy").read_bytes())
    door = open_door(folder)
    assert door.verify() == []
    assert "before" in door.listed() and "after" not in door.listed()
    door.leave()
