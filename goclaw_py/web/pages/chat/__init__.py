"""The web chat: conversations with their lines and files, and Markdown as HTML (SPEC CHAN-9)."""
