"""The bracket of a knockout on the page of a game."""

from __future__ import annotations

from collections.abc import Mapping

from arena.bracket import Bracket, BracketLine, seed_document
from arena.web.page import Data, bot_link, match_path


def bracket_data(bracket: Bracket, names: Mapping[int, str]) -> Data:
    """Return seeds, pairings round by round in the order of the bracket, and the winner."""
    return {
        "seeds": [
            {**bot_link(names[seed.entrant]), **seed_document(seed, names), "words": seed.words()}
            for seed in bracket.seeds
        ],
        "rounds": [
            {
                "number": number,
                "name": bracket.round_name(number),
                "pairings": [_pairing(line, bracket, names) for line in lines],
            }
            for number, lines in bracket.rounds.items()
        ],
        "not_played": bracket.unplayed(names) or None,
        "winner": None if bracket.winner is None else bot_link(names[bracket.winner]),
    }


def _pairing(line: BracketLine, bracket: Bracket, names: Mapping[int, str]) -> Data:
    pairing, shares = line.pairing, line.shares()
    return {
        "match": line.match,
        "match_page": None if line.match is None else match_path(line.match),
        "bots": [
            {
                **bot_link(names[slot]),
                "seed": bracket.seed(slot).number,
                "share": shares.get(slot),
                "left": slot not in pairing.came,
            }
            for slot in pairing.slots
            if slot is not None
        ],
        "goes_on": None if pairing.winner is None else bot_link(names[pairing.winner]),
        "decided_by": pairing.decided or None,
        "reason": line.reason(),
    }
