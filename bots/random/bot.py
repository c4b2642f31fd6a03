"""Plays any legal action: the floor that every other bot stands on."""

from __future__ import annotations

from arena_bot import Ask, run


def choose(ask: Ask) -> str:
    return ask.rng.choice(ask.legal)


if __name__ == "__main__":
    run(choose, name="random", version="1", games=["avalanche", "durak", "smokestack"])
