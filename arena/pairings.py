"""Who sits with whom in each round of a tournament, how it ended, and how good the pairing was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from sqlite_utils import Database

from arena.bracket import Bracket
from arena.plan import challengers_of, plan_of, scores_as_of
from arena.records import Round, TableScore
from arena.schedule.quality import RoundQuality, round_quality
from arena.schedule.scores import sheets
from arena.store import matches, tallies, tournaments
from arena.store.corrections import corrections
from arena.store.tournaments import Tournament


class Paired(msgspec.Struct, frozen=True):
    """A round of a game as it is shown.

    Attributes:
        matches: their numbers and tables.
        scores: by table, of a complete round.
        void: the numbers of the tournament's void matches.
        quality: by what was known when the round was paired; None in a knockout or a gauntlet, which choose nothing.
        challengers: of a gauntlet.
    """

    game: str
    round: Round
    complete: bool
    matches: list[tuple[int, tuple[int, ...]]]
    unplayed: list[int]
    scores: dict[tuple[int, ...], TableScore]
    void: set[int]
    quality: RoundQuality | None
    bracket: Bracket | None
    challengers: frozenset[int]

    def documents(self, names: Mapping[int, str]) -> Iterator[dict[str, object]]:
        """Yield a document for each match."""
        quality = None if self.quality is None else msgspec.structs.asdict(self.quality)
        for match, table in self.matches:
            yield {
                "game": self.game,
                "round": self.round.number,
                "complete": self.complete,
                "match": match,
                "bots": [names[entrant] for entrant in table],
                "challengers": [names[entrant] for entrant in table if entrant in self.challengers],
                "played": match not in self.unplayed,
                "void": match in self.void,
                "scores": self.shares(table),
                "byes": [names[entrant] for entrant in self.round.byes],
                "quality": quality,
                **self._of_bracket(match, names),
            }

    def shares(self, table: tuple[int, ...]) -> list[float] | None:
        """Return everybody's share of the duels at a table; None until the round is complete."""
        score = self.scores.get(table)
        if score is None:
            return None
        most = 2 * score.deals * (len(table) - 1)
        return [sum(row) / most for row in score.duels]

    def _of_bracket(self, match: int, names: Mapping[int, str]) -> dict[str, object]:
        if self.bracket is None:
            return dict.fromkeys(("seeds", "goes_on", "decided_by"))
        line = next(one for one in self.bracket.rounds[self.round.number] if one.match == match)
        winner = line.pairing.winner
        return {
            "seeds": [self.bracket.seed(entrant).number for entrant in line.pairing.came],
            "goes_on": None if winner is None else names[winner],
            "decided_by": line.pairing.decided or None,
        }


def paired(
    db: Database, tournament: Tournament, game: str, bracket: Bracket | None, only: int | None = None
) -> Iterator[Paired]:
    """Yield the rounds of a game, each judged by those before it as they were known when it was paired.

    Args:
        only: the number of one round; by default all.
    """
    numbers = [entrant.number for entrant in tournaments.entrants(db, tournament.id, game)]
    stored = tournaments.rounds(db, tournament.id, game)
    every, made = [*tallies.scores(db, tournament.id, game)], corrections(db, tournament.id)
    scores = scores_as_of(every, made, game)
    chooses = plan_of(tournament).format not in ("knockout", "gauntlet")
    for index, (played, complete) in enumerate(stored):
        if only not in (None, played.number):
            continue
        before = [one for one, _ in stored[:index]]
        known = scores_as_of(every, made, game, played.number)
        points = {entrant: sheet.points for entrant, sheet in sheets(numbers, before, known).items()}
        yield Paired(
            game,
            played,
            complete,
            matches.tables(db, tournament.id, game, played.number),
            matches.unplayed(db, tournament.id, game, played.number),
            {score.table: score for score in scores if score.round == played.number},
            {one.match for one in made if one.match is not None},
            round_quality(played, before, points) if played.tables and chooses else None,
            bracket,
            challengers_of(tournament),
        )
