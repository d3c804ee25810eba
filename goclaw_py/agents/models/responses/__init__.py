"""What a model server sends, within limits (SPEC AGENT-13)."""
