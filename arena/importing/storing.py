"""From lines to rows: everything is stored in one transaction, or nothing is."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from sqlite_utils import Database

from arena.audit import audit
from arena.config import parse_manifest
from arena.config.name import is_name
from arena.errors import ConfigError
from arena.export import lines
from arena.importing.checking import (
    check_correction,
    check_deal,
    check_entrant,
    check_match,
    check_seeds,
    check_stage,
    check_tournament,
)
from arena.importing.reading import Lines
from arena.plan import is_cut, plan_of
from arena.rating.duels import Collector
from arena.rating.pool import rate_collected
from arena.records import BotHash, DealRecord, Fault, MatchRecord, PoolKey, Round, Step
from arena.store import bots, matches, ratings, tournaments
from arena.store.corrections import Correction, corrections
from arena.store.corrections import add as add_correction
from arena.store.database import writing
from arena.store.tournaments import Entrant, Scheduled, Stage, Tournament
from arena.verify import Difference, stage_name

_SHOWN_CHARACTERS = 200


class Imported(msgspec.Struct):
    """What a file held."""

    bots: int = 0
    tournaments: int = 0
    matches: int = 0
    deals: int = 0
    unverified: int = 0


def import_everything(db: Database, read: Lines, told: Callable[[str], None]) -> Imported:
    """Read a file of everything into an empty database, in one transaction.

    Args:
        read: the file, from `begin`.
        told: is told the name of each tournament whose deals are executed again now.

    Raises:
        ConfigError: the database is not empty, or a line of the file is wrong; nothing is changed.
    """
    with writing(db):
        if next(bots.kept(db), None) or tournaments.tournaments(db) or tournaments.tournaments(db, "play"):
            raise ConfigError("the database is not empty; an import needs one of its own: name a new file with --db")
        try:
            return _Import(db, read, told).run()
        except sqlite3.IntegrityError as error:
            raise read.problem(f"is there twice, or belongs to what is not there ({error})") from None


class _Import:
    """An import under way.

    Attributes:
        bots: the hashes that the file has named.
    """

    def __init__(self, db: Database, read: Lines, told: Callable[[str], None]) -> None:
        self.db = db
        self.read = read
        self.told = told
        self.done = Imported()
        self.bots: set[str] = set()
        self._numbers: list[range] = []  # of the matches of each stage

    def run(self) -> Imported:
        for bot in self.read.all_of(lines.Bot):
            self._add_bot(bot)
        for one in self.read.all_of(lines.Submission):
            self._add_submission(one)
        for line in self.read.all_of(lines.Tournament):
            self._add_tournament(line)
        self._rate()
        end = self.read.need(lines.End)
        before = self.read.number - 1
        self.read.check(end.lines == before, f"says that {end.lines} lines are before it, but there are {before}")
        self.read.check(self.read.at_end(), "something follows on the end")
        return self.done

    def _add_bot(self, line: lines.Bot) -> None:
        self.read.check(line.hash not in self.bots, f"bot {line.hash} is there twice")
        self.bots.add(line.hash)
        bots.add_bot(self.db, BotHash(line.hash), line.manifest, line.files, line.bytes, line.added_at)
        self.done.bots += 1

    def _add_submission(self, line: lines.Submission) -> None:
        self.read.check(is_name(line.name), f"{line.name!r} is no name of a bot")
        self.read.check(line.author.isprintable(), f"author {line.author!r} is not printable")
        self.read.check(line.hash in self.bots, f"bot {line.hash} is not in the file")
        kept = {**msgspec.structs.asdict(line), "manifest": ""}
        bots.add_submission(self.db, msgspec.convert(kept, bots.Submission))
        manifest = bots.latest(self.db, line.name)
        try:
            parse_manifest(manifest.manifest if manifest else "", "bot.toml")
        except ConfigError as error:
            raise self.read.problem(f"the bot.toml of {line.name}: {error}") from None

    def _add_tournament(self, line: lines.Tournament) -> None:
        checked = check_tournament(self.read, line)
        for told in (self.read.need(lines.Stage), *self.read.all_of(lines.Stage)):
            stage = check_stage(self.read, told, checked)
            checked = msgspec.structs.replace(checked, stages=(*checked.stages, stage))
        entrants = []
        for number, one in enumerate(self.read.all_of(lines.Entrant)):
            check_entrant(self.read, one, plan_of(checked), self.bots)
            entrants.append(Entrant(number, one.name, BotHash(one.hash), one.games))
        for stage in checked.stages:
            is_known = max(stage.players) < len(entrants)
            self.read.check(is_known, f"before it, somebody plays in stage {stage.number} who is no entrant")
            check_seeds(self.read, stage, entrants)
        try:
            stored = tournaments.get(self.db, tournaments.create(self.db, checked, entrants))
        except ConfigError:
            raise self.read.problem(f"before it, tournament {line.name} is there a second time") from None
        for stage in checked.stages:
            self._keep_numbers(stage)
        read = _Rounds(self.db, self.read, stored, entrants)
        for played in self.read.all_of(lines.Round):
            read.add(played)
        for made in self.read.all_of(lines.Correction):
            own = {*matches.played(self.db, stored.id), *read.never_played}
            check_correction(self.read, made, plan_of(stored), len(entrants), own)
            read.never_played -= {made.match}
            add_correction(self.db, Correction(tournament=stored.id, **msgspec.structs.asdict(made)))
        unsaid = "before it, a match was never played, and no correction says why"
        self.read.check(not read.never_played, unsaid)
        self.done.tournaments += 1
        self.done.matches += read.by_stage.total()
        for stage in stored.stages if stored.kind == "tournament" else ():
            has, due = read.by_stage[stage.number], stage.match_count
            is_open = stage.finished_at is None or is_cut(stored, stage) or bool(corrections(self.db, stored.id))
            text = f"before it, {stage_name(stored, stage)} is finished, but has {has} of its {due} matches"
            self.read.check(is_open or has == due, text)
        self.told(stored.name)
        self._verify(stored)

    def _keep_numbers(self, stage: Stage) -> None:
        """Keep the numbers of a stage's matches, if the file says which they are, for it alone."""
        if not stage.first_match:
            return
        own = range(stage.first_match, stage.first_match + stage.match_count)
        is_free = all(max(own.start, one.start) >= min(own.stop, one.stop) for one in self._numbers)
        self.read.check(is_free, f"before it, stage {stage.number} has the numbers of another's matches")
        self._numbers.append(own)

    def _verify(self, stored: Tournament) -> None:
        """Execute all deals of a tournament again and mark those that do not come out the same."""
        numbers = matches.played(self.db, stored.id, void=True)
        rest = iter(numbers)
        for count, found in audit(self.db, [stored], whole=False):
            if count:
                number = next(rest)
                self.done.deals += count
                for one in found:
                    self._mark([number], one, one.where.split("-")[1:])
                continue
            for one in found:
                self._mark(numbers, one, [])

    def _mark(self, numbers: Sequence[int], why: Difference, deal: Sequence[str]) -> None:
        """Mark a deal, or all deals of matches."""
        reason = f"{why.what}: the file has {why.stored[:_SHOWN_CHARACTERS]}, found {why.found[:_SHOWN_CHARACTERS]}"
        for number in numbers:
            chosen = [(int(deal[0]), int(deal[1]))] if deal else [one[:2] for one in matches.columns(self.db, number)]
            for deck, leg in chosen:
                self.done.unverified += matches.mark_unverified(self.db, number, deck, leg, reason)

    def _rate(self) -> None:
        """Rate the pools after each round, in the order in which they were completed where they were played."""
        collectors: dict[int, Collector] = {}
        for tournament, game, number in tournaments.completed(self.db):
            only = tournament, game, number
            for pool, key in ratings.pools_of_round(self.db, *only):
                collector = collectors.setdefault(pool, Collector(key.outcome_type))
                collector.add(matches.rated_deals(self.db, pool, only))
                fitted = rate_collected(collector)
                found, taken, certainty = fitted.ratings, collector.taken, fitted.certainty
                ratings.save(self.db, pool, tournament, number, found, taken, certainty=certainty)


class _Rounds:
    """The rounds of a tournament that is being imported.

    Attributes:
        by_stage: how many of its matches were played.
        never_played: the matches that are void without having been played, and that no correction has named yet.
    """

    def __init__(self, db: Database, read: Lines, stored: Tournament, entrants: Sequence[Entrant]) -> None:
        self.by_stage: Counter[int] = Counter()
        self.never_played: set[int] = set()
        self._db = db
        self._read = read
        self._stored = stored
        self._stage = stored.stages[0]
        self._entrants = entrants
        self._last = dict.fromkeys(plan_of(stored).games, (0, 1))

    def add(self, line: lines.Round) -> None:
        """Store a round with all its matches."""
        check = self._read.check
        check(line.game in self._last, f"{self._stored.name} has no game {line.game!r}")
        before, stage = self._last[line.game]
        due = before + 1
        check(line.number == due, f"round {line.number} of {line.game}, but round {due} is due")
        count = len(self._stored.stages)
        check(stage <= line.stage <= count, f"round {due} of {line.game} is of stage {line.stage} of {count}")
        self._last[line.game] = due, line.stage
        self._stage = self._stored.stages[line.stage - 1]
        self._check_players(line.game, line.byes, set())
        tournaments.add_round(self._db, self._stored.id, line.game, Round(due, (), line.byes), [], 0, line.stage)
        seen = set(line.byes)
        for match in self._read.all_of(lines.Match):
            self._schedule(line, match, seen)
            self._add_deals(match)
        for void in self._read.all_of(lines.Unplayed):
            self._schedule(line, void, seen)
            matches.mark_void(self._db, void.id, "")  # its correction, which follows, says why
            self.never_played.add(void.id)
        if self._stored.kind == "tournament":
            tournaments.complete_round(self._db, self._stored.id, line.game, due, line.order)

    @property
    def _may_repeat(self) -> bool:
        """Tell whether one may sit at several tables of a round, as the same others do in a comparison."""
        format_ = plan_of(self._stage).format
        return self._stored.kind != "tournament" or format_ in ("gauntlet", "until-error")

    def _check_players(self, game: str, players: Sequence[int], seen: set[int]) -> None:
        for number in players:
            known = number in self._stage.players and game in self._entrants[number].games
            self._read.check(known, f"entrant {number} is not there, or does not play {game}")
        self._read.check(len({*players} - seen) == len(players), "an entrant is there twice in a round")

    def _schedule(self, of: lines.Round, line: lines.Scheduled, seen: set[int]) -> None:
        """Store a match as it was scheduled.

        Args:
            seen: who sits somewhere in the round; those at its table are added.
        """
        stored, stage, read = self._stored, self._stage, self._read
        self._check_players(of.game, line.table, seen)
        if not self._may_repeat:
            seen.update(line.table)
        is_own = 0 <= line.id - stage.first_match < stage.match_count
        read.check(is_own, f"{line.id} is no match of {stage_name(stored, stage)}")
        check_match(read, of.game, line, plan_of(stage))
        pool = PoolKey(of.game, line.rule_set, len(line.table), stored.isolation, line.outcome_type)
        decks = tuple(bytes.fromhex(key) for key in line.decks)
        scheduled = Scheduled(pool, line.table, decks, line.legs)
        tournaments.add_match(self._db, line.id, stored.id, of.game, of.number, scheduled)

    def _add_deals(self, line: lines.Match) -> None:
        """Store a match as it was played."""
        read = self._read
        deals: list[DealRecord] = []
        faults: list[Fault] = []
        for deal in read.all_of(lines.Deal):
            check_deal(read, deal, line, len(deals))
            deals.append(self._deal(deal))
            faults += [_fault(deal, one) for one in deal.faults]
        due = len(line.decks) * len(line.legs)
        read.check(len(deals) == due, f"before it, match {line.id} has {len(deals)} of its {due} deals")
        told = (line.isolation, line.engine, line.protocol, line.machine, line.core, line.started_at, line.duration_us)
        matches.record(self._db, MatchRecord(line.id, tuple(deals), tuple(faults), *told))
        self.by_stage[self._stage.number] += 1

    def _deal(self, line: lines.Deal) -> DealRecord:
        moves = list(line.steps)
        for more in self._read.all_of(lines.Steps):
            moves += more.steps
            self._read.check(len(moves) <= lines.MAX_STEPS, f"a deal of more than {lines.MAX_STEPS} steps")
        seats = {move.seat for move in moves}
        self._read.check(
            max(seats, default=0) < len(line.seating), f"a step of deal {line.deck}-{line.leg} has no seat"
        )
        kept = {name: getattr(line, name) for name in DealRecord.__struct_fields__}
        kept["steps"] = tuple(Step(move.seat, move.action, move.elapsed_us, move.note) for move in moves)
        kept["digests"] = tuple(bytes.fromhex(digest) for digest in line.digests)
        return DealRecord(**kept)


def _fault(deal: lines.Deal, one: lines.Fault) -> Fault:
    return Fault(**msgspec.structs.asdict(one), deck=deal.deck, leg=deal.leg)
