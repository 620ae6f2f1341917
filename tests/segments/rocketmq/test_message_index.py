"""The message index: real brokers' files byte for byte, queries against a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.host import read_file
from logstore.java_hash import java_hash
from logstore.os_host import system_host
from logstore.segments.rocketmq.index.index_file import ENTRY, HEADER, IndexFile, IndexSizes
from logstore.segments.rocketmq.index.index_keys import (
    batch_hashes,
    draft_hashes,
    index_hash,
    index_hashes,
)
from logstore.segments.rocketmq.index.message_index import MessageIndex
from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.messages.properties_shape import take_apart
from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint
from logstore.segments.rocketmq.settings.release import Release
from logstore.testing.simulated_host import SimulatedHost
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.golden_case import GoldenCase, stored_cases
from tests.segments.rocketmq.stored_requests import stored_requests

ALL_TIME = (0, 2**62)
DIRECTORY = "/store/index"


def sizes_of(case: GoldenCase) -> IndexSizes:
    """Return the sizes of a golden case's index files."""
    return IndexSizes(int(case.settings["maxHashSlotNum"]), int(case.settings["maxIndexNum"]))


def request_at(
    physical_offset: int,
    *keys: str,
    topic: str = "T",
    unique_key: str = "",
    tags: str = "",
    store_ms: int = 1_700_000_000_000,
    sys_flag: int = 0,
) -> DispatchRequest:
    """Return the request of one message."""
    pairs = {"UNIQ_KEY": unique_key, "KEYS": " ".join(keys), "TAGS": tags}
    text = "".join(f"{name}\x01{value}\x02" for name, value in pairs.items() if value).encode()
    return DispatchRequest(topic, 0, physical_offset, 100, 0, store_ms, 0, sys_flag, 0, text)


def index_on(
    host: SimulatedHost, sizes: IndexSizes, release: Release = Release.V5, *, load: bool = False
) -> MessageIndex:
    """Return an index in a simulated world."""
    host.fs.make_directory("/store")
    host.fs.sync_directory("/")
    checkpoint = StoreCheckpoint(host, "/store/checkpoint")
    index = MessageIndex(host, DIRECTORY, checkpoint, sizes=sizes, release=release)
    if load:
        index.load(is_clean=True)
    return index


@pytest.mark.parametrize(
    "case",
    stored_cases(),
    ids=lambda case: case.id,
)
def test_golden_index_files_are_written_again_byte_for_byte(case: GoldenCase) -> None:
    """The messages of a real broker's commit log give the bytes of its index files."""
    host = SimulatedHost()
    index = index_on(host, sizes_of(case), Release(case.version))
    for number, request in enumerate(stored_requests(case.store)):
        index.put(request)
        if number % 7 == 0:  # written in pieces or at once: no difference
            index.write()
    index.flush()
    real = sorted((case.store / "index").iterdir()) if (case.store / "index").exists() else []
    assert [read_file(host.fs, file.path) for file in index.files] == [
        path.read_bytes() for path in real
    ]
    checkpoint = StoreCheckpoint(system_host(), str(case.store / "checkpoint"))
    assert index.checkpoint.index_msg_timestamp_ms == checkpoint.index_msg_timestamp_ms


@pytest.mark.parametrize(
    "case",
    stored_cases(without=("batch-queue", "compaction", "multi-dispatch")),
    ids=lambda case: case.id,
)
def test_every_expected_message_is_found_by_its_keys(case: GoldenCase) -> None:
    """In a real broker's index each message that a client read is found by each of its keys."""
    checkpoint = StoreCheckpoint(system_host(), str(case.store / "checkpoint"))
    directory = str(case.store / "index")
    index = MessageIndex(
        system_host(), directory, checkpoint, sizes=sizes_of(case), is_writable=False
    )
    assert index.load(is_clean=True) == []
    assert index.warnings == []
    for message in case.expected:
        properties = message["properties"]
        topic = message["topic"]
        keys = [properties["UNIQ_KEY"]] if "UNIQ_KEY" in properties else []
        keys += [key for key in properties.get("KEYS", "").split(" ") if key]
        for key in keys:
            answer = index.query(topic, key, 2**31, *ALL_TIME)
            assert message["commitLogOffset"] in answer.physical_offsets, (topic, key)


keys = st.sampled_from(["a", "b", "Aa", "BB", "k1", "k2", "polygenelubricants"])
messages = st.lists(st.tuples(st.lists(keys, max_size=3), st.integers(0, 5000), keys), max_size=40)


@given(messages, st.integers(1, 6), st.integers(2, 9), st.data())
def test_queries_find_what_was_put(
    puts: list[tuple[list[str], int, str]], slot_count: int, entry_count: int, data: st.DataObject
) -> None:
    """A query returns the newest messages with the key's hash in the range, pending or written."""
    host = SimulatedHost()
    index = index_on(host, IndexSizes(slot_count, entry_count), Release.V4)
    model: list[tuple[int, int, str, int]] = []
    store_ms = 1_700_000_000_000
    for number, (names, later_ms, unique_key) in enumerate(puts):
        store_ms += later_ms
        request = request_at(number * 100, *names, unique_key=unique_key, store_ms=store_ms)
        index.put(request)
        if data.draw(st.booleans()):
            index.write()
        for key in [unique_key, *names]:
            begin_ms = index.files[-1].begin_timestamp_ms
            model.append((number * 100, begin_ms, key, store_ms))
        for key in {unique_key, *names}:
            asked = index.query("T", key, 64, 0, 2**62).physical_offsets
            same = [at for at, _, name, _ in model if index_hash(f"T#{name}") == hash_of(key)]
            assert sorted(asked, reverse=True) == sorted(same, reverse=True)[:64]
            assert asked[0] == number * 100


def hash_of(key: str) -> int:
    """Return where the index looks for a key of topic T."""
    return index_hash(f"T#{key}")


def test_a_loaded_index_goes_on_where_it_ended() -> None:
    """Closed and loaded anew, an index gives the same files as one that was never closed."""
    worlds = SimulatedHost(), SimulatedHost()
    sizes = IndexSizes(5, 8)
    whole, parted = (index_on(host, sizes) for host in worlds)
    for number in range(30):
        request = request_at(number * 100, f"k{number % 7}", unique_key=f"u{number}", tags="x")
        whole.put(request)
        parted.put(request)
        if number % 4 == 0:
            parted.flush()
            parted.close()
            parted = index_on(worlds[1], sizes, load=True)
    whole.flush()
    parted.flush()
    contents = [
        [read_file(host.fs, file.path) for file in index.files]
        for host, index in zip(worlds, (whole, parted), strict=True)
    ]
    assert contents[0] == contents[1]
    assert len(contents[0]) > 10


def test_tags_have_entries_of_their_own_in_5x_only() -> None:
    """A message with tags is found by them where 5.x writes, and not where 4.x does."""
    for release, expected in ((Release.V5, [700]), (Release.V4, [])):
        index = index_on(SimulatedHost(), IndexSizes(5, 20), release)
        index.put(request_at(700, "k", tags="TagA"))
        assert index.query("T", "TagA", 9, *ALL_TIME, is_tag=True).physical_offsets == expected
        assert index.query("T", "k", 9, *ALL_TIME).physical_offsets == [700]


def test_rolled_back_and_known_messages_are_passed_over() -> None:
    """Rollbacks have no keys; a message before the last one is in the index already."""
    index = index_on(SimulatedHost(), IndexSizes(5, 20))
    index.put(request_at(500, "k"))
    index.put(request_at(600, "k", sys_flag=12))
    index.put(request_at(400, "k"))
    index.put(request_at(500, "k"))  # the same once more is what Java adds, too
    assert index.query("T", "k", 9, *ALL_TIME).physical_offsets == [500, 500]


def test_a_message_without_keys_makes_the_first_file() -> None:
    """The first message makes an index file even if it has no key, as in Java."""
    index = index_on(SimulatedHost(), IndexSizes(5, 20))
    index.put(request_at(500))
    assert [file.next_number for file in index.files] == [1]
    assert index.query("T", "k", 9, *ALL_TIME).physical_offsets == []


def test_names_rise_although_the_clock_goes_back() -> None:
    """A new file's name is behind the last one's, whatever the clock says."""
    host = SimulatedHost()
    index = index_on(host, IndexSizes(5, 2))
    for number in range(5):
        index.put(request_at(number * 100, "k"))
        host.clock.jump_wall(-3_600_000 if number == 2 else 0)
    names = [file.path.rpartition("/")[2] for file in index.files]
    assert len(names) == 5
    assert names == sorted(set(names))
    assert {len(name) for name in names} == {17}


def damaged_chain(host: SimulatedHost, previous: int) -> MessageIndex:
    """Return an index whose newest entry points to the entry of number `previous`."""
    sizes = IndexSizes(1, 20)
    index = index_on(host, sizes)
    for number in range(3):
        index.put(request_at(number * 100, "k"))
    index.flush()
    path = index.files[-1].path
    file = host.fs.open(path)
    position = sizes.entries_position + ENTRY.size * 3 + 16
    file.write(position, previous.to_bytes(4, "big", signed=True))
    file.close()
    index.close()
    return index_on(host, sizes, load=True)


@pytest.mark.parametrize(
    ("previous", "expected"),
    [
        pytest.param(3, [200], id="to itself"),
        pytest.param(-1, [200], id="negative"),
        pytest.param(5, [200], id="behind the end"),
        pytest.param(4, [200], id="to the entry that comes next"),
        pytest.param(1, [200, 0], id="over one"),
    ],
)
def test_damaged_chains_end(previous: int, expected: list[int]) -> None:
    """A chain that leads nowhere, or back into itself, ends where Java's ends."""
    index = damaged_chain(SimulatedHost(), previous)
    assert index.query("T", "k", 9, *ALL_TIME).physical_offsets == expected


def test_a_loop_of_two_is_followed_once() -> None:
    """A chain that leads back in a circle ends, and returns each message once."""
    host = SimulatedHost()
    index = damaged_chain(host, 2)
    path = index.files[0].path
    file = host.fs.open(path)
    position = index.sizes.entries_position + ENTRY.size * 2 + 16
    file.write(position, (3).to_bytes(4, "big"))
    assert index.query("T", "k", 99, *ALL_TIME).physical_offsets == [200, 100]


def test_time_range_and_count_bound_a_query() -> None:
    """Only entries whose second lies in the range count, newest first, up to the count."""
    index = index_on(SimulatedHost(), IndexSizes(3, 4), Release.V4)
    start_ms = 1_700_000_000_000
    for number in range(9):
        index.put(request_at(number * 100, "k", store_ms=start_ms + number * 1000))
    query = index.query
    assert query("T", "k", 3, *ALL_TIME).physical_offsets == [800, 700, 600]
    between = query("T", "k", 9, start_ms + 2000, start_ms + 4000).physical_offsets
    assert between == [400, 300, 200]
    assert query("T", "k", 9, start_ms + 99_000, start_ms + 99_999).physical_offsets == []
    answer = query("T", "k", 0, *ALL_TIME)
    assert (answer.last_update_physical_offset, answer.last_update_timestamp_ms) == (
        800,
        start_ms + 8000,
    )


def test_writes_are_few() -> None:
    """A thousand entries are written with three calls: entries, slots, header."""
    host = SimulatedHost()
    index = index_on(host, IndexSizes(500, 5000))
    for number in range(1000):
        index.put(request_at(number * 100, f"k{number}"))
    before = len(host.fs.journal)
    index.write()
    kinds = [operation.kind for operation in host.fs.journal.operations[before:]]
    assert kinds == ["write", "write", "write"]


@given(st.binary(max_size=400), st.integers(0, 2**31 - 1), st.integers(1, 4), st.integers(1, 12))
def test_any_bytes_can_be_asked(
    data: bytes, key_hash: int, slot_count: int, entry_count: int
) -> None:
    """Whatever stands in an index file, a query ends and a put goes on."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    file = host.fs.open(f"{DIRECTORY}/20260101000000000", create=True)
    file.write(0, data)
    file.close()
    found = IndexFile(host, f"{DIRECTORY}/20260101000000000", IndexSizes(slot_count, entry_count))
    assert len(found.select(key_hash, 64, *ALL_TIME)) <= entry_count
    if found.put([key_hash], 77, 1_700_000_000_000):
        assert found.is_full
    else:
        found.write()
        assert HEADER.size + 4 * slot_count + 20 * entry_count <= host.fs.open(found.path).size()


texts = st.one_of(
    st.text(st.characters(exclude_characters="\x01\x02 ", codec="utf-8"), max_size=80),
    st.text("0123456789ABCDEF", min_size=32, max_size=32),
)


@given(texts, texts, st.lists(texts, max_size=3), texts, st.booleans())
def test_hashes_of_parts_are_those_of_the_whole(
    topic: str, unique_key: str, names: list[str], tags: str, has_tag_entry: bool
) -> None:
    """The hashes of a message's entries are Java's of the joined texts, without their signs."""
    request = request_at(0, *names, topic=topic, unique_key=unique_key, tags=tags)
    joined = [f"{topic}#{key}" for key in [unique_key, *names] if key]
    joined += [f"{topic}#T#{tags}"] if tags and has_tag_entry else []
    found = index_hashes(topic, request.properties_text, has_tag_entry=has_tag_entry)
    assert found == [abs(java_hash(text)) % 2**31 for text in joined]


def test_the_number_without_an_opposite_hashes_to_zero() -> None:
    """The text whose hash is the most negative integer stands under 0, as in Java."""
    assert java_hash("polygenelubricants") == -(2**31)
    assert index_hash("polygenelubricants") == 0


@pytest.mark.parametrize("count", [1, 3, 4, 255, 256, 257, 600])
@pytest.mark.parametrize("tags", [b"", b"TAGS\x01t\x02"])
def test_many_keys_are_hashed_as_each_by_itself(count: int, tags: bytes) -> None:
    """However many messages come together, their entries are those of the single messages."""
    texts = [tags + b"UNIQ_KEY\x010A00000518B4AAC2%016X\x02" % (n * 7919) for n in range(count)]
    places = range(0, 300 * count, 300)
    alone = [index_hashes("T", text, has_tag_entry=True) for text in texts]
    sized = [len(text).to_bytes(2) + text for text in texts]
    hashes, found = batch_hashes("T", sized, places, has_tag_entries=True)
    assert list(hashes) == [value for values in alone for value in values]
    assert list(found) == [
        place for place, values in zip(places, alone, strict=True) for _ in values
    ]
    drafts = [draft("T") for _ in texts]
    for one, text, place in zip(drafts, texts, places, strict=True):
        one.replace_properties(text)
        one.shape, one.key = take_apart(text)
        one.physical_offset = place
    assert draft_hashes(drafts, has_tag_entries=True) == (list(hashes), list(found))
