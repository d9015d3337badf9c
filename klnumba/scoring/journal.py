"""Where an interrupted run stands: a folder with the values so far, and a journal that is replaced as a whole.

A part is written first, then the journal that counts it. Whenever the work is cut off, the journal tells of a state
that the parts before it make up; a part that it does not count yet is written again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klnumba.metrics import RunningStatistics, files
from klnumba.scoring.errors import InputError
from klnumba.scoring.outputs import write_columns
from klnumba.scoring.source import Array

VERSION = 2
MARK = ".klnumba"  # an empty file: a folder with it, or with a journal, is one of ours
_OURS = re.compile(r"\.?(?:journal\.npz|part-\d{6}\.(?:npy|csv|parquet))(?:\..*\.part)?", re.ASCII)
COUNTS = ("steps", "rows", "masked", "parts", "problem")  # of a state, beside the statistics


@dataclass
class State:
    """What is known after some rows."""

    statistics: dict[str, RunningStatistics]
    steps: int = 0
    rows: int = 0
    masked: int = 0
    parts: int = 0
    problem: str | None = None


def plain(item: Any) -> Any:
    """As JSON would give it back."""
    return json.loads(json.dumps(item))


class Journal:
    """The folder of an unfinished run."""

    def __init__(self, folder: Path, suffix: str | None, identity: dict[str, Any]) -> None:
        self.folder, self.suffix, self.identity = folder, suffix, plain(identity)
        self.file, self.mark = folder / "journal.npz", folder / MARK
        self.begun = False
        self._lock: int | None = None

    def begin(self, state: State, resume: bool) -> State:
        """Take the folder, and the state that it holds, or `state` where there is none."""
        self._check_folder()
        self._take()  # first: the folder of a run that is at work is nothing to go on with, nor to remove
        if self.file.exists() and not resume:
            raise InputError(
                f"{self.folder}: holds a run that was interrupted: go on with --resume (resume=True), or remove it"
            )
        self.begun = True
        found = self._load(state) if self.file.exists() else state
        counted = [self.file, *self.parts(found.parts)]
        for path in self._ours():
            if path not in counted and path != self.mark:  # it was cut off in the middle
                path.unlink()
        return found

    def _check_folder(self) -> None:
        """Refuse a folder that has something else in it: at the end all of it is removed."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be a folder: {error.strerror}") from error
        found = set(self.folder.iterdir())
        others = found if not (self.mark.exists() or self.file.exists()) else found - set(self._ours())
        if others:
            raise InputError(f"{self.folder}: holds other files, such as {min(others).name}: name a folder of its own")
        self.mark.touch()

    def _ours(self) -> list[Path]:
        """The files of an unfinished run; the mark last, without which the others are nobody's."""
        found = [path for path in self.folder.iterdir() if _OURS.fullmatch(path.name)]
        return [*found, self.mark] if self.mark.exists() else found

    def _take(self) -> None:
        """Keep a second run out; the system lets go of the lock when the process ends, however it ends."""
        with contextlib.suppress(ImportError):  # Windows has none
            import fcntl

            self._lock = os.open(self.folder, os.O_RDONLY)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.release()
                raise InputError(f"{self.folder}: another run is at work here") from None

    def parts(self, count: int) -> list[Path]:
        """The files of the first `count` parts."""
        return [self.folder / f"part-{k:06d}{self.suffix}" for k in range(count)] if self.suffix else []

    def save(self, state: State, columns: dict[str, Array] | None) -> None:
        """Write the values since the last time as a part, then the state."""
        if columns is not None and self.suffix:
            write_columns(self.parts(state.parts + 1)[-1], columns)
            state.parts += 1
        counts = {name: getattr(state, name) for name in COUNTS}
        found = {name: statistics.state_dict() for name, statistics in state.statistics.items()}
        files.write(self.file, {"journal": VERSION, "identity": self.identity, "state": counts, "statistics": found})

    def _load(self, state: State) -> State:
        try:
            kept = files.read(self.file)
            if kept["journal"] != VERSION:
                raise InputError(f"{self.file}: version {kept['journal']!r} of the journal; this is {VERSION}")
            self._compare(kept["identity"])
            for name in state.statistics:
                state.statistics[name] = RunningStatistics.from_state_dict(kept["statistics"][name])
            for name in COUNTS:
                setattr(state, name, kept["state"][name])
        except InputError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{error}; remove {self.folder} to begin again") from error
        missing = [path for path in self.parts(state.parts) if not path.is_file()]
        if missing:
            raise InputError(f"{missing[0]}: is missing; remove the folder to begin again")
        return state

    def _compare(self, begun: dict[str, Any]) -> None:
        """Refuse to go on with other options or other inputs."""
        for name in {**self.identity, **begun}:  # a mask may be there only before, or only now
            before, now = begun.get(name), self.identity.get(name)
            if before == now:
                continue
            other = "other options" if name == "options" else f"another {name}"
            if isinstance(now, dict) and isinstance(before, dict):
                keys = [key for key in now if before.get(key) != now[key]]
                for key in keys[:1]:
                    raise InputError(
                        f"{self.folder}: begun with {other} ({key} was {before.get(key)!r}, is {now[key]!r}): "
                        "remove the folder to begin again"
                    )
            raise InputError(f"{self.folder}: begun with {other}: remove the folder to begin again")

    def release(self) -> None:
        """Let another run take the folder; one without a journal holds nothing that could be continued."""
        if self.begun and not self.file.exists():
            self.remove()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """Remove the folder, the journal first: what is half removed is no unfinished run."""
        self.file.unlink(missing_ok=True)
        for path in self._ours():
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # something else has been put there
            self.folder.rmdir()
        self.begun = False
