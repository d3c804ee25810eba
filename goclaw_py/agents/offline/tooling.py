"""What the offline agent does with tools: the same ones that models call."""

from __future__ import annotations

import re

from goclaw_py.agents.offline.turn import OfflineTurn, phrase

_ANNOUNCED = re.compile(
    r"^\[Subagent(?: [“\"](?P<label>[^\n]*?)[”\"])? (?P<how>[^\n\]“”\"]+)\]$", re.MULTILINE
)
"""The first line of a message that brings the result of a subagent."""


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


async def _files(turn: OfflineTurn) -> str:
    return turn.reply(await turn.use("list_files"))


async def _read(turn: OfflineTurn) -> str:
    return turn.reply(await turn.use("read_file", path=turn.said))


async def _write(turn: OfflineTurn) -> str:
    return turn.reply(await turn.use("write_file", path=turn.said, text=f"{turn.rest}\n"))


async def _subagent(turn: OfflineTurn) -> str:
    return turn.reply(await turn.use("spawn_subagent", task=turn.said))


async def _ask_subagent(turn: OfflineTurn) -> str:
    said = await turn.use("spawn_subagent", task=turn.said, wait=True)
    return turn.reply(f"My subagent says: {said}")


async def _delegate(turn: OfflineTurn) -> str:
    said = await turn.use("delegate", agent=turn.said, task=turn.rest)
    return turn.reply(f"{turn.said} says: {said}")


async def _send(turn: OfflineTurn) -> str:
    return turn.reply(await turn.use("send_message", to=turn.said, text=turn.rest))


async def _remember(turn: OfflineTurn) -> str:
    return turn.reply(await turn.use("pin_fact", text=turn.said))


async def _facts(turn: OfflineTurn) -> str:
    facts = [f"{number}. {fact}" for number, fact in enumerate(turn.request.pinned, 1)]
    return turn.reply("\n".join(facts) or "You have not asked me to remember anything here.")


async def _forget(turn: OfflineTurn) -> str:
    # A number of more digits is none of a fact, and int() would refuse thousands of them.
    by_number = turn.said.isdecimal() and len(turn.said) < 10
    fact: dict[str, object] = {"number": int(turn.said)} if by_number else {"text": turn.said}
    return turn.reply(await turn.use("unpin_fact", **fact))


TOOLING = (
    phrase("tools", "lists the tools that I can use", r"(tools)", _tools),
    phrase("file TEXT", "sends TEXT back as a file", r"file\s+(.+)", _send_back),
    phrase("files", "lists the files in my workspace", r"(files)", _files),
    phrase("read PATH", "shows a file", r"read\s+(\S.*)", _read),
    phrase("write PATH TEXT", "writes TEXT into a file", r"write\s+(\S+)\s+(.+)", _write),
    phrase(
        "subagent PHRASE", "gives it to a subagent; you can continue", r"subagent\s+(.+)", _subagent
    ),
    phrase(
        "ask subagent PHRASE",
        "the same, and waits for the result",
        r"ask\s+subagent\s+(.+)",
        _ask_subagent,
    ),
    phrase(
        "delegate AGENT PHRASE", "gives it to another agent", r"delegate\s+(\S+)\s+(.+)", _delegate
    ),
    phrase("send TARGET TEXT", "writes to another chat", r"send\s+(\S+)\s+(.+)", _send),
    phrase("remember TEXT", "keeps a fact until /new", r"remember\s+(.+)", _remember),
    phrase("facts", "lists the facts that I keep", r"(facts)", _facts),
    phrase("forget N", "forgets the fact with that number, or text", r"forget\s+(.+)", _forget),
)
"""Phrases in the order in which they are tried."""


def announced(prompt: str) -> str:
    """What to say when subagents have sent their results; "" if ``prompt`` is nothing like that.

    Several results may have become one turn.
    """
    heads = list(_ANNOUNCED.finditer(prompt))
    if not heads or prompt[: heads[0].start()].strip():
        return ""
    ends = [head.start() for head in heads[1:]] + [len(prompt)]
    lines = []
    for head, end in zip(heads, ends, strict=True):
        who = " ".join(filter(None, ["Your subagent", head["label"]]))
        said = prompt[head.end() : end].strip()
        verb = "says" if head["how"] == "finished" else head["how"]
        lines.append(f"{who} {verb}: {said}")
    return "\n".join(lines)
