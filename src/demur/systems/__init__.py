"""Things that answer."""
