"""Conversations in the chat: their life, their files and their buttons (SPEC CHAN-9, SEC-1)."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.browser.conftest import DESK, PHONE, Keep, Screen, visit
from tests.browser.dashboard import Dashboard
from tests.browser.seen import TURNED, live, notice, overflow, press, send, title, violations

pytestmark = pytest.mark.real_time

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


def others(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Conversations")


def start(page: Page) -> None:
    """Begin a conversation."""
    page.goto("/chat")
    press(page, "New conversation")
    live(page)
    expect(page.get_by_label("Message")).to_be_focused()


def test_a_conversation_is_named_exported_and_deleted(page: Page, dash: Dashboard) -> None:
    start(page)
    send(page, "slow 600")
    here = page.locator("#called")
    expect(here).to_have_text("slow 600")
    expect(others(page).locator("[aria-current]")).to_have_text("slow 600")
    page.get_by_text("Rename, export or delete").click()
    page.get_by_label("Title").fill(HOSTILE)
    press(page, "Rename")
    notice(page, "Saved.")
    expect(here).to_contain_text(f"{HIT}gnp.exe")
    assert set(here.inner_text()).isdisjoint("\u202e\u2066\u200b")
    page.get_by_text("Rename, export or delete").click()
    with page.expect_download():
        page.get_by_role("link", name="Export").click()
    page.get_by_role("link", name="Delete").click()
    title(page, "Delete a conversation")
    assert violations(page) == []
    page.get_by_role("link", name="Keep it").click()
    expect(here).to_contain_text(HIT)
    page.get_by_text("Rename, export or delete").click()
    page.get_by_role("link", name="Delete").click()
    chat = page.url.partition("name=")[2]
    press(page, "Delete the conversation")
    notice(page, "The conversation was deleted.")
    expect(others(page).get_by_text(HIT)).to_have_count(0)
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
    expect(shown).to_have_attribute("alt", "a <b>.png")
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
    dash: Dashboard, chromium: Any, screen: Screen, artefacts: Keep
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
        page.get_by_text("Rename, export or delete").click()
        artefacts(page, f"Conversation with files {screen.name}")
        assert violations(page) == []
        assert overflow(page) <= 0
