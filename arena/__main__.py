"""`python -m arena` is the command line."""

from arena.cli import main

main()
