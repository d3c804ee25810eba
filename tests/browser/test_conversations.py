"""Conversations in the chat: their life, their files and their buttons (SPEC CHAN-9, SEC-1)."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import DESK, PHONE, SaveArtefact, Screen, visit
from tests.browser.dashboard import Dashboard, address_of
from tests.browser.seen import (
    TURNED,
    change,
    conversations,
    live,
    notice,
    overflow,
    press,
    send,
    title,
    violations,
)
from tests.support.process import home

pytestmark = pytest.mark.real_time

ROOT = Path(__file__).parents[2]
HIT = "<img src=x onerror='window.__hit=9'>"
HOSTILE = f"{HIT}{TURNED}"


def picture(width: int = 40, height: int = 30) -> bytes:
    """A PNG of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\x10\x60\xa0" * width) * height
    pieces = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


def file(name: str, content: bytes, mime: str = "application/octet-stream") -> FilePayload:
    return {"name": name, "mimeType": mime, "buffer": content}


def attach(page: Page, *files: FilePayload) -> None:
    page.locator("#picked").set_input_files(list(files))


def start(page: Page) -> None:
    """Begin a conversation."""
    page.goto("/chat")
    press(conversations(page), "New conversation")
    live(page)
    expect(page.locator("#called")).to_have_text("New conversation")


def test_a_conversation_is_named_exported_and_deleted(page: Page, dash: Dashboard) -> None:
    start(page)
    send(page, "slow 600")
    here = page.locator("#called")
    expect(here).to_have_text("slow 600")
    expect(conversations(page).locator("[aria-current]")).to_have_text("slow 600")
    change(page)
    page.get_by_label("Title").fill(HOSTILE)
    press(page, "Rename")
    notice(page, "Saved.")
    expect(here).to_contain_text(f"{HIT}gnp.exe")
    expect(page.locator("main > .notice")).to_have_count(0)
    assert set(here.inner_text()).isdisjoint("\u202e\u2066\u200b")
    change(page)
    with page.expect_download():
        page.get_by_role("link", name="Export").click()
    page.get_by_role("link", name="Delete").click()
    title(page, "Delete a conversation")
    assert violations(page) == []
    page.get_by_role("link", name="Keep it").click()
    expect(here).to_contain_text(HIT)
    change(page)
    page.get_by_role("link", name="Delete").click()
    chat = page.url.partition("name=")[2]
    press(page, "Delete the conversation")
    notice(page, "The conversation was deleted.")
    expect(conversations(page).get_by_text(HIT)).to_have_count(0)
    assert dash.ended(chat) == "cancelled"
    assert dash.client.get(f"/chat/export?name={chat}").status_code == 404


def test_files_go_both_ways_and_are_there_after_a_reload(page: Page) -> None:
    start(page)
    attach(page, file("a <b>.png", picture(), "image/png"), file("page.png", b"<script>1</script>"))
    expect(page.locator("#files small")).to_have_count(2)
    send(page, "look")
    answered = page.locator("li.assistant .words").last
    expect(answered).to_contain_text("document “page.png”, 18 bytes")
    send(page, "file made of this")
    sent = page.locator("li.assistant .files a")
    expect(sent).to_have_text("note.txt")
    with page.expect_download() as download:
        sent.click()
    assert download.value.path().read_text() == "made of this\n"
    page.reload()
    shown = page.locator("li.user img")
    expect(page.locator("li.user .files a", has=page.locator("img"))).to_have_text("a <b>.png")
    shown.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('li.user img').naturalWidth === 40")
    answer = page.request.get(str(shown.get_attribute("src")))
    assert answer.headers["content-type"] == "image/png"
    assert "sandbox" in answer.headers["content-security-policy"]
    link = page.get_by_role("link", name="page.png")
    answer = page.request.get(str(link.get_attribute("href")))
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment; ")
    expect(sent).to_have_text("note.txt")


def test_a_picture_that_is_sent_leaves_the_end_in_view(page: Page) -> None:
    """Found by use: the picture had its room only after the page had gone to the end."""
    start(page)
    send(page, "echo " + "line\n\n" * 60)
    expect(page.locator("li.assistant .words")).to_be_visible()
    attach(page, file("large.png", picture(900, 800), "image/png"))
    expect(page.locator("#files small")).to_have_count(1)
    send(page, "look")
    expect(page.locator("li.assistant .words").last).to_contain_text("photo “large.png”")
    page.wait_for_function("() => document.querySelector('li.user img').naturalWidth === 900")
    expect(page.locator("#newest")).to_be_hidden()
    log = page.get_by_role("log")
    assert log.evaluate("(log) => log.scrollHeight - log.clientHeight - log.scrollTop") < 2


def test_a_picture_is_pasted_and_a_file_is_dropped(page: Page) -> None:
    start(page)
    give = """([kind, name, bytes]) => {
      const files = new DataTransfer();
      files.items.add(new File([new Uint8Array(bytes)], name, { type: "image/png" }));
      const facts = { bubbles: true, cancelable: true };
      const box = document.getElementById("text");
      box.dispatchEvent(kind === "paste"
        ? new ClipboardEvent(kind, { ...facts, clipboardData: files })
        : new DragEvent(kind, { ...facts, dataTransfer: files }));
    }"""
    for kind in ("paste", "drop"):
        page.evaluate(give, [kind, f"{kind}.png", list(picture())])
    expect(page.locator("#files small")).to_have_count(2)
    press(page.locator("#files"), "Remove paste.png")
    expect(page.locator("#files li")).to_have_count(1)
    page.get_by_label("Message").press("Enter")
    expect(page.locator("li.assistant .words")).to_contain_text("photo “drop.png”")
    expect(page.locator("#files li")).to_have_count(0)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([file("none", b"")], "none is empty."),
        ([file("big", bytes(21 << 20))], "big has 21.0 MB; the most is 20.0 MB."),
        ([file(f"{n}", b"x") for n in range(11)], "A message may have at most 10 files."),
    ],
    ids=["empty", "large", "many"],
)
def test_a_file_that_cannot_be_sent_is_refused_at_once(
    page: Page, files: list[FilePayload], says: str
) -> None:
    start(page)
    page.get_by_label("Message").fill("with words")
    attach(page, *files)
    expect(page.locator("#doing")).to_have_text(says)
    expect(page.get_by_label("Message")).to_have_value("with words")


def test_what_the_gateway_refuses_comes_back_to_the_input_line(page: Page, seen: Any) -> None:
    start(page)
    seen.expect("422", "404")
    page.route("**/chat/files?*", lambda route: route.fulfill(status=422, json={"error": "bad"}))
    attach(page, file("x", b"x"))
    expect(page.locator("#doing")).to_have_text("x was not attached: bad")
    expect(page.locator("#files li")).to_have_count(0)
    page.unroute("**/chat/files?*")
    attach(page, file("x", b"x"))
    expect(page.locator("#files small")).to_have_count(1)
    gone = {"error": "an attached file is no longer stored; attach it again"}
    page.route("**/messages", lambda route: route.fulfill(status=404, json=gone))
    send(page, "my words")
    expect(page.locator("#doing")).to_contain_text("no longer stored")
    expect(page.get_by_label("Message")).to_have_value("my words")
    expect(page.locator("#files li")).to_have_count(1)
    assert page.locator("li.user").count() == 0


def test_a_reminder_has_its_buttons_also_after_a_reload(page: Page, dash: Dashboard) -> None:
    start(page)
    send(page, "echo hi")
    chat = page.url.partition("name=")[2]
    target = {"channel": "console", "account": "default", "chat": chat}
    at = {"kind": "at", "at": "2099-01-01T00:00:00Z"}
    job = dash.post(
        "/api/jobs", schedule=at, payload={"kind": "message", "text": "Tea!"}, target=target
    )
    dash.post(f"/api/jobs/{job['id']}/run")
    done = page.get_by_role("button", name="✅ Done")
    expect(done).to_be_visible()
    page.reload()
    live(page)
    expect(done).to_have_count(1)
    done.click()
    expect(done).to_have_count(0)
    page.reload()
    live(page)
    expect(page.get_by_text("Tea!").first).to_be_visible()
    expect(done).to_have_count(0)


def test_code_is_highlighted(page: Page) -> None:
    start(page)
    send(page, "echo ```python\nfor x in y:\n    pass  # done\n```")
    expect(page.locator(".words pre .k").first).to_have_text("for")
    assert violations(page) == []


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=str)
def test_a_conversation_with_files_is_for_everybody(
    dash: Dashboard, chromium: Any, screen: Screen, artefacts: SaveArtefact
) -> None:
    with visit(chromium, dash.url, screen) as (context, _):
        page = context.new_page()
        start(page)
        attach(page, file("a picture.png", picture(900, 500)), file("b" * 180, b"x"))
        expect(page.locator("#files small")).to_have_count(2)
        assert violations(page) == []
        assert overflow(page) <= 0
        send(page, "echo ```py\nimport this  # and that\nx = 'y' + 1\n```")
        expect(page.locator("li.assistant .words")).to_be_visible()
        change(page)
        artefacts(page, f"Conversation with files {screen.name}")
        assert violations(page) == []
        assert overflow(page) <= 0


# ---------------------------------------------------------------------------- approvals and agents


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory, databases: list[str]) -> Iterator[str]:
    """The address of a gateway with a model whose calls need an approval, and an offline agent."""
    command = [sys.executable, "-m", "tests.support.model_server", "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as model:
        assert model.stdout is not None
        main = "GOCLAW_AGENTS__MAIN__"
        settings = {
            "GOCLAW_WEB__API": "true",
            "GOCLAW_WEB__PORT": "0",
            "GOCLAW_DATABASE_URL": databases[2],
            "GOCLAW_AGENTS__CODER__MODEL": "offline",
            f"{main}MODEL": "openai:chat",
            f"{main}API_KEY": "sk-of-the-browser",
            f"{main}BASE_URL": model.stdout.readline().strip(),
            f"{main}APPROVAL__ASK": '["write_file"]',
        }
        with home(tmp_path_factory.mktemp("asking") / "home", **settings) as place:
            yield address_of(place.start(ready=False))
        model.terminate()


@pytest.mark.parametrize("decision", ["Allow once", "Deny"])
def test_a_question_of_a_tool_is_answered_in_the_chat_by_keyboard(
    asking: str, chromium: Any, artefacts: SaveArtefact, decision: str
) -> None:
    with visit(chromium, asking, DESK) as (context, _):
        page = context.new_page()
        page.goto("/chat/new")
        live(page)
        send(page, """tool write_file {"path": "a.txt", "text": "<script>hit()</script>"}""")
        card = page.get_by_role("region", name="May the agent do this? write_file")
        expect(card).to_contain_text("<script>hit()</script>")
        expect(card.locator("dl > div")).to_contain_text(["a.txt", "<script>hit()</script>"])
        expect(page.get_by_text("<script>hit()</script>")).to_have_count(2)  # and what was asked
        artefacts(page, "A question in the chat")
        assert violations(page) == []
        page.reload()
        live(page)
        button = card.get_by_role("button", name=decision)
        for _ in range(60):
            page.keyboard.press("Tab")
            if button.evaluate("(one) => one === document.activeElement"):
                break
        page.keyboard.press("Enter")
        expect(card).to_have_count(0)
        expect(page.get_by_label("Message")).to_be_focused()
        answered = page.locator("#talk > .hint")
        words = "🚫 Denied by " if decision == "Deny" else "✅ Allowed once by "
        last = page.locator("li.assistant[data-of] .words").last
        for _ in range(2):
            expect(last).to_contain_text("has denied it" if decision == "Deny" else "a.txt")
            expect(answered).to_have_text(
                re.compile(f"^May I call write_file [^\\n]+{words}[^\\n]+$")
            )
            expect(page.locator("#talk > .hint ~ li .words").last).to_be_visible()
            page.reload()
            live(page)


def test_words_calls_and_questions_stand_in_their_order_live_and_after_a_reload(
    asking: str, chromium: Any
) -> None:
    """Found by use: what was said before a question vanished, and cards stood in any order."""
    calls = [["write_file", {"path": name, "text": "x\n" * 30}] for name in ("a.txt", "b.txt")]
    steps = [
        ["I look.\n\n", 0, [["read_file", {"path": "c.txt"}]]],
        ["I write.\n\n", 0, calls],
        ["Done.", 0, []],
    ]
    order = ["I look", "read_file c.txt", "I write"]
    with visit(chromium, asking, PHONE) as (context, _):
        page = context.new_page()
        page.goto("/chat/new")
        live(page)
        page.get_by_label("Message").fill(f"walk {json.dumps(steps)}")
        press(page, "Send")
        cards = page.get_by_role("region", name="May the agent do this? write_file")
        shown = page.locator("#talk > li:not(.user)")
        for _ in range(2):
            expect(cards).to_contain_text(["a.txt", "b.txt"])
            expect(shown).to_contain_text(order)
            for name in ("Allow once", "Deny"):
                expect(cards.first.get_by_role("button", name=name)).to_be_in_viewport()
            expect(cards.first.get_by_role("heading")).to_be_in_viewport()
            page.reload()
            live(page)
        for number in (1, 0):
            press(cards.nth(number), "Allow once")
            expect(cards).to_have_count(number)
        order += ["a.txt)? ✅ Allowed", "b.txt)? ✅ Allowed", "write_file a.txt", "Done."]
        for _ in range(2):
            expect(shown).to_contain_text(order)
            page.reload()
            live(page)


def test_a_conversation_keeps_the_agent_that_it_was_started_with(
    asking: str, chromium: Any
) -> None:
    with visit(chromium, asking, DESK) as (context, _):
        page = context.new_page()
        page.goto("/chat")
        page.get_by_label("Agent").select_option("coder")
        press(page, "New conversation")
        live(page)
        send(page, "echo from the offline agent")
        expect(page.locator("li.assistant .words")).to_have_text("from the offline agent")
        here = page.locator("#called")
        expect(here).to_have_text("echo from the offline agent")
        page.goto(page.url.partition("&agent")[0] + "&agent=main")
        expect(page.locator(".head")).to_contain_text("coder · offline")
        live(page)
        send(page, "echo still me")
        expect(page.locator("li.assistant .words").last).to_have_text("still me")
