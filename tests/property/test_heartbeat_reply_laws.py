"""Whatever an agent says, HEARTBEAT_OK is never delivered (SPEC HB-6)."""

from __future__ import annotations

import html
import re

from hypothesis import example, given
from hypothesis import strategies as st

from bench.heartbeat.leaks import BETWEEN, INVISIBLE, UNDERSCORES, WORDS, WRAPPERS, leaks
from channels.telegram.format import plain, render
from goclaw_py.chat.outbound.ok_token import AckPosition, AckResult, alert_key, judge, without_token
from goclaw_py.core.text import is_blank

TOKEN = "HEARTBEAT_OK"

tokens = st.builds(
    lambda underscore, at, nothing: (
        f"HEARTBEAT{underscore}OK"[:at] + nothing + f"HEARTBEAT{underscore}OK"[at:]
    ),
    st.sampled_from(UNDERSCORES),
    st.integers(0, 12),
    st.text(INVISIBLE, max_size=2),
)
halves = st.integers(1, len(TOKEN) - 1).flatmap(
    lambda at: st.sampled_from([TOKEN[:at], TOKEN[at:]])
)
words = st.sampled_from(WORDS) | st.text(max_size=8) | st.sampled_from(["a" * 299, "ổ" * 301])


def wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.lists(st.tuples(inner, st.sampled_from(BETWEEN)), min_size=1, max_size=4).map(
        lambda pieces: "".join(piece + gap for piece, gap in pieces)
    )
    return st.builds(
        lambda ends, text: ends[0] + text + ends[1], st.sampled_from(WRAPPERS), joined | inner
    )


replies = st.lists(
    st.recursive(tokens | halves | words, wrapped, max_leaves=8) | st.sampled_from(BETWEEN),
    max_size=6,
).map("".join)
positions = st.sampled_from(AckPosition)
limits = st.sampled_from([0, 1, 20, 300])


@given(reply=replies, most=limits, position=positions)
@example(reply="HEARTBEAT_**HEARTBEAT_OK**OK", most=0, position=AckPosition.EDGES)
def test_nothing_that_is_delivered_shows_the_token(
    reply: str, most: int, position: AckPosition
) -> None:
    """By a detector that knows nothing of the code."""
    assert not leaks(judge(reply, ack_max_chars=most, position=position).text)
    assert not leaks(without_token(reply))


@given(reply=replies)
@example(reply="HEARTBEAT&#\x0695;OK")
@example(reply="5 < [HEART](https://example.org)BEAT_OK > 3")
@example(reply="HEARTBEAT_O`HEARTBEAT_OK K and `")
@example(reply="HEART<b><!-- HEARTBEAT_OK --></b>BEAT_OK")
def test_telegram_never_shows_the_token(reply: str) -> None:
    """By what the channel itself makes of it, with markup and where the server refuses that."""
    for part in render(without_token(reply)):
        shown = html.unescape(re.sub(r"<[^<>]*>", "", part))
        for text in (shown, plain(part)):
            assert not re.search(r"(?<!\w)_*HEARTBEAT_OK_*(?!\w)", re.sub(_NOTHING, "", text))


_NOTHING = f"[{re.escape(INVISIBLE)}\u200e\u200f]"


@given(reply=replies)
def test_without_the_token_is_a_fixed_point(reply: str) -> None:
    cleaned = without_token(reply)
    assert without_token(cleaned) == cleaned
    assert len(cleaned) <= len(reply) + 1


@given(reply=st.text() | st.lists(halves | words).map(" ".join))
def test_a_reply_without_the_token_is_delivered_as_it_is(reply: str) -> None:
    if without_token(reply) != reply:
        # Two halves may have met; that it is one then is the business of another law.
        assert "H" in reply or not reply.isascii()
        return
    judged = judge(reply, ack_max_chars=300, position=AckPosition.ANYWHERE)
    if judged.is_ok:
        assert not any(map(str.isalnum, reply))
    else:
        assert judged == AckResult(is_ok=False, text=reply)


@given(
    reply=st.text(
        alphabet=st.characters(exclude_characters="_\uff3f\ufe4d\ufe4e\ufe4f\ufe33\ufe34&%")
    )
)
def test_a_text_without_underscores_is_never_touched(reply: str) -> None:
    assert without_token(reply) == reply


@given(reply=replies, most=limits, position=positions)
def test_what_is_delivered_is_never_blank(reply: str, most: int, position: AckPosition) -> None:
    judged = judge(reply, ack_max_chars=most, position=position)
    assert judged.is_ok == (judged.text == "")
    assert judged.is_ok or not is_blank(judged.text)


@given(reply=replies, most=limits)
def test_demanding_the_edges_never_makes_more_replies_ok(reply: str, most: int) -> None:
    edges = judge(reply, ack_max_chars=most, position=AckPosition.EDGES)
    anywhere = judge(reply, ack_max_chars=most, position=AckPosition.ANYWHERE)
    assert anywhere.is_ok or not edges.is_ok
    assert anywhere.is_ok or anywhere == edges


@given(reply=replies, most=st.integers(0, 20))
def test_a_larger_limit_never_makes_fewer_replies_ok(reply: str, most: int) -> None:
    smaller = judge(reply, ack_max_chars=most, position=AckPosition.ANYWHERE)
    larger = judge(reply, ack_max_chars=most + 1, position=AckPosition.ANYWHERE)
    assert larger.is_ok or not smaller.is_ok


@given(
    rest=st.text("abcé漢🔥", min_size=1, max_size=40),
    ends=st.sampled_from(WRAPPERS[:8]),
    before=st.booleans(),
)
def test_the_rest_is_what_is_delivered(rest: str, ends: tuple[str, str], before: bool) -> None:
    token = TOKEN.join(ends)
    reply = f"{token} {rest}" if before else f"{rest} {token}"
    for position in AckPosition:
        short = judge(reply, ack_max_chars=len(rest), position=position)
        assert short == AckResult(is_ok=True)
        long = judge(reply, ack_max_chars=len(rest) - 1, position=position)
        assert long == AckResult(is_ok=False, text=rest)


@given(reply=replies)
def test_the_key_of_an_alert_is_that_of_what_is_delivered(reply: str) -> None:
    """SPEC HB-7."""
    key = alert_key("main", "telegram:1", reply)
    assert key == alert_key("main", "telegram:1", without_token(reply))
    assert re.fullmatch("[0-9a-f]{64}", key)
