"""How fast chats are written to (SPEC IO-4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.chat.outbound.rate_limit import UNPACED, RateLimit, TokenWindow

DIRECT = RateLimit(gap_s=1.0, account_per_s=30)
GROUP = RateLimit(gap_s=1.0, per_minute=20, account_per_s=30)


class Line:
    """Sends everything as early as it may be sent, in the order in which it is asked to."""

    def __init__(self) -> None:
        self.pacer = TokenWindow()
        self.now = 0.0
        self.sent: list[tuple[str, float, bool]] = []

    def send(self, chat: str, pace: RateLimit, *, draft: bool = False) -> float:
        self.now = self.pacer.chat_ready_at(chat, pace, self.now, draft=draft)
        self.now = self.pacer.account_ready_at(pace, self.now, draft=draft)
        self.now = self.pacer.chat_ready_at(chat, pace, self.now, draft=draft)
        self.pacer.add(chat, pace, self.now, draft=draft)
        self.sent.append((chat, self.now, draft))
        return self.now


def most_within(instants: list[float], span_s: float) -> int:
    # A hair less than the span: instants are floats.
    return max(
        (sum(at <= other < at + span_s - 1e-6 for other in instants) for at in instants),
        default=0,
    )


SECONDS = [float(second) for second in range(20)]


@pytest.mark.parametrize(
    ("chats", "pace", "instants"),
    [
        (["ann"] * 1000, UNPACED, [0.0] * 1000),
        (["ann"] * 4, DIRECT, SECONDS[:4]),
        # Thirty a second over all chats, which do not wait for each other.
        ([f"chat {number}" for number in range(61)], DIRECT, [0.0] * 30 + [1.0] * 30 + [2.0]),
        (["-100"] * 21, GROUP, [*SECONDS, 60.0]),
    ],
    ids=["no limits", "a chat", "an account", "a group"],
)
def test_everything_goes_as_early_as_its_pace_allows(
    chats: list[str], pace: RateLimit, instants: list[float]
) -> None:
    line = Line()
    assert [line.send(chat, pace) for chat in chats] == instants


def test_drafts_leave_half_of_a_group_to_messages() -> None:
    pacer = TokenWindow()
    for second in range(10):
        pacer.add("-100", GROUP, float(second), draft=True)
    assert pacer.chat_ready_at("-100", GROUP, 10.0, draft=True) == 60.0
    assert pacer.chat_ready_at("-100", GROUP, 10.0) == 10.0


def test_drafts_leave_half_of_the_account_to_messages() -> None:
    pacer = TokenWindow()
    for number in range(15):
        pacer.add(f"chat {number}", DIRECT, 0.0, draft=True)
    assert pacer.account_ready_at(DIRECT, 0.0, draft=True) == 1.0
    assert pacer.account_ready_at(DIRECT, 0.0) == 0.0


def test_an_edit_counts_like_a_message() -> None:
    pacer = TokenWindow()
    pacer.add("ann", DIRECT, 0.0, draft=True)
    assert pacer.chat_ready_at("ann", DIRECT, 0.0) == 1.0


def test_a_reservation_that_is_returned_was_never_made() -> None:
    pacer = TokenWindow()
    pacer.give_back(pacer.add("-100", GROUP, 5.0))
    assert pacer.chat_ready_at("-100", GROUP, 5.0) == 5.0
    for number in range(30):
        pacer.add(f"chat {number}", DIRECT, 5.0)
    assert pacer.account_ready_at(DIRECT, 5.0) == 6.0


def test_giving_back_keeps_the_gap_that_was_there_before() -> None:
    pacer = TokenWindow()
    pacer.add("ann", DIRECT, 0.0)
    pacer.give_back(pacer.add("ann", DIRECT, 0.5))
    assert pacer.chat_ready_at("ann", DIRECT, 0.5) == 1.0


def test_silent_chats_are_forgotten() -> None:
    pacer = TokenWindow()
    for number in range(5_000):
        pacer.add(f"-{number}", GROUP, number * 1.0)
    assert len(pacer._chats) < 1_100
    assert len(pacer._gaps) < 1_100


CHATS = st.sampled_from(["ann", "bob", "-100", "-200"])


@given(st.lists(st.tuples(CHATS, st.booleans(), st.floats(0, 20)), max_size=120))
def test_no_limit_is_ever_exceeded(messages: list[tuple[str, bool, float]]) -> None:
    line = Line()
    for chat, draft, pause in messages:
        line.now += pause if pause > 15 else 0.0
        line.send(chat, GROUP if chat.startswith("-") else DIRECT, draft=draft)
    for chat in ("ann", "bob", "-100", "-200"):
        instants = [at for where, at, _ in line.sent if where == chat]
        assert most_within(instants, 1.0) <= 1
        if chat.startswith("-"):
            drafts = [at for where, at, draft in line.sent if where == chat and draft]
            assert most_within(instants, 60.0) <= 20
            assert most_within(drafts, 60.0) <= 10
    assert most_within([at for _, at, _ in line.sent], 1.0) <= 30


@given(st.lists(st.tuples(CHATS, st.booleans()), max_size=80))
def test_nothing_waits_longer_than_a_minute_for_what_was_sent_before(
    messages: list[tuple[str, bool]],
) -> None:
    line = Line()
    for chat, draft in messages:
        before = line.now
        at = line.send(chat, GROUP if chat.startswith("-") else DIRECT, draft=draft)
        assert at - before <= 60.0 + 1e-6
