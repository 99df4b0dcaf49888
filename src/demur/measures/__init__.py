"""Pure readings of judged rows: sweeps, curves, scores, and how sure they are."""
