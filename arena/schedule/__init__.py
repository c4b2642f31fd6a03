"""Who meets whom, and what the results add up to; pure."""
