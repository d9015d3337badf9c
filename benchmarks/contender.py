"""What a contender is, and the list of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.cases import Problem

Call = Callable[[], Any]
Build = Callable[[Problem], Call]

#: what a contender does: "memory" only reads the input, "plain" takes rows as they are, "normalised" divides rows by
#: their sums as well, "out" writes into an array made before
VARIANTS = ("memory", "plain", "normalised", "out")


class NotOffered(Exception):
    """The library does not offer this computation, or is not installed."""


@dataclass(frozen=True)
class Contender:
    """A library's way to compute a case.

    ``build`` makes a call without arguments from a problem. ``compiled`` says that the call is compiled for the
    shape, so that it has to be warmed on the very arrays it is timed on.
    """

    name: str
    variant: str
    build: Build
    compiled: bool


REGISTRY: list[Contender] = []


def contender(name: str, variant: str, *, compiled: bool = False) -> Callable[[Build], Build]:
    """Enter a build function in the list."""

    def enter(build: Build) -> Build:
        REGISTRY.append(Contender(name, variant, build, compiled))
        return build

    return enter


def only(condition: bool, reason: str = "no such function") -> None:
    """Raise `NotOffered` unless the condition holds."""
    if not condition:
        raise NotOffered(reason)
