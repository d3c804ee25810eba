"""Conformance suite that every channel must pass (SPEC CHAN-1).

Write a ``Rig`` for the channel, then run every check that applies to it, each with a new rig.
With pytest::

    @pytest.mark.parametrize("check", checks_for(MyRig), ids=str)
    async def test_the_channel_keeps_its_contract(check: Check) -> None:
        async with my_rig() as rig:
            await check(rig)

Checks raise ``ContractViolation``, an ``AssertionError``; an error that the contract does not allow
the channel to raise is passed on unchanged. They wait on the loop's clock, so they pass in real
time and on ``goclaw_py.testing.loop.VirtualLoop``. ``docs/guide/channels.md`` has a channel with
its rig.
"""

from goclaw_py.testing.conformance import drafts, files, manners, receiving, sending, texts
from goclaw_py.testing.conformance.check import CHECKS, Check, checks_for
from goclaw_py.testing.conformance.rig import Offer, Rig, SeenMessage, Trouble
from goclaw_py.testing.conformance.scene import ContractViolation

__all__ = [
    "CHECKS",
    "Check",
    "ContractViolation",
    "Offer",
    "Rig",
    "SeenMessage",
    "Trouble",
    "checks_for",
]

_REGISTERED = (receiving, sending, texts, drafts, files, manners)
"""Modules whose import registers their checks in ``CHECKS``."""
