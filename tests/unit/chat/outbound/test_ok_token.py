"""HEARTBEAT_OK in what agents say (SPEC HB-6, HB-7)."""

from __future__ import annotations

import unicodedata

import pytest

from goclaw_py.chat.outbound.ok_token import (
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

IN_AN_ADDRESS = "<https://example.org/HEARTBEAT%5FOK>"
IN_A_TABLE = f"| status |\n|---|\n| {T} |"
FORMS = [
    IN_AN_ADDRESS, IN_A_TABLE,
    T, f"**{T}**", f"__{T}__", f"*{T}*", f"_{T}_", f"***{T}***", f"_**{T}**_", f"**_{T}_**",
    f"___{T}___", f"_{T}", f"{T}_", f"`{T}`", f"``{T}``", f"` {T} `", f"**`{T}`**", f"~~{T}~~",
    f"~{T}~", f"||{T}||", f"=={T}==", f"~~**_`{T}`_**~~", "**HEART**BEAT_OK", "HEARTBEAT_**OK**",
    "HEARTBEAT*_*OK", f"```\n{T}\n```", f"```text\n{T}\n```", f"~~~\n{T}\n~~~",
    f"`````md\n{T}\n`````", f"```\n{T}", f"```{T}```", f"```{T}\n```", f"```\n\n{T}\n\n```",
    f"> ```\n> {T}\n> ```", f"- ```\n  {T}\n  ```", f"```\r\n{T}\r\n```", f"> {T}", f">{T}",
    f"> > {T}", f"> **{T}**", f"# {T}", f"###### {T}", f"## {T} ##", f"{T}\n===", f"- {T}",
    f"* {T}", f"+ {T}", f"1. {T}", f"1) {T}", f"- [ ] {T}", f"- [x] {T}", f"    {T}", f'"{T}"',
    f"'{T}'", f"“{T}”", f"\u2018{T}\u2019", f"„{T}“", f"«\u00a0{T}\u00a0»", f"»{T}«", f"”{T}”",
    f"„{T}”", f"「{T}」", f"『{T}』", f"《{T}》", f"〈{T}〉", f"({T})", f"[{T}]", f"【{T}】",
    f"{{{T}}}",
    f"\uff08{T}\uff09", f"<{T}>", f"[{T}](https://example.org)",
    f'[{T}](https://example.org "{T}")', f"[{T}][1]", "[HEART](https://example.org)BEAT_OK",
    "[HEART](https://example.org/a_(b))BEAT_OK", f"![{T}](https://example.org/a.png)",
    f"<b>{T}</b>", f"<strong>{T}</strong>", f"<i>{T}</i>", f"<u>{T}</u>", f"<code>{T}</code>",
    f'<pre><code class="language-text">{T}</code></pre>', f"<B>{T}</B>",
    f'<span style="color:red" id=a>{T}</span>', f'<span title="a > b">{T}</span>',
    f'<span title="<b>">{T}</span>', f"<b><i><u><s>{T}</s></u></i></b>", f"<b> {T} </b>",
    f"<p>\n{T}\n</p>", f"<b>**{T}**</b>", f'<a href="https://example.org/?a=1&b=2">{T}</a>',
    "HEART<b></b>BEAT_OK", "<b>HEARTBEAT</b>_OK", f"{T}<br>", "HEARTBEAT_<!-- so -->OK",
    f"<!-- {T} -->", r"HEARTBEAT\_OK", r"**HEARTBEAT\_OK**", rf"\*{T}\*", r"\_HEARTBEAT\_OK\_",
    "HEARTBEAT&#95;OK", "HEARTBEAT&#x5F;OK", "HEARTBEAT&lowbar;OK", "HEARTBEAT&#00095;OK",
    "HEARTBEAT&#95OK", "HEARTBEAT&amp;#95;OK", "&#72;EARTBEAT_OK",
    "".join(f"&#{ord(char)};" for char in T), f"&nbsp;{T}&nbsp;", f"&quot;{T}&quot;",
    f"&lt;b&gt;{T}&lt;/b&gt;", "HEART&shy;BEAT_OK", "HEART&#8203;BEAT_OK",
    f"一切正常{T}", f"問題{T}なし",
    f"{T}เรียบร้อย", "HEART\u200bBEAT_OK", "\u200d".join(T), f"\ufeff{T}", f"\u200b{T}\u200b",
    f"{T}\u2060", f"{T}\ufe0f", "HEART\udb40\udd00BEAT_OK", "HEART\u00adBEAT_OK",
    "HEART\u034fBEAT_OK", "".join(f"{char}\u0332" for char in T), "HEARTBEAT\u0333_OK",
    "HEART\x00BEAT\x07_OK", f"\u200e{T}\u200f", "HEARTBEAT_O\u212a",
    "".join(chr(ord(char) + 0xFEE0) for char in T), "HEARTBEAT\uff3fOK", f"{T}.", f"{T}!",
    f"…{T}?!…", f"{T}:", f"{T}。", f"\uff0c{T}", f"¡{T}!", f"— {T} —", f"/{T}/", f"✅ {T} ✅",
    f"✅{T}✅", f"{T} {T}", f"{T}\n{T}", f"{T}. {T}.", f"**{T}** **{T}**",
    f"```\n{T}\n{T}\n{T}\n```", f"{T}*{T}", f"  \n\t{T}\n\n ", f"\u3000{T}\u2003", f"\r\n{T}\r\n",
    f"{T}\n\n---",
]  # fmt: skip


@pytest.mark.parametrize("reply", FORMS)
def test_the_token_in_any_form_is_ok_and_nothing_of_it_is_delivered(reply: str) -> None:
    """SPEC HB-6."""
    assert judged(reply) == OK
    if reply not in (IN_AN_ADDRESS, IN_A_TABLE):
        assert judged(reply, most=12) == OK


@pytest.mark.parametrize("reply", FORMS)
@pytest.mark.parametrize("frame", ["{}\n\n{}", "{1}\n\n{0}"], ids=["before", "behind"])
def test_an_alert_is_delivered_without_the_token_beside_it(reply: str, frame: str) -> None:
    """SPEC HB-6."""
    said = judged(frame.format(reply, LONG))
    assert not said.is_ok
    assert LONG in said.text
    assert without_token(said.text) == said.text
    if reply not in (IN_AN_ADDRESS, IN_A_TABLE):
        assert len(said.text) < len(LONG) + 45


# ---------------------------------------------------------------------- no token

OTHERS = [
    "HEARTBEAT_OKAY", "NOT_HEARTBEAT_OK", "XHEARTBEAT_OK", "HEARTBEAT_OKS", "HEARTBEAT_OK2",
    "2HEARTBEAT_OK", "HEARTBEAT_OK_2", "MY__HEARTBEAT_OK", "HEARTBEAT_OK_HEARTBEAT_OK",
    "HEARTBEAT_OKHEARTBEAT_OK", "heartbeat_ok", "Heartbeat_Ok", "HEARTBEAT_Ok", "HEARTBEAT OK",
    "HEARTBEAT-OK", "HEARTBEATOK", "HEARTBEAT__OK", "HEART_BEAT_OK", "HEARTBEAT_ OK",
    "HEARTBEAT_\nOK", "HEARTBEAT", "_OK", "OK", "HEARTBEAT_O", "ÄHEARTBEAT_OK", "HEARTBEAT_OKé",
    "HEARTBEAT_OKe\u0301", "ЖHEARTBEAT_OK", "HEARTBEAT_OK٣", "\u0905\u0902HEARTBEAT_OK",
    "HEARTBEAT_OK\u200bAY", "NOT_\u2060HEARTBEAT_OK", "**HEARTBEAT_OKAY**", "`NOT_HEARTBEAT_OK`",
    "\u041dEARTBEAT_OK", r"NOT\_HEARTBEAT\_OK", r"HEARTBEAT\_OK\_2", "HEARTBEAT_O&#75;AY",
]  # fmt: skip


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

SIZES = [
    ("a", 1), ("ổ", 1), (unicodedata.normalize("NFD", "ổ"), 1), ("🔥", 1), ("👩\u200d🚒", 2),
    ("❤\ufe0f", 1), ("磁", 1), ("한", 1), (unicodedata.normalize("NFD", "한"), 1), ("ع", 1),
]  # fmt: skip


@pytest.mark.parametrize(("char", "size"), SIZES)
@pytest.mark.parametrize("frame", ["{} {}", "{1} {0}", "**{}** {}", "{}\n\n{}", "{}: {}"])
def test_a_rest_is_measured_in_characters(char: str, size: int, frame: str) -> None:
    """SPEC HB-6: not in bytes. A character is a code point of the text in NFC."""
    most = 100 * size
    assert judged(frame.format(T, char * 100), most) == OK
    longer = judged(frame.format(T, char * 101), most)
    assert longer == AckResult(is_ok=False, text=char * 101)


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

AT_AN_EDGE = [
    f"{T} all is well", f"All is well: {T}", f"**{T}** all is well", f"> {T}\n\nall is well",
    f"all is well\n\n```\n{T}\n```\n", f"<b>{T}</b> all is well", f"All is well ({T}).",
    f"all is well [{T}](https://example.org)", f"\u200b{T} all is well", f"{T} all {T} is well",
]  # fmt: skip
WITHIN = [f"all {T} is well", f"all\n{T}\nis well", f"all **{T}** is well", f"all is well {T} 7"]


@pytest.mark.parametrize("reply", AT_AN_EDGE + WITHIN)
def test_the_settings_may_demand_the_token_at_the_start_or_the_end(reply: str) -> None:
    """SPEC HB-6."""
    assert judged(reply).is_ok
    at_edges = judged(reply, position=AckPosition.EDGES)
    assert at_edges.is_ok is (reply in AT_AN_EDGE)
    assert at_edges.is_ok or T not in at_edges.text


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
@pytest.mark.slow
def test_a_hostile_reply_does_not_hang_the_gateway(piece: str) -> None:
    """A quadratic pattern would take minutes here."""
    reply = f"H{piece * (60_000 // len(piece))} x {T} " + "x" * 301
    assert T not in judged(reply, position=AckPosition.EDGES).text.split()


# ---------------------------------------------------------------------- the key of an alert

ALIKE = [
    "Disk is full", " Disk  is\nfull\n", "**Disk** is _full_", "Disk is full HEARTBEAT_OK",
    "**HEARTBEAT_OK**\n\nDisk is full", "> Disk is full", "<b>Disk</b> is full", "- Disk is full",
    "`Disk` is\u00a0full", "Disk is fu\u200bll", "Disk is &#102;ull",
]  # fmt: skip


@pytest.mark.parametrize("text", ALIKE)
def test_alerts_that_say_the_same_have_one_key(text: str) -> None:
    """SPEC HB-7."""
    key = alert_key("main", "telegram:-7:3", text)
    assert key == alert_key("main", "telegram:-7:3", ALIKE[0])
    assert len(key) == 64
    assert int(key, 16) >= 0


def test_composed_and_decomposed_letters_have_one_key() -> None:
    """SPEC HB-7."""
    forms = [unicodedata.normalize(form, "ổ đĩa đầy") for form in ("NFC", "NFD")]
    assert len({alert_key("a", "b", form) for form in forms}) == 1


def test_another_agent_place_or_text_makes_another_key() -> None:
    """SPEC HB-7."""
    here = [
        "Disk is full",
        "disk is full",
        "Disk is full!",
        "Disk 2 is full",
        "snake_case",
        "snakecase",
    ]
    keys = {alert_key("main", "telegram:1", text) for text in here} | {
        alert_key("other", "telegram:1", "Disk is full"),
        alert_key("main", "telegram:1:2", "Disk is full"),
        alert_key("maint", "elegram:1", "Disk is full"),
        alert_key("main", "telegram:1D", "isk is full"),
    }
    assert len(keys) == 10


# ---------------------------------------------------------------------- in a conversation


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ("HEARTBEAT_OK", ""),
        (" **HEARTBEAT_OK**\n", ""),
        ("HEARTBEAT_OK HEARTBEAT_OK", ""),
        ('"HEARTBEAT_OK."', ""),
        ("(HEARTBEAT_OK)!", ""),
        ('It is sunny. "HEARTBEAT_OK"', "It is sunny."),
        ("It is sunny. (HEARTBEAT_OK)", "It is sunny."),
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
