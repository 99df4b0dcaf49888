"""What understanding errors cost the outcome of dialogues."""
