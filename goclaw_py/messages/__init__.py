"""What comes in."""
