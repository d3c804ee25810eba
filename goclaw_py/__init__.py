"""goclaw_py: the runtime between chat channels and an AI agent."""
