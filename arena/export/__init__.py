"""What is stored, for other programs: tables row by row, and a file of everything.

`rows` and `tables` are the tables, `everything` writes the file that `arena.importing` reads, `lines` says what its
lines are. All of it is made while it is written, so memory does not grow with the database. The cards of a round that
is not complete are never among it, since its tables share their decks, nor is the master seed of a tournament that is
not finished.
"""
