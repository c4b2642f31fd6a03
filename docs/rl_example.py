"""Greedy against random at durak, through arena.rl; each deck is played from both seats.

Run it with a number of decks: `python docs/rl_example.py 100`.
"""

from __future__ import annotations

import sys

import numpy as np

from arena import rl
from arena.cards import RANKS, SUITS


def random_choice(env: rl.DealEnv, seen: rl.Observed, luck: np.random.Generator) -> int:
    """Return any legal action."""
    return int(luck.choice(np.flatnonzero(seen["action_mask"])))


def greedy_choice(env: rl.DealEnv, seen: rl.Observed, luck: np.random.Generator) -> int:
    """Return the action with the cheapest card: collect high ones, spend low ones, keep trumps, take last of all."""
    suits = seen["observation"][env.layout["trump"]]
    trump = SUITS[suits.argmax()] if suits.any() else ""

    def price(index: int) -> tuple[int, int]:
        words = env.actions[index]
        if ":" not in words:
            return (1, -1) if words == "pass" else (2, 0)
        rank = RANKS.index(words[-2])
        return (0, -rank) if words.startswith("capture") else (words[-1] == trump, rank)

    return min(np.flatnonzero(seen["action_mask"]).tolist(), key=price)


def score(decks: int) -> float:
    """Return the mean reward of the greedy policy."""
    env = rl.env("durak", seats=2)
    luck = np.random.default_rng(0)
    total = 0.0
    for deck in range(decks):
        for greedy in env.possible_agents:
            env.reset(seed=deck)
            for agent in env.agent_iter():
                _, reward, is_over, _, _ = env.last(observe=False)
                choose = greedy_choice if agent == greedy else random_choice
                env.step(None if is_over else choose(env, env.observe(agent), luck))
                total += reward if agent == greedy else 0.0
    return total / (2 * decks)


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"greedy against random: {score(number):+.2f} a deal over {2 * number} deals")
