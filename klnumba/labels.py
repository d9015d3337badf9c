"""Labels that are matched, and numbers that are taken out of columns, whatever dtype pandas keeps them in.

pandas is never imported here: where there is a label, it is loaded already.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

ALIGN = ("outer", "strict")
LISTED = 5  # labels that an error text names
WHOLE = 1 << 53  # float64 has all whole numbers up to here; of larger ones it takes several for the same


def numbers(x: Any, name: str) -> np.ndarray:
    """The cells of a Series or DataFrame: as they are where all columns have one NumPy dtype, else as floats.

    A missing value is NaN.
    """
    dtypes = [x.dtype] if x.ndim == 1 else list(x.dtypes.unique())
    held = []
    for dtype in dtypes:
        kind = _number_type(dtype)
        if kind is None:
            place = "" if x.ndim == 1 else f"column {x.columns[list(x.dtypes).index(dtype)]!r}: "
            raise TypeError(f"{name}: {place}dtype {dtype} is not a real number type")
        held.append(kind)
    if not dtypes:
        return np.zeros(x.shape)
    native = all(isinstance(dtype, np.dtype) for dtype in dtypes)
    if native and len(dtypes) == 1:
        return np.asarray(x.to_numpy())
    target = np.float32 if all(kind.kind == "f" and kind.itemsize <= 4 for kind in held) else np.float64
    return np.asarray(x.to_numpy(target) if native else x.to_numpy(target, na_value=np.nan))


def _number_type(dtype: Any) -> np.dtype[Any] | None:
    """The NumPy dtype that holds the numbers of a column; None where it holds none."""
    if isinstance(dtype, np.dtype):
        return dtype if dtype.kind in "fiub" else None
    types = sys.modules["pandas"].api.types
    if dtype.name == "category" or not (types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype)):
        return None
    found = np.dtype(getattr(dtype, "numpy_dtype", None) or getattr(dtype, "subtype", np.float64))
    if found.kind == "c":
        return None
    return found if found.kind in "fiub" else np.dtype(np.float64)


def plain(index: Any) -> Any:
    """An index that can be matched with any other: categories and intervals as the values they are, None as NaN.

    One level is no tuple.
    """
    pandas = sys.modules["pandas"]
    if isinstance(index, pandas.MultiIndex) and index.nlevels == 1:
        index = index.get_level_values(0)
    if isinstance(index, pandas.CategoricalIndex):
        index = _of_categories(index)
    if isinstance(index, pandas.IntervalIndex):
        return index.astype(object)
    if index.nlevels == 1 and index.dtype == object and index.hasnans:
        return index.where(index.notna(), np.nan)
    return index


def _of_categories(index: Any) -> Any:
    """The values of categories; whole numbers and truth values beside a missing one as pandas keeps them exactly."""
    values, dtype = index.categories, index.categories.dtype
    if not (index.hasnans and isinstance(dtype, np.dtype) and dtype.kind in "iub"):
        return index.astype(dtype)
    nullable = {"i": "Int64", "u": "UInt64", "b": "boolean"}[dtype.kind]
    missing = sys.modules["pandas"].NA
    return values.astype(nullable).take(index.codes, allow_fill=True, fill_value=missing).rename(index.name)


def match(
    p: Any, q: Any, what: str, align: str, keep: bool = False
) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
    """The labels of both, p's first, and where p and q have them (-1: nowhere; None: at their places already).

    With `keep`, the labels are those of p alone.
    """
    ours, theirs = plain(p), plain(q)
    _check(ours, theirs, what)
    if p is q or (_types(ours) == _types(theirs) and ours.equals(theirs)):
        return p, None, None
    found = _find(theirs, ours)
    alone = found < 0
    rest = np.ones(len(theirs), bool)
    rest[found[~alone]] = False
    if align == "strict" and (alone.any() or rest.any()):
        sides = (("q", ours[alone]), ("p", theirs[rest]))
        raise ValueError("; ".join(f"{name} lacks {what} {listed(labels)}" for name, labels in sides if len(labels)))
    if alone.any() and rest.any():
        _warn_of_types(ours[alone], theirs[rest], what, bool(alone.all()))
    if keep and alone.all() and len(ours) and len(theirs):
        raise ValueError(f"p and q: no {what} label in common")
    if keep or not rest.any():
        in_place = len(theirs) == len(ours) and np.array_equal(found, np.arange(len(ours)))
        return p, None, None if in_place else found
    extra = np.flatnonzero(rest)
    at = np.concatenate([np.arange(len(ours)), np.full(extra.size, -1)])
    return _appended(ours, theirs[extra]).set_names(p.names), at, np.concatenate([found, extra])


def same(p: Any, q: Any) -> bool:
    """Whether both have the same labels, in one order."""
    if p.nlevels == q.nlevels == 1 and _only_as_objects(p, q):
        p, q = p.astype(object), q.astype(object)
    return bool(p.equals(q))


def _check(p: Any, q: Any, what: str) -> None:
    """Refuse labels that cannot be matched."""
    if p.nlevels != q.nlevels:
        raise ValueError(f"p and q: {what} labels of {p.nlevels} and {q.nlevels} levels cannot be matched")
    if p.nlevels > 1 and list(p.names) != list(q.names) and set(p.names) == set(q.names):
        raise ValueError(f"p and q: the levels of the {what} labels are in different orders")
    for name, labels in (("p", p), ("q", q)):
        _check_once(labels, f"{name}: {what} label")


def _check_once(labels: Any, name: str) -> None:
    if not labels.is_unique:
        raise ValueError(f"{name} {only(labels[labels.duplicated()])!r} occurs twice")


def places(index: Any, labels: Any, name: str) -> np.ndarray:
    """Where an index has the labels; -1 where it does not."""
    index = plain(index)
    _check_once(index, f"{name}: label")
    return _find(index, plain(labels))


def _find(index: Any, labels: Any) -> np.ndarray:
    if index.nlevels != labels.nlevels:
        return np.full(len(labels), -1)
    if index.nlevels > 1:
        alike = _types(index) == _types(labels)
        return np.asarray(index.get_indexer(labels)) if alike else _find_tuples(index, labels)
    ours, theirs = (x.astype(object) if _only_as_objects(index, labels) else x for x in (index, labels))
    found = np.array(ours.get_indexer(theirs))
    if labels.hasnans:  # pandas tells None, NaN, NA and NaT apart in some dtypes
        missing = np.flatnonzero(index.isna())
        found[labels.isna()] = missing[0] if missing.size else -1
    return found


def _find_tuples(index: Any, labels: Any) -> np.ndarray:
    """Levels of other dtypes are matched each by itself, as the labels of one level are."""
    known, codes = np.ones(len(labels), bool), []
    for ours, theirs, at in zip(index.levels, labels.levels, labels.codes, strict=True):
        code = np.append(_find(plain(ours), plain(theirs)), -1)  # the last for -1, the code of a missing value
        codes.append(code[at])
        known &= (codes[-1] >= 0) | (np.asarray(at) < 0)
    found = np.full(len(labels), -1)
    held = sys.modules["pandas"].MultiIndex(index.levels, [code[known] for code in codes], verify_integrity=False)
    found[known] = index.get_indexer(held)
    return found


def _appended(ours: Any, theirs: Any) -> Any:
    """Labels after labels, each as it is: pandas would make floats of whole numbers beside floats."""
    pandas = sys.modules["pandas"]
    if ours.nlevels > 1:
        levels = [[x.get_level_values(k) for x in (ours, theirs)] for k in range(ours.nlevels)]
        return pandas.MultiIndex.from_arrays([_appended(*pair) for pair in levels])
    if _only_as_objects(ours, theirs):
        ours, theirs = ours.astype(object), theirs.astype(object)
    both = ours.append(theirs)
    if ours.dtype == object and both.dtype.kind == "f" and _far(both):
        return pandas.Index(np.concatenate([x.to_numpy() for x in (ours, theirs)]), dtype=object)
    return both


def _types(index: Any) -> list[Any]:
    """The dtype of each level."""
    return [level.dtype for level in (index.levels if index.nlevels > 1 else [index])]


def _only_as_objects(p: Any, q: Any) -> bool:
    """Whether pandas would change labels of two dtypes before it compares them.

    It takes text for times, and whole numbers for floats, of which several may then be the same.
    """
    if p.dtype == q.dtype:
        return False
    if object in (p.dtype, q.dtype):
        return True
    kinds = {p.dtype.kind, q.dtype.kind}
    if "b" in kinds:  # True is 1 among objects
        return False
    if "u" in kinds and (p.hasnans or q.hasnans):  # of which pandas would make an unsigned number
        return True
    return "O" in kinds or any(x.dtype.kind in "iu" and _far(x) for x in (p, q))


def _far(index: Any) -> bool:
    """Whether there are numbers so large that float64 does not have all whole ones between them."""
    held = index.dropna()
    return bool(len(held)) and bool(held.max() >= WHOLE or held.min() <= -WHOLE)


def only(labels: Any, at: int = 0) -> Any:
    """One label, as a plain value."""
    return labels[at : at + 1].tolist()[0]


def listed(labels: Any) -> str:
    """The first labels, and how many more there are."""
    text = ", ".join(map(repr, labels[:LISTED].tolist()))
    return text + (f" and {len(labels) - LISTED} more" if len(labels) > LISTED else "")


def _warn_of_types(p: Any, q: Any, what: str, none_in_common: bool) -> None:
    """Warn of labels that only one side has and that read the same, such as 1 and "1", or are of unlike types."""
    types = [_kind(x) for x in (p, q)]
    if types[0] == types[1] and "mixed" not in types[0]:
        return
    text = None
    read = {_read(label): label for label in p.tolist()}
    twin = next((label for label in q.tolist() if _read(label) in read), None)
    if twin is not None:
        ours = read[_read(twin)]
        first, second = (repr(x) if isinstance(x, tuple) else f"{x!r} ({type(x).__name__})" for x in (ours, twin))
        text = f"labels {first} and {second} differ in type"
    elif none_in_common and types[0] != types[1]:
        text = f"labels are of the types {types[0]} and {types[1]}"
    if text is not None:
        warnings.warn(f"p and q: {what} {text}, and are not the same", UserWarning, stacklevel=outside())


def _kind(index: Any) -> str:
    """What the labels of an index are; of several levels, what those of each are."""
    if index.nlevels > 1:
        return f"({', '.join(_kind(index.get_level_values(k)) for k in range(index.nlevels))})"
    if index.dtype.name.startswith("period"):
        return str(index.dtype)
    return str(index.inferred_type) + (" with a time zone" if getattr(index, "tz", None) else "")


def _read(label: Any) -> Any:
    """How a label reads; that of several levels, part by part."""
    return tuple(map(str, label)) if isinstance(label, tuple) else str(label)


def outside() -> int:
    """How many callers up the first one is that is not of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "klnumba":
        level, frame = level + 1, frame.f_back
    return level
