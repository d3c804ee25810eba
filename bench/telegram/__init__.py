"""A whole gateway on Telegram: how much it answers, at what price, and what a flood does to it."""
