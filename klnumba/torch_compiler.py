"""The way past PyTorch's compiler."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

torch: Any = importlib.import_module("torch")  # whose compiler is loaded
_on_this_thread: Callable[[], Any] = torch._C._dynamo.eval_frame.get_eval_frame_callback


def is_around() -> bool:
    """Whether the compiler follows this call, or runs it as it is and will follow what it calls."""
    return torch.compiler.is_dynamo_compiling() or _on_this_thread() is not None


@torch.compiler.disable  # type: ignore[untyped-decorator]
def outside(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What a function returns, between the pieces that are compiled."""
    return function(*args, **options)
