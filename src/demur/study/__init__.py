"""Wizard-of-Oz studies: people talk to what they take for a system, behind which a wizard or a system answers."""
