"""What can be drawn from, and the logarithm of its density at the draws: numbers, vectors, matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from klnumba.distributions.continuous import density, escapes
from klnumba.distributions.counted import has_others, masses
from klnumba.distributions.dirichlet import Dirichlet
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.independent import Independent
from klnumba.distributions.inverse_wishart import InverseWishart
from klnumba.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.multinomial import Multinomial
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.one_hot_categorical import OneHotCategorical
from klnumba.distributions.von_mises_fisher import SphericalUniform
from klnumba.distributions.wishart import Wishart

Array = np.ndarray[Any, Any]


class Numbers:
    """Draws that are numbers."""

    def __init__(self, one: Distribution) -> None:
        self.discrete = bool(one.support.discrete)
        self.made = masses(one) if self.discrete else density(one)
        self.log: Callable[[Array], Array] = self.made.log if self.discrete else self.made.logpdf
        self.rvs: Callable[[int, np.random.Generator], Array] = self.made.rvs

    def leaves(self, other: Any) -> bool:
        """Whether there is mass where the other has none."""
        leaves = has_others if self.discrete else escapes
        return isinstance(other, Numbers) and leaves(self.made, other.made)
