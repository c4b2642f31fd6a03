"""The bracket of a knockout in `arena pairings` and `arena standings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import typer

from arena.bracket import Bracket, BracketLine, seed_document
from arena.cli.output import emit_table, harmless
from arena.cli.standings import marked_name
from arena.records import Standing


def show_seeds(title: str, bracket: Bracket, names: Mapping[int, str]) -> None:
    """Print who has which seed, and from what."""
    rows = ((seed.number, names[seed.entrant], seed.words()) for seed in bracket.seeds)
    emit_table(("seed", "<bot", "<from"), rows, title)
    typer.echo()


def show_round(title: str, bracket: Bracket, number: int, names: Mapping[int, str]) -> None:
    """Print a round in the order of the bracket: two lines that follow on each other meet in the next one."""
    name = bracket.round_name(number)
    columns = ("match", "<~bots by seed, with their scores", "<goes on", "<~by")
    rows = (_cells(line, bracket, names) for line in bracket.rounds[number])
    emit_table(columns, rows, title if name.startswith("round") else f"{title} · {name}")
    typer.echo()


def _cells(line: BracketLine, bracket: Bracket, names: Mapping[int, str]) -> list[object]:
    told: list[str] = []
    shares = line.shares()
    for slot in line.pairing.slots:
        if slot is None:
            continue
        share = f" {shares[slot]:.3f}" if slot in shares else ""
        left = "" if slot in line.pairing.came else " (left)"
        told.append(f"{bracket.seed(slot).number} {names[slot]}{share}{left}")
    winner = line.pairing.winner
    waits = " (to play)" if line.match is not None and winner is None else ""
    return [line.match or "", " – ".join(told) + waits, "" if winner is None else names[winner], line.reason()]


def show_unplayed(title: str, bracket: Bracket, names: Mapping[int, str]) -> None:
    """Print which round is not played and why, if that is so."""
    if words := bracket.unplayed(names):
        typer.echo(f"{harmless(f'{title} · {words}')}\n")


def show_winner(bracket: Bracket, names: Mapping[int, str]) -> None:
    """Print who won, if anybody has."""
    if bracket.winner is not None or bracket.missed:
        typer.echo(f"{harmless(winner_in_words(bracket, names))}\n")


def winner_in_words(bracket: Bracket, names: Mapping[int, str]) -> str:
    """Return who won, or that nobody did."""
    if bracket.winner is None:
        return "no winner: the first place is shared"
    placed = ", the best placed of those who left" if bracket.winner in bracket.missed else ""
    return f"winner: {names[bracket.winner]}{placed}"


def show_standings(title: str, bracket: Bracket, lines: Sequence[Standing], names: Mapping[int, str]) -> None:
    """Print the places of a knockout, and how everybody came out of it."""
    rows = (
        [
            line.place,
            marked_name(line, names),
            bracket.seed(line.entrant).number,
            bracket.end(line.entrant, names),
            f"{line.points:.3f}",
            line.deals,
        ]
        for line in lines
    )
    emit_table(("#", "<bot", "seed", "<~out", "points", "deals"), rows, title)
    typer.echo()


def bracket_document(game: str, bracket: Bracket, names: Mapping[int, str]) -> dict[str, object]:
    """Return the seeds, the winner, and who left before a round that is not played, for other programs."""
    seeds = [seed_document(seed, names) for seed in bracket.seeds]
    winner = None if bracket.winner is None else names[bracket.winner]
    missed = {"round": len(bracket.rounds) + 1, "left": [names[one] for one in bracket.missed]}
    return {"game": game, "seeds": seeds, "winner": winner, "not_played": missed if bracket.missed else None}
