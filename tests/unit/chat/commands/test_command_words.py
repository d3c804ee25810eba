"""What is written behind a command is read, or its answer says that it was not (SPEC CMD-5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from goclaw_py.chat.outbound.texts import NEW_SESSION
from goclaw_py.core.messages import Attachment, FileKind
from goclaw_py.testing.agents import Block, ScriptedAgent
from tests.support.harness import a_process, message, until
from tests.support.memory_store import MemoryDatabase

UNREAD = "I did not read “{}” after the command. Send it by itself."


async def test_words_behind_new_are_the_first_message_of_the_new_conversation() -> None:
    async with a_process() as gateway:
        await gateway.ask("hello")
        await gateway.say("/new what is the capital of France?")
        await until(lambda: len(gateway.channel.texts("ann")) == 3)
        assert gateway.channel.texts("ann")[1] == NEW_SESSION
        assert gateway.scripted.prompts == ["hello", "what is the capital of France?"]
        assert (await gateway.texts_in_history())[0] == "what is the capital of France?"


async def test_words_behind_new_wait_for_nothing_that_it_stops() -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent) as gateway:
        await gateway.say("works")
        await agent.until_active(1)
        await gateway.say("\uff0fnew\u200b what now?")
        await until(lambda: agent.prompts == ["works", "what now?"])
        await until(lambda: gateway.pending == [])
        assert (await gateway.texts_in_history())[0] == "what now?"


async def test_words_behind_new_come_once_after_a_crash() -> None:
    database = MemoryDatabase()
    asked = message("/new what now?")
    async with a_process(ScriptedAgent(Block()), database=database) as first:
        await first.gateway.accept([asked])
        await first.scripted.until_active(1)
        first.kill()
    await asyncio.sleep(20)
    async with a_process(database=database) as second:
        await second.gateway.accept([replace(asked, redelivered=True)])
        await until(lambda: second.pending == [])
        assert second.scripted.prompts == ["what now?"]
        assert (await second.texts_in_history())[0] == "what now?"


async def test_an_edit_of_words_behind_new_is_an_edit_of_these_words() -> None:
    async with a_process() as gateway:
        asked = message("/new what now?")
        await gateway.gateway.accept([asked])
        await until(lambda: len(gateway.scripted.prompts) == 1)
        for number, text in enumerate(("/new what now?", "/new what then?")):
            edit = replace(asked, text=text, external_id=f"edit {number}", edits=asked.external_id)
            await gateway.gateway.accept([edit])
            await until(lambda: gateway.pending == [])
        said = await gateway.texts_in_history()
        assert said[:2] == ["what now?", "re: what now?"]
        assert [line.splitlines()[-1] for line in said[2:]] == ["what then?"]


async def test_a_photo_whose_caption_is_new_begins_the_new_conversation() -> None:
    async with a_process() as gateway:
        photo = Attachment(FileKind.PHOTO, "1")
        await gateway.gateway.accept([replace(message("/new"), attachments=(photo,))])
        await until(lambda: len(gateway.channel.texts("ann")) == 2)
        assert gateway.channel.texts("ann")[0] == NEW_SESSION
        assert len(gateway.scripted.requests) == 1


async def test_a_command_says_what_it_has_not_read() -> None:
    async with a_process() as gateway:
        for text, words in (
            ("/help me with Rome", "me with Rome"),
            ("/status and the weather?", "and the weather?"),
            ("/undo\nplease", "please"),
            ("/queue steer what now?", "what now?"),
            ("/stop and then tell me the time", "and then tell me the time"),
            ("/jobs pause the plants\nand rest", "and rest"),
            ("/cancel\u200b the\u200b trip", "the\u200b trip"),
        ):
            assert (await gateway.ask(text)).splitlines()[-1] == UNREAD.format(words)
        for text in (
            "/help",
            "/start ref_42",
            "/queue collect",
            "/stop \u200b",
            "/jobs run the plants",
        ):
            assert "I did not read" not in await gateway.ask(text)
        photo = replace(message("/status"), attachments=(Attachment(FileKind.PHOTO, "1"),))
        known = len(gateway.channel.texts("ann"))
        await gateway.gateway.accept([photo])
        await until(lambda: len(gateway.channel.texts("ann")) > known)
        assert gateway.channel.texts("ann")[-1].endswith(UNREAD.replace("“{}”", "the file"))
        assert gateway.scripted.prompts == []


async def test_a_stop_that_the_growing_reply_shows_still_says_what_it_has_not_read() -> None:
    agent = ScriptedAgent(Block())
    async with a_process(agent) as gateway:
        await gateway.say("works")
        await agent.until_active(1)
        said = await gateway.ask("/stop the other thing")
        assert said == f"Stopped.\n{UNREAD.format('the other thing')}"
        assert not agent.active
