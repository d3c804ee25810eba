"""Decides before a tool call whether it is made (SPEC AGENT-10, AGENT-11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from goclaw_py.agents.models.replay import UNKNOWN_RESULT, Replay
from goclaw_py.core.approvals import (
    ApprovalPolicy,
    ApprovalRequest,
    Decision,
    OnUncertain,
    Permission,
)
from goclaw_py.runs.toolbox import ToolSpec

_DENIED = "This call was not made: the settings of this agent deny the tool."
_NOBODY = (
    "This call was not made: the tool needs the approval of a person, and nobody can be asked "
    "during this run."
)
_REFUSED = {
    Decision.DENY: "This call was not made: a person has denied it. Do not try it again.",
    Decision.EXPIRED: "This call was not made: it needed an approval, and nobody answered in time.",
}
HAPPENED_RESULT = (
    "The program was interrupted before it received the result of this call. A person has "
    "confirmed that the call took effect."
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What happens to a call: it is asked about, answered in its place, or made.

    Args:
        asks: The question to a person.
        result: The result to use in place of a call.
        refusal: The same for a failed call.
        uncertain: Whether the outcome of the call stays unknown.
    """

    asks: ApprovalRequest | None = None
    result: str = ""
    refusal: str = ""
    uncertain: bool = False


_CALL = Judgement()


class CallJudge:
    """Judges the tool calls of a run.

    Args:
        can_ask: Whether a person can be asked.
        is_granted: Returns whether a person has allowed all calls of a tool.
    """

    def __init__(
        self,
        policy: ApprovalPolicy,
        replay: Replay,
        *,
        can_ask: bool,
        is_granted: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._policy = policy
        self._replay = replay
        self._can_ask = can_ask
        self._is_granted = is_granted

    async def judge(self, spec: ToolSpec, call_id: str, arguments: str) -> Judgement:
        """Judge a call without a stored result."""
        if self._replay.unknown(call_id) is None:
            return await self._judge_new(spec, call_id, arguments)
        if spec.idempotent or not spec.side_effects:
            return _CALL
        decision = self._replay.about_outcome(call_id)
        if decision is Decision.HAPPENED:
            return Judgement(result=HAPPENED_RESULT)
        on_uncertain = self._policy.on_uncertain
        if decision is Decision.AGAIN or (decision is None and on_uncertain is OnUncertain.RETRY):
            return _CALL
        if decision is None and on_uncertain is OnUncertain.ASK_USER and self._can_ask:
            return Judgement(asks=self._request(spec, call_id, arguments, uncertain=True))
        return Judgement(refusal=UNKNOWN_RESULT, uncertain=True)

    async def _judge_new(self, spec: ToolSpec, call_id: str, arguments: str) -> Judgement:
        permission = self._policy.permission(spec.name, side_effects=spec.side_effects)
        if permission is Permission.DENY:
            return Judgement(refusal=_DENIED)
        decision = self._replay.about_approval(call_id)
        if permission is Permission.ALLOW or (decision is not None and decision.allows):
            return _CALL
        if decision is not None:
            return Judgement(refusal=_REFUSED.get(decision, _REFUSED[Decision.DENY]))
        if await self._is_granted(spec.name):
            return _CALL
        if not self._can_ask:
            return Judgement(refusal=_NOBODY)
        return Judgement(asks=self._request(spec, call_id, arguments, uncertain=False))

    def _request(
        self, spec: ToolSpec, call_id: str, arguments: str, *, uncertain: bool
    ) -> ApprovalRequest:
        policy = self._policy
        return ApprovalRequest(
            call_id, spec.name, arguments, uncertain, policy.timeout_s, policy.members
        )
