"""The files of an agent's workspace, and the syntax of their paths (SPEC SEC-4)."""
