"""From Markdown to Telegram's HTML: read into blocks, pack into parts, write each part."""
