"""People say whether answers are right: which answers, in which order, how far they agree, and the judged log."""
