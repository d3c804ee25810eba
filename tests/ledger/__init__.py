"""What things cost, in counts that do not depend on the speed of the machine."""
