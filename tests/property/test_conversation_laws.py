"""A conversation shows all that was said, once, whatever its runs called, asked and answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from goclaw_py.core.approvals import Approval, Decision
from goclaw_py.core.ids import ApprovalId, RunId
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.records import Aside, StoredEntry, StoredRun, ToolCall, Unanswered
from goclaw_py.web.pages.chat.lines import MOST_CALLS, lines_of
from tests.unit.web.fake_approvals import PAY
from tests.unit.web.fakes import ENDED, NOW, QUEUE, said

ASKS = "🔐 May I call this tool?\n\npay\n\nFrom: Ann\n\n✅ Allowed once by Ann."
_OK = st.sampled_from([True, False, None])
SAID = st.lists(st.sampled_from(["", "I look.", "Done.\n- a\n- b", "ä 😀"]), max_size=3).map(
    "\n\n".join
)


@dataclass
class World:
    """What is stored of a conversation."""

    history: list[StoredEntry] = field(default_factory=list)
    runs: list[StoredRun] = field(default_factory=list)
    unanswered: list[Unanswered] = field(default_factory=list)
    messages: list[Unanswered] = field(default_factory=list)
    asides: list[Aside] = field(default_factory=list)
    approvals: list[Approval] = field(default_factory=list)


@st.composite
def turns(draw: st.DrawFn) -> World:
    """Draw some turns, one after the other or at the same time."""
    world = World()
    resets = 0
    for number in range(draw(st.integers(1, 4))):
        resets += draw(st.integers(0, 1))
        _add_turn(draw, world, number, resets)
    world.asides.sort(key=lambda one: one.at)
    world.runs.reverse()
    return world


def _add_turn(draw: st.DrawFn, world: World, number: int, resets: int) -> None:
    begin = draw(st.integers(0, 9))
    run, words, prompt = RunId(f"r{number}"), draw(SAID), f"prompt {number}"
    calls = [
        ToolCall("look", "{}", NOW + timedelta(seconds=begin + place), ok=draw(_OK), text_before=at)
        for place, at in enumerate(draw(st.lists(st.integers(0, len(words) + 2), max_size=4)))
    ]
    state = draw(st.sampled_from(["waits", "runs", "asks", "lost", "done", "goes on", "stopped"]))
    ended = {"runs": None, "asks": Outcome.INTERRUPTED, "lost": Outcome.LOST}.get(
        state, Outcome.CANCELLED if state == "stopped" else Outcome.COMPLETED
    )
    at = NOW + timedelta(seconds=begin)
    found = replace(ENDED, id=run, outcome=ended, reason=None, tools=tuple(calls), started_at=at)
    waits = Unanswered(number, said(number, prompt), None, at)
    if state == "waits":
        world.messages.append(waits)
        return
    first = run
    if state in ("asks", "goes on"):
        first = RunId(f"{run}a") if state == "goes on" else run
        _add_questions(draw, world, first, words, begin, answered=state == "goes on")
    if state == "goes on":
        asked = replace(found, id=first, outcome=Outcome.INTERRUPTED, reason=Reason.APPROVAL)
        world.runs.append(replace(asked, tools=()))
        found = replace(found, follows=first)
    world.runs.append(found)
    if state == "asks":
        world.messages.append(replace(waits, asking_run=run))
    elif state == "runs":
        world.messages.append(replace(waits, run_id=run))
    elif state == "lost":
        world.unanswered.append(replace(waits, run_id=run, outcome=Outcome.LOST))
    else:
        entries = (Role.USER, prompt, 0), (Role.ASSISTANT, words or "ok", draw(st.integers(1, 9)))
        for role, text, after in entries:
            there = HistoryEntry(role, text)
            world.history.append(
                StoredEntry(there, at + timedelta(seconds=after), run, resets=resets)
            )


def _add_questions(
    draw: st.DrawFn, world: World, run: RunId, words: str, begin: int, *, answered: bool
) -> None:
    told = words[: draw(st.integers(0, len(words)))]
    for place in range(draw(st.integers(1, 2))):
        asked_at = NOW + timedelta(seconds=begin + 1)
        one = replace(PAY, id=ApprovalId(f"{run}{place}"), run_id=run, asked_at=asked_at)
        one = replace(one, context=replace(one.context, said=told))
        if answered or draw(st.booleans()):
            at = asked_at + timedelta(seconds=draw(st.integers(0, 5)))
            one = replace(one, decision=Decision.ONCE, decided_at=at)
            world.asides.append(Aside(at, Role.ASSISTANT, ASKS, f"a-{one.id}"))
        world.approvals.append(one)


def _letters(words: Sequence[str]) -> str:
    return "".join("".join(words).split())


@settings(max_examples=400)
@given(turns())
def test_all_that_was_said_is_shown_once(world: World) -> None:
    queue = replace(QUEUE, messages=tuple(world.messages), unanswered=tuple(world.unanswered))
    lines = lines_of(world.history, world.runs, queue, world.asides, approvals=world.approvals)
    assert max(Counter(line.id for line in lines).values(), default=1) == 1
    for one in world.history:
        words = [line.words for line in lines if line.entry is one]
        assert _letters(words) == _letters([one.entry.text])
    prompts = Counter(line.words for line in lines if line.entry.entry.role is Role.USER)
    waiting = [one.message.text for one in (*world.messages, *world.unanswered)]
    assert {prompts[text] for text in waiting} <= {1}
    shown = Counter(id(call) for line in lines for call in line.calls)
    assert max(shown.values(), default=1) == 1
    done = {one.run_id for one in world.history if one.run_id}
    for run in world.runs:
        if run.id in done:
            made = sum(shown[id(call)] for call in run.tools)
            assert made == min(len(run.tools), MOST_CALLS)
    assert sum(line.is_answered for line in lines) == len(world.asides)
