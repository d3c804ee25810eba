"""The phrases of the offline agent: talk, tools, and its checklist (AGENT-2d).

It cannot judge a checklist item. An unchecked box, and every event, needs attention; an item
without a box does not.
"""

from __future__ import annotations

import asyncio
import re

from goclaw_py.agents.offline.turn import Answer, OfflineTurn, phrase, quote
from goclaw_py.chat.outbound.ok_token import HEARTBEAT_OK, without_token
from goclaw_py.core.errors import AgentError
from goclaw_py.core.messages import Role
from goclaw_py.core.run_events import TextDelta
from goclaw_py.core.text import is_blank, truncate
from goclaw_py.schedule.heartbeat.checklist.lines import unescaped

MAX_COUNT = 1000
MAX_WAIT = 3600
_COUNTING = re.compile(r"\bcount\s+to\s+(\d+)", re.IGNORECASE)


async def say(turn: OfflineTurn) -> str:
    """Reply with the text itself."""
    return turn.reply(turn.said)


async def _count(turn: OfflineTurn) -> str:
    goal = _goal(turn.said)
    if goal is None:
        return turn.reply(f"I can count to anything from 1 to {MAX_COUNT}.")
    pieces: list[str] = []

    def say(piece: str) -> None:
        pieces.append(piece)
        turn.emit(TextDelta(piece))

    number = 1
    say("1")
    while number < goal:
        await asyncio.sleep(turn.tick_s)
        for part in turn.request.take_messages():
            goal = _new_goal(part.text) or goal
            say(f" (you said: {quote(part.text)})")
        if number < goal:
            number += 1
            say(f" {number}")
    return "".join(pieces)


def _goal(digits: str) -> int | None:
    """Return the number to count to, if it is possible."""
    # int() raises for a text with thousands of digits.
    number = int(digits) if len(digits) <= len(str(MAX_COUNT)) else MAX_COUNT + 1
    return number if 1 <= number <= MAX_COUNT else None


def _new_goal(text: str) -> int | None:
    """Return the new goal in a message during counting, if it has one."""
    match = _COUNTING.search(text)
    return None if match is None else _goal(match[1])


async def _slow(turn: OfflineTurn) -> str:
    ticks = int(turn.said or "30") if len(turn.said) <= len(str(MAX_WAIT)) else MAX_WAIT
    ticks = min(ticks, MAX_WAIT)
    await asyncio.sleep(ticks * turn.tick_s)
    return turn.reply(f"That took {ticks} ticks of {turn.tick_s:g} s.")


async def _fail(turn: OfflineTurn) -> str:
    raise AgentError("You asked me to fail, so I did.", f"offline agent was told: {turn.said}")


async def _how_many(turn: OfflineTurn) -> str:
    before = sum(entry.role is Role.USER for entry in turn.request.history)
    return turn.reply(f"Your messages in this conversation before this one: {before}.")


TALKING = (
    phrase("echo TEXT", "repeats TEXT", r"echo\s+(.+)", say),
    phrase("count to N", "counts, one number a second", r"count\s+to\s+(\d+)", _count),
    phrase("slow [N]", "is silent for N seconds (30), then answers", r"slow(?:\s+(\d+))?", _slow),
    phrase(
        "how many messages",
        "counts the messages of this chat",
        r"(how many messages)\W*",
        _how_many,
    ),
    phrase("error", "fails; so does `fail`", r"(error|fail)\b.*", _fail),
)
"""Phrases in the order in which they are tried."""


# ---------------------------------------------------------------------------- tools

_ANNOUNCED = re.compile(
    r"^\[Subagent(?: [“\"](?P<label>[^\n]*?)[”\"])? (?P<how>[^\n\]“”\"]+)\]$", re.MULTILINE
)
"""The first line of a message with the result of a subagent."""


async def _tools(turn: OfflineTurn) -> str:
    specs = turn.request.tools.specs
    if not specs:
        return turn.reply("I may not call any tools here.")
    return turn.reply(
        "\n".join(["I may call:", *(f"- `{s.name}`: {s.description}" for s in specs)])
    )


async def _send_back(turn: OfflineTurn) -> str:
    path = f"sent/{turn.request.run_id}.txt"
    await turn.use("write_file", path=path, text=f"{turn.said}\n")
    await turn.use("send_file", path=path, name="note.txt")
    return turn.reply("Here it is.")


def _calls(tool: str, argument: str = "") -> Answer:
    """Call a tool with the text, and reply with its result."""

    async def answer(turn: OfflineTurn) -> str:
        return await turn.report(tool, **({argument: turn.said} if argument else {}))

    return answer


async def _write(turn: OfflineTurn) -> str:
    return await turn.report("write_file", path=turn.said, text=f"{turn.rest}\n")


async def _send(turn: OfflineTurn) -> str:
    return await turn.report("send_message", to=turn.said, text=turn.rest)


_remember = _calls("pin_fact", "text")


async def _ask_subagent(turn: OfflineTurn) -> str:
    said = await turn.use("spawn_subagent", task=turn.said, wait=True)
    return turn.reply(f"My subagent says: {said}")


async def _delegate(turn: OfflineTurn) -> str:
    said = await turn.use("delegate", agent=turn.said, task=turn.rest)
    return turn.reply(f"{turn.said} says: {said}")


async def _facts(turn: OfflineTurn) -> str:
    facts = [f"{number}. {fact}" for number, fact in enumerate(turn.request.pinned, 1)]
    return turn.reply("\n".join(facts) or "You have not asked me to remember anything here.")


async def _forget(turn: OfflineTurn) -> str:
    # A number of more digits is none of a fact, and int() would refuse thousands of them.
    by_number = turn.said.isdecimal() and len(turn.said) < 10
    fact: dict[str, object] = {"number": int(turn.said)} if by_number else {"text": turn.said}
    return await turn.report("unpin_fact", **fact)


TOOLING = (
    phrase("tools", "lists the tools that I can use", r"(tools)", _tools),
    phrase("file TEXT", "sends TEXT back as a file", r"file\s+(.+)", _send_back, "send_file"),
    phrase(
        "files", "lists the files in my workspace", r"files", _calls("list_files"), "list_files"
    ),
    phrase("read PATH", "shows a file", r"read\s+(\S.*)", _calls("read_file", "path"), "read_file"),
    phrase(
        "write PATH TEXT", "writes TEXT into a file", r"write\s+(\S+)\s+(.+)", _write, "write_file"
    ),
    phrase(
        "subagent PHRASE",
        "gives it to a subagent; you can continue",
        r"subagent\s+(.+)",
        _calls("spawn_subagent", "task"),
        "spawn_subagent",
    ),
    phrase(
        "ask subagent PHRASE",
        "the same, and waits for the result",
        r"ask\s+subagent\s+(.+)",
        _ask_subagent,
        "spawn_subagent",
    ),
    phrase(
        "delegate AGENT PHRASE",
        "gives it to another agent",
        r"delegate\s+(\S+)\s+(.+)",
        _delegate,
        "delegate",
    ),
    phrase(
        "send TARGET TEXT", "writes to another chat", r"send\s+(\S+)\s+(.+)", _send, "send_message"
    ),
    phrase("remember TEXT", "keeps a fact until /new", r"remember\s+(.+)", _remember, "pin_fact"),
    phrase("facts", "lists the facts that I keep", r"(facts)", _facts),
    phrase(
        "forget N",
        "forgets the fact with that number, or text",
        r"forget\s+(.+)",
        _forget,
        "unpin_fact",
    ),
)
"""Phrases in the order in which they are tried."""


def announced(prompt: str) -> str:
    """Return the reply to results of subagents; "" if ``prompt`` contains none.

    Several results may be one turn.
    """
    heads = list(_ANNOUNCED.finditer(prompt))
    if not heads or prompt[: heads[0].start()].strip():
        return ""
    ends = [head.start() for head in heads[1:]] + [len(prompt)]
    lines = []
    for head, end in zip(heads, ends, strict=True):
        who = f"Your subagent “{head['label']}”" if head["label"] else "Your subagent"
        said = prompt[head.end() : end].strip()
        verb = "says" if head["how"] == "finished" else head["how"]
        lines.append(f"{who} {verb}: {said}")
    return "\n".join(lines)


# ---------------------------------------------------------------------------- the checklist

_MOST = 50
_CHARS = 300

_GAP = r"[^\S\n]"
_OPEN = re.compile(
    rf"^{_GAP}*(?:[-*+]|\d{{1,9}}[.)]){_GAP}+\[ \]{_GAP}+(?P<text>\S.*)$", re.MULTILINE
)
_CODE = re.compile(
    rf"^{_GAP}*(`{{3,}}|~{{3,}})[^\n]*\n.*?^{_GAP}*\1{_GAP}*$", re.MULTILINE | re.DOTALL
)
_AT = r"- (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d(?::\d\d)?: "
_EVENTS = re.compile(rf"^Events:\n(?={_AT})", re.MULTILINE | re.ASCII)
_EVENT = re.compile(rf"^(?={_AT})", re.MULTILINE | re.ASCII)


async def heartbeat_run(turn: OfflineTurn) -> str:
    """Return what needs attention, or that nothing does (SPEC HB-5)."""
    found = needs_attention(turn.request.prompt)
    if not found:
        return turn.reply(HEARTBEAT_OK)
    lines = [f"- {_line(text)}" for text in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"- … and {len(found) - _MOST} more")
    return turn.reply("\n".join(["🔔 These need your attention:", *lines]))


def needs_attention(prompt: str) -> list[str]:
    """Return the open items and events in the prompt of a heartbeat run, as written."""
    checklist, *events = _EVENTS.split(prompt, maxsplit=1)
    found = [match["text"] for match in _OPEN.finditer(_CODE.sub("", checklist))]
    for section in events:
        found += [event.removeprefix("- ") for event in _EVENT.split(section) if event]
    return [text for text in found if not is_blank(text)]


def _line(text: str) -> str:
    # An item that speaks of the token would say that all is well.
    said = " ".join(without_token(unescaped(text)).split())
    return truncate(said, _CHARS) or "an item of the checklist"


async def _done(turn: OfflineTurn) -> str:
    return await turn.report("heartbeat", action="done", number=int(turn.said))


async def _status(turn: OfflineTurn) -> str:
    return await turn.report("heartbeat", action="status")


HEARTBEAT_ANSWERS = (
    phrase(
        "add to the checklist: TEXT",
        "adds an item to HEARTBEAT.md",
        r"add\s+to\s+(?:the\s+|my\s+|your\s+)?checklist\s*:?\s+(.+)",
        lambda turn: turn.report("heartbeat", action="add", text=turn.said),
    ),
    phrase(
        "show the checklist",
        "lists its open items",
        r"(?:show\s+)?(?:the\s+|my\s+|your\s+)?checklist",
        lambda turn: turn.report("heartbeat", action="show"),
    ),
    phrase("done N", "ticks off the item with that number", r"done\s+(\d{1,9})", _done),
    phrase("heartbeat", "shows the state of my heartbeat", r"heartbeat", _status),
)
"""Phrases in the order in which they are tried."""
