"""What happened and what was said, in words and cards, for people; what a program reads is JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from arena.cards import JOKER
from arena.games import GAMES
from arena.rules import Data, Event, parse_rule_set_id, show_value

SUITS = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
"""How people write a suit."""
_REASONS = {
    ("", "fault"): "a fault decided the deal",
    ("", "forfeit"): "nobody was asked, since too few bots had not forfeited the match",
    ("avalanche", "played out"): "the stock and the hands were used up",
    ("durak", "durak"): "one bot was left with cards and is the durak",
    ("durak", "draw"): "the last cards left together",
    ("durak", "attacker wins"): "the last cards left together, so the defender is the durak",
    ("durak", "stalled"): "too many bouts in a row ended in a take",
    ("smokestack", "stock"): "the stock was used up",
    ("smokestack", "stalled"): "the centre was refreshed ten times without a swap",
    ("smokestack", "turn limit"): "every seat has had a hundred turns",
}
_RESULTS = {"start": "starts an avalanche with", "grow": "lays", "stop": "stops it with", "drop": "drops it with"}
_CARD = re.compile(r"([2-9TJQKA])([cdhs])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Return what a bot or a file said without control characters, which could move the cursor or hide text."""
    return _CONTROL.sub("·", text)


def rule_words(rule_set: str, seats: int) -> list[str]:
    """Return what tells a rule set from others: the game, an old version, and the options that are not the defaults."""
    name, version, texts = parse_rule_set_id(rule_set)
    game = GAMES[name]
    usual = {option: show_value(found.default_for(seats)) for option, found in game.schema.items()}
    changed = [f"{option}={text}" for option, text in texts.items() if usual.get(option) != text]
    old = [f"rules of version {version}"] if version != game.version else []
    return [name, *old, *changed]


def card_words(card: str) -> str:
    """Return a card as people write it: `10♥`, `K♠`, a bare rank as it is, a joker as a star."""
    if card == JOKER:
        return "★"
    rank, suit = card[0].replace("T", "10"), card[1:]
    return rank + SUITS.get(suit, suit)


def action_words(action: str) -> str:
    """Return an action with its cards as people write them: `beat:7s:9s` is `beat 7♠ 9♠`."""
    return " ".join(_CARD.sub(lambda found: card_words(found[0]), part) for part in action.split(":"))


def cards_by_suit(cards: Iterable[str]) -> str:
    """Return cards in a row, a wider gap between suits; ranks without suits only in a row."""
    groups: dict[str, list[str]] = {}
    for card in cards:
        groups.setdefault(card[1:], []).append(card_words(card))
    return "  ".join(map(" ".join, groups.values())) or "none"


def seat_lines(game: str, seen: Data, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what matters to a seat in a position: what it holds, what lies before it, whose move it is.

    Args:
        seen: the seat's own observation.
        names: what to call each seat.
    """
    tell = {"avalanche": _seat_avalanche, "durak": _seat_durak, "smokestack": _seat_smokestack}[game]
    return tell(seen, names)


def reason_words(game: str, reason: str) -> str:
    """Return why a deal ended as a clause."""
    return _REASONS.get((game, reason)) or _REASONS.get(("", reason), reason)


def _seat_avalanche(seen: Any, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    plays = [f"{_cards([play['rank']] * play['count'])} ({names[play['seat']]})" for play in seen["table"]]
    yield "your hand", cards_by_suit(seen["hand"])
    yield "on table", "   ".join(plays) or "nothing"
    yield "stock", f"{seen['stock']} cards"
    yield "piles", ", ".join(f"{name} {pile}" for name, pile in zip(names, seen["piles"], strict=True))


def _seat_durak(seen: Any, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield "your hand", cards_by_suit(seen["hands"][seen["seat"]])
    if seen["phase"] == "collect":
        yield "drawn", card_words(seen["drawn"])
        yield "beside the deck", cards_by_suit(seen["open"])
    else:
        pairs = (f"{card_words(attack)} ({card_words(own) if own else 'open'})" for attack, own in seen["table"])
        yield "on table", "   ".join(pairs) or "nothing"
        yield "trump", SUITS[seen["trump"]]
        yield "bout", f"{seen['bout']}, led by {names[seen['leader']]} against {names[seen['defender']]}"
    yield "cards", ", ".join(f"{name} {len(hand)}" for name, hand in zip(names, seen["hands"], strict=True))


def _seat_smokestack(seen: Any, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield "your stacks", " | ".join(map(_cards, seen["stacks"][seen["seat"]])) or "none"
    yield "centre", _cards(seen["centre"])
    yield "stock", f"{seen['stock']} cards"
    yield "banked", ", ".join(f"{name} {len(banked)}" for name, banked in zip(names, seen["banked"], strict=True))
    yield "asked", f"in the window before the turn of {names[seen['turn']]}" if seen["window"] else "in its turn"


def event_words(game: str, event: Event, names: Sequence[str]) -> str:
    """Return an event of a game as a sentence.

    Args:
        names: what to call each seat.
    """
    seat = event.data.get("seat")
    who = names[seat] if isinstance(seat, int) else ""
    tell = {"avalanche": _avalanche, "durak": _durak, "smokestack": _smokestack}[game]
    return tell(event.kind, event.data, who, names)


def _card(card: object) -> str:
    return card_words(str(card))


def _cards(value: object) -> str:
    return " ".join(map(_card, value)) if isinstance(value, (list, tuple)) else str(value)


def _avalanche(kind: str, data: Data, who: str, names: Sequence[str]) -> str:
    match kind, data:
        case "deal", {"hand": hand}:
            return f"{who} is dealt {_cards(hand)}"
        case "draw", {"cards": cards}:
            return f"{who} draws {_cards(cards)}"
        case "snow", _:
            return f"{who} draws: snowfall"
        case "play", {"rank": rank, "count": int(count), "result": result}:
            return f"{who} {_RESULTS[str(result)]} {_cards([rank] * count)}"
        case "settle", {"to": int(seat), "cards": cards}:
            return f"{names[seat]} gets its {cards} cards"
        case "settle", {"cards": cards}:
            return f"its {cards} cards are dead"
        case "refill", {"drawn": [*drawn]}:
            counts = (f"{name} {count}" for name, count in zip(names, drawn, strict=True) if count)
            return "hands are refilled: " + (", ".join(counts) or "nobody draws")
    return _plain(kind, data)


def _durak(kind: str, data: Data, who: str, names: Sequence[str]) -> str:
    match kind, data:
        case "trump", {"suit": suit}:
            return f"{SUITS[str(suit)]} is trump"
        case "collect_end", {"cards": cards}:
            return f"{who} gets the last card and all that is open: {_cards(cards)}"
        case "redeal", {"number": number}:
            return f"a hand is empty: dealt again, number {number}"
        case "take", _:
            return f"{who} takes"
        case "pass", _:
            return f"{who} passes"
        case "taken", {"cards": cards}:
            return f"{who} has taken {_cards(cards)}"
        case "beaten_off", {"cards": cards}:
            return f"{who} has beaten off {_cards(cards)}"
        case "out", {"bout": bout}:
            return f"{who} is out in bout {bout}" if bout else f"{who} is out after collecting"
        case "end", {"reason": reason}:
            return f"the deal is over: {reason}"
    return _durak_card(kind, data, who)


def _durak_card(kind: str, data: Data, who: str) -> str:
    card = _card(data.get("card"))
    match kind, data:
        case "open", _:
            return f"{card} is opened beside the deck"
        case "draw", _:
            return f"{who} draws {card}"
        case "capture", {"by": by}:
            return f"{who} captures {card} with {_card(by)}"
        case "attack", _:
            return f"{who} attacks with {card}"
        case "beat", {"attack": attack}:
            return f"{who} beats {_card(attack)} with {card}"
        case "throw", _:
            return f"{who} throws in {card}"
        case "transfer", _:
            return f"{who} transfers the attack with {card}"
    return _plain(kind, data)


def _smokestack(kind: str, data: Data, who: str, names: Sequence[str]) -> str:
    match kind, data:
        case "deal", {"centre": centre, "stock": stock}:
            return f"four open cards to each; in the centre {_cards(centre)}, {stock} in the stock"
        case "bank", {"cards": cards, "refill": refill}:
            return f"{who} banks {_cards(cards)} and draws {_cards(refill)}"
        case "swap", {"own": own, "centre": centre}:
            return f"{who} swaps {_card(own)} for {_card(centre)}"
        case "double", {"cards": cards}:
            return f"{who} opens a second stack: {_cards(cards)}"
        case "pass", _:
            return f"{who} passes"
        case "sweep", _:
            return f"{who} calls the sweep: all open stacks move one seat on"
        case "window", {"answers": [*answers]}:
            return "window: " + ", ".join(f"{name} {said}" for name, said in zip(names, answers, strict=True) if said)
        case "refresh", {"old": old, "new": new}:
            return f"the centre is refreshed: {_cards(new)} for {_cards(old)}"
    return _plain(kind, data)


def _plain(kind: str, data: Data) -> str:
    return kind + "".join(f" {key}={value}" for key, value in data.items())


def position_lines(observation: Data, names: Sequence[str]) -> Iterator[str]:
    """Yield a position, a line for each thing in it; what is kept by seat is told by name."""
    for key, value in observation.items():
        if isinstance(value, (list, tuple)) and len(value) == len(names) and key not in ("table", "centre"):
            for name, inner in zip(names, value, strict=True):
                yield f"{key:<12} {name:<12} {_shown(inner)}"
        else:
            yield f"{key:<12} {SUITS[str(value)] if key == 'trump' and value else _shown(value)}"


def _shown(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case str():
            return _CARD.sub(lambda found: card_words(found[0]), value) if _CARD.fullmatch(value) else value
        case Mapping():
            return " ".join(f"{key}:{_shown(inner)}" for key, inner in value.items())
        case [*inner]:
            nested = any(isinstance(one, (list, tuple, Mapping)) for one in inner)
            return " | ".join(map(_shown, inner)) if nested else " ".join(map(_shown, inner)) or "-"
        case _:
            return str(value)
