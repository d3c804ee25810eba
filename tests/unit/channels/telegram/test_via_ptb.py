"""``channels.telegram.via_ptb``: what it relies on in the library."""

from __future__ import annotations

import pytest
import telegram
from telegram.error import TelegramError

from channels.telegram.http import HttpPool
from channels.telegram.settings import TelegramSettings
from channels.telegram.via_ptb import PtbClient, _Failure, _Transport
from goclaw_py.model.errors import MaybeSent, NotSent


@pytest.mark.parametrize(
    "method",
    ["get_Updates", "get_File", "send_Message", "edit_Message_Text", "send_Photo", "send_Voice"],
)
def test_the_library_takes_a_method_spelled_so_for_one_that_it_does_not_know(method: str) -> None:
    """Else it warns, and the warning would be in the log with each call."""
    assert not hasattr(telegram.Bot, method)
    assert hasattr(telegram.Bot, method.lower())


async def test_an_error_of_ours_passes_through_the_library() -> None:
    client = PtbClient(TelegramSettings("4242:AAsecret-of_this"))
    with pytest.raises(NotSent, match="the connection pool is closed"):
        await client.get_me()


async def test_the_transport_looks_to_the_library_as_its_own_does() -> None:
    pool = HttpPool(1, connect_s=1, silence_s=7)
    transport = _Transport(pool)
    assert transport.read_timeout == 7
    await transport.initialize()
    await transport.initialize()
    with pytest.raises(_Failure) as refused:
        await transport.do_request("http://127.0.0.1:9/", "POST")
    assert isinstance(refused.value, TelegramError)
    assert isinstance(refused.value.error, NotSent | MaybeSent)
    await transport.shutdown()
    with pytest.raises(_Failure, match="closed"):
        await transport.do_request("http://127.0.0.1:9/", "POST")
