"""What Numba keeps the code of a piece in, and that of a loop: pieces are linked and optimised in the loops alone.

Numba makes of every function all that Python and other functions could want: it links into it whatever it calls,
optimises the whole and makes machine code of it. A piece that others call would go through all of that once for itself
and once more in every one of them. Here a piece is left as it was lowered, and a loop takes in all pieces that it calls
in some way, once. Compiling takes a quarter less time. The loops are as fast; in last digits they may differ from those
of whole pieces, since LLVM meets the operations in another order.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Iterable
from typing import Any

import numba
from llvmlite import binding as llvm
from numba.core import codegen

NEEDED = (
    "_ensure_finalized",
    "_finalize_dynamic_globals",
    "_get_module_for_linking",
    "_optimize_final_module",
    "_raise_if_finalized",
    "add_linking_library",
    "_codegen",
    "_final_module",
    "_finalized",
    "_linking_libraries",
    "_shared_module",
)


@functools.lru_cache
def is_known(generator: Any) -> bool:
    """Whether this Numba has the parts that are replaced or read here; else all is compiled as Numba does."""
    try:
        library = codegen.JITCodeLibrary(generator, "klnumba")
    except Exception:
        return False
    return hasattr(generator, "_pass_builder") and all(hasattr(library, name) for name in NEEDED)


class Unengaged:
    """In place of Numba's engine: what has no machine code has no place in memory for its environment either."""

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class PieceLibrary(codegen.JITCodeLibrary):
    """The code of a piece as it was lowered, and the libraries of all that it calls."""

    called: tuple[Any, ...] = ()

    @property
    def codegen(self) -> Any:
        """What Numba asks to keep the environment of the finished function."""
        return Unengaged()

    def finalize(self) -> None:
        """Go no further."""
        self._raise_if_finalized()
        self.called = tuple(dict.fromkeys(one for library in self._linking_libraries for one in with_called(library)))
        self._finalize_dynamic_globals()
        self._finalized = True
        # linked even where nothing calls it yet: what does may come later
        relink(self._final_module, llvm.Linkage.external, "weak_odr")

    def _get_module_for_linking(self) -> Any:
        """With all that it calls, for what is not a loop of ours."""
        self._ensure_finalized()
        if self._shared_module is None:
            module = self._final_module.clone()
            link_pieces(module, self.called)
            for library in others_of(self.called):
                module.link_in(library._get_module_for_linking(), preserve=True)
            relink(module, llvm.Linkage.weak_odr, "linkonce_odr")
            self._shared_module = module
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        """Of what Python would call: a function of its own that says that this cannot be called."""
        self._ensure_finalized()
        return ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value or 0


class LoopLibrary(codegen.JITCodeLibrary):
    """The code of a loop that is called from Python: the pieces in it are its own."""

    def add_linking_library(self, library: Any) -> None:
        """Link a piece with all that it calls."""
        for one in with_called(library):
            super().add_linking_library(one)

    def finalize(self) -> None:
        """Link all pieces before Numba's own libraries: of those LLVM takes what is called by then, and no more."""
        link_pieces(self._final_module, self._linking_libraries)
        self._linking_libraries = others_of(self._linking_libraries)
        super().finalize()

    def _optimize_final_module(self) -> None:
        relink(self._final_module, llvm.Linkage.weak_odr, "linkonce_odr")
        super()._optimize_final_module()
        # Of pieces with one name the linker takes the first that it meets, and each was optimised with the loop around
        # it: a loop would compute other last digits in the process that compiles it than where it comes from the cache,
        # and others after this loop than after that one.
        relink(self._final_module, llvm.Linkage.linkonce_odr, "internal")
        self._drop_unused()

    def _drop_unused(self) -> None:
        """Drop the hidden pieces that were put in place wherever they were called."""
        passes = llvm.newpassmanagers.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(self._final_module, self._codegen._pass_builder())


def with_called(library: Any) -> tuple[Any, ...]:
    """A library and what is to be linked after it."""
    return (library, *library.called) if isinstance(library, PieceLibrary) else (library,)


def link_pieces(module: Any, libraries: Iterable[Any]) -> None:
    """Put the code of pieces into a module, each once."""
    for library in dict.fromkeys(libraries):
        if isinstance(library, PieceLibrary):
            module.link_in(library._final_module, preserve=True)


def others_of(libraries: Iterable[Any]) -> list[Any]:
    """Those that are no pieces."""
    return [library for library in libraries if not isinstance(library, PieceLibrary)]


def relink(module: Any, linkage: Any, other: str) -> None:
    """Give all functions of one linkage another."""
    for function in module.functions:
        if not function.is_declaration and function.linkage == linkage:
            function.linkage = other


def warn_of_the_unknown() -> None:
    """Say what follows from a Numba that is not known."""
    warnings.warn(
        f"Numba {numba.__version__} compiles otherwise than klnumba knows: the last digits of results may differ "
        "between the process that compiles a kernel and those that find it in the cache",
        RuntimeWarning,
        stacklevel=2,
    )
