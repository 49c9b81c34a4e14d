"""What it is asked."""
