"""What was lost and what an attacker can still gain."""
