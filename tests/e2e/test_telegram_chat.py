"""Telegram as its user meets it: real gateway process, real client library, strict emulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from channels.telegram.settings import Library
from goclaw_py.chat.access import access_texts
from tests.botapi.control import Control
from tests.support.process import Home, home, telegram, wait_for

ANN = 1001
BOB = 1002
GROUP = -1001


def answered(api: Control, chat: int, words: str) -> bool:
    return any(words in text for text in api.texts(chat))


def _press(api: Control, chat: int, message_id: int, label: str) -> None:
    """Press a button of a message when it is there."""

    def data() -> list[str]:
        (seen,) = [seen for seen in api.view(chat) if seen.message_id == message_id]
        return [b.data or "" for row in seen.buttons for b in row if label in b.text]

    api.press(chat, message_id, wait_for(data, f"button {label}")[0])


@pytest.mark.parametrize("library", Library)
def test_the_first_owner_is_let_in_by_a_code_and_lets_the_next_in_by_a_button(
    tmp_path: Path, api: Control, library: Library
) -> None:
    """CHAN-5: one code that can be tapped; who is let in is told, and answered what they wrote."""
    chosen = {"GOCLAW_CHANNELS__TELEGRAM__LIBRARY": library.value}
    with home(tmp_path / "home", **telegram(api, **chosen)) as place:
        place.start()
        api.say(ANN, "echo I am Ann")
        (greeting,) = wait_for(lambda: api.texts(ANN), "a pairing code")
        code = re.findall(r"\b[A-Z2-9]{8}\b", greeting)[0]
        assert "goclaw" not in greeting
        (sent,) = api.wait_calls("sendMessage", ok=True)
        assert f"<code>{code}</code>" in str(sent.parameters["text"])
        exit_code, output = place.goclaw("people", "approve", code)
        assert (exit_code, "owner" in output) == (0, True), output
        assert place.goclaw("people", "approve", code, "--yes")[0] == 1
        wait_for(lambda: answered(api, ANN, "I am Ann"), "an answer to what she wrote")
        assert api.texts(ANN)[1] == access_texts.WELCOME

        api.say(BOB, "echo I am Bob", name="Bob")
        wait_for(lambda: api.texts(BOB), "a code for another stranger")
        (asks,) = wait_for(lambda: [seen for seen in api.view(ANN) if seen.buttons], "a question")
        assert asks.text.startswith("Bob ")
        for label in ("As owner", "Back", "As guest"):
            _press(api, ANN, asks.message_id, label)
        wait_for(lambda: answered(api, BOB, "I am Bob"), "an answer to what he wrote")
        assert api.texts(BOB)[1] == access_texts.WELCOME
        wait_for(lambda: answered(api, ANN, "✅ Approved as guest by Ann"), "what was decided")
        assert not [seen for seen in api.view(ANN) if seen.buttons]
        wait_for(lambda: api.presses()[2].text, "a toast")
        assert api.presses()[2].text == "✅ Bob can talk to me now, as a guest."
        _, listed = place.goclaw("people", "list")
        assert re.search(rf"{BOB} .* guest", listed), listed


@pytest.mark.smoke
def test_stop_reaches_a_running_task_and_ends_its_typing(bot: Home, api: Control) -> None:
    """CMD-1, CMD-3, CHAN-4."""
    bot.start()
    api.say(ANN, "count to 30")
    api.wait_calls("sendChatAction")
    api.wait_texts(ANN)  # it shows its reply while that grows, so it has begun
    api.say(ANN, "/stop")
    wait_for(lambda: answered(api, ANN, "Stopped."), "the answer to /stop")
    wait_for(
        lambda: [run["outcome"] for run in bot.rows("runs", "list")] == ["cancelled"], "its row"
    )
    api.say(ANN, "echo next")
    wait_for(lambda: answered(api, ANN, "next"), "the next answer")
    assert not answered(api, ANN, "30")


def test_the_answer_arrives_after_kill_9_and_a_restart(bot: Home, api: Control) -> None:
    """IO-2."""
    gateway = bot.start()
    api.say(ANN, "count to 3")
    api.wait_calls("sendChatAction")
    gateway.kill()
    bot.start()
    wait_for(lambda: answered(api, ANN, "3"), "the answer after the restart")
    assert len(api.texts(ANN)) == 1


def test_a_wrong_token_is_one_clear_line_and_the_gateway_goes_on(
    tmp_path: Path, api: Control
) -> None:
    """CHAN-8: the only channel cannot connect; everything else works."""
    settings = telegram(api) | {"GOCLAW_TELEGRAM_TOKEN": "123456:WRONG-token-WRONG-token-WRONG-tok"}
    with home(tmp_path / "home", **settings) as place:
        gateway = place.start()

        def told() -> bool:
            return "does not accept this bot token" in place.goclaw("status")[1]

        wait_for(told, "the reason in the status")
        gateway.end()
        assert gateway.output.count("does not accept this bot token") == 1
        assert "WRONG" not in gateway.output
        assert "Traceback" not in gateway.output


def test_a_group_is_silent_until_it_is_allowed(bot: Home, api: Control) -> None:
    """CHAN-5, CHAN-6: listed for the operator; then answers reply to questions, in their topic."""
    bot.start()
    api.add_group(GROUP, "Friends", topics=[7])
    api.say(BOB, "@GoclawTestBot echo hello", chat_id=GROUP, thread=7)
    wait_for(
        lambda: "Friends" in bot.goclaw("people", "groups", "list")[1], "the group to be listed"
    )
    assert api.texts(GROUP) == []
    exit_code, output = bot.goclaw("people", "groups", "allow", "Friends")
    assert exit_code == 0, output

    def answers() -> list[str]:
        api.say(BOB, "@GoclawTestBot echo now?", chat_id=GROUP, thread=7)
        return api.texts(GROUP)

    wait_for(answers, "an answer in the group")
    (first, *_) = [seen for seen in api.view(GROUP) if seen.mine]
    assert (first.text.partition("\n")[0], first.thread) == ("now?", 7)
    assert first.reply_to is not None


def test_a_million_characters_come_back_whole(bot: Home, api: Control) -> None:
    """IO-1, CHAN-3: one turn of 245 updates in, 245 messages out, in order."""
    queue = {"DEBOUNCE_MS": "100", "TURN_MESSAGES": "1000", "TURN_CHARS": "2000000"}
    bot.env |= {f"GOCLAW_QUEUE__{key}": value for key, value in queue.items()}
    bot.start()
    text = "".join(f"{number:07}" for number in range(100_000))
    api.say(ANN, f"echo {text}")
    wait_for(lambda: "".join(api.texts(ANN)).endswith("0099999"), "the end")
    assert "".join(api.texts(ANN)) == text
