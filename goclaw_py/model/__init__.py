"""Records and enums that every feature shares. Pure: no I/O, no clock, no asyncio."""
