"""Speed, measured as a ratio inside one run: absolute times say more of the machine than of the arena."""
