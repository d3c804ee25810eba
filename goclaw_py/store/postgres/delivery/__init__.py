"""The outbox and drafts."""
