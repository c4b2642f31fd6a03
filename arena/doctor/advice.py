"""The way out of a reason why a better isolation level does not work."""

from __future__ import annotations

_DOCKER = "in Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
_WAYS_OUT = (
    ("bwrap is not installed", "install bubblewrap: apt install bubblewrap, dnf install bubblewrap"),
    (
        "uid map",
        "user namespaces are restricted, as by AppArmor on Ubuntu: "
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or the distribution's own bubblewrap with its profile; "
        + _DOCKER,
    ),
    (
        "namespace",
        "user namespaces are forbidden: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000, "
        "or a bwrap that is setuid root; " + _DOCKER,
    ),
    ("mount proc", "/proc cannot be mounted, as in a container: in Docker --security-opt systempaths=unconfined"),
    (
        "control group",
        "bots need control groups of their own: systemd-run --user --scope -p Delegate=yes arena ..., or be root",
    ),
    ("landlock", "a kernel of 6.12 or newer with landlock among its security modules (/sys/kernel/security/lsm)"),
    ("filter of system calls", "this kind of machine is not known: arena/sandbox/seccomp.py needs its call numbers"),
    (
        "Permission denied",
        "a folder on the way to the interpreter or the database may not be entered by bots: see ls -ld",
    ),
)
"""By what a reason contains; the first that fits."""


def ways_out(problem: str) -> list[str]:
    """Return what can be done about the reasons in a text, which stand between semicolons."""
    found = (_way_out(reason) for reason in problem.split("; "))
    return list(dict.fromkeys(way for way in found if way))


def _way_out(reason: str) -> str:
    return next((way for part, way in _WAYS_OUT if part.lower() in reason.lower()), "")
