"""Level 1: the decisions of the product. No I/O, no clock, no asyncio, no logging."""
