"""The lines that are examined, and which of them each level does not promise, in words."""

from __future__ import annotations

from collections.abc import Mapping

from arena.doctor import reach, use
from arena.doctor.finding import Line

LINES = (
    Line("plays", "a bot can play: its Python starts and finds msgpack", reach.plays, control=False),
    Line("tcp", "no network: TCP to this machine", reach.tcp),
    Line("udp", "no network: UDP to this machine", reach.udp),
    Line("unix", "no unix socket of this machine", reach.unix),
    Line("files", "no file of others can be read", reach.files),
    Line("writes", "nothing can be written but what is the bot's alone", reach.writes),
    Line("processes", "no other process in sight", reach.processes),
    Line("environments", "no environment of another process can be read", reach.environments),
    Line("environment", "a bot has the promised variables only", reach.own_environment),
    Line("kill", "no other process can be killed", reach.kill),
    Line("attach", "no other process can be traced or its memory read", reach.attach),
    Line("survivors", "nothing outlives its bot: a daemon in a session of its own", reach.survivors),
    Line("memory", "memory is limited: one process", use.memory),
    Line("tree", "memory is limited: children, shared memory, files in memory", use.tree),
    Line("forks", "the number of processes is limited", use.forks),
    Line("scratch", "what can be written is capped", use.scratch),
    Line("kernel", "calls of the kernel that no bot needs fail", use.kernel),
    Line("sockets", "sockets of other families fail", use.sockets),
    Line("session", "session and process group cannot be left", use.session),
    Line("priority", "cores and priority cannot be changed", use.priority),
    Line("locks", "no messages to another bot: locks, notifications", use.locks),
    Line("atime", "no messages to the next leg: when a file was read", use.atime),
    Line("dropped", "no messages to the next leg: pages made cold", use.dropped),
    Line("warmed", "no messages to the next leg: pages made warm", use.warmed),
    Line("names", "no messages to the next leg: names that do not exist", use.names),
    Line("activity", "the work of others is not seen: /proc", use.activity),
    Line("counters", "the work of others is not seen: /proc/sys/fs", use.counters),
    Line("totals", "the work of others is not seen: sysinfo, statvfs", use.totals),
)

_TOTALS = "both calls answer with totals of the machine, and interpreters need them"
_NAMES = "the kernel remembers which names below /usr do not exist; only a control group can have it forget them"
_ALWAYS = {"totals": _TOTALS}
_WITHOUT_GROUP = {"names": _NAMES, **_ALWAYS}
_NONE = {"plays", "environment", "survivors", "memory"}

GAPS: Mapping[str, Mapping[str, str]] = {
    "strict": _ALWAYS,
    "namespaced": _WITHOUT_GROUP,
    "landlock": _WITHOUT_GROUP,
    "none": {line.name: "no isolation" for line in LINES if line.name not in _NONE},
}
"""By level: the lines that it does not promise, and why not. All others it promises."""
