"""Families of vectors and matrices: what they share in dealing with ``scipy.stats``."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from klnumba.distributions.distribution import Distribution


class Multivariate(Distribution):
    """A family whose counterpart in SciPy takes keywords, and whose frozen form keeps them as attributes.

    `scipy_keywords` names them: the keyword for each of our parameters.
    """

    scipy_keywords: ClassVar[dict[str, str]] = {}

    def to_scipy(self) -> Any:
        """The same distribution, frozen, from ``scipy.stats``, which holds no batches."""
        from scipy import stats

        owner = type(self).__name__
        if not self.scipy_name:
            raise NotImplementedError(f"{owner}: scipy.stats has no counterpart")
        if self.batch_shape != ():
            raise ValueError(f"{owner}: scipy.stats.{self.scipy_name} is one distribution, not {self.batch_shape}")
        return getattr(stats, self.scipy_name)(
            **{theirs: getattr(self, ours) for ours, theirs in self.scipy_keywords.items()}
        )

    @classmethod
    def from_scipy(cls, frozen: Any) -> Self:
        """The family's distribution that equals a frozen one of ``scipy.stats``.

        Parameters
        ----------
        frozen : scipy.stats frozen distribution
            One of the family's counterpart.
        """
        if not cls.scipy_name or type(frozen).__name__ != f"{cls.scipy_name}_frozen":
            raise cls._not_of_scipy(f"scipy.stats.{cls.scipy_name}", type(frozen).__name__)
        return cls(**{ours: getattr(frozen, theirs) for ours, theirs in cls.scipy_keywords.items()})
