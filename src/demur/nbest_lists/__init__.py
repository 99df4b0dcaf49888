"""Lists of hypotheses with confidences: what they are worth."""
