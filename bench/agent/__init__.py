"""The agent loop itself, beside bare pydantic-ai."""
