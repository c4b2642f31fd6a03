"""The attacks of `arena doctor`: a program that is started as a bot is, once for each attack.

    python3 -m attacks NAME ARGUMENT...

It is copied into a bot's folder, and imports nothing of the arena, since a bot cannot either. It prints JSON objects, a
line each: `begun` first, `found` last, where `found` tells for each thing it tried what came of it, beginning with
`done` if it succeeded, else in the words of the kernel. Then it holds what it has taken until its stdin ends.
Nothing it does to a machine lasts.
"""
