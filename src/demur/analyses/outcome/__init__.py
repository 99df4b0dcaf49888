"""What understanding errors cost the outcome: regression, validation, prediction."""
