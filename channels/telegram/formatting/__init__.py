"""Converts Markdown to Telegram's HTML: parse blocks, pack them into parts, write each part."""
