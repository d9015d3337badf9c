"""Closed forms as functions that the caller's own Numba-compiled code can call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.registry import ByForm, Pair, find, is_refusal, refusal
from klnumba.kernels.elementwise import TAKING, of_numbers


def jitted_kl(p: type[Distribution] | Distribution, q: type[Distribution] | Distribution) -> Callable[..., float]:
    """KL(p || q) of two families as a compiled function of numbers.

    Other functions that Numba compiles can call it, also with ``parallel=True``, ``nogil=True`` or ``cache=True``. It
    has the bits that `klnumba.kl_divergence` has for a batch.

    Parameters
    ----------
    p, q : type or Distribution
        Families, subclasses of `Distribution` whose pair is a scalar formula of their parameters: all that are
        registered with ``compiled=True``, one's own among them, and those of families with ``probs`` or ``logits``. For
        these take examples, such as ``Bernoulli(logits=0.0)``: their numbers do not count, but the form does.

    Returns
    -------
    callable
        From the parameters of p and then those of q, as many numbers in the order of ``p.parameters`` and
        ``q.parameters``, to the divergence in nats, a float64. Nothing is checked: of numbers that are no parameters
        it may be anything, or never come, and where a formula does not serve numbers that are so extreme, it is NaN.

    Raises
    ------
    TypeError
        If an argument is neither, or if a formula cannot be compiled.
    NotImplementedError
        If the pair is not registered, or is no scalar formula of the parameters of both.

    Examples
    --------
    >>> from numba import njit
    >>> from klnumba.distributions import Gamma, jitted_kl
    >>> gamma_kl = jitted_kl(Gamma, Gamma)
    >>> @njit
    ... def closest(shape, rates):
    ...     best = 0
    ...     for k in range(rates.size):
    ...         if gamma_kl(2.0, 1.0, shape, rates[k]) < gamma_kl(2.0, 1.0, shape, rates[best]):
    ...             best = k
    ...     return best
    >>> import numpy as np
    >>> closest(3.0, np.linspace(0.5, 2.5, 9))
    4
    """
    families = [_family(name, x) for name, x in (("p", p), ("q", q))]
    pair = find(*families)
    formula, count = _formula(pair, p, q, families)
    try:
        found: Callable[..., float] = of_numbers(formula, count)
    except Exception as reason:
        if not is_refusal(reason):
            raise
        raise refusal(pair, reason) from None
    return found


def _family(name: str, x: Any) -> type[Distribution]:
    family = x if isinstance(x, type) else type(x)
    if not issubclass(family, Distribution):
        raise TypeError(f"{name}: a family of klnumba.distributions, or an example of it, not {family.__name__}")
    return family


def _formula(pair: Pair, p: Any, q: Any, families: list[type[Distribution]]) -> tuple[Callable[..., float], int]:
    """The formula of a pair, and how many numbers it takes."""
    title = f"jitted_kl: KL({families[0].__name__} || {families[1].__name__})"
    formula, of_p, of_q = pair.function, pair.p.parameters, pair.q.parameters
    own = [family.parameters for family in families]
    if isinstance(formula, ByForm):
        if formula.formulas and (isinstance(p, type) or isinstance(q, type)):
            raise NotImplementedError(f"{title} depends on the form, probs or logits: give an example of each family")
        if formula.formulas:
            own = [tuple(x._given) for x in (p, q)]
            formula, of_p, of_q = formula.choose(p, q)
    elif not pair.compiled:
        raise NotImplementedError(f"{title} is no scalar formula")
    if isinstance(formula, ByForm) or [tuple(of_p), tuple(of_q)] != own:
        raise NotImplementedError(f"{title} is no scalar formula of the parameters that the two are given by")
    count = len(of_p) + len(of_q)
    if count not in TAKING:
        raise NotImplementedError(f"{title} takes {count} numbers, of {max(TAKING)} at most")
    return formula, count
