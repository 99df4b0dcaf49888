"""What a user meets: the command line."""
