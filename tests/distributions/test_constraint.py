"""What parameters may be: the same rule for one number, for an array of them and for both ends of an interval."""

import math
import re

import numpy as np
import pytest

from klnumba.distributions import categories, constraint, negative_binomial

RULES = {
    "REAL": (constraint.REAL, math.isfinite),
    "LOGIT": (constraint.LOGIT, lambda x: not math.isnan(x)),
    "LOGIT_BELOW_INF": (constraint.LOGIT_BELOW_INF, lambda x: x < math.inf),
    "POSITIVE": (constraint.POSITIVE, lambda x: 0 < x < math.inf),
    "NON_NEGATIVE": (constraint.NON_NEGATIVE, lambda x: 0 <= x < math.inf),
    "PROBABILITY": (constraint.PROBABILITY, lambda x: 0 <= x <= 1),
    "OPEN_PROBABILITY": (constraint.OPEN_PROBABILITY, lambda x: 0 < x < 1),
    "POSITIVE_PROBABILITY": (constraint.POSITIVE_PROBABILITY, lambda x: 0 < x <= 1),
    "POSITIVE_PROBABILITY_LOGIT": (constraint.POSITIVE_PROBABILITY_LOGIT, lambda x: x > -math.inf),
    "PROBABILITY_BELOW_1": (negative_binomial.PROBABILITY_BELOW_1, lambda x: 0 <= x < 1),
    "COUNT": (constraint.COUNT, lambda x: 0 <= x < 2.0**53 and x == math.floor(x)),
}
TINY = float(np.finfo(np.float32).smallest_subnormal)
NUMBERS = [-math.inf, -1.0, -TINY, -0.0, 0.0, TINY, 0.5, 1.0, 1.0 + 2.0**-23, 3.0, 2.0**53, math.inf, math.nan]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_kept_or_named_with_its_place(name, dtype):
    rule, kept = RULES[name]
    fine = np.full((2, 3), 0.5 if kept(0.5) else 1.0, dtype)
    rule.check("Family", "x", fine)
    for number in NUMBERS:
        given = fine.copy()
        given[1, 2] = number
        np.testing.assert_array_equal(rule.broken(given)[0], [[False] * 3, [False, False, not kept(number)]])
        if kept(number):
            rule.check("Family", "x", given)
            rule.check("Family", "x", np.asarray(number, dtype))
            continue
        with pytest.raises(ValueError, match=rf"^Family: x must be {re.escape(rule.text)}, but x\[1, 2\] is "):
            rule.check("Family", "x", given)
        with pytest.raises(ValueError, match=rf"^Family: x must be {re.escape(rule.text)}, but x is "):
            rule.check("Family", "x", np.asarray(number, dtype))


@pytest.mark.parametrize("name", RULES)
def test_no_numbers_break_no_rule(name):
    rule, none = RULES[name][0], np.empty((0, 3))
    rule.check("Family", "x", none)
    assert rule.broken(none)[0].shape == (0, 3)


@pytest.mark.parametrize("rule", [categories.MASSES, categories.LOGITS], ids=["masses", "logits"])
@pytest.mark.parametrize("width", [0, 1, 4])
def test_rows_with_nothing_in_them(rule, width):
    nothing = 0.0 if rule is categories.MASSES else -math.inf
    fine = np.full((3, width), 0.25)
    if width:
        rule.check("Family", "x", fine)
        fine[1] = nothing
    with pytest.raises(ValueError, match=rf"must be {re.escape(rule.text)}, but x\[{1 if width else 0}\] is"):
        rule.check("Family", "x", fine)
    fine[1, 1:] = 0.5
    if width > 1:
        rule.check("Family", "x", fine)
