"""The values that groups release."""
