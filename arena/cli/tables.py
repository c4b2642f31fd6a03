"""`arena crosstable` and `arena pairings`: who met whom in a tournament, and how it ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated

import typer
from rich.text import Text

from arena.bracket import read_bracket
from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.brackets import bracket_document, show_round, show_seeds, show_unplayed, show_winner
from arena.cli.finding import find_tournament, games_of
from arena.cli.output import count_of, emit_json, emit_lines, emit_matrix, emit_table, say
from arena.cli.standings import say_stars, starred
from arena.errors import ConfigError
from arena.pairings import Paired, paired
from arena.plan import challengers_of, final_standings, table_scores
from arena.schedule.crosstable import Encounter, encounters, in_order
from arena.schedule.quality import RoundQuality
from arena.store import tournaments
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
        documents = {one: list(_documents(order, met, names, coming)) for one, (order, met) in tables.items()}
        emit_json("crosstable/1", {"tournament": found.name, "games": documents})
        return
    for one, (order, met) in tables.items():
        _show_crosstable(f"{found.name} · {one}", order, met, starred(names, coming))
    say_stars(coming)
    say("each row: the share of its duels against the bot of that number, in percent; a tie is half a duel won")


def _documents(
    order: Sequence[int],
    met: Mapping[tuple[int, int], Encounter],
    names: Mapping[int, str],
    challengers: Collection[int],
) -> Iterator[dict[str, object]]:
    for own, other, told in in_order(order, met):
        yield {
            "name": names[own],
            "opponent": names[other],
            "challenger": own in challengers,
            "share": float(told.share),
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
        told = [one for of, bracket in brackets.items() for one in paired(opened, found, of, bracket, number)]
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
                _show(one, found.name, starred(names, one.challengers))
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


def _show(one: Paired, tournament: str, names: Mapping[int, str]) -> None:
    """Print a round."""
    state = "" if one.complete else f" · {len(one.unplayed)} of {len(one.matches)} to play"
    title = f"{tournament} · {one.game} · round {one.round.number}{state}"
    if one.bracket is not None:
        show_round(title, one.bracket, one.round.number, names)
        return
    rows = ((match, _told(one, match, table, names)) for match, table in one.matches)
    emit_table(("match", "<~bots, with their scores"), rows, title)
    if one.round.byes:
        typer.echo(f"bye: {', '.join(names[entrant] for entrant in one.round.byes)}")
    if one.quality is not None:
        typer.echo(_quality_words(one.quality, max(map(len, one.round.tables))))
    typer.echo()


def _told(one: Paired, match: int, table: tuple[int, ...], names: Mapping[int, str]) -> str:
    shares = one.shares(table)
    void = " (void)" if match in one.void else ""
    if shares is None:
        waits = " (to play)" if match in one.unplayed else void
        return " – ".join(names[entrant] for entrant in table) + waits
    shown = (f"{names[entrant]} {share:.3f}" for entrant, share in zip(table, shares, strict=True))
    return " – ".join(shown) + void


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
