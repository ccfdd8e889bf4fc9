"""What a laptop needs instead of the real world, and the supervisor that starts it."""
