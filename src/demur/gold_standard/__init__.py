"""How far systems are from people."""
