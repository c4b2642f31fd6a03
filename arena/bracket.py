"""The bracket of a knockout as people see it: the seeds, who met whom, who went on and by which rule."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from sqlite_utils import Database

from arena.plan import base_name, excluded, final_standings, plan_of, seeding_of, table_scores
from arena.records import Round, TableScore
from arena.schedule.knockout import Deciding, Pairing, pairings, rounds_of
from arena.store import matches, tournaments
from arena.store.corrections import corrections
from arena.store.tournaments import Entrant, Stage, Tournament

_ROUNDS = ("final", "semi-final", "quarter-final")


class Seed(msgspec.Struct, frozen=True):
    """A seed, and where it comes from.

    Attributes:
        number: 1 is the best.
        elo: the rating when the knockout began, where it is by that.
    """

    number: int
    entrant: int
    by: Literal["given", "rating", "lot"]
    elo: float | None = None

    def words(self) -> str:
        """Return where it comes from."""
        return self.by if self.elo is None else f"rating {self.elo:.0f}"


class BracketLine(msgspec.Struct, frozen=True):
    """A pairing with its match.

    Attributes:
        match: None for a bye.
        score: None until the round is complete.
        is_void: its match is.
    """

    pairing: Pairing
    match: int | None
    score: TableScore | None
    is_void: bool

    def reason(self) -> str:
        """Return why somebody goes on."""
        decided = self.pairing.decided
        words: dict[Deciding, str] = {
            "deal sets": f"deal sets {self._sets()}, duels equal",
            "seed": f"better seed, {'match void' if self.is_void else 'duels and deal sets equal'}",
            "earlier": "had gone on before the match was void",
            "left": "no opponent: it had left",
        }
        return words.get(decided, decided)

    def shares(self) -> dict[int, float]:
        """Return everybody's share of the duels, by entrant; empty where they are not known."""
        if self.score is None:
            return {}
        most = 2 * self.score.deals
        return {entrant: sum(row) / most for entrant, row in zip(self.score.table, self.score.duels, strict=True)}

    def _sets(self) -> str:
        if self.score is None or not self.score.sets_won:
            return ""
        return " : ".join(str(self.score.sets_won[self.score.table.index(one)]) for one in self.pairing.came)


class Exit(msgspec.Struct, frozen=True):
    """How somebody came out of a knockout.

    Attributes:
        round: that it lost, or that it was not there for any more.
        to: who won against it; None if it left.
    """

    round: int
    to: int | None
    decided: Deciding


class Bracket(msgspec.Struct, frozen=True):
    """A knockout of a game, so far.

    Attributes:
        rounds: by number, each in the order of the bracket.
        exits: by entrant; nothing of who is still in it.
        winner: None as long as there is none.
        missed: who left before the next round, by seed, so that it is not played; empty as long as one is.
    """

    seeds: tuple[Seed, ...]
    rounds: dict[int, tuple[BracketLine, ...]]
    exits: dict[int, Exit]
    winner: int | None
    missed: tuple[int, ...] = ()

    def seed(self, entrant: int) -> Seed:
        """Return the seed of an entrant."""
        return next(one for one in self.seeds if one.entrant == entrant)

    def round_name(self, number: int) -> str:
        """Return what a round is called, e.g. `semi-final`, or `round 1` if it is further from the end."""
        left = rounds_of(len(self.seeds)) - number
        return _ROUNDS[left] if left < len(_ROUNDS) else f"round {number}"

    def unplayed(self, names: Mapping[int, str]) -> str:
        """Return which round is not played and why, or nothing if that is not so."""
        if not self.missed:
            return ""
        return (
            f"{self.round_name(len(self.rounds) + 1)} not played: {', '.join(names[one] for one in self.missed)} left"
        )

    def end(self, entrant: int, names: Mapping[int, str]) -> str:
        """Return in words how somebody came out of it, or that it won; empty for who is still in it.

        Who was disqualified after it won the final is not the winner.
        """
        if entrant == self.winner:
            return "won"
        out = self.exits.get(entrant)
        if out is None:
            final = self.rounds.get(rounds_of(len(self.seeds)), ())
            return "won the final" if any(one.pairing.winner == entrant for one in final) else ""
        where = self.round_name(out.round)
        if out.to is None:
            return f"left before the {where}" if where in _ROUNDS else f"left before {where}"
        line = next(one for one in self.rounds[out.round] if one.pairing.loser == entrant)
        return f"{where}, to {names[out.to]}: {line.reason().partition(',')[0]}"


def read_bracket(db: Database, tournament: Tournament, game: str, after: int | None = None) -> Bracket | None:
    """Return the bracket of a knockout, or None for other formats.

    Args:
        after: a round; the bracket then has no later ones, and corrections made after it do not count.
    """
    if plan_of(tournament).format != "knockout":
        return None
    (stage,) = tournament.stages
    entrants = tournaments.entrants(db, tournament.id, game)
    seeding = seeding_of(stage, game, [one.number for one in entrants])
    every = tournaments.rounds(db, tournament.id, game)
    stored = [(one, done) for one, done in every if after is None or one.number <= after]
    history = [one for one, _ in stored]
    before = None if after is None else after + 1
    scores = table_scores(db, tournament.id, game, before)
    made = [one for one in corrections(db, tournament.id) if before is None or one.rounds.get(game, 0) < before]
    void = {one.match for one in made}
    played = list(pairings(seeding, history, scores))
    rounds = {
        one.number: _lines(db, tournament, game, one, row, scores, void)
        for one, row in zip(history, played, strict=True)
    }
    winner: int | None = None
    missed: tuple[int, ...] = ()
    gone = excluded(made, game, len(history) + 1)
    last = [one.winner for one in played[-1] if one.winner is not None] if played else seeding
    if all(done for _, done in stored) and len([one for one in last if one not in gone]) < 2:
        winner = _winner(db, tournament, game, after)
        missed = tuple(one for one in seeding if one in last and one in gone) if len(last) > 1 else ()
    exits = {entrant: out for entrant, out in _exits(played, last, gone) if entrant != winner}
    return Bracket(seeds_of(stage, game, entrants), rounds, exits, winner, missed)


def _winner(db: Database, tournament: Tournament, game: str, after: int | None) -> int | None:
    first = [line.entrant for line in final_standings(db, tournament, game, after) if line.place == 1]
    return first[0] if len(first) == 1 else None


def seeds_of(stage: Stage, game: str, entrants: Sequence[Entrant]) -> tuple[Seed, ...]:
    """Return the seeds of a game of a knockout, the best first; without those who play other games only."""
    return tuple(_seeds(stage, game, [one for one in entrants if game in one.games]))


def seed_document(seed: Seed, names: Mapping[int, str]) -> dict[str, object]:
    """Return a seed for other programs."""
    return {"seed": seed.number, "name": names[seed.entrant], "by": seed.by, "elo": seed.elo}


def _seeds(stage: Stage, game: str, entrants: Sequence[Entrant]) -> Iterator[Seed]:
    plan = plan_of(stage)
    seeding = seeding_of(stage, game, [one.number for one in entrants])
    given = [one.number for one in entrants if base_name(one) in plan.seeds]
    rated = [one for one in plan.cast.seeds.get(game, ()) if one not in given]
    elo = dict(zip(rated, plan.cast.elo.get(game, ()), strict=False))
    for number, entrant in enumerate(seeding, 1):
        by: Literal["given", "rating", "lot"] = "given" if entrant in given else "rating" if entrant in rated else "lot"
        yield Seed(number, entrant, by, elo.get(entrant))


def _lines(
    db: Database,
    tournament: Tournament,
    game: str,
    played: Round,
    row: Sequence[Pairing],
    scores: Sequence[TableScore],
    void: Collection[int | None],
) -> tuple[BracketLine, ...]:
    """Return the pairings of a round with their matches; a pairing of two who had both left is none."""
    numbers = {frozenset(table): number for number, table in matches.tables(db, tournament.id, game, played.number)}
    told = {frozenset(one.table): one for one in scores if one.round == played.number}
    found = []
    for one in row:
        number = numbers.get(frozenset(one.came))
        if one.slots != (None, None):
            found.append(BracketLine(one, number, told.get(frozenset(one.came)), number is not None and number in void))
    return tuple(found)


def _exits(
    played: Sequence[Sequence[Pairing]], last: Sequence[int], gone: Collection[int]
) -> Iterator[tuple[int, Exit]]:
    """Yield how everybody came out of it, the withdrawal of the last ones too."""
    for number, row in enumerate(played, 1):
        for one in row:
            if one.loser is not None:
                yield one.loser, Exit(number, one.winner, one.decided)
            for entrant in one.slots:
                if entrant is not None and entrant not in one.came:
                    yield entrant, Exit(number, None, "left")
    for entrant in last:
        if entrant in gone and len(last) > 1:
            yield entrant, Exit(len(played) + 1, None, "left")


def standing_fields(bracket: Bracket | None, entrant: int, names: Mapping[int, str]) -> dict[str, object]:
    """Return what the bracket adds to a line of standings, for other programs; nothing but None in other formats."""
    if bracket is None:
        return dict.fromkeys(("seed", "seeded_by", "out_in_round", "lost_to", "decided_by"))
    seed, out = bracket.seed(entrant), bracket.exits.get(entrant)
    return {
        "seed": seed.number,
        "seeded_by": seed.by,
        "out_in_round": out and out.round,
        "lost_to": None if out is None or out.to is None else names[out.to],
        "decided_by": out and out.decided,
    }
