"""Turns what was seen of a bot into findings: what is wrong, what is only worth a warning, and the numbers of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from arena.check.deals import Played
from arena.check.dialogue import GRACE_S, Asked, Case, Ending
from arena.check.finding import Figures, Finding, failed, fix_of, skipped
from arena.errors import FaultKind
from arena.records import Clock, DealRecord, Fault, MatchSpec

STDERR_BYTES = 1 << 20
"""A bot that writes more than this to stderr in a deal is warned; a process may write 16 times as much in all."""
_SHOWN_BYTES = 32


def judge_hello(hello_us: int, clock: Clock) -> Finding:
    """Judge how long a bot took to start."""
    ms, limit_ms = hello_us / 1000, clock.startup_ms
    evidence = f"hello after {ms:.0f} of {limit_ms} ms"
    figures: Figures = {"hello_ms": round(ms, 1), "startup_ms": limit_ms}
    if ms <= limit_ms / 2:
        return Finding("handshake", "ok", evidence, figures=figures)
    fix = "Send `hello` before loading what takes long: on a busier machine this start would be too slow."
    return Finding("handshake", "warn", evidence, fix, figures=figures)


def judge_positions(game: str, tables: Sequence[tuple[MatchSpec, Sequence[Case], Asked]]) -> Finding:
    """Judge what came of asking about single positions of a game, at each number of seats."""
    name = f"{game} positions"
    asked = [case for _, some, _ in tables for case in some]
    legal = [case.position.legal for case in asked]
    faults = [(len(spec.bots), case, fault) for spec, _, result in tables for case, fault in result.faults]
    figures: Figures = {"asks": len(asked), "faults": len(faults)}
    # An event that a seat has seen may be needed by a bot that remembers; it is always told, so that is its right.
    needed = [one for one in faults if one[1].telling != "untold"]
    if not faults:
        sizes = " and ".join(str(len(spec.bots)) for spec, _, _ in tables)
        evidence = f"{len(asked)} asks at {sizes} seats, {min(legal)} to {max(legal)} legal actions"
        return Finding(name, "ok", evidence, figures=figures)
    seats, case, fault = (needed or faults)[0]
    where = f"{len(faults)} of {len(asked)} asks failed; at {seats} seats, {case.what} ({case.position.legal} legal)"
    finding = failed(name, where, fault, figures)
    if needed:
        return finding
    fix = "That is allowed; with `observation` alone it could be asked about any position, and need not remember."
    return Finding(name, "warn", finding.evidence, fix, finding.fault, finding.stderr, figures)


def judge_endings(endings: Sequence[Ending]) -> Finding:
    """Judge how processes took `bye`; the one that was only greeted is among them."""
    name = "bye"
    figures: Figures = {"processes": len(endings)}
    slow = [one for one in endings if one.code is None]
    wrong = [one.code for one in endings if one.code]
    if slow:
        evidence = f"{len(slow)} of {_count(len(endings), 'process')} still ran {GRACE_S * 1000:.0f} ms after `bye`"
        return Finding(name, "warn", evidence, "Exit at `bye` or at the end of stdin.", figures=figures)
    if wrong:
        evidence = f"{len(wrong)} of {_count(len(endings), 'process')} ended with exit code {wrong[0]} after `bye`"
        return Finding(name, "warn", evidence, "Return normally at `bye`.", figures=figures)
    longest_ms = max(one.elapsed_ms for one in endings)
    figures["exit_ms"] = round(longest_ms, 1)
    evidence = f"exit code 0 within {longest_ms:.0f} ms, {_count(len(endings), 'process')}"
    return Finding(name, "ok", evidence, figures=figures)


def judge_deals(game: str, played: Sequence[Played], opponent: str) -> Finding:
    """Judge the deals of a game, and count how the bot did against the opponent."""
    name = f"{game} deals"
    deals = sum(len(one.deals) for one in played)
    points, duels = _score(played)
    figures: Figures = {"deals": deals, "faults": sum(len(one.faults) for one in played)}
    if duels:
        figures["score"] = round(points / duels, 3)
    faulted = next((one for one in played if one.faults), None)
    if faulted is not None:
        fault = faulted.faults[0]
        against = "itself" if len(set(faulted.spec.bots)) == 1 else opponent
        faults = _count(sum(len(one.faults) for one in played), "fault")
        where = (
            f"{faults} in {_count(deals, 'deal')}; against {against} at {len(faulted.spec.bots)} seats, "
            f"deal {fault.deck + 1}, seat {fault.seat}, step {fault.step}"
        )
        return failed(name, where, fault, figures)
    tables = " and ".join(str(seats) for seats in sorted({len(one.spec.bots) for one in played}))
    score = f"; {points / duels:.0%} of its duels with {opponent} won" if duels else ""
    return Finding(name, "ok", f"{_count(deals, 'deal')} at {tables} seats, no fault{score}", figures=figures)


def _score(played: Iterable[Played]) -> tuple[float, int]:
    """Return the duels won by seats of the bot against others, ties as halves, and how many there were."""
    points, duels = 0.0, 0
    for one in played:
        for deal in one.deals:
            own = one.own_seats(deal)
            mine = [deal.places[seat] for seat in own]
            theirs = [place for seat, place in enumerate(deal.places) if seat not in own]
            points += sum(1.0 if place < other else 0.5 * (place == other) for place in mine for other in theirs)
            duels += len(mine) * len(theirs)
    return points, duels


def judge_stdout(faults: Sequence[Fault], answers: int) -> Finding:
    """Judge whether anything but frames was on stdout."""
    name = "stdout"
    fault = next((one for one in faults if one.kind is FaultKind.GARBAGE), None)
    if fault is None and not answers:
        return skipped(name, "it answered nothing")
    if fault is None:
        return Finding(name, "ok", f"nothing but {answers} answers", figures={"answers": answers})
    shown = repr(fault.evidence[:_SHOWN_BYTES])[1:]
    what = {"text": "text", "oversize": "bytes that are no frame"}.get(
        fault.detail, "a frame that was not due or is not valid"
    )
    return Finding(name, "FAIL", f"{what}: {shown}", fix_of(fault), f"{fault.kind}/{fault.detail}")


def judge_repetition(pairs: Sequence[tuple[Played, Played]]) -> Finding:
    """Judge whether the same deals were played the same way, in another order and by other processes."""
    name = "deterministic"
    whole = [(one, again) for one, again in pairs if not one.faults and not again.faults]
    if not whole:
        return skipped(name, "no deal was played twice without a fault")
    for one, again in whole:
        keyed = {again.spec.decks[deal.deck]: _actions(deal) for deal in again.deals}
        for deal in one.deals:
            before, after = _actions(deal), keyed[one.spec.decks[deal.deck]]
            if before != after:
                return _differs(one.spec.game, deal, before, after)
    compared = sum(len(one.deals) for one, _ in whole)
    evidence = f"yes: {_count(compared, 'deal')} played twice, in another order and by new processes"
    return Finding(name, "ok", evidence, figures={"deterministic": True})


def _differs(game: str, deal: DealRecord, before: Sequence[object], after: Sequence[object]) -> Finding:
    step = next(number for number, pair in enumerate(zip_longest(before, after)) if pair[0] != pair[1])
    evidence = f"no: {game} deal {deal.deck + 1} went another way from step {step} on"
    fix = (
        "Take all luck from the deal's `seed` and keep nothing from earlier deals: "
        "else a deal with a fault cannot be played again as it was."
    )
    return Finding("deterministic", "warn", evidence, fix, figures={"deterministic": False})


def _actions(deal: DealRecord) -> list[tuple[int, str]]:
    return [(step.seat, step.action) for step in deal.steps]


def judge_memory(peak_kib: int, limit_mib: int, faults: Sequence[Fault] = ()) -> Finding:
    """Judge the most memory that its processes used, and whether any was killed for it."""
    fault = next((one for one in faults if one.kind is FaultKind.MEMORY), None)
    if fault is not None:
        return Finding("memory", "FAIL", fault.text, fix_of(fault), f"{fault.kind}/{fault.detail}")
    if not peak_kib:
        return skipped("memory", "how much it used cannot be read here")
    mib = peak_kib / 1024
    figures: Figures = {"peak_mib": round(mib, 1), "memory_mib": limit_mib}
    evidence = f"at most {mib:.0f} of {limit_mib} MiB"
    if mib <= limit_mib / 2:
        return Finding("memory", "ok", evidence, figures=figures)
    return Finding("memory", "warn", evidence, "Use less: longer deals may need more.", figures=figures)


def judge_times(played: Sequence[Played], clock: Clock) -> Finding:
    """Judge the time of its decisions in whole deals."""
    name = "decision time"
    times = sorted(us for one in played for us in one.elapsed_us())
    if not times:
        return skipped(name, "it took no decision")
    bank_ms = max(one.bank_us() for one in played) / 1000
    ranks = {f"p{part}": times[math.ceil(part / 100 * len(times)) - 1] / 1000 for part in (50, 95, 99)}
    ranks["max"] = times[-1] / 1000
    shown = "  ".join(f"{rank} {ms:.1f}" for rank, ms in ranks.items())
    evidence = (
        f"{shown} of {clock.decision_ms} ms in {len(times)} decisions; "
        f"bank at most {max(bank_ms, 0):.0f} of {clock.bank_ms} ms in a deal"
    )
    figures: Figures = {f"{rank}_ms": round(ms, 3) for rank, ms in ranks.items()}
    figures |= {"decisions": len(times), "bank_ms": round(max(bank_ms, 0.0), 3)}
    if ranks["max"] <= clock.decision_ms / 2 and bank_ms <= clock.bank_ms / 2:
        return Finding(name, "ok", evidence, figures=figures)
    return Finding(name, "warn", evidence, "Think less: a busier machine may take the other half.", figures=figures)


def judge_stderr(played: Sequence[Played]) -> Finding:
    """Judge how much it writes to stderr."""
    deals = sum(len(one.deals) for one in played)
    worst = max(one.stderr_bytes / (len(one.deals) * len(one.own)) for one in played)
    figures: Figures = {"bytes_per_deal": round(worst)}
    evidence = f"{_size(worst)} a deal in {_count(deals, 'deal')}"
    if worst <= STDERR_BYTES:
        return Finding("stderr", "ok", evidence, figures=figures)
    fix = "Print less: a process that writes more than 16 MiB is ended, and writing takes time."
    return Finding("stderr", "warn", evidence, fix, figures=figures)


def _count(count: int, thing: str) -> str:
    plural = "es" if thing.endswith("s") else "s"
    return f"{count} {thing}" if count == 1 else f"{count} {thing}{plural}"


def _size(count: float) -> str:
    if count < 1024:
        return f"{count:.0f} bytes"
    return f"{count / 1024:.0f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"
