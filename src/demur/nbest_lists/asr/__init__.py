"""From what a recogniser gives to N-best lists."""
