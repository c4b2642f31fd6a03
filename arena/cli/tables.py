"""`arena crosstable` and `arena pairings`: who met whom in a tournament, and how it ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
import typer
from rich.text import Text
from sqlite_utils import Database

from arena.bracket import Bracket, read_bracket
from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.brackets import bracket_document, pairing_fields, show_round, show_seeds, show_unplayed, show_winner
from arena.cli.finding import find_tournament, games_of
from arena.cli.output import count_of, emit_json, emit_lines, emit_matrix, emit_table, say
from arena.cli.standings import say_stars, starred
from arena.errors import ConfigError
from arena.plan import challengers_of, final_standings, plan_of, scores_as_of, table_scores
from arena.records import Round, TableScore
from arena.schedule.crosstable import Encounter, encounters
from arena.schedule.quality import RoundQuality, round_quality
from arena.schedule.scores import sheets
from arena.store import matches, tallies, tournaments
from arena.store.corrections import corrections
from arena.store.database import open_reader
from arena.store.tournaments import Tournament

TournamentName = Annotated[str, typer.Argument(help="A tournament's name; `last` for the newest.")]
GameName = Annotated[str, typer.Argument(help="One game; by default all of the tournament.")]


@app.command(epilog="Example: arena crosstable spring durak")
def crosstable(tournament: TournamentName, game: GameName = "", db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Show everybody's share of the duels against everybody else, in the order of the standings."""
    with open_reader(db) as opened:
        found = find_tournament(opened, tournament)
        names = {entrant.number: entrant.name for entrant in tournaments.entrants(opened, found.id)}
        tables = {
            one: (
                [line.entrant for line in final_standings(opened, found, one)],
                encounters(table_scores(opened, found.id, one)),
            )
            for one in games_of(found, game)
        }
    coming = challengers_of(found)
    if as_json:
        documents = {one: list(_encounters(order, met, names, coming)) for one, (order, met) in tables.items()}
        emit_json("crosstable/1", {"tournament": found.name, "games": documents})
        return
    for one, (order, met) in tables.items():
        _show_crosstable(f"{found.name} · {one}", order, met, starred(names, coming))
    say_stars(coming)
    say("each row: the share of its duels against the bot of that number, in percent; a tie is half a duel won")


def _encounters(
    order: Sequence[int],
    met: Mapping[tuple[int, int], Encounter],
    names: Mapping[int, str],
    challengers: Collection[int],
) -> Iterator[dict[str, object]]:
    for own in order:
        for other in order:
            if (own, other) in met:
                told = met[own, other]
                share = float(told.share)
                yield {
                    "name": names[own],
                    "opponent": names[other],
                    "challenger": own in challengers,
                    "share": share,
                    "deals": told.deals,
                }


def _show_crosstable(
    title: str, order: Sequence[int], met: Mapping[tuple[int, int], Encounter], names: Mapping[int, str]
) -> None:
    """Print a crosstable."""
    rows = [[_share(met.get((own, other)), own == other) for other in order] for own in order]
    emit_matrix(title, [names[entrant] for entrant in order], rows)


def _share(met: Encounter | None, itself: bool) -> Text:
    if met is None:
        return Text("·" if not itself else "-", style="dim")
    percent = float(100 * met.share)
    return Text(f"{percent:.0f}", style="green" if percent > 60 else "red" if percent < 40 else "")


@app.command(epilog="Example: arena pairings spring durak --round 2")
def pairings(
    tournament: TournamentName,
    game: GameName = "",
    number: Annotated[int | None, typer.Option("--round", help="One round; by default all.", min=1)] = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show who sits with whom in each round, how it ended, and how good the pairing is."""
    with open_reader(db) as opened:
        found = find_tournament(opened, tournament)
        names = {entrant.number: entrant.name for entrant in tournaments.entrants(opened, found.id)}
        brackets = {one: read_bracket(opened, found, one) for one in games_of(found, game)}
        told = [one for of, bracket in brackets.items() for one in _rounds(opened, found, of, bracket, number)]
        most = max(len(tournaments.rounds(opened, found.id, one)) for one in brackets)
    if number is not None and not told:
        raise ConfigError(_no_round(found, number, most))
    whole = {of: bracket for of, bracket in brackets.items() if bracket is not None and number is None}
    if as_json:
        emit_lines("bracket/1", (bracket_document(of, bracket, names) for of, bracket in whole.items()))
        emit_lines("pairing/1", (document for one in told for document in one.documents(names)))
        return
    for of in brackets:
        if of in whole:
            show_seeds(f"{found.name} · {of} · seeds", whole[of], names)
        for one in told:
            if one.game == of:
                one.show(found.name, starred(names, one.challengers))
        if of in whole:
            show_unplayed(f"{found.name} · {of}", whole[of], names)
            show_winner(whole[of], names)
    say_stars(challengers_of(found))
    if not told:
        say(f"no round of {found.name} is scheduled yet")


def _no_round(tournament: Tournament, number: int, most: int) -> str:
    there = "none is scheduled" if not most else "it has round 1" if most == 1 else f"it has rounds 1 to {most}"
    yet = "" if tournament.finished_at is not None else " yet"
    return f"tournament {tournament.name} has no round {number}{yet}; {there}"


class _Paired(msgspec.Struct, frozen=True):
    """A round of a game as it is shown.

    Attributes:
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
                "scores": self._scores(table),
                "byes": [names[entrant] for entrant in self.round.byes],
                "quality": quality,
                **pairing_fields(self.bracket, self.round.number, match, names),
            }

    def show(self, tournament: str, names: Mapping[int, str]) -> None:
        """Print it."""
        state = "" if self.complete else f" · {len(self.unplayed)} of {len(self.matches)} to play"
        title = f"{tournament} · {self.game} · round {self.round.number}{state}"
        if self.bracket is not None:
            show_round(title, self.bracket, self.round.number, names)
            return
        rows = ((match, self._told(match, table, names)) for match, table in self.matches)
        emit_table(("match", "<~bots, with their scores"), rows, title)
        if self.round.byes:
            typer.echo(f"bye: {', '.join(names[entrant] for entrant in self.round.byes)}")
        if self.quality is not None:
            typer.echo(_quality_words(self.quality, max(map(len, self.round.tables))))
        typer.echo()

    def _scores(self, table: tuple[int, ...]) -> list[float] | None:
        score = self.scores.get(table)
        if score is None:
            return None
        most = 2 * score.deals * (len(table) - 1)
        return [sum(row) / most for row in score.duels]

    def _told(self, match: int, table: tuple[int, ...], names: Mapping[int, str]) -> str:
        scores = self._scores(table)
        void = " (void)" if match in self.void else ""
        if scores is None:
            waits = " (to play)" if match in self.unplayed else void
            return " – ".join(names[entrant] for entrant in table) + waits
        shown = (f"{names[entrant]} {score:.3f}" for entrant, score in zip(table, scores, strict=True))
        return " – ".join(shown) + void


def _rounds(
    db: Database, tournament: Tournament, game: str, bracket: Bracket | None, only: int | None
) -> Iterator[_Paired]:
    """Yield the rounds of a game, each judged by those before it as they were known when it was paired."""
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
        yield _Paired(
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


def _quality_words(quality: RoundQuality, seats: int) -> str:
    repeats = f"{count_of(quality.repeats, 'pair')} had met before" if quality.repeats else "nobody had met before"
    if quality.repeats and quality.least_repeats:
        forced = "all" if quality.least_repeats == quality.repeats else f"at least {quality.least_repeats}"
        repeats += f" ({forced} unavoidable)"
    byes = f", at most {count_of(quality.most_byes, 'bye')} each" if quality.most_byes else ""
    # With two seats everybody sits before and after the other.
    before = f", at most {count_of(quality.most_before, 'time')} in the seat after the same bot" if seats > 2 else ""
    return (
        f"pairing: {repeats}, points at a table {quality.mean_spread:.2f} apart on average and "
        f"{quality.most_spread:.2f} at most{before}{byes}"
    )
