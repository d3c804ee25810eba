"""Programs as agents: real processes (SPEC AGENT-2b, SEC-4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import uvloop

from goclaw_py.agents.command import CommandSpec, OutputKind, UsagePaths
from goclaw_py.core.errors import AgentError
from goclaw_py.core.messages import HistoryEntry, Role
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import TextDelta, Usage
from goclaw_py.core.run_steps import ValueStep
from goclaw_py.core.text import well_formed
from goclaw_py.runs.agent_loop import LoopEvent, ModelStep
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.testing.clock import LoopClock
from tests.unit.agents.programs import agent, ask, python, refused, request, until

pytestmark = pytest.mark.real_time

# ---------------------------------------------------------------------------- asking


async def test_the_prompt_comes_on_stdin_and_the_output_is_the_reply(tmp_path: Path) -> None:
    spec = CommandSpec(python("import sys; print(sys.stdin.read().upper(), end='')"))
    result = await ask(spec, "grüß dich\nzwei", tmp_path)
    assert result.text == "GRÜSS DICH\nZWEI"
    assert [entry.text for entry in result.entries] == ["grüß dich\nzwei", result.text]


async def test_the_prompt_may_be_an_argument_and_no_shell_sees_it(tmp_path: Path) -> None:
    spec = CommandSpec(python("import sys; print(sys.argv[1:], sys.stdin.read())", "-p={prompt}"))
    result = await ask(spec, "$(id); {session} 'x' {prompt}", tmp_path)
    assert result.text.strip() == str(["-p=$(id); {session} 'x' {prompt}"])


async def test_it_works_in_the_workspace_with_a_minimal_environment(tmp_path: Path) -> None:
    """SPEC SEC-4."""
    code = "import os, json; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    made = agent(
        CommandSpec(python(code), env=("GIVEN", "MISSING")), GIVEN="yes", SECRET="no", HOME="/h"
    )
    result = await made.run(request("", tmp_path), lambda _: None)
    folder, environment = json.loads(result.text)
    assert Path(folder) == tmp_path.resolve()
    assert environment.keys() - {"LC_CTYPE"} == {"PATH", "HOME", "GIVEN", "GOCLAW_RUN_ID"}


async def test_the_reply_is_streamed(tmp_path: Path) -> None:
    code = "import time\nfor n in range(3): print(n, flush=True); time.sleep(0.1)"
    seen: list[LoopEvent] = []
    result = await agent(CommandSpec(python(code))).run(request("", tmp_path), seen.append)
    said = [one.text for one in seen if isinstance(one, TextDelta)]
    assert len(said) == 3
    assert "".join(said) == result.text


async def test_a_character_that_is_cut_between_two_reads_is_whole(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfor b in '€ü𝄞'.encode(): "
        "sys.stdout.buffer.write(bytes([b])); sys.stdout.flush(); time.sleep(0.02)"
    )
    assert (await ask(CommandSpec(python(code)), "", tmp_path)).text == "€ü𝄞"


# ---------------------------------------------------------------------------- instructions

ECHO = python("import sys; print(sys.argv[1:], sys.stdin.read(), end='')")


BRIEF = ("Be brief.", " ")
ANN = ("Ann is 7.",)
BOTH = "<instructions>\nBe brief.\n\nFacts to remember:\n- Ann is 7.\n</instructions>"


@pytest.mark.parametrize(
    ("arguments", "prompt", "system", "pinned", "said"),
    [
        ((), "Hi", (), (), "[] Hi"),
        ((), "Hi", BRIEF, ANN, f"[] {BOTH}\n\nHi"),
        (("--system", "{system}"), "Hi {system}", ("Say {prompt}.", ), (),
         "['--system', 'Say {prompt}.'] Hi {system}"),
        (("{prompt}", ), "Hi", BRIEF, (),
         str(["<instructions>\nBe brief.\n</instructions>\n\nHi"]) + " "),
    ],
    ids=["none", "before the prompt", "in an argument", "before a prompt in an argument"],
)  # fmt: skip
async def test_the_instructions_of_a_run_have_a_place_and_are_marked(
    tmp_path: Path,
    arguments: tuple[str, ...],
    prompt: str,
    system: tuple[str, ...],
    pinned: tuple[str, ...],
    said: str,
) -> None:
    """SPEC AGENT-7: the prompt stays as it is, apart from them."""
    asked = replace(request(prompt, tmp_path), system=system, pinned=pinned)
    result = await agent(CommandSpec((*ECHO, *arguments))).run(asked, lambda _: None)
    assert (result.text, result.entries[0].text) == (said, prompt)


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [
        (("{prompt}",), (), ("['Hi'] ", "[] Hi")),
        ((), ("{prompt}",), ("[] Hi", "['Hi'] ")),
        ((), (), ("[] Hi", "[] Hi")),
    ],
)
async def test_the_prompt_is_on_stdin_unless_the_arguments_of_that_run_have_it(
    tmp_path: Path, first: tuple[str, ...], later: tuple[str, ...], expected: tuple[str, str]
) -> None:
    spec = CommandSpec(ECHO, first=first, later=later)
    begun = await ask(spec, "Hi", tmp_path)
    assert (begun.text, (await ask(spec, "Hi", tmp_path, *begun.entries)).text) == expected


async def test_what_was_said_to_another_agent_is_told_once_and_as_no_instruction(
    tmp_path: Path,
) -> None:
    asked = replace(request("Go on.", tmp_path), summary="They like tea.")
    spec = CommandSpec((*ECHO, "{system}"))
    first = await agent(spec).run(asked, lambda _: None)
    later = await agent(spec).run(replace(asked, history=first.entries), lambda _: None)
    assert first.text == "[''] [What was said before this, in short]\nThey like tea.\n\nGo on."
    assert later.text == "[''] Go on."


# ---------------------------------------------------------------------------- not started


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_prompt_that_no_argument_can_hold_is_told_in_plain_words(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    spec = CommandSpec(python("pass", "{prompt}"))
    with asyncio.Runner(loop_factory=loop) as runner:
        error = runner.run(refused(spec, "x" * 200_000, tmp_path))
    assert error.friendly.startswith("Your message is too long for this agent program.")
    assert "take {prompt} out of agents.main.command, then it comes on standard" in str(error)
    assert len(str(error)) < 1_000


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_what_no_argument_can_hold_cuts_nothing_off(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop], text: str
) -> None:
    spec = CommandSpec(python("import sys; print(ascii(sys.argv[1]))", "{prompt}"))
    with asyncio.Runner(loop_factory=loop) as runner:
        said = runner.run(ask(spec, text, tmp_path)).text.strip()
    assert said in (ascii("a\ufffdb"), ascii("a?b"))


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_program_that_cannot_be_started_is_a_failure_that_names_the_cause(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    (tmp_path / "plain").write_text("no program")
    cases = [
        (CommandSpec(("no-such-program",)), tmp_path, "no-such-program: No such file"),
        (CommandSpec((str(tmp_path / "plain"),)), tmp_path, "plain: Permission denied"),
        (CommandSpec((str(tmp_path),)), tmp_path, "Permission denied"),
        (CommandSpec(python("pass")), tmp_path / "gone", "gone is not there"),
    ]
    with asyncio.Runner(loop_factory=loop) as runner:
        for spec, folder, cause in cases:
            error = runner.run(refused(spec, "", folder))
            assert error.friendly == "The agent program could not be started."
            assert cause in str(error)


# ---------------------------------------------------------------------------- JSON lines


def lines(*values: object, **paths: object) -> CommandSpec:
    """A program that prints these, and then what its arguments are."""
    code = (
        "import sys, json\nfor line in json.loads(sys.argv[1]): "
        "print(line if isinstance(line, str) else json.dumps(line))"
    )
    return CommandSpec(
        python(code, json.dumps(values)),
        output=OutputKind.JSONL,
        **paths,  # type: ignore[arg-type]  # the fields of a spec, by name
    )


@pytest.mark.parametrize(
    ("spec", "reply"),
    [
        (lines({"type": "start", "text": 7}, "a line of a log",
         {"message": {"content": [{"type": "text", "text": "Hel"}, {"type": "tool"}]}},
         {"item": {"text": "lo"}}, [1], text=("message.content.*.text", "item.text")), "Hello"),
        (
            lines(
                {"type": "message", "role": "user", "content": "my own question"},
                {"type": "message", "role": "assistant", "content": "One."},
                {"type": "item", "item": {"type": "reasoning", "text": "hm"}},
                {"type": "item", "item": {"type": "agent_message", "text": "Two."}},
                text=("type=message role=assistant content", "item.type=agent_message item.text"),
                join="\n\n",
            ),
            "One.\n\nTwo.",
        ),
        (lines({"t": "dra"}, {"t": "ft"}, {"result": "Final."}, text=("t",), result="result"),
         "Final."),
    ],
    ids=["pieces", "conditions", "the whole reply wins"],
)  # fmt: skip
async def test_the_lines_that_are_meant_are_the_reply(
    tmp_path: Path, spec: CommandSpec, reply: str
) -> None:
    assert (await ask(spec, "", tmp_path)).text == reply


async def test_lines_with_halves_of_surrogate_pairs_are_read(tmp_path: Path) -> None:
    spec = lines({"t": "party \ud83c"}, {"t": "\udf89 time"}, {"t": " \ud83d"}, text=("t",))
    assert well_formed((await ask(spec, "", tmp_path)).text) == "party 🎉 time \ufffd"


async def test_lines_with_bytes_that_are_no_text_are_read(tmp_path: Path) -> None:
    pieces = (
        b'{"t": "a\xffb"}\n{"t": "c\0d\xf0\x9f',
        b'\x98\x80"}\n{"t": "\xf0\x9f"}\n',
    )
    code = (
        f"import os, time\nfor piece in {pieces}:\n    os.write(1, piece)\n    time.sleep(0.05)\n"
    )
    spec = CommandSpec(python(code), output=OutputKind.JSONL, text=("t",))
    assert (await ask(spec, "", tmp_path)).text == "a\ufffdbc\0d😀\ufffd"


async def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    code = "print('{\"t\": \"' + 'y' * 5_000_000 + '\"}')\nprint('{\"t\": \"after it\"}')"
    spec = CommandSpec(python(code), output=OutputKind.JSONL, text=("t",))
    assert (await ask(spec, "", tmp_path)).text == "after it"


# ---------------------------------------------------------------------------- conversations


async def test_a_conversation_has_an_id_of_its_own_until_it_is_reset(tmp_path: Path) -> None:
    spec = CommandSpec(
        python("import sys; print(*sys.argv[1:])"),
        first=("new", "{session}"),
        later=("resume", "{session}"),
    )
    first = await ask(spec, "", tmp_path)
    later = await ask(spec, "", tmp_path, *first.entries)
    again = await ask(spec, "", tmp_path, *first.entries, *later.entries)
    other = await ask(spec, "", tmp_path)
    word, session = first.text.split()
    assert word == "new"
    assert later.text.split() == again.text.split() == ["resume", session]
    assert other.text.split()[1] != session


async def test_the_id_may_be_the_programs_own(tmp_path: Path) -> None:
    spec = lines({"thread": {"id": "t-77"}}, {"t": "hi"}, text=("t",), session="thread.id")
    first = await ask(spec, "", tmp_path)
    later = CommandSpec(python("import sys; print(*sys.argv[1:])"), later=("{session}",))
    assert (await ask(later, "", tmp_path, *first.entries)).text.strip() == "t-77"


@pytest.mark.parametrize(
    ("told", "kept"),
    [("t-\ud83d", "t-\ufffd"), ("t-\ud83d\ude00\0", "t-😀\ufffd"), ("t" * 1_001, None)],
    ids=["half of a pair", "NUL", "no argument can be so long"],
)
async def test_any_id_of_a_conversation_can_be_kept(
    tmp_path: Path, told: str, kept: str | None
) -> None:
    """The answer was lost for an id with half of a UTF-16 pair."""
    spec = lines({"id": told}, {"t": "hi"}, text=("t",), session="id")
    seen: list[LoopEvent] = []
    resumable = replace(spec, resume=("{session}",))
    first = await agent(resumable).run(request("", tmp_path), seen.append)
    assert first.text == "hi"
    (step,) = [one for one in seen if isinstance(one, ValueStep)] if kept else [None]
    assert step is None or json.loads(step.value) == kept
    later = CommandSpec(python("import sys; print(*sys.argv[1:])"), later=("{session}",))
    given = (await ask(later, "", tmp_path, *first.entries)).text.strip()
    assert given == kept or (kept is None and len(given) == 36)


async def cut_after(
    spec: CommandSpec, words: str, folder: Path, note: Outcome
) -> list[HistoryEntry]:
    """What is remembered of a run that is cut after these words."""
    progress, clock = RunRecorder(), LoopClock()

    def hear(event: LoopEvent) -> None:
        progress.on_event(event, clock)

    run = asyncio.create_task(agent(spec).run(request("Hi", folder), hear))
    await until(lambda: words in progress.text)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    return list(progress.history("Hi", note))


async def test_a_stop_does_not_end_the_conversation(tmp_path: Path) -> None:
    talking = CommandSpec(
        python("import sys, time; print(sys.argv[1], flush=True); time.sleep(60)", "{session}")
    )
    entries = await cut_after(talking, "\n", tmp_path, Outcome.CANCELLED)
    assert [entry.role for entry in entries] == [Role.USER, Role.ASSISTANT]
    session, note = entries[1].text.split()
    assert note == "[cancelled]"
    later = CommandSpec(python("import sys; print(sys.argv[1])"), later=("{session}",))
    assert (await ask(later, "", tmp_path, *entries)).text.strip() == session


async def test_one_that_has_failed_at_once_is_not_gone_on_with(tmp_path: Path) -> None:
    """It may have said only that it cannot: what it would go on with may not be there."""
    progress, clock = RunRecorder(), LoopClock()
    spec = CommandSpec(python("print('no key'); exit(1)"))
    with pytest.raises(AgentError):
        await agent(spec).run(
            request("Hi", tmp_path), lambda event: progress.on_event(event, clock)
        )
    entries = progress.history("Hi", Outcome.FAILED)
    assert [entry.native for entry in entries] == [None, None]
    assert entries[1].text == "no key\n\n[failed]"


# ---------------------------------------------------------------------------- usage

PATHS = UsagePaths(
    input=("type=result usage.input_tokens", "type=result usage.cached"),
    output=("type=result usage.output_tokens",),
    cost=("type=result total_cost_usd",),
    turns=("type=result turns",),
)


async def test_what_it_tells_that_it_has_used_counts(tmp_path: Path) -> None:
    """SPEC AGENT-5."""
    spec = lines(
        {"type": "turn", "usage": {"input_tokens": 1}},
        {
            "type": "result",
            "usage": {"input_tokens": 7, "cached": 100, "output_tokens": 5},
            "total_cost_usd": 0.0125,
            "turns": 3,
        },
        text=("t",),
        usage=PATHS,
    )
    seen: list[LoopEvent] = []
    result = await agent(spec).run(request("", tmp_path), seen.append)
    assert result.usage == Usage(3, 107, 5, cost_usd=Decimal("0.0125"))
    last = seen[-1]
    assert isinstance(last, ModelStep)
    assert (last.usage, last.done) == (result.usage, True)


async def test_the_last_number_counts_and_what_is_none_is_ignored(tmp_path: Path) -> None:
    wrong: list[object] = ["12", True, None, -1, 1.5, 10**13, 1e300, [3], {"a": 1}, 10**30]
    spec = lines(
        {"in": 3, "cost": 0.5},
        {"in": 4},
        *({"in": value} for value in wrong),
        *({"cost": value} for value in wrong if value != 1.5),
        '{"in": NaN}',
        '{"in": 9',
        text=("t",),
        usage=UsagePaths(input=("in",), cost=("cost",)),
    )
    assert (await ask(spec, "", tmp_path)).usage == Usage(1, 4, 0, cost_usd=Decimal("0.5"))


async def test_a_run_of_which_nothing_is_told_is_one_request(tmp_path: Path) -> None:
    assert (await ask(CommandSpec(python("print(1)")), "", tmp_path)).usage == Usage(requests=1)


async def test_a_run_that_fails_has_used_what_it_told(tmp_path: Path) -> None:
    spec = CommandSpec(
        python("print('{\"in\": 9}'); exit(1)"),
        output=OutputKind.JSONL,
        text=("t",),
        usage=UsagePaths(input=("in",)),
    )
    seen: list[LoopEvent] = []
    with pytest.raises(AgentError):
        await agent(spec).run(request("", tmp_path), seen.append)
    assert [one.usage for one in seen if isinstance(one, ModelStep)][-1] == Usage(1, 9)
