"""Messages of the PostgreSQL protocol, however their bytes arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.cluster.frames import Frames, without_notices


def message(kind: bytes, body: bytes) -> bytes:
    return kind + (4 + len(body)).to_bytes(4, "big") + body


MESSAGES = st.lists(st.builds(message, st.sampled_from([b"A", b"D", b"Z"]), st.binary(max_size=20)))


@given(MESSAGES, st.lists(st.integers(1, 9)))
def test_a_stream_is_the_same_however_it_is_cut(sent: list[bytes], cuts: list[int]) -> None:
    frames, stream, got = Frames(), b"".join(sent), list[bytes]()
    for size in (*cuts, len(stream)):
        got += frames.feed(stream[:size])
        stream = stream[size:]
    assert got == sent


def test_an_unfinished_message_waits_for_its_rest() -> None:
    frames, whole = Frames(), message(b"D", b"abc")
    assert frames.feed(whole[:-1]) == []
    assert frames.feed(whole[-1:] + whole[:3]) == [whole]


@given(MESSAGES)
def test_only_notices_are_lost(sent: list[bytes]) -> None:
    assert without_notices(sent) == [one for one in sent if one[:1] != b"A"]


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(ValueError, match="3 bytes"):
        Frames().feed(b"Z\x00\x00\x00\x03")
