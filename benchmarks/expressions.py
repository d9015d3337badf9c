"""The plain array expressions, written once: NumPy, torch, torch.compile and JAX all evaluate this text.

``xp`` is the library's name space (``log``, ``exp``, ``log_softmax``, ``wide``); ``wide`` turns bfloat16 into float32,
which is the dtype that every result for bfloat16 has.
"""

from __future__ import annotations

from typing import Any

from benchmarks.cases import TWICE_SIZES


def prob(xp: Any, p: Any, q: Any) -> Any:
    """Rows that already sum to one."""
    p, q = xp.wide(p), xp.wide(q)
    return (p * xp.log(p / q)).sum(-1)


def prob_normalised(xp: Any, p: Any, q: Any) -> Any:
    """Rows divided by their sums first."""
    p, q = xp.wide(p), xp.wide(q)
    p, q = p / p.sum(-1)[..., None], q / q.sum(-1)[..., None]
    return (p * xp.log(p / q)).sum(-1)


def log_prob(xp: Any, a: Any, b: Any) -> Any:
    """Logarithms of rows that already sum to one."""
    a, b = xp.wide(a), xp.wide(b)
    return (xp.exp(a) * (a - b)).sum(-1)


def log_prob_normalised(xp: Any, a: Any, b: Any) -> Any:
    """Logits, or logarithms of rows with any sum."""
    a, b = xp.log_softmax(xp.wide(a)), xp.log_softmax(xp.wide(b))
    return (xp.exp(a) * (a - b)).sum(-1)


def pointwise(xp: Any, p: Any, q: Any) -> Any:
    """One value a cell."""
    p, q = xp.wide(p), xp.wide(q)
    return p * xp.log(p / q)


def choose(case: Any, *, normalise: bool) -> Any:
    """The expression of a case, or None where the case has no such variant."""
    if case.task == "pointwise":
        return None if normalise else pointwise
    if case.kind == "logit":
        return log_prob_normalised if normalise else None
    if case.kind == "log_prob":
        return log_prob_normalised if normalise else log_prob
    both = case.task == "small" or case.rows == 1 or case.d in TWICE_SIZES
    return (prob_normalised if both else None) if normalise else prob


def _loss_of_logits(teacher: Any, student: Any) -> Any:
    from torch.nn.functional import kl_div, log_softmax

    return kl_div(log_softmax(student, -1), log_softmax(teacher, -1), reduction="batchmean", log_target=True)


def _loss_of_probabilities(p: Any, q: Any) -> Any:
    from torch.nn.functional import kl_div

    return kl_div(q.log(), p, reduction="batchmean")


# PyTorch's own way to a mean KL with a gradient; it takes probabilities as they are.
torch_losses = {"logit": _loss_of_logits, "prob": _loss_of_probabilities}
