"""Derivatives of the pairs of `of_cauchy`, which have a closed form at one value of a parameter, by that one too.

A formula here is of duals: the closed form, and the first order of the divergence in what must be that value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.distributions import of_cauchy
from klnumba.distributions.cauchy import cauchy_cauchy
from klnumba.distributions.from_uniform import cauchy_student_t
from klnumba.distributions.of_cauchy import from_exponential, from_half_cauchy, from_half_cauchy_to_t
from klnumba.duals import dilogarithm
from klnumba.duals import twofold as tf
from klnumba.duals.dual import value_of
from klnumba.duals.number import Twofold, must_rest, where
from klnumba.duals.twin import twin
from klnumba.formulas.integrals import cosine_integral_part


def exponential_cauchy(rate: Any, loc: Any, scale: Any) -> Any:
    """By `loc`, at 0: less E 2*X/(X**2 + scale**2), which is 2*rate*g(rate*scale)."""
    must_rest("loc", value_of(loc))
    pull = 2.0 * rate * twin(cosine_integral_part)(rate * scale)
    return twin(from_exponential)(rate, scale) - loc * pull


def half_cauchy_cauchy(scale_p: Any, loc: Any, scale_q: Any) -> Any:
    """By `loc`, at 0: less E 2*X/(X**2 + scale_q**2)."""
    must_rest("loc", value_of(loc))
    pull = 4.0 / math.pi * _log_over_squares(value_of(scale_p), value_of(scale_q))
    return twin(from_half_cauchy)(scale_p, scale_q) - loc * pull


def half_cauchy_student_t(scale_p: Any, df: Any, loc: Any, scale_q: Any) -> Any:
    """By `loc`, at 0: less E (df + 1)*X/(X**2 + df*scale_q**2)."""
    must_rest("loc", value_of(loc))
    k = value_of(df)
    pull = 2.0 / math.pi * (k + 1.0) * _log_over_squares(value_of(scale_p), tf.sqrt(k) * value_of(scale_q))
    return twin(from_half_cauchy_to_t)(scale_p, df, scale_q) - loc * pull


def _log_over_squares(x: Twofold, y: Twofold) -> Twofold:
    """x*log(x/y)/(x**2 - y**2); 1/(2*y) where both are equal."""
    above = (x - y) / y
    equal = above.hi == 0.0
    mean = where(equal, 1.0 - 0.5 * above, tf.log_of_quotient(x, y) / where(equal, 1.0, above))
    return x / (x + y) * mean / y


def student_t_cauchy(df: Any, loc_p: Any, scale_p: Any, loc_q: Any, scale_q: Any) -> Any:
    """By `df`, at 1."""
    must_rest("df", value_of(df))
    pull = _by_df(*map(value_of, (loc_p, scale_p, 1.0, loc_q, scale_q)))
    return twin(cauchy_cauchy)(loc_p, scale_p, loc_q, scale_q) + (df - 1.0) * pull


def student_t_student_t(df_p: Any, loc_p: Any, scale_p: Any, df_q: Any, loc_q: Any, scale_q: Any) -> Any:
    """By p's `df`, at 1."""
    must_rest("df", value_of(df_p))
    pull = _by_df(*map(value_of, (loc_p, scale_p, df_q, loc_q, scale_q)))
    return twin(cauchy_student_t)(loc_p, scale_p, df_q, loc_q, scale_q) + (df_p - 1.0) * pull


def _by_df(loc_p: Twofold, scale_p: Twofold, df: Twofold, loc_q: Twofold, scale_q: Twofold) -> Twofold:
    """The mean of the score by `df` at 1, of p = loc_p + scale_p*T, times log(p/q).

    The score is log(2) - 1/2 - log(1 + T**2)/2 + T**2/(1 + T**2). Its mean with the logarithm of the distance of T from
    a point b*i of the plane, q's scale and location seen from p, is by residues a dilogarithm: from a Cauchy
    distribution Re(Li2(v) - v/2), where v = (b - 1)/(b + 1) lies in the unit disk.
    """
    unit, off = tf.sqrt(df) * scale_q, loc_q - loc_p
    most = np.maximum(np.maximum(scale_p.hi, unit.hi), np.abs(off.hi))
    one, wide, far = scale_p / most, unit / most, off / most
    along = wide + one
    square = along * along + far * far
    x, y = ((wide - one) * along + far * far) / square, 2.0 * one * far / square
    of_cauchy = 0.5 * x + dilogarithm.beyond_first_order(x, y, 2.0 * one * along / square)
    weight = 0.5 * (df + 1.0)
    return weight * of_cauchy + (weight - 1.0) * (0.5 - tf.PI_SQUARED_BY_6)


# By the rule that is registered: one that takes its place has no derivatives here.
FORMULAS: dict[Callable[..., Any], Callable[..., Any]] = {
    of_cauchy.exponential_cauchy: exponential_cauchy,
    of_cauchy.half_cauchy_cauchy: half_cauchy_cauchy,
    of_cauchy.half_cauchy_student_t: half_cauchy_student_t,
    of_cauchy.student_t_cauchy: student_t_cauchy,
    of_cauchy.student_t_student_t: student_t_student_t,
}
