"""What operators measure."""
