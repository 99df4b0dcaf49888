"""Pages on which people judge answers, and on which their disagreements are settled."""
