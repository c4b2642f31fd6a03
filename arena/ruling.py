"""Which rule an action breaks that is not legal: a sentence for whoever wrote the bot that gave it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from arena.rules import Action, Data
from arena.words import SUITS, card_words

FORMS: dict[str, tuple[str, ...]] = {
    "avalanche": ("play:RANKxCOUNT", "snow"),
    "durak": ("capture:CARD", "attack:CARD", "beat:ATTACK:OWN", "take", "transfer:CARD", "throw:CARD", "pass"),
    "smokestack": ("sweep", "wait", "double", "pass", "swap:OWN:CENTRE"),
}
"""How the actions of each game are written, as in protocol.md."""
_PARTS = {"RANK": "[2-9TJQKA*]", "COUNT": "[1-8]"} | dict.fromkeys(
    ("CARD", "ATTACK", "OWN", "CENTRE"), "[2-9TJQKA][cdhs]"
)
_PHASES = {
    "collect": (("capture",), "the drawn card is to capture an open one"),
    "attack": (("attack",), "a bout is to be led"),
    "defend": (("beat", "take", "transfer"), "attack cards are to be beaten"),
    "throw": (("throw", "pass"), "cards may be thrown in"),
}


def broken_rule(game: str, action: Action, legal: Collection[Action], seen: Data) -> str:
    """Return why an action is not legal.

    Args:
        action: what the bot sent.
        legal: what it might have sent.
        seen: what its seat saw.
    """
    near = next((one for one in legal if _letters(one) == _letters(action)), None)
    if near is not None:
        return f"it is not spelled like the legal action {near!r}: spaces and capitals count"
    verb = action.split(":")[0]
    form = next((form for form in FORMS[game] if form.split(":")[0] == verb), None)
    if form is None:
        return f"{game} has no such action; it has {', '.join(FORMS[game])}"
    if not re.fullmatch(re.sub("[A-Z]+", lambda part: _PARTS[part[0]], form), action):
        return f"it is not written as {form}" + (
            ", a card as its rank and its suit, e.g. Th" if game != "avalanche" else ""
        )
    rule = {"avalanche": _avalanche, "durak": _durak, "smokestack": _smokestack}[game]
    return rule(verb, action.split(":")[1:], seen) or "the position does not allow it"


def _letters(action: Action) -> str:
    return "".join(action.split()).lower()


def _avalanche(verb: str, words: Sequence[str], seen: Any) -> str:
    if verb == "snow":
        return "an avalanche lies on the table, so a play is due" if seen["table"] else "the stock is empty"
    rank, count = words[0].split("x")
    held = seen["hand"].count(rank)
    return f"it takes {count} of rank {card_words(rank)}, you hold {held}"


def _durak(verb: str, words: Sequence[str], seen: Any) -> str:
    verbs, phase = _PHASES[seen["phase"]]
    if verb not in verbs:
        return f"{verb} is not for now: {phase}"
    if verb == "capture":
        if words[0] not in seen["open"]:
            return f"{card_words(words[0])} does not lie beside the deck"
        return f"{card_words(seen['drawn'])} captures a lower card of its suit only"
    if words and words[-1] not in seen["hands"][seen["seat"]]:
        return f"{card_words(words[-1])} is not in your hand"
    if verb == "beat":
        return _beat(words[0], words[1], seen)
    ranks = {card[0] for pair in seen["table"] for card in pair if card}
    if verb in ("throw", "transfer") and words[0][0] not in ranks:
        return f"no card of the rank of {card_words(words[0])} lies on the table"
    if verb == "transfer" and any(own for _, own in seen["table"]):
        return "an attack can be transferred only before anything is beaten"
    return ""


def _beat(attack: str, own: str, seen: Any) -> str:
    if attack not in [card for card, beaten in seen["table"] if beaten is None]:
        return f"{card_words(attack)} is no attack card that is still to be beaten"
    trump = SUITS[seen["trump"]]
    better = (
        f"a higher {trump}" if attack[1] == seen["trump"] else f"a higher {SUITS[attack[1]]} or any {trump}, the trump"
    )
    return f"{card_words(own)} does not beat {card_words(attack)}: that takes {better}"


def _smokestack(verb: str, words: Sequence[str], seen: Any) -> str:
    own = seen["stacks"][seen["seat"]]
    if seen["window"] and verb not in ("sweep", "wait"):
        return f"{verb} is for turns: a window is open, before the turn of seat {seen['turn']}"
    if not seen["window"] and verb == "wait":
        return "wait is for windows: none is open, it is your turn"
    if verb == "double" and len(own) > 1:
        return "there are two open stacks already"
    if verb == "double" and len({card[0] for card in own[0]}) == len(own[0]):
        return "there is no pair in your stack"
    if verb != "swap":
        return ""
    if not any(words[0] in stack for stack in own):
        return f"{card_words(words[0])} is not in an open stack of yours"
    return f"{card_words(words[1])} is not in the centre"
