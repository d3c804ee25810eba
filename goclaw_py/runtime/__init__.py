"""Level 3: asyncio shells around the core."""
