"""What a tournament came to: the winner of a knockout, else the first places of the standings, game by game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import typer
from sqlite_utils import Database

from arena.bracket import Bracket, read_bracket
from arena.cli.brackets import winner_in_words
from arena.cli.output import emit_pairs, harmless
from arena.cli.standings import marked_name, say_stars, starred
from arena.plan import challengers_of, final_standings, plan_of
from arena.records import Standing
from arena.store import tournaments
from arena.store.tournaments import Tournament

_FIRST = 3


class Result(NamedTuple):
    """What a game of a tournament came to.

    Attributes:
        bracket: of a knockout, else None.
        first: the first lines of the standings.
        names: by entrant.
        challengers: of a gauntlet.
    """

    game: str
    bracket: Bracket | None
    first: list[Standing]
    names: Mapping[int, str]
    challengers: frozenset[int]

    def words(self) -> str:
        """Return it in a line."""
        if self.bracket is not None:
            unplayed = self.bracket.unplayed(self.names)
            return winner_in_words(self.bracket, self.names) + (f"; {unplayed}" if unplayed else "")
        names = starred(self.names, self.challengers)
        told = [f"{line.place} {marked_name(line, names)} {line.points:.3f}" for line in self.first]
        return f"{', '.join(told)} points"

    def document(self) -> dict[str, object]:
        """Return it for other programs."""
        winner = None if self.bracket is None or self.bracket.winner is None else self.names[self.bracket.winner]
        first = [
            {
                "place": line.place,
                "name": self.names[line.entrant],
                "points": line.points,
                "challenger": line.entrant in self.challengers,
            }
            for line in self.first
        ]
        return {"game": self.game, "winner": winner, "first": first}


def results_of(db: Database, tournament: Tournament) -> list[Result]:
    """Return what each game came to; nothing where bots sit at unequally many tables, so that points mean nothing."""
    plan = plan_of(tournament)
    if plan.format == "until-error":
        return []
    names = {one.number: one.name for one in tournaments.entrants(db, tournament.id)}
    coming = challengers_of(tournament)
    return [
        Result(game, read_bracket(db, tournament, game), final_standings(db, tournament, game)[:_FIRST], names, coming)
        for game in plan.games
    ]


def show_results(tournament: Tournament, found: list[Result]) -> None:
    """Print what each game came to, if there is anything to tell."""
    if found:
        typer.echo(f"result of {harmless(tournament.name)}")
        emit_pairs([(one.game, one.words()) for one in found])
        typer.echo()
        say_stars(found[0].challengers)
