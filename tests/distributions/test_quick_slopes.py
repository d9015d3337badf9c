"""Quick slopes against the derivatives that duals give, where they serve, and what is left to these."""

from __future__ import annotations

from klnumba.distributions import (
    bernoulli,  # noqa: F401
)
