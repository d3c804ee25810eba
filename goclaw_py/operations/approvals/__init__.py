"""Questions of runs about their tool calls, and what the answers of people allow (SPEC AGENT-11).

``operations`` is what the gateway, its API and commands without a gateway call.
"""
