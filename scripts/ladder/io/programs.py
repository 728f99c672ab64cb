# SPDX-License-Identifier: MIT
"""Tells which files of results come from the same program on the same machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

# What makes two files of host code one program on one kind of machine. Of the executable it is
# the file's name: each checkout has it in another folder.
HOST_PROGRAM = ("executable", "library_build_type", "num_cpus", "caches")


def identity(context: dict[str, Any]) -> tuple[str, ...]:
    """Return what identifies program and machine of a file: equal if files may be merged.

    Of host code these are the file name of the executable, how the library was built, the number of
    CPUs and their caches. The host's name is none of it, since each container has another; nor is
    the clock, which is measured anew each time.
    """
    keys = ["gpu_name", "gpu_uuid", "git_commit", "git_dirty", "cache_mode", "build_type", "tuning"]
    own = [str(context.get(key, "")) for key in [*keys, "counters"]]
    return source_of(context), *own, *(host_program(context) if "gpu_name" not in context else ())


def host_program(context: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what `HOST_PROGRAM` names, of the executable the file's name."""
    told = {**context, "executable": file_name(context)}
    return tuple(str(told.get(key, "")) for key in HOST_PROGRAM)


def file_name(context: Mapping[str, Any]) -> str:
    """Return the executable's file name, without its folders."""
    return _folders(executable(context))[-1]


def executable(context: Mapping[str, Any]) -> str:
    """Return the executable's path, or an empty string in a file that does not tell."""
    return str(context.get("executable", ""))


def _folders(path: str) -> list[str]:
    return re.split(r"[\\/]", path)


def name_programs(found: Iterable[tuple[Mapping[str, Any], set[str]]]) -> dict[str, str]:
    """Name the programs of host code that share an executable's file name and are not the same.

    `found` are the contexts of files with the names of their rows. One program in two checkouts has
    the same rows, or a filter's choice of them; two programs have less than half in common. Each
    such executable gets the end of its path that tells it apart; one that is alone is not named.
    """
    by_file: dict[str, dict[str, set[str]]] = {}
    for context, names in found:
        if "gpu_name" in context or "ladders" in context:  # known by GPU and commit
            continue
        by_path = by_file.setdefault(file_name(context), {})
        by_path.setdefault(executable(context), set()).update(names)
    told: dict[str, str] = {}
    for by_path in by_file.values():
        groups: list[tuple[list[str], set[str]]] = []
        for path, names in by_path.items():
            for members, known in groups:
                if 2 * len(names & known) >= min(len(names), len(known)):
                    members.append(path)
                    known |= names
                    break
            else:
                groups.append(([path], set(names)))
        if len(groups) < 2:
            continue
        for members, _ in groups:
            others = [p for group, _ in groups for p in group if group is not members]
            told |= dict.fromkeys(members, _distinct_end(members[0], others))
    return told


def _distinct_end(path: str, others: list[str]) -> str:
    """Return the shortest end of a path, in whole folders, that no other path has."""
    folders, theirs = _folders(path), [_folders(other) for other in others]
    for count in range(2, len(folders) + 1):
        if all(other[-count:] != folders[-count:] for other in theirs):
            return "/".join(folders[-count:])
    return path


def source_of(context: dict[str, Any]) -> str:
    """Return what the file's rows hold: `timed`, `emulated` or `counters`."""
    if "counters" in context:
        return "counters"
    return "emulated" if str(context.get("emulated")).lower() == "true" else "timed"
