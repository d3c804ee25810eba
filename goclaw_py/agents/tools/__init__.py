"""The tools of agents, and their permissions (SPEC AGENT-6).

The rules of SPEC AGENT-6:

Tools: `schedule_create|search|edit|delete` exactly as the *oxydra* document (names, types, enums,
required, defaults, result fields, error texts of its steps 2 and 6, the time filters
`created_after`, `created_before` and `next_run_before` (ISO 8601 with offset; the time itself does
not match, nor does a job without a next run the last one), the paragraph of step 12 in the system
prompt; results may have more fields, arguments may not; descriptions show the configured zone);
`heartbeat`; `spawn_subagent` (lane `subagent`, a session of its own; waited for, or its result
comes into the chat as a message, once, also after a crash; from a run that answers no chat it is
always waited for); `delegate` (another agent, lane `delegate`, waited for); `send_message`;
`pin_fact`, `unpin_fact`; workspace files, `send_file`; MCP servers. Settings with two servers of
an agent whose tools could have the same name (`a` and `a_b`, or the same first 20 characters) are
refused, and so is a server whose tools could have the name of a built-in tool (`write` with a tool
`file`): permissions and approvals are for names. A call of an MCP server that takes longer than
its `call_timeout` (5 min) fails, and the run goes on; so does, at once, one whose answer cannot be
read. Annotations of a server (`readOnlyHint`, `idempotentHint`) count only with `trusted = true`
(default false): otherwise its tools have side effects and are not idempotent, whatever it says. At
the third equal mistake since the last successful call (a tool that does not exist or has no name;
the same call with the same error) the run ends with that reason. Permissions per agent. Each call
is in the run's record, with its arguments, result and whether it has side effects. Scheduled runs
have no scheduling tools unless allowed.
"""

from goclaw_py.agents.tools.agents import Delegate
from goclaw_py.agents.tools.chats import SendMessage
from goclaw_py.agents.tools.permissions import SAFE, Permissions
from goclaw_py.agents.tools.registry import TOOLS, Registry

__all__ = ["SAFE", "TOOLS", "Delegate", "Permissions", "Registry", "SendMessage"]
