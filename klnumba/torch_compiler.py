"""The way past PyTorch's compiler."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

torch: Any = importlib.import_module("torch")  # whose compiler is loaded
_frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
# Without this, of a PyTorch that has it elsewhere, a door is known by what is traced alone.
_on_this_thread: Callable[[], Any] = getattr(_frames, "get_eval_frame_callback", lambda: None)


def is_around() -> bool:
    """Whether the compiler follows this call, or runs it as it is and will follow what it calls."""
    return torch.compiler.is_dynamo_compiling() or _on_this_thread() is not None


@torch.compiler.disable  # type: ignore[untyped-decorator]
def outside(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What a function returns, between the pieces that are compiled."""
    return function(*args, **options)
