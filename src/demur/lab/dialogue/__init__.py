"""Dialogue in the loop: a simulated user, a noisy channel and dialogue managers (Thomson et al. 2008, section 3)."""
