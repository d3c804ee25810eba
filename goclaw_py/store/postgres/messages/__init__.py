"""The inbox, chats, people, access requests."""
