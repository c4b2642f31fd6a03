"""Strength from results, and how sure it is; pure."""
