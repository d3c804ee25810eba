"""What comes in, and who writes: inbox, chats, people, access requests."""
