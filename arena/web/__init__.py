"""What is stored, seen in a browser: the same pages served live and written as files.

`pages` finds what an address shows: a `Page`, which is plain data made from a read-only database. `rendering` turns it
into HTML and its JSON twin. `server` and `writing` both send what these two make. Nothing here starts a bot.
"""
