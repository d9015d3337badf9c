"""The chi-squared distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, unmoved, unscaled
from klnumba.distributions.gamma import Gamma, gamma_entropy


def chi2_entropy(df: float) -> float:
    """The differential entropy, in nats."""
    return gamma_entropy(0.5 * df, 0.5)


class Chi2(Gamma):
    """The distribution of a sum of `df` squared standard normal variables: a gamma distribution.

    Parameters
    ----------
    df : array_like
        Degrees of freedom; any positive number.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Chi2, Gamma
    >>> float(kl.kl_divergence(Chi2(6.0), Gamma(3.0, 0.5)))
    0.0
    """

    parameters: ClassVar[tuple[str, ...]] = ("df",)
    df = Parameter(POSITIVE)
    entropy_formula: ClassVar[Callable[..., float]] = staticmethod(chi2_entropy)
    scipy_name = "chi2"

    def __init__(self, df: Any, *, validate_args: bool = True) -> None:
        Distribution.__init__(self, validate_args, df=df)

    @property
    def concentration(self) -> Any:
        """Shape of the gamma distribution."""
        return np.multiply(self.df, 0.5)

    @property
    def rate(self) -> Any:
        """Rate of the gamma distribution."""
        return self._full(0.5)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.df,), 0.0, 1.0

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        unscaled(scale, cls.__name__)
        return {"df": shapes[0]}
