"""What other tools load: a plugin of pytest and an extension of inspect_ai, one file each."""
