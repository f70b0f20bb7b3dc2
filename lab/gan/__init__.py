"""What measured the shipped digits."""
