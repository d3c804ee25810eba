"""What jobs cost, and how late they start."""
