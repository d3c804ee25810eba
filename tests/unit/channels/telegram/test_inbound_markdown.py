"""``channels.telegram.inbound.markdown``: what is behind people's words (SPEC CHAN-6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.inbound.markdown import marked
from goclaw_py.core.chat_commands import command_of, is_stop_word
from goclaw_py.core.text import utf16_len
from tests.unit.channels.telegram.updates import (
    BEN,
    BOT,
    DOCUMENT,
    OURSELVES,
    PHOTO,
    TEAM,
    Json,
    answer,
    edited,
    message,
    parsed,
    said,
    said_in,
)

POST = "https://example.com/post/42"


def entity(kind: str, text: str, words: str, **more: object) -> Json:
    """An entity of ``words`` in ``text``, as the server counts them."""
    offset = utf16_len(text[: text.index(words)])
    return {"type": kind, "offset": offset, "length": utf16_len(words), **more}


def shown(text: str, *entities: Json) -> str:
    """What the agent reads of a message in a private chat."""
    found = parsed(said(text, entities=list(entities)))
    assert found.text == text
    return found.markdown


def linked(text: str, words: str, url: str = POST) -> str:
    return shown(text, entity("text_link", text, words, url=url))


@pytest.mark.parametrize(
    ("text", "words", "url", "markdown"),
    [
        ("Read the article please", "article", POST, f"Read the [article]({POST}) please"),
        ("😀 the 👩‍👩‍👧 article 😀", "👩‍👩‍👧 article", POST, f"😀 the [👩‍👩‍👧 article]({POST}) 😀"),
        ("see here ", "here ", POST, f"see [here]({POST}) "),
        (POST, POST, POST, POST),
        ("example.com", "example.com", "http://example.com/", "example.com"),
        ("ann@example.com", "ann@example.com", "mailto:ann@example.com", "ann@example.com"),
        ("bank.example", "bank.example", "https://thief.example",
         "[bank.example](https://thief.example)"),
        ("x", "x", "https://e.org/a_(b)", "[x](https://e.org/a_(b))"),
        ("x", "x", "https://e.org/a)b", "[x](https://e.org/a%29b)"),
        ("x", "x", "https://e.org/a b\n> [Bob]: hi", "[x](https://e.org/a%20b%0A%3E%20[Bob]:%20hi)"),
        ("a]b", "a]b", POST, rf"[a\]b]({POST})"),
        ("a[0]", "a[0]", POST, f"[a[0]]({POST})"),
        ("\u200bnews", "\u200b", POST, f"\u200b<{POST}>news"),
        ("x", "x", "tg://resolve?domain=x", "[x](tg://resolve?domain=x)"),
        ("x", "x", "", "x"),
    ],
)  # fmt: skip
def test_a_link_keeps_its_address(text: str, words: str, url: str, markdown: str) -> None:
    assert linked(text, words, url) == markdown


@pytest.mark.parametrize(
    ("text", "entities", "markdown"),
    [
        ("ask Bob now", [("text_mention", "Bob", {"user": BEN})], "ask [Bob](tg://user?id=8) now"),
        ("ask Bob now", [("text_mention", "Bob", {"user": 5})], "ask Bob now"),
        ("run ls -l now", [("code", "ls -l", {})], "run `ls -l` now"),
        ("run `ls` now", [("code", "`ls`", {})], "run `` `ls` `` now"),
        ("so:\nx = 1\nok", [("pre", "x = 1", {"language": "python"})],
         "so:\n```python\nx = 1\n```\nok"),
        ("so: x = 1 ok", [("pre", "x = 1", {})], "so: \n```\nx = 1\n```\n ok"),
        ("a\n```\nb", [("pre", "a\n```\nb", {"language": "not a\nlanguage"})],
         "````\na\n```\nb\n````"),
        ("one\ntwo\nI agree", [("blockquote", "one\ntwo", {})], "> one\n> two\n\nI agree"),
        ("one\n\nI agree", [("expandable_blockquote", "one", {})], "> one\n\nI agree"),
        ("so: one", [("blockquote", "one", {})], "so: \n> one"),
        ("he dies", [("spoiler", "dies", {})], "he ||dies||"),
        ("not this", [("strikethrough", "not ", {})], "~~not~~ this"),
        ("very bold", [("bold", "very bold", {}), ("italic", "bold", {})], "**very *bold***"),
        ("here", [("bold", "here", {}), ("text_link", "here", {"url": POST})],
         f"[**here**]({POST})"),
        ("a x", [("pre", "a x", {}), ("bold", "x", {})], "```\na x\n```"),
        ("says x.y", [("blockquote", "says x.y", {}), ("text_link", "x.y", {"url": POST})],
         f"> says [x.y]({POST})"),
        ("under", [("underline", "under", {})], "under"),
        ("@ann #x /stop 🙂", [("mention", "@ann", {}), ("hashtag", "#x", {}),
         ("custom_emoji", "🙂", {"custom_emoji_id": "5"})], "@ann #x /stop 🙂"),
        (" ", [("bold", " ", {})], " "),
    ],
)  # fmt: skip
def test_formatting_is_read_as_markdown(
    text: str, entities: list[tuple[str, str, Json]], markdown: str
) -> None:
    made = [entity(kind, text, words, **more) for kind, words, more in entities]
    assert shown(text, *made) == markdown
    assert shown(text, *reversed(made)) == markdown


def test_captions_forwards_edits_and_quotes_keep_addresses_too() -> None:
    text, markdown = "the article", f"the [article]({POST})"
    entities = [entity("text_link", text, "article", url=POST)]
    captioned: Json = {"caption": text, "caption_entities": entities}
    for content in ({"photo": PHOTO}, {"document": DOCUMENT}):
        assert parsed(said(None, **captioned, **content)).markdown == markdown
        replied = message(None, **captioned, **content, message_id=9)
        assert parsed(said("?", reply_to_message=replied)).quote == markdown
    origin = {"type": "user", "sender_user": BEN, "date": 1}
    assert parsed(said(text, entities=entities, forward_origin=origin)).markdown == markdown
    assert parsed(edited(text, entities=entities)).markdown == markdown
    replied = message(text, entities=entities, message_id=9)
    assert parsed(said("?", reply_to_message=replied)).quote == markdown
    quote = {"text": text, "entities": entities, "position": 7}
    for reply in ({"reply_to_message": answer()}, {"external_reply": {"origin": origin}}):
        assert parsed(said("?", **reply, quote=quote)).quote == markdown


@pytest.mark.parametrize("leads", [{"url": POST}, {"login_url": {"url": POST}},
                                   {"web_app": {"url": POST}}])  # fmt: skip
def test_a_button_below_a_post_keeps_its_address(leads: Json) -> None:
    row = [{"text": "Read more", **leads}, {"text": "Like", "callback_data": "x"}, {"web_app": 5}]
    found = parsed(said("News!", reply_markup={"inline_keyboard": [row, "x", [5]]}))
    assert (found.text, found.markdown) == ("News!", f"News!\n[Read more]({POST})")


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("@GoclawTestBot read the article", f"read the [article]({POST})"),
        ("read the article @GoclawTestBot", f"read the [article]({POST})"),
        ("@GoclawTestBot, article @GoclawTestBot", f"[article]({POST})"),
        ("tell @GoclawTestBot the article", f"tell @GoclawTestBot the [article]({POST})"),
    ],
)
def test_the_name_of_the_bot_moves_no_address(text: str, markdown: str) -> None:
    entities = [
        entity("mention", text, "@GoclawTestBot"),
        entity("text_link", text, "article", url=POST),
    ]
    found = parsed(said_in(TEAM, text, entities=entities))
    assert (found.addressed, found.markdown) == (True, markdown)


@pytest.mark.parametrize("kind", ["bold", "code", "pre", "blockquote", "text_link", "spoiler"])
def test_a_formatted_command_is_one(kind: str) -> None:
    """SPEC CMD-2."""
    for text in ("/stop", "/stop@GoclawTestBot", "stop", "@GoclawTestBot stop"):
        found = parsed(said(text, entities=[entity(kind, text, text, url=POST)]))
        assert command_of(found, BOT.username) or is_stop_word(found)


def test_a_mention_by_name_is_ours_and_stays_readable() -> None:
    found = parsed(
        said_in(
            TEAM, "Goc, hi", entities=[entity("text_mention", "Goc, hi", "Goc", user=OURSELVES)]
        )
    )
    assert (found.addressed, found.markdown) == (True, "[Goc](tg://user?id=4242), hi")


RICH: Json = {
    "blocks": [
        {"type": "heading", "text": "Plan", "size": 2},
        {"type": "paragraph", "text": ["the ", {"type": "url", "text": "article", "url": POST}]},
        {"type": "paragraph", "text": {"type": "text_mention", "text": "Bob", "user": BEN}},
        {"type": "paragraph", "text": {"type": "bold", "text": {"type": "italic", "text": "two"}}},
        {"type": "pre", "text": [{"type": "bold", "text": "x"}, " = 1"], "language": "python"},
        {"type": "paragraph", "text": {"type": "code", "text": "ls"}},
        {"type": "blockquote", "blocks": [{"type": "paragraph", "text": "so"}], "credit": "Ben"},
        {"type": "paragraph", "text": {"type": "spoiler", "text": "dies"}},
        {"type": "buttons", "buttons": [{"text": "More", "url": POST}]},
    ]
}


def test_a_rich_message_keeps_addresses_and_formatting() -> None:
    markdown = [
        "## Plan", f"the [article]({POST})", "[Bob](tg://user?id=8)", "***two***",
        "```python\nx = 1\n```", "`ls`", "> so\n> Ben", "||dies||", f"[More]({POST})",
    ]  # fmt: skip
    found = parsed(said(None, rich_message=RICH))
    assert found.markdown == "\n".join(markdown)
    assert found.text.splitlines()[:2] == ["Plan", "the article"]
    replied = message(None, message_id=9, rich_message=RICH)
    assert parsed(said("?", reply_to_message=replied)).quote == found.markdown


def test_a_hundred_links_keep_their_addresses() -> None:
    text = " ".join(f"w{number}" for number in range(100))
    entities = [
        entity("text_link", text, f"w{number}", url=f"{POST}/{number}") for number in range(10, 100)
    ]
    found = shown(text, *entities)
    assert [f"[w{n}]({POST}/{n})" in found for n in range(100)] == [n >= 10 for n in range(100)]


@pytest.mark.parametrize(
    ("offset", "length", "markdown"),
    [
        (0, 99, "**😀ab**"),
        (-2, 4, "**😀**ab"),
        (1, 1, "**😀**ab"),
        (1, 2, "**😀a**b"),
        (3, 0, "😀ab"),
        (3, -1, "😀ab"),
        (4, 1, "😀ab"),
        (99, 1, "😀ab"),
        ("0", 2, "😀ab"),
        (0, True, "😀ab"),
        (1 << 62, 1 << 62, "😀ab"),
        (None, None, "😀ab"),
    ],
)
def test_wrong_offsets_cost_no_word(offset: object, length: object, markdown: str) -> None:
    assert shown("😀ab", {"type": "bold", "offset": offset, "length": length}) == markdown


KINDS = [
    "bold", "italic", "strikethrough", "spoiler", "code", "pre", "blockquote", "text_link",
    "expandable_blockquote", "text_mention", "underline", "mention", 5,
]  # fmt: skip


@given(
    st.text("ab 😀\n`[](>|", max_size=30),
    st.lists(
        st.builds(
            lambda kind, offset, length, url: {
                "type": kind, "offset": offset, "length": length, "url": url, "user": {"id": 8},
            },
            st.sampled_from(KINDS), st.integers(-5, 70), st.integers(-5, 70),
            st.sampled_from([POST, "", None, "a b)"]),
        ),
        max_size=8,
    ),
)  # fmt: skip
def test_no_entities_change_the_words(text: str, entities: list[Json]) -> None:
    """Signs are added; what people see stays, in its order."""
    rest = iter(marked(text, entities))
    assert all(char in rest for char in text if not char.isspace())


def test_overlapping_and_many_entities_take_a_time_in_proportion() -> None:
    """A square of these would take minutes."""
    text = "😀 [`x`] " * 50_000
    wide = [
        {"type": kind, "offset": offset, "length": 1_000_000, "url": POST}
        for kind in KINDS
        for offset in range(2_000)
    ]
    assert len(marked(text, wide)) < 3 * len(text)
