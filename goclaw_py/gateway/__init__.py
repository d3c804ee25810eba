"""The gateway put together, and what operators do with it."""
