"""What people read in answers to commands (SPEC CMD-5)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from goclaw_py.chat.commands.queue import queue, queue_changed
from goclaw_py.chat.commands.status import RunActivity, SessionMemory, status
from goclaw_py.chat.commands.whoami import who
from goclaw_py.core.ids import MAIN_AGENT, AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.views import RunState, RunView


def view(state: RunState, for_s: float = 0) -> RunView:
    return RunView(RunId("a"), SessionKey("s"), AgentName("main"), LaneName("main"), state, for_s)


def test_every_mode_is_explained_in_words_of_its_own() -> None:
    """SPEC CMD-5."""
    said = {mode: queue_changed(mode, chosen=True) for mode in Mode}
    assert all(text.startswith(f"Queue mode: {mode.value}, ") for mode, text in said.items())
    assert len({text.partition(", ")[2] for text in said.values()}) == len(Mode) - 1, (
        "followup is queue by another name"
    )


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (QueuePolicy(capacity=3),
         "Waiting: 3 (at most 3; when the queue is full, the oldest is dropped)"),
        (QueuePolicy(drop=Drop.NEW),
         "Waiting: 3 (at most 10; when the queue is full, new ones are rejected)"),
        (QueuePolicy(concurrency=3), "Running: 4 (at most 3 at a time)"),
        (QueuePolicy(debounce_s=1.5), "Bursts: messages sent within 1.5 s are merged"),
    ],
)  # fmt: skip
def test_the_queue_is_told_in_numbers(policy: QueuePolicy, words: str) -> None:
    """SPEC CMD-5."""
    runs = [view(state) for state in RunState if state is not RunState.DONE]
    assert words in queue(policy, runs, chosen=False, full=False).splitlines()


def test_a_full_context_explains_why_one_run_works_at_a_time() -> None:
    """SPEC QUEUE-7."""
    policy = QueuePolicy(concurrency=3)
    assert "at most 1 at a time, because" in queue(policy, [], chosen=True, full=True)


def test_the_status_of_an_idle_session_shows_zeros() -> None:
    """SPEC CMD-5."""
    text = "Agent: main\nRunning: 0\nWaiting: 0\nMessages in this conversation: 12"
    assert status([], SessionMemory(12), agent=MAIN_AGENT) == text


@pytest.mark.parametrize(("share", "shown"), [(0.0, "0%"), (0.604, "60%"), (1.3, "130%")])
def test_the_status_tells_how_much_of_the_context_is_used(share: float, shown: str) -> None:
    """SPEC CMD-5."""
    assert (
        status([], SessionMemory(0, share), agent=MAIN_AGENT).splitlines()[-1]
        == f"Context used: {shown}"
    )


def test_the_status_sorts_every_state_into_running_waiting_or_stopping() -> None:
    """SPEC CMD-5."""
    runs = [view(state, 61.4) for state in RunState if state is not RunState.DONE]
    said = status(runs, SessionMemory(0), agent=MAIN_AGENT)
    assert said.splitlines() == [
        "Agent: main", "Running: 2", "- a message, for 1 min", "- a message, for 1 min",
        "Waiting: 3", "Stopping: 2", "Messages in this conversation: 0",
    ]  # fmt: skip


def test_the_status_says_what_is_worked_on_by_which_model_for_how_long() -> None:
    """SPEC CMD-5."""
    said = status(
        [view(RunState.RUNNING, 61.4)],
        SessionMemory(0),
        agent=MAIN_AGENT,
        model="openai:gpt-4o",
        works={RunId("a"): RunActivity("find the bill", ("read_file",))},
    )
    assert said.splitlines()[:3] == [
        "Agent: main, model openai:gpt-4o",
        "Running: 1",
        "- “find the bill”, for 1 min, ⚙ read_file …",
    ]


@pytest.mark.parametrize(
    ("owner", "username", "thread", "words"),
    [
        (
            True,
            "ann",
            None,
            """You are Ann B (@ann), owner. Alerts go to this chat.
In the settings you are 7, and this chat is telegram:42.
Session: agent:main""",
        ),
        (
            False,
            None,
            "9",
            "You are Ann B, guest.\nIn the settings you are 7, and this chat is telegram:42:9.",
        ),
    ],
)
def test_whoami_says_how_the_sender_is_known(
    owner: bool, username: str | None, thread: str | None, words: str
) -> None:
    """SPEC CMD-5."""
    message = InboundMessage(
        "42:1",
        Target("telegram", "default", "42", thread),
        PeerKind.DIRECT,
        Sender("7", "Ann\n  B", username),
        "/whoami",
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    alerts = "Alerts go to this chat." if owner else ""
    text = who(message, owner=owner, session=SessionKey("agent:main"), alerts=alerts)
    assert text == words
