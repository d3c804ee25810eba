"""HEARTBEAT_OK in what agents say (SPEC HB-6, HB-7)."""

from __future__ import annotations

import unicodedata

import pytest

from goclaw_py.delivery.ok_token import (
    AckPosition,
    AckResult,
    alert_key,
    conversation_text,
    judge,
    without_token,
)

T = "HEARTBEAT_OK"
LONG = "The disk of node seven is full. " * 10 + "Do something."
"""More than 300 characters, without markup."""
ALERT = AckResult(is_ok=False, text=LONG)
OK = AckResult(is_ok=True)


def judged(reply: str, most: int = 300, position: AckPosition = AckPosition.ANYWHERE) -> AckResult:
    return judge(reply, ack_max_chars=most, position=position)


# ---------------------------------------------------------------------- the token alone

FORMS = {
    "bare": T,
    "bold": f"**{T}**",
    "bold by underscores": f"__{T}__",
    "italic": f"*{T}*",
    "italic by underscores": f"_{T}_",
    "bold and italic": f"***{T}***",
    "bold in italic underscores": f"_**{T}**_",
    "italic in bold": f"**_{T}_**",
    "three underscores": f"___{T}___",
    "one underscore before": f"_{T}",
    "one underscore behind": f"{T}_",
    "code": f"`{T}`",
    "code with two ticks": f"``{T}``",
    "code with blanks": f"` {T} `",
    "bold code": f"**`{T}`**",
    "struck out": f"~~{T}~~",
    "struck out by one": f"~{T}~",
    "spoiler": f"||{T}||",
    "marked": f"=={T}==",
    "everything": f"~~**_`{T}`_**~~",
    "half of it bold": "**HEART**BEAT_OK",
    "the other half bold": "HEARTBEAT_**OK**",
    "a bold underscore": "HEARTBEAT*_*OK",
    "fence": f"```\n{T}\n```",
    "fence with a language": f"```text\n{T}\n```",
    "fence of tildes": f"~~~\n{T}\n~~~",
    "long fence": f"`````md\n{T}\n`````",
    "fence that is not closed": f"```\n{T}",
    "fence in one line": f"```{T}```",
    "fence named so": f"```{T}\n```",
    "fence with blank lines": f"```\n\n{T}\n\n```",
    "fence in a quote": f"> ```\n> {T}\n> ```",
    "fence in a list": f"- ```\n  {T}\n  ```",
    "fence with Windows line ends": f"```\r\n{T}\r\n```",
    "quote": f"> {T}",
    "quote without a blank": f">{T}",
    "quote in a quote": f"> > {T}",
    "bold quote": f"> **{T}**",
    "heading": f"# {T}",
    "small heading": f"###### {T}",
    "closed heading": f"## {T} ##",
    "underlined heading": f"{T}\n===",
    "bullet": f"- {T}",
    "star": f"* {T}",
    "plus": f"+ {T}",
    "number": f"1. {T}",
    "number with a bracket": f"1) {T}",
    "empty box": f"- [ ] {T}",
    "ticked box": f"- [x] {T}",
    "indented": f"    {T}",
    "table": f"| status |\n|---|\n| {T} |",
    "quoted": f'"{T}"',
    "single quotes": f"'{T}'",
    "typographic": f"“{T}”",
    "single typographic": f"\u2018{T}\u2019",
    "German": f"„{T}“",
    "French": f"«\u00a0{T}\u00a0»",
    "turned French": f"»{T}«",
    "Swedish": f"”{T}”",
    "Polish": f"„{T}”",
    "Japanese": f"「{T}」",
    "Japanese in quotes": f"『{T}』",
    "Chinese title": f"《{T}》",
    "Korean": f"〈{T}〉",
    "brackets": f"({T})",
    "square brackets": f"[{T}]",
    "lenticular brackets": f"【{T}】",
    "curly brackets": f"{{{T}}}",
    "wide brackets": f"\uff08{T}\uff09",
    "angle brackets": f"<{T}>",
    "link": f"[{T}](https://example.org)",
    "link with a title": f'[{T}](https://example.org "{T}")',
    "link by reference": f"[{T}][1]",
    "half a link": "[HEART](https://example.org)BEAT_OK",
    "link with brackets": "[HEART](https://example.org/a_(b))BEAT_OK",
    "picture": f"![{T}](https://example.org/a.png)",
    "b": f"<b>{T}</b>",
    "strong": f"<strong>{T}</strong>",
    "i": f"<i>{T}</i>",
    "u": f"<u>{T}</u>",
    "code tag": f"<code>{T}</code>",
    "pre and code": f'<pre><code class="language-text">{T}</code></pre>',
    "upper case tag": f"<B>{T}</B>",
    "attributes": f'<span style="color:red" id=a>{T}</span>',
    "attribute with a bracket": f'<span title="a > b">{T}</span>',
    "attribute with a tag": f'<span title="<b>">{T}</span>',
    "tags in each other": f"<b><i><u><s>{T}</s></u></i></b>",
    "tags with blanks": f"<b> {T} </b>",
    "tag on lines of its own": f"<p>\n{T}\n</p>",
    "bold tag and Markdown": f"<b>**{T}**</b>",
    "link tag": f'<a href="https://example.org/?a=1&b=2">{T}</a>',
    "tag in the token": "HEART<b></b>BEAT_OK",
    "tagged half": "<b>HEARTBEAT</b>_OK",
    "line break behind": f"{T}<br>",
    "comment in the token": "HEARTBEAT_<!-- so -->OK",
    "in a comment": f"<!-- {T} -->",
    "escaped": r"HEARTBEAT\_OK",
    "escaped and bold": r"**HEARTBEAT\_OK**",
    "escaped stars": rf"\*{T}\*",
    "escaped underscores": r"\_HEARTBEAT\_OK\_",
    "entity": "HEARTBEAT&#95;OK",
    "hexadecimal entity": "HEARTBEAT&#x5F;OK",
    "named entity": "HEARTBEAT&lowbar;OK",
    "entity with zeros": "HEARTBEAT&#00095;OK",
    "entity without its end": "HEARTBEAT&#95OK",
    "entity of an entity": "HEARTBEAT&amp;#95;OK",
    "letter as an entity": "&#72;EARTBEAT_OK",
    "all as entities": "".join(f"&#{ord(char)};" for char in T),
    "blank entities": f"&nbsp;{T}&nbsp;",
    "quotes as entities": f"&quot;{T}&quot;",
    "tag as entities": f"&lt;b&gt;{T}&lt;/b&gt;",
    "soft hyphen as an entity": "HEART&shy;BEAT_OK",
    "nothing as an entity": "HEART&#8203;BEAT_OK",
    "in an address": "<https://example.org/HEARTBEAT%5FOK>",
    "after Chinese": f"一切正常{T}",
    "between Japanese": f"問題{T}なし",
    "before Thai": f"{T}เรียบร้อย",
    "zero width space in it": "HEART\u200bBEAT_OK",
    "zero width joiners": "\u200d".join(T),
    "byte order mark": f"\ufeff{T}",
    "zero width around": f"\u200b{T}\u200b",
    "word joiner behind": f"{T}\u2060",
    "variation selector": f"{T}\ufe0f",
    "variation selector as a surrogate pair": "HEART\udb40\udd00BEAT_OK",
    "soft hyphen": "HEART\u00adBEAT_OK",
    "grapheme joiner": "HEART\u034fBEAT_OK",
    "line below": "".join(f"{char}\u0332" for char in T),
    "what Telegram takes away": "HEARTBEAT\u0333_OK",
    "control characters": "HEART\x00BEAT\x07_OK",
    "direction marks": f"\u200e{T}\u200f",
    "Kelvin": "HEARTBEAT_O\u212a",
    "wide letters": "".join(chr(ord(char) + 0xFEE0) for char in T),
    "wide underscore": "HEARTBEAT\uff3fOK",
    "full stop": f"{T}.",
    "exclamation": f"{T}!",
    "many marks": f"…{T}?!…",
    "colon": f"{T}:",
    "Chinese full stop": f"{T}。",
    "Chinese comma before": f"\uff0c{T}",
    "Spanish": f"¡{T}!",
    "dash": f"— {T} —",
    "slashes": f"/{T}/",
    "emoji": f"✅ {T} ✅",
    "emoji beside it": f"✅{T}✅",
    "twice": f"{T} {T}",
    "twice in lines": f"{T}\n{T}",
    "twice with a full stop": f"{T}. {T}.",
    "twice bold": f"**{T}** **{T}**",
    "thrice in a fence": f"```\n{T}\n{T}\n{T}\n```",
    "twice with a star": f"{T}*{T}",
    "blanks around": f"  \n\t{T}\n\n ",
    "wide blanks around": f"\u3000{T}\u2003",
    "Windows line ends": f"\r\n{T}\r\n",
    "rule below": f"{T}\n\n---",
}


@pytest.mark.parametrize("reply", FORMS.values(), ids=FORMS.keys())
def test_the_token_in_any_form_is_ok_and_nothing_of_it_is_delivered(reply: str) -> None:
    """SPEC HB-6."""
    assert judged(reply) == OK
    if reply not in (FORMS["in an address"], FORMS["table"]):
        assert judged(reply, most=12) == OK


@pytest.mark.parametrize("reply", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("frame", ["{}\n\n{}", "{1}\n\n{0}"], ids=["before", "behind"])
def test_an_alert_is_delivered_without_the_token_beside_it(reply: str, frame: str) -> None:
    """SPEC HB-6."""
    said = judged(frame.format(reply, LONG))
    assert not said.is_ok
    assert LONG in said.text
    assert without_token(said.text) == said.text
    if reply not in (FORMS["in an address"], FORMS["table"]):
        assert len(said.text) < len(LONG) + 45


# ---------------------------------------------------------------------- no token

OTHERS = [
    "HEARTBEAT_OKAY",
    "NOT_HEARTBEAT_OK",
    "XHEARTBEAT_OK",
    "HEARTBEAT_OKS",
    "HEARTBEAT_OK2",
    "2HEARTBEAT_OK",
    "HEARTBEAT_OK_2",
    "MY__HEARTBEAT_OK",
    "HEARTBEAT_OK_HEARTBEAT_OK",
    "HEARTBEAT_OKHEARTBEAT_OK",
    "heartbeat_ok",
    "Heartbeat_Ok",
    "HEARTBEAT_Ok",
    "HEARTBEAT OK",
    "HEARTBEAT-OK",
    "HEARTBEATOK",
    "HEARTBEAT__OK",
    "HEART_BEAT_OK",
    "HEARTBEAT_ OK",
    "HEARTBEAT_\nOK",
    "HEARTBEAT",
    "_OK",
    "OK",
    "HEARTBEAT_O",
    "ÄHEARTBEAT_OK",
    "HEARTBEAT_OKé",
    "HEARTBEAT_OKe\u0301",
    "ЖHEARTBEAT_OK",
    "HEARTBEAT_OK٣",
    "\u0905\u0902HEARTBEAT_OK",
    "HEARTBEAT_OK\u200bAY",
    "NOT_\u2060HEARTBEAT_OK",
    "**HEARTBEAT_OKAY**",
    "`NOT_HEARTBEAT_OK`",
    "\u041dEARTBEAT_OK",
    r"NOT\_HEARTBEAT\_OK",
    r"HEARTBEAT\_OK\_2",
    "HEARTBEAT_O&#75;AY",
]


@pytest.mark.parametrize("reply", OTHERS)
def test_what_is_no_token_is_delivered_as_it_is(reply: str) -> None:
    """SPEC HB-6."""
    assert judged(reply) == AckResult(is_ok=False, text=reply)
    assert without_token(reply) == reply


@pytest.mark.parametrize(
    "reply", ["", " ", "\n\n", "\t\r\n", "\u200b", "\ufeff \u2060\n", "\u3000", "\x00"]
)
def test_an_empty_reply_is_ok(reply: str) -> None:
    """SPEC HB-6."""
    for position in AckPosition:
        assert judged(reply, most=0, position=position) == OK


@pytest.mark.parametrize(
    "reply", ["All is well.", "0", "**x**", "---", "🔥", "\ud800", "ổ đĩa đầy"]
)
def test_a_short_reply_without_the_token_is_an_alert(reply: str) -> None:
    assert judged(reply) == AckResult(is_ok=False, text=reply)


# ---------------------------------------------------------------------- how long the rest is

SIZES = {
    "ASCII": ("a", 1),
    "Vietnamese": ("ổ", 1),
    "decomposed Vietnamese": (unicodedata.normalize("NFD", "ổ"), 1),
    "emoji": ("🔥", 1),
    "a joined emoji": ("👩\u200d🚒", 2),
    "an emoji with a variation": ("❤\ufe0f", 1),
    "CJK": ("磁", 1),
    "Hangul": ("한", 1),
    "decomposed Hangul": (unicodedata.normalize("NFD", "한"), 1),
    "Arabic": ("ع", 1),
}


@pytest.mark.parametrize(("char", "size"), SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("frame", ["{} {}", "{1} {0}", "**{}** {}", "{}\n\n{}", "{}: {}"])
def test_a_rest_is_measured_in_characters(char: str, size: int, frame: str) -> None:
    """SPEC HB-6: not in bytes. A character is a code point of the text in NFC."""
    most = 100 * size
    assert judged(frame.format(T, char * 100), most) == OK
    longer = judged(frame.format(T, char * 101), most)
    assert longer == AckResult(is_ok=False, text=char * 101)


@pytest.mark.parametrize("char", ["a", "ổ", unicodedata.normalize("NFD", "ổ"), "🔥", "磁"])
def test_three_hundred_characters_are_short_and_one_more_is_not(char: str) -> None:
    """SPEC HB-6."""
    assert judged(f"{T}\n{char * 300}") == OK
    assert judged(f"{T}\n{char * 301}") == AckResult(is_ok=False, text=char * 301)


@pytest.mark.parametrize(
    "wrap",
    ["**{}**", "<b>{}</b>", "# {}", "> {}", "- {}", "```\n{}\n```", "[{}](https://example.org)"],
)
def test_markup_of_the_rest_is_not_counted(wrap: str) -> None:
    assert judged(f"{T}\n\n{wrap.format('a' * 300)}") == OK
    assert not judged(f"{T}\n\n{wrap.format('a' * 301)}").is_ok


def test_no_rest_at_all_may_be_asked_for() -> None:
    assert judged(f"**{T}**.", most=0) == OK
    assert judged(f"{T} x", most=0) == AckResult(is_ok=False, text="x")


# ---------------------------------------------------------------------- where it stands

ANYWHERE = [
    (f"{T} all is well", True),
    (f"All is well: {T}", True),
    (f"**{T}** all is well", True),
    (f"> {T}\n\nall is well", True),
    (f"all is well\n\n```\n{T}\n```\n", True),
    (f"<b>{T}</b> all is well", True),
    (f"All is well ({T}).", True),
    (f"all is well [{T}](https://example.org)", True),
    (f"\u200b{T} all is well", True),
    (f"all {T} is well", False),
    (f"all\n{T}\nis well", False),
    (f"all **{T}** is well", False),
    (f"all is well {T} 7", False),
    (f"{T} all {T} is well", True),
]


@pytest.mark.parametrize(("reply", "at_an_edge"), ANYWHERE)
def test_the_settings_may_demand_the_token_at_the_start_or_the_end(
    reply: str, at_an_edge: bool
) -> None:
    """SPEC HB-6."""
    assert judged(reply).is_ok
    at_edges = judged(reply, position=AckPosition.EDGES)
    assert at_edges.is_ok is at_an_edge
    assert at_an_edge or T not in at_edges.text


# ---------------------------------------------------------------------- what is delivered

CLEANED = [
    (f"{T} {{}}", "{}"),
    (f"{T}: {{}}", "{}"),
    (f"{T}. {{}}", "{}"),
    (f"{T} — {{}}", "{}"),
    (f"{T}\n\n\n{{}}", "{}"),
    (f"{{}} {T}", "{}"),
    (f"{{}} {T}.", "{}"),
    (f"{{}}\n\n**{T}**\n", "{}"),
    (f"**{T}** {{}}", "{}"),
    (f"**{T} {{}}**", "**{}**"),
    (f"**{T}: {{}}**", "**{}**"),
    (f"**{{}} {T}**", "**{}**"),
    (f"_{T} {{}}_", "_{}_"),
    (f"_{{}} {T}_", "_{}_"),
    ("**HEART**BEAT_OK {}", "{}"),
    (f"**{{}}** ({T})", "**{}**"),
    (f"(note: {T}) {{}}", "(note:) {}"),
    (f"# {T}\n\n{{}}", "{}"),
    (f"# {T}: disk\n\n{{}}", "# disk\n\n{}"),
    (f"- one\n- {T}\n- {{}}", "- one\n- {}"),
    (f"- {T}: one\n- {{}}", "- one\n- {}"),
    (f"one\n\n{T}\n\n{{}}", "one\n\n{}"),
    (f"one\n{T}\n{{}}", "one\n{}"),
    (f"one {T} two {{}}", "one two {}"),
    (f"one {T}, two {{}}", "one, two {}"),
    (f"> {T}\n\n{{}}", "{}"),
    (f"> one\n> {T}\n\n{{}}", "> one\n\n{}"),
    (f"```\n{T}\n```\n\n{{}}", "{}"),
    (f"```\ncode\n```\n{T}\n```\nmore\n```\n{{}}", "```\ncode\nmore\n```\n{}"),
    (f"```\ncode\n{T}\n```\n{{}}", "```\ncode\n```\n{}"),
    (f"**a** {T} **b** {{}}", "**a** **b** {}"),
    (f"`a` `{T}` `b` {{}}", "`a` `b` {}"),
    (f"<b>{T}</b>\n{{}}", "{}"),
    (f"<i><b>{T}</b></i> {{}}", "{}"),
    (f"[{T}](https://example.org) {{}}", "{}"),
    (f"![x](https://example.org/{T}/a.png) {{}}", "![x](https://example.org/ /a.png) {}"),
    (f"{T} ![x](y) {{}}", "![x](y) {}"),
    (f"{T} -5 °C {{}}", "-5 °C {}"),
    (f"HEARTBEAT_**{T}**OK {{}}", "HEARTBEAT_ OK {}"),
    (f"    indented\n\n{T}\n\n{{}}", "    indented\n\n{}"),
]


@pytest.mark.parametrize(("reply", "delivered"), CLEANED)
def test_the_rest_of_an_alert_stays_as_it_was(reply: str, delivered: str) -> None:
    """SPEC HB-6: a longer rest is delivered without the token."""
    said = judged(reply.format(LONG))
    assert said == AckResult(is_ok=False, text=delivered.format(LONG))


HALVES = [
    f"HEARTBEAT_*{T}*OK",
    f"HEART{T}BEAT_OK",
    f"HEART*{T}*BEAT*{T}*_OK",
    f"HEART<b {T}>BEAT_OK",
    f"HEART<b><!-- {T} --></b>BEAT_OK",
    "HEARTBEAT_*" * 30 + T + "*OK" * 30,
    f"HEARTBEAT&#9*{T}*5;OK",
    f"[HEART](x '{T}')BEAT_OK",
    f"HEARTBEAT_<!-- <!-- {T} -->OK",
]


@pytest.mark.parametrize("reply", HALVES)
def test_taking_a_token_out_makes_no_new_one(reply: str) -> None:
    cleaned = without_token(f"{LONG}\n\n{reply}\n\nEnd.")
    assert LONG in cleaned
    assert cleaned.endswith("End.")
    assert without_token(cleaned) == cleaned
    assert T not in cleaned.replace("*", "").replace("OKBEAT", "")


def test_many_tokens_are_taken_out_of_a_long_reply() -> None:
    words = " ".join(f"{T} word{number}" for number in range(2000))
    said = judged(words)
    assert T not in said.text
    assert "word0" in said.text
    assert said.text.endswith("word1999")


def test_a_lone_surrogate_does_not_stop_anything() -> None:
    assert judged(f"{T} \ud800") == OK
    assert without_token("\ud800 x") == "\ud800 x"
    assert len(alert_key("a", "b", "\ud800")) == 64


HOSTILE = [
    "_", "*", "<", "<b>", '<"', "<'\"", "](", "](((", "](<", "[", "[a", "`", "~~~`", "\u200b", "H",
    "H\u200b", "H*", "&amp;", "&#", "&#9", "%5F", "<!--", "\\", "- ", "> ", " ", "\n", "x_",
    "HEARTBEAT_", "HEARTBEAT_*", "HEARTBEAT*", T, f"{T} ", f"**{T}** a ", f"<b>{T}</b>x",
    f"```\n{T}\n```\n", "(", f"({T}", "&#0", "é", "漢", "\x00", "| ", "1. ", " *** ",
    '"', "“", ". ", "<aaaaaaaaaa", f"({T}) a", f"[{T}](x) ", "\n> ", "a\\",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_reply_does_not_hang_the_gateway(piece: str) -> None:
    """A quadratic pattern would take minutes here."""
    reply = f"H{piece * (60_000 // len(piece))} x {T} " + "x" * 301
    assert T not in judged(reply, position=AckPosition.EDGES).text.split()


# ---------------------------------------------------------------------- the key of an alert

ALIKE = [
    "Disk is full",
    " Disk  is\nfull\n",
    "**Disk** is _full_",
    "Disk is full HEARTBEAT_OK",
    "**HEARTBEAT_OK**\n\nDisk is full",
    "> Disk is full",
    "<b>Disk</b> is full",
    "- Disk is full",
    "`Disk` is\u00a0full",
    "Disk is fu\u200bll",
    "Disk is &#102;ull",
]


@pytest.mark.parametrize("text", ALIKE)
def test_alerts_that_say_the_same_have_one_key(text: str) -> None:
    """SPEC HB-7."""
    key = alert_key("main", "telegram:-7:3", text)
    assert key == alert_key("main", "telegram:-7:3", ALIKE[0])
    assert len(key) == 64
    assert int(key, 16) >= 0


def test_composed_and_decomposed_letters_have_one_key() -> None:
    """SPEC HB-7."""
    composed = unicodedata.normalize("NFC", "ổ đĩa đầy")
    assert alert_key("a", "b", composed) == alert_key(
        "a", "b", unicodedata.normalize("NFD", composed)
    )


def test_another_agent_place_or_text_makes_another_key() -> None:
    """SPEC HB-7."""
    keys = {
        alert_key("main", "telegram:1", "Disk is full"),
        alert_key("other", "telegram:1", "Disk is full"),
        alert_key("main", "telegram:1:2", "Disk is full"),
        alert_key("main", "telegram:1", "disk is full"),
        alert_key("main", "telegram:1", "Disk is full!"),
        alert_key("main", "telegram:1", "Disk 2 is full"),
        alert_key("maint", "elegram:1", "Disk is full"),
        alert_key("main", "telegram:1D", "isk is full"),
        alert_key("main", "telegram:1", "snake_case"),
        alert_key("main", "telegram:1", "snakecase"),
    }
    assert len(keys) == 10


# ---------------------------------------------------------------------- in a conversation


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ("HEARTBEAT_OK", ""),
        (" **HEARTBEAT_OK**\n", ""),
        ("HEARTBEAT_OK HEARTBEAT_OK", ""),
        ("It is sunny. HEARTBEAT_OK", "It is sunny."),
        ("It is sunny!\n\n`HEARTBEAT_OK`", "It is sunny!"),
        ("- milk\n- bread\nHEARTBEAT_OK", "- milk\n- bread"),
        ("HEARTBEAT_OK\n\nIt is sunny.", "It is sunny."),
        ("HEARTBEAT_OK. It is sunny.", "It is sunny."),
        ("HEARTBEAT_OK - it is sunny", "it is sunny"),
        ("Answer with HEARTBEAT_OK", "Answer with HEARTBEAT_OK"),
        ("HEARTBEAT_OK is the token of heartbeats.", "HEARTBEAT_OK is the token of heartbeats."),
        ("The token is: HEARTBEAT_OK", "The token is: HEARTBEAT_OK"),
        ("I say HEARTBEAT_OK. Then I rest.", "I say HEARTBEAT_OK. Then I rest."),
        ("HEARTBEAT_OKAY", "HEARTBEAT_OKAY"),
        ("", ""),
        ("hello", "hello"),
    ],
)
def test_a_conversation_loses_the_token_where_it_stands_apart(reply: str, left: str) -> None:
    """SPEC HB-6: a sentence about it stays whole."""
    assert conversation_text(reply) == left


def test_a_reply_that_grows_never_shows_the_beginning_of_the_token() -> None:
    whole = "It is sunny.\n\n**HEARTBEAT_OK**"
    shown = [conversation_text(whole[:end], growing=True) for end in range(len(whole) + 1)]
    assert not any("HEAR" in text for text in shown)
    assert conversation_text("I HEARD it", growing=True) == "I HEARD it"
