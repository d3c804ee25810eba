"""An MCP server over stdio that writes what no library would: results as they are given.

Its tool ``give`` has the argument ``content``: the text of JSON that it writes as its result, as it
is. ``python -m tests.support.odd_mcp_server`` speaks over stdin and stdout.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_SCHEMA = {
    "type": "object",
    "properties": {"content": {"type": "string"}},
    "required": ["content"],
}
_GIVE = {"name": "give", "description": "Give that back.", "inputSchema": _SCHEMA}


def _answer(method: str, parameters: dict[str, Any]) -> str:
    match method:
        case "initialize":
            version = parameters["protocolVersion"]
            about = {"name": "odd", "version": "1"}
            told = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            return json.dumps(told)
        case "tools/list":
            return json.dumps({"tools": [_GIVE]})
        case "tools/call":
            return str(parameters["arguments"]["content"])
        case _:
            return "{}"


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            result = _answer(asked["method"], asked.get("params") or {})
            number = json.dumps(asked["id"])
            print(f'{{"jsonrpc": "2.0", "id": {number}, "result": {result}}}', flush=True)


if __name__ == "__main__":
    main()
