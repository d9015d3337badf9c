"""Whether all threads come to a barrier together: read from the PTX of a kernel.

A device hangs where some threads of a warp wait at one barrier, shuffle or vote and others at another. So a condition
that differs from thread to thread must lead to the same ones on both sides. A register differs where it comes from the
number of a thread or of its lane, from memory at an address that does, from an atomic or a shuffle; what a vote or a
barrier tells is the same for all. What only the way that a thread came by tells (a constant, a result of a call) is not
followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

TOGETHER = re.compile(r"\b(bar(rier)?\.|shfl\.sync|vote\.sync)")
SAME = re.compile(r"\b(vote\.sync|bar\.red)")
DIFFERS = re.compile(r"%tid|%laneid|\batom\.|\bshfl\.")
REGISTER = re.compile(r"%[a-z]+\d+")


class Block(NamedTuple):
    lines: list[str]
    following: list[int]
    condition: str | None  # the register that decides


def functions(ptx: str) -> Iterator[list[str]]:
    """The lines of each function, in which no two registers have one name."""
    for body in re.findall(r"^\{(.*?)^\}", ptx, flags=re.M | re.S):
        body = re.sub(r"\{[^{}]*?\.reg[^{}]*\}", _renamed, body)
        yield [line.strip() for line in body.splitlines() if line.strip() and not line.strip().startswith("//")]


def _renamed(scope: re.Match[str]) -> str:
    """Instructions in braces with registers of their own."""
    own = set(re.findall(r"\.reg \.\w+\s+(%\w+)", scope[0]))
    return REGISTER.sub(lambda name: f"{name[0]}0{scope.start()}" if name[0] in own else name[0], scope[0])


def blocks(lines: list[str]) -> list[Block]:
    """The basic blocks of a function; the last is where all ends lead."""
    pieces: list[list[str]] = [[]]
    labels: dict[str, int] = {}
    for line in lines:
        label = re.match(r"(\$L\w+):", line)
        if label:
            pieces.append([])
            labels[label[1]] = len(pieces) - 1
            continue
        pieces[-1].append(line)
        if re.match(r"(@!?%p\d+\s+)?(bra|ret|exit|trap)\b", line):
            pieces.append([])
    end = len(pieces)
    found = []
    for k, piece in enumerate(pieces):
        last = piece[-1] if piece else ""
        jump = re.match(r"(?:@!?(%p\d+)\s+)?(bra(?:\.uni)?\s+(\$L\w+)|ret|exit|trap)", last)
        if jump is None:
            found.append(Block(piece, [k + 1], None))
            continue
        to = labels[jump[3]] if jump[3] else end
        found.append(Block(piece, [to, k + 1] if jump[1] else [to], jump[1]))
    return [*found, Block([], [], None)]


def differing(graph: list[Block]) -> set[str]:
    """The registers that differ from thread to thread."""
    steps = []
    for block in graph:
        for line in block.lines:
            registers = REGISTER.findall(line)
            if registers and not re.match(r"(@!?%p\d+\s+)?(st\.|bra|ret|bar\.sync)", line):
                if line.startswith("@"):  # what it writes depends on its condition too
                    registers = [*registers[1:], registers[0]]
                targets = registers[:1]
                braces = re.match(r"[\w.]+\s+\{([^}]*)\}", line)
                if braces:
                    targets = REGISTER.findall(braces[1])
                steps.append((targets, registers[len(targets) :], line))
    found: set[str] = set()
    grown = True
    while grown:
        grown = False
        for targets, sources, line in steps:
            if found.issuperset(targets) or SAME.search(line):
                continue
            if DIFFERS.search(line) or found.intersection(sources):
                found.update(targets)
                grown = True
    return found


def first_ones(graph: list[Block]) -> list[set[int]]:
    """The blocks with a barrier that can be the first to be reached from the beginning of each block."""
    found = [{k} if any(map(TOGETHER.search, block.lines)) else set[int]() for k, block in enumerate(graph)]
    waits = list(map(bool, found))
    changed = True
    while changed:
        changed = False
        for k in range(len(graph) - 1, -1, -1):
            if not waits[k]:
                reached = set[int]().union(*(found[j] for j in graph[k].following))
                changed |= reached != found[k]
                found[k] = reached
    return found


def faults(ptx: str) -> list[str]:
    """The conditions after which threads may come to different barriers, as text. None waits for one that has ended."""
    found = []
    for lines in functions(ptx):
        graph = blocks(lines)
        differ, first = differing(graph), first_ones(graph)
        for block in graph:
            if block.condition in differ:
                one, other = (first[j] for j in block.following)
                if one and other and one != other:
                    ways = _text(graph, one - other), _text(graph, other - one)
                    found.append(f"{block.lines[-1]} leads to {ways[0]} or {ways[1]}")
    return found


def _text(graph: list[Block], which: set[int]) -> str:
    return " / ".join(next(filter(TOGETHER.search, graph[k].lines)) for k in sorted(which))
