"""What people read in answers to commands (SPEC CMD-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from goclaw_py.chat.commands.queue import queue, queue_changed
from goclaw_py.chat.commands.status import SessionMemory, conversation, task_lines
from goclaw_py.chat.commands.whoami import who
from goclaw_py.chat.stop.local import ChatTask
from goclaw_py.core.ids import MAIN_AGENT, AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Sender, Target
from goclaw_py.records import InboxKind, InboxRow
from goclaw_py.runs.turn import Turn
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.views import RunState, RunView
from goclaw_py.testing.clock import START
from tests.support.harness import message


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
    held = queue(policy, [], 2, chosen=False, full=False)
    assert "\nRunning: 0 (at most" in held
    assert "\nWaiting: 2 (at most" in held, "as in /status"


def test_a_full_context_explains_why_one_run_works_at_a_time() -> None:
    """SPEC QUEUE-7."""
    policy = QueuePolicy(concurrency=3)
    assert "at most 1 at a time, because" in queue(policy, [], chosen=True, full=True)


def lines(*tasks: ChatTask, asked: Sequence[str] = ()) -> list[str]:
    return task_lines(tasks, (), asked, MAIN_AGENT)


def test_the_status_of_an_idle_chat_is_one_sentence() -> None:
    """SPEC CMD-5."""
    assert lines() == ["Nothing is running or waiting in this chat."]


@pytest.mark.parametrize(("history", "model", "words"), [
    (SessionMemory(0), "", "0 messages, with agent main"),
    (SessionMemory(1, 0.604), "", "1 message, 60% of the context used, with agent main"),
    (SessionMemory(1200, 1.3, 1, 1), "openai:gpt-4o",
     ("1,200 messages, 130% of the context used, older messages summarised once, 1 fact to "
      "remember, with agent main (openai:gpt-4o)")),
    (SessionMemory(2, None, 3, 2), "",
     "2 messages, older messages summarised 3 times, 2 facts to remember, with agent main"),
])  # fmt: skip
def test_one_line_is_about_the_conversation(history: SessionMemory, model: str, words: str) -> None:
    """SPEC CMD-5."""
    owner = conversation(history, MAIN_AGENT, model, owner=True)
    assert owner == f"This conversation: {words}"
    guest = conversation(history, MAIN_AGENT, model, owner=False)
    assert guest == f"This conversation: {words.partition(', ')[0]}"


def test_the_status_sorts_every_state_into_running_or_waiting() -> None:
    """SPEC CMD-5."""
    tasks = [ChatTask(view(state, 61.4)) for state in RunState if state is not RunState.DONE]
    assert lines(*tasks, asked=["approval of pay"]) == [
        "Running:",
        *("- a task, for 1 min", "- a task, is being stopped"),
        *("- a task, for 1 min", "- a task, is being stopped"),
        "Waiting:",
        *("- a task", "- a task", "- a task"),
        "Waiting for a person:",
        "- approval of pay",
    ]


def test_the_status_names_turns_subagents_other_agents_and_jobs() -> None:
    """SPEC CMD-5."""
    run = view(RunState.RUNNING, 3700)
    row = InboxRow(
        1, message("find the\nbill"), SessionKey("s"), MAIN_AGENT, InboxKind.MESSAGE, 0, START
    )
    turn = Turn(RunId("a"), SessionKey("s"), MAIN_AGENT, [row])
    assert lines(
        ChatTask(run, turn=turn),
        ChatTask(run, child="look at " + "x" * 100),
        ChatTask(replace(run, agent=AgentName("writer")), child="a poem"),
        ChatTask(run, job="Morning news"),
    )[1:] == [
        "- “find the bill”, for 62 min",
        f"- subagent: “look at {'x' * 31}…”, for 62 min",
        "- agent writer: “a poem”, for 62 min",
        "- job “Morning news”, for 62 min",
    ]


def test_many_waiting_messages_are_counted() -> None:
    """SPEC CMD-5."""
    waiting = [ChatTask(view(RunState.QUEUED), job=f"n{number}") for number in range(7)]
    assert lines(*waiting)[-2:] == ["- job “n3”", "- … and 3 more"]


@pytest.mark.parametrize(("owner", "username", "words"), [
    (True, None, "You are an owner."),
    (False, None, "You are a guest."),
    (True, "ann", "You are @ann, owner."),
])  # fmt: skip
def test_whoami_without_a_name(owner: bool, username: str | None, words: str) -> None:
    chat, sender = Target("console", "default", "42"), Sender("7", " ", username)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    message = InboundMessage("42:1", chat, PeerKind.DIRECT, sender, "/whoami", at)
    text = who(message, owner=owner, session=SessionKey("agent:main"))
    assert text.split("\n")[0] == words


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
            "You are Ann B, guest. Your id is 7.",
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
