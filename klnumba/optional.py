"""Libraries that only some doors need, imported when such a door is used."""

from __future__ import annotations

import importlib
from typing import Any


def load(name: str, extra: str = "tables") -> Any:
    """Import a library, or say which extra brings it.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed; the text is the line to type.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        text = f'{missing} is not installed: python -m pip install "klnumba[{extra}]"'
        raise ModuleNotFoundError(text, name=missing) from error


def type_name(item: Any) -> str:
    """The name of an object's type, and of the library that it is from."""
    library = type(item).__module__.partition(".")[0]
    name = type(item).__name__
    return name if library == "builtins" else f"{library}.{name}"
