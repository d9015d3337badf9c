"""Quick instructions of a device, and the arithmetic of the CPU's float32 formulas made of them.

The text of an instruction is what the CPU runs in the simulator: results as far off as NVIDIA's manual of the PTX
instructions allows, above the truth or below as the bits of the argument have it. On a device `target` puts the
instruction in its place.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import exp
from klnumba.formulas.primitives import fma

ERROR = 2.0**-22  # of a power of two


def power(x: np.float32) -> np.float32:
    """e**x, off by 2**-22."""
    bits = np.float32(x).view(np.int32)
    up = np.int32((bits >> np.int32(13) ^ bits >> np.int32(16)) & np.int32(1))  # the last bits of cells of 16 bits
    exact = exp(np.float64(x))
    return np.float32(exact + (exact if up else -exact) * ERROR)


def reciprocal(x: np.float32) -> np.float32:
    """1/x, off by an ulp."""
    bits = np.float32(np.float32(1.0) / x).view(np.int32)
    up = np.int32(np.float32(x).view(np.int32) & np.int32(1))
    return np.int32(bits + (np.int32(1) if up else np.int32(-1))).view(np.float32)


def quotient(a: np.float32, b: np.float32) -> np.float32:
    """a/b, of whose digits the last may be off by one, where 1/b is a normal number."""
    inverse: Any = reciprocal(b)
    s: Any = a * inverse
    return fma(fma(-s, b, a), inverse, s)  # type: ignore[return-value]


class _Quotients(ast.NodeTransformer):
    """Calls of `quotient` in the place of divisions."""

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            return ast.Call(ast.Name("quotient", ast.Load()), [node.left, node.right], [])
        return node


def with_quotients(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The text of a formula of float32 with `quotient` for its divisions: a third of the instructions of one."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(formula)))
    names = dict(formula.__globals__) | {"quotient": quotient}
    exec(compile(ast.fix_missing_locations(_Quotients().visit(tree)), formula.__code__.co_filename, "exec"), names)
    made: Callable[..., Any] = names[formula.__name__]
    return made
