"""From a result to anything shown."""
