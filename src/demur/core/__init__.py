"""What knows no question: how jobs declare their options."""
