"""Decides before a tool call whether it is made, for every kind of agent (SPEC AGENT-11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from goclaw_py.core.approvals import ApprovalPolicy, ApprovalRequest, Decision, Permission
from goclaw_py.core.run_events import NOT_MADE
from goclaw_py.runs.toolbox import ToolSpec


@dataclass(frozen=True, slots=True)
class Judgement:
    """What happens to a call: it is asked about, answered in its place, or made.

    Args:
        asks: The question to a person.
        result: The result to use in place of a call.
        refusal: The same for a failed call.
        why: The reason of a refusal for people, who get no advice that is meant for a model.
        uncertain: Whether the outcome of the call stays unknown.
    """

    asks: ApprovalRequest | None = None
    result: str = ""
    refusal: str = ""
    why: str = ""
    uncertain: bool = False


CALL = Judgement()
"""The call is made."""


def _refused(why: str, advice: str = "") -> Judgement:
    return Judgement(refusal=f"{NOT_MADE}{why}{advice}", why=why)


_DENIED = _refused("the settings of this agent deny the tool.")
_NOBODY = _refused(
    "the tool needs the approval of a person, and nobody can be asked during this run."
)
_REFUSED = {
    Decision.DENY: _refused("a person has denied it.", " Do not try it again."),
    Decision.EXPIRED: _refused("it needed an approval, and nobody answered in time."),
}


class CallJudge:
    """Judges the tool calls of a run.

    Args:
        can_ask: Whether a person can be asked.
        is_granted: Returns whether a person has allowed all calls of a tool.
    """

    def __init__(
        self,
        policy: ApprovalPolicy,
        *,
        can_ask: bool,
        is_granted: Callable[[str], Awaitable[bool]],
    ) -> None:
        self.policy = policy
        self.can_ask = can_ask
        self._is_granted = is_granted

    async def judge_new(
        self, spec: ToolSpec, call_id: str, arguments: str, decision: Decision | None
    ) -> Judgement:
        """Judge a call that was not started; ``decision`` is the answer of a person, if any."""
        permission = self.policy.permission(spec.name, side_effects=spec.side_effects)
        if permission is Permission.DENY:
            return _DENIED
        if permission is Permission.ALLOW or (decision is not None and decision.allows):
            return CALL
        if decision is not None:
            return _REFUSED.get(decision, _REFUSED[Decision.DENY])
        if await self._is_granted(spec.name):
            return CALL
        if not self.can_ask:
            return _NOBODY
        return Judgement(asks=self.request(spec, call_id, arguments))

    def request(
        self, spec: ToolSpec, call_id: str, arguments: str, *, uncertain: bool = False
    ) -> ApprovalRequest:
        """Return the question about a call."""
        policy = self.policy
        return ApprovalRequest(
            call_id, spec.name, arguments, uncertain, policy.timeout_s, policy.members
        )
