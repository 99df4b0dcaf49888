"""Feeds every reader inputs that are cut, flipped, spliced and made up, and says which of them the command fails at."""
