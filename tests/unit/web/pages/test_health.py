"""The page that tells how the gateway is (SPEC OPS-2, NODE-1)."""

from __future__ import annotations

from tests.unit.web import fake_nodes
from tests.unit.web.fakes import FakeControl
from tests.unit.web.pages.conftest import Browser


async def test_several_gateways_are_told_with_how_they_are(
    browser: Browser, control: FakeControl
) -> None:
    text = (await browser.get("/health")).text
    for node, state in (("0190-here", "live"), ("0191-drains", "draining"), ("0192-dead", "dead")):
        row = text.partition(f'id="node-{node}"')[2].partition("</tr>")[0]
        assert state in row
    assert "telegram/default" in text


async def test_one_alone_is_not_worth_a_table(browser: Browser, control: FakeControl) -> None:
    control.cluster.found = [fake_nodes.HERE]
    assert 'id="nodes"' not in (await browser.get("/health")).text
