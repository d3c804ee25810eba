"""Checks that a reply is split into messages that the channel accepts, without loss."""

from __future__ import annotations

import re
from functools import partial

from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.text import is_blank
from goclaw_py.testing.conformance.check import Check, add, check
from goclaw_py.testing.conformance.scene import Scene, require
from goclaw_py.testing.conformance.sending import arrives, shown

_MARKDOWN = """# Title

A **bold** and an *inclined* word, `code`, ~~gone~~ and [a link](https://example.org/).

> quoted
> twice

1. first
2. second
   - below

| name | size |
|---|---|
| ann | 12 |

```py
if x < 1 and y > 2:
    print("&amp;")
```

Unfinished **business, `code and
```
the rest"""

_REPLIES = {
    "a short one": "It is five.",
    "one with Markdown": _MARKDOWN,
    "a long one": " ".join(f"word{number}" for number in range(4_000)),
    "a long one without blanks": "0123456789" * 1_500,
    "long lines of code": "```\n" + "".join(f"line {n} = {'x' * 300}\n" for n in range(60)) + "```",
    "one with lone surrogates": "before \ud83d between \udc00 after",
    "one with control characters": "before \x00 between \x1b[31m \x07 after",
    "one that turns its direction": "before \u202e between \u2066 after",
    "one of long characters": "start "
    + "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 900
    + " end",
    "one with many accents": "start z" + "\u0301" * 9_000 + " end",
    "one of open brackets": "start " + "[" * 3_000 + "*" * 3_000 + " end",
    "one of tags": "start <b><i></b> &lt; &bogus; <script>x</script> end",
}
"""Replies that must arrive."""

_UNSEEN = re.compile(r"\]\([^)]*\)|^```\w+|&lt;", re.MULTILINE)
"""Parts that Markdown may show differently: link addresses, code languages, entities."""

_NOTHING = ("", " ", "\n \t\n", "\u200b", "\x00")
"""Replies without visible characters."""


async def _arrives_whole(scene: Scene, reply: str) -> None:
    rig = scene.rig
    parts = rig.channel.parts(reply)
    require(parts, "something of it is left")
    require(rig.channel.parts(reply) == parts, "the same text is cut in the same way again")
    visible = ""
    for part in parts:
        require(not is_blank(part), f"no part is blank: {part!r}")
        message = OutboundMessage(rig.ann, part, rich=True)
        seen = await shown(scene, rig.ann, await scene.call(rig.channel.send(message)))
        visible += seen.text
        require(
            _is_within(_letters(seen.text), _letters(rig.channel.readable(part))),
            "what is readable of a message has all that the chat shows of it",
        )
    require(
        _is_within(_letters(_UNSEEN.sub("", reply)), _letters(visible)),
        "every letter and digit of a reply is shown, in order",
    )


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isascii() and char.isalnum())


def _is_within(text: str, other: str) -> bool:
    """Return whether ``text`` is a subsequence of ``other``: same order, gaps allowed."""
    rest = iter(other)
    return all(char in rest for char in text)


for _name, _reply in _REPLIES.items():
    add(
        Check(
            f"a reply arrives whole: {_name}",
            "CHAN-3",
            lambda _rig: True,
            partial(_arrives_whole, reply=_reply),
        )
    )


@check("CHAN-3")
async def of_a_blank_reply_nothing_is_left(scene: Scene) -> None:
    """Check that a blank reply makes no blank message.

    A server would refuse an empty message on every attempt.
    """
    for text in _NOTHING:
        parts = scene.rig.channel.parts(text)
        require(not [part for part in parts if is_blank(part)], f"{text!r} makes no blank message")


@check("CHAN-3")
async def a_huge_reply_is_split(scene: Scene) -> None:
    """Check that a huge reply is split into parts that are not blank. Nothing is sent."""
    parts = scene.rig.channel.parts("All work and **no** play.\n\n" * 20_000)
    require(parts and not any(map(is_blank, parts)), "none of its parts is blank")


@check("CHAN-3")
async def a_plain_text_that_is_odd_is_shown_or_undeliverable(scene: Scene) -> None:
    """Check that odd plain text is sent or refused permanently, and that the next message arrives.

    Text that an agent writes is not always valid.
    """
    rig = scene.rig
    for text in ("\ud83d", "a\x00b", "\u202e", "a" * 100_000, ""):
        send = scene.begin(rig.channel.send(OutboundMessage(rig.ann, text)))
        await scene.ended(send, "an odd text comes back in time")
        error = send.exception()
        retryable = getattr(error, "retryable", True)
        require(
            error is None or not retryable, f"{text[:9]!r} is taken or refused for good: {error!r}"
        )
    await arrives(scene, "next")
