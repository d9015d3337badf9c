"""The formula of every pair of families with a closed form, as it stands in textbooks, and where it holds.

H is the entropy of p, E its mean, V its variance; E in front of an expression is its mean under p. The parameters of q
are single letters in the order of its class (m a location, s a scale, r a rate, a and b shapes or ends, n a count or
degrees of freedom), those of p carry a prime where both have them. ψ is the digamma function, γ Euler's constant.
The docs print both; ``tests/distributions/test_systems.py`` sees that no pair is left out.
"""

NONE = "none"
INSIDE = "infinite unless p's interval lies in q's"
REFUSED = "refused"

# KL(P || Q) of two members of one family.
SAME = {
    "Bernoulli": "q'·log(q'/q) + (1 − q')·log((1 − q')/(1 − q))",
    "Beta": "log(B(a, b)/B(a', b')) + (a' − a)·ψ(a') + (b' − b)·ψ(b') + (a + b − a' − b')·ψ(a' + b')",
    "Binomial": "E log(C(n', X)/C(n, X)) + n'q'·log(q'/q) + n'(1 − q')·log(1 − q') − (n − n'q')·log(1 − q)",
    "Categorical": "Σ p·log(p/q)",
    "Cauchy": "log([(s' + s)² + (m' − m)²]/(4s's))",
    "Chi": "(n' − n)/2·ψ(n'/2) + logΓ(n/2) − logΓ(n'/2)",
    "ContinuousBernoulli": "log((e^η − 1)/η) − log((e^η' − 1)/η') + (η' − η)·E, η the log-odds",
    "Delta": "0",
    "Dirichlet": "log B(a) − log B(a') + Σ (a' − a)·(ψ(a') − ψ(Σ a'))",
    "Exponential": "r/r' − 1 − log(r/r')",
    "Gamma": "(a' − a)·ψ(a') − logΓ(a') + logΓ(a) + a·log(b'/b) + a'·(b − b')/b'",
    "Geometric": "[q'·log(q'/q) + (1 − q')·log((1 − q')/(1 − q))]/q'",
    "Gumbel": "log(s/s') + γ·(s'/s − 1) + (m' − m)/s + exp((m − m')/s)·Γ(1 + s'/s) − 1",
    "HalfCauchy": "log((s' + s)²/(4s's))",
    "HalfNormal": "[(s'/s)² − 1 − log((s'/s)²)]/2",
    "Independent": "the sum of the divergences of the axes",
    "InverseGamma": "(a' − a)·ψ(a') − logΓ(a') + logΓ(a) + a·log(b'/b) + a'·(b − b')/b'",
    "InverseGaussian": "[log(b'/b) − 1 + b/b' + b·(m' − m)²/(m'm²)]/2",
    "InverseWishart": "that of the Wishart distributions of the inverses",
    "Joint": "the sum of the divergences of the blocks",
    "Kumaraswamy": "log(a'b'/(ab)) + (a' − a)·E log X + (b' − 1)·E log(1 − X^a') − (b − 1)·E log(1 − X^a)",
    "Laplace": "log(s/s') + |m' − m|/s + s'/s·exp(−|m' − m|/s') − 1",
    "Lindley": "2·log(r'/r) + log((1 + r)/(1 + r')) − (r' + 2)(r' − r)/(r'(1 + r'))",
    "LogNormal": "[(s'/s)² − 1 − log((s'/s)²) + ((m' − m)/s)²]/2",
    "LogUniform": "log(log(b/a)/log(b'/a'))",
    "Logistic": "x·coth(x/2) − 2, x = |m' − m|/s",
    "LogitNormal": "[(s'/s)² − 1 − log((s'/s)²) + ((m' − m)/s)²]/2",
    "LowRankMultivariateNormal": "that of the normal distributions of these means and covariances",
    "MatrixNormal": "that of the normal distributions whose covariances are Kronecker products",
    "Moyal": "[exp((m − m')/s)·2^(s'/s)·Γ(1/2 + s'/s)/√π + (m' − m)/s − 1 + (s'/s − 1)(γ + log 2) + 2·log(s/s')]/2",
    "Multinomial": "n·Σ p·log(p/q)",
    "MultivariateNormal": "[tr(S⁻¹S') − k + log(|S|/|S'|) + (m' − m)ᵀS⁻¹(m' − m)]/2, S the covariance",
    "NegativeBinomial": "n·[q'·log(q'/q) + (1 − q')·log((1 − q')/(1 − q))]/(1 − q')",
    "Normal": "[(s'/s)² − 1 − log((s'/s)²) + ((m' − m)/s)²]/2",
    "NormalGamma": "that of Gamma, and [n/n' − 1 − log(n/n') + n·a'/b'·(m' − m)²]/2, n the mean precision",
    "OneHotCategorical": "Σ p·log(p/q)",
    "Pareto": "a·log(m'/m) + log(a'/a) + a/a' − 1",
    "Poisson": "r'·log(r'/r) − r' + r",
    "PowerSpherical": "(c' − c)·E log(1 + m'ᵀX) + log(N(c)/N(c')), N(c) the integral of (1 + mᵀx)^c",
    "StudentT": "log((m' − m)² + (s' + s·√n)²)·(n + 1)/2 − n·log(s·√n) + log B(n/2, 1/2) − log(4πs')",
    "TransformedDistribution": "that of the bases, or of the families that the transforms make of them",
    "Uniform": "log((b − a)/(b' − a'))",
    "VonMises": "log(I₀(b)/I₀(b')) + (b' − b·cos(m' − m))·I₁(b')/I₀(b'), b the concentration",
    "VonMisesFisher": "log(C(b')/C(b)) + (b' − b·mᵀm')·A(b'), C the norm of the density, A a ratio of Bessel functions",
    "Weibull": "log(k'/k) − k'·log s' + k·log s + (k' − k)(log s' − γ/k') + (s'/s)^k·Γ(k/k' + 1) − 1",
    "Wishart": "[n·log(|V|/|V'|) + n'·tr(V⁻¹V') − n'k + (n' − n)·ψₖ(n'/2)]/2 + log(Γₖ(n/2)/Γₖ(n'/2))",
}  # fmt: skip

# Minus E log q(X), to which minus H is added, by the family of q.
CROSS = {
    "Bernoulli": "−E·log q − (1 − E)·log(1 − q)",
    "Beta": "log B(a, b) − (a − 1)·E log X − (b − 1)·E log(1 − X)",
    "Binomial": "−E log C(n, X) − E·log q − (n − E)·log(1 − q)",
    "Cauchy": "log(πs) + E log(1 + ((X − m)/s)²)",
    "Chi": "logΓ(n/2) + (n/2 − 1)·log 2 − (n − 1)·E log X + E X²/2",
    "ContinuousBernoulli": "log((e^η − 1)/η) − η·E, η the log-odds",
    "Exponential": "r·E − log r",
    "Gamma": "logΓ(a) − a·log b − (a − 1)·E log X + b·E",
    "Geometric": "−log q − E·log(1 − q)",
    "Gumbel": "log s + (E − m)/s + exp(m/s)·E exp(−X/s)",
    "HalfCauchy": "log(πs/2) + E log(1 + (X/s)²)",
    "HalfNormal": "log(s·√(π/2)) + E X²/(2s²)",
    "InverseGamma": "logΓ(a) − a·log b + (a + 1)·E log X + b·E 1/X",
    "Laplace": "log(2s) + E abs(X − m)/s",
    "Lindley": "log(1 + r) − 2·log r + r·E − E log(1 + X)",
    "LogNormal": "log(s·√(2π)) + E log X + E (log X − m)²/(2s²)",
    "LogUniform": "log log(b/a) + E log X",
    "Moyal": "log(s·√(2π)) + [(E − m)/s + exp(m/s)·E exp(−X/s)]/2",
    "NegativeBinomial": "−E log C(X + n − 1, X) − E·log q − n·log(1 − q)",
    "Normal": "log(s·√(2π)) + [V + (E − m)²]/(2s²)",
    "Pareto": "(a + 1)·E log X − log a − a·log m",
    "Poisson": "r − E·log r + E log X!",
    "PowerSpherical": "log N(c) − c·E log(1 + mᵀX), N(c) the integral of (1 + mᵀx)^c",
    "StudentT": "log(s·√n·B(n/2, 1/2)) + (n + 1)/2·E log(1 + ((X − m)/s)²/n)",
    "Uniform": "log(b − a)",
    "VonMisesFisher": "−log C(b) − b·mᵀE, C the norm of the density",
    "Weibull": "k·log s − log k − (k − 1)·E log X + E X^k/s^k",
}

# Families of which one is a special form of the other: that of the more general one.
AS = {
    ("Beta", "Dirichlet"): "Dirichlet",
    ("Categorical", "OneHotCategorical"): "Categorical",
    ("Dirichlet", "Beta"): "Dirichlet",
    ("Independent", "LowRankMultivariateNormal"): "MultivariateNormal",
    ("Independent", "MultivariateNormal"): "MultivariateNormal",
    ("LowRankMultivariateNormal", "Independent"): "MultivariateNormal",
    ("LowRankMultivariateNormal", "MultivariateNormal"): "MultivariateNormal",
    ("MultivariateNormal", "Independent"): "MultivariateNormal",
    ("MultivariateNormal", "LowRankMultivariateNormal"): "MultivariateNormal",
    ("OneHotCategorical", "Categorical"): "Categorical",
}


PLACES = ("Delta", "Independent")  # the second of the first, where no other pair serves it
ALWAYS = {
    ("Delta", "Distribution"): "∞",
    ("Delta", "Independent"): "that of the base",
    ("Independent", "Distribution"): "∞",
    ("Independent", "Delta"): "that of the base",
    ("Distribution", "Delta"): "0 or ∞",
    ("Distribution", "Independent"): "0 or ∞",
    ("Categorical", "Delta"): "0 or ∞",
}


def formula(p: str, q: str) -> str:
    """The formula of a pair."""
    if p == q:
        return SAME[p]
    if (p, q) in AS:
        return SAME[AS[p, q]]
    if (p, q) in ALWAYS:
        return ALWAYS[p, q]
    return "−log of q's probability of v" if p in PLACES else f"{CROSS[q]} − H"


DIRECTIONS = {"PowerSpherical", "VonMisesFisher"}
ONLY_NOTHING = {"Geometric": "probs of p is 1", "NegativeBinomial": "probs of p is 0", "Poisson": "rate of p is 0"}

CONDITIONS = {
    **{(p, "Uniform"): "infinite unless a ≤ 0 and b ≥ 1" for p in ("Beta", "ContinuousBernoulli", "Kumaraswamy")},
    **{(p, q): INSIDE for p in ("Uniform", "LogUniform") for q in ("Uniform", "LogUniform")},
    **{("Uniform", q): "infinite unless low ≥ 0 and high ≤ 1" for q in ("Beta", "ContinuousBernoulli")},
    **{
        ("Uniform", q): "infinite unless low ≥ 0"
        for q in ("Exponential", "Gamma", "HalfNormal", "Chi", "Weibull", "LogNormal", "HalfCauchy", "Lindley")
    },
    ("Uniform", "InverseGamma"): "infinite unless low > 0",
    **{(p, "Pareto"): "infinite unless p begins at m or above" for p in ("Uniform", "LogUniform", "Pareto")},
    **{
        ("Pareto", q): "infinite unless alpha > 1" for q in ("Exponential", "Gamma", "Laplace", "Gumbel", "Moyal")
    },
    **{("Pareto", q): "infinite unless alpha > 2" for q in ("Normal", "HalfNormal")},
    ("StudentT", "Normal"): "infinite unless df > 2",
    ("StudentT", "Laplace"): "infinite unless df > 1",
    **{("InverseGamma", q): "infinite unless concentration > 1" for q in ("Laplace", "Gamma", "Exponential")},
    **{("InverseGamma", q): "infinite unless concentration > 2" for q in ("Normal", "HalfNormal", "Chi")},
    ("Gamma", "InverseGamma"): "infinite unless the concentration of p is above 1",
    **{
        (p, q): "infinite unless p's scale is below q's" for p in ("Laplace", "Logistic") for q in ("Gumbel", "Moyal")
    },
    **{(p, q): f"infinite unless {why}" for p, why in ONLY_NOTHING.items() for q in ("Bernoulli", "Binomial")},
    ("Logistic", "Logistic"): f"equal scales, else {REFUSED}",
    ("Exponential", "Cauchy"): f"m is 0, else {REFUSED}",
    **{("HalfCauchy", q): f"m is 0, else {REFUSED}" for q in ("Cauchy", "StudentT")},
    **{("StudentT", q): f"df of p is 1, else {REFUSED}" for q in ("Cauchy", "StudentT")},
    ("NegativeBinomial", "NegativeBinomial"): f"equal total_count, or probs of p is 0, else {REFUSED}",
    ("Geometric", "NegativeBinomial"): f"total_count is 1, else {REFUSED}",
    ("NegativeBinomial", "Geometric"): f"total_count is 1, else {REFUSED}",
    ("PowerSpherical", "PowerSpherical"): f"equal mean directions, or p or q is uniform, else {REFUSED}",
    ("VonMisesFisher", "PowerSpherical"): f"concentration of p is 0, else {REFUSED}",
    ("Binomial", "Binomial"): "infinite unless p has no more draws, or probs 0",
    ("Binomial", "Bernoulli"): "infinite unless p has at most one draw, or probs 0",
    ("Bernoulli", "Binomial"): "infinite if q has no draw and probs of p is above 0",
    ("Multinomial", "Multinomial"): "infinite unless the counts are equal",
    ("Delta", "Delta"): "infinite unless the places are equal",
    **{("Delta", q): "infinite unless v is a count that q has" for q in CROSS if q not in DIRECTIONS},
    ("Delta", "Distribution"): f"q is continuous, else {REFUSED}",
    **dict.fromkeys((PLACES, PLACES[::-1]), f"the Independent is of no axes, else {REFUSED}"),
    ("Independent", "Distribution"): f"the Independent is of Delta, and q continuous, else {REFUSED}",
    **{
        ("Independent", q): f"the Independent is of Delta, else {REFUSED}"
        for q in ("Mixture", "Multinomial", "OneHotCategorical", "TransformedDistribution")
    },
    ("Categorical", "Delta"): "infinite unless p has all its mass at v",
    ("Distribution", "Delta"): "infinite unless p has all its mass at v",
    ("Distribution", "Independent"): f"the Independent is of Delta, else {REFUSED}; infinite unless all mass is there",
    ("TransformedDistribution", "TransformedDistribution"): f"equal transforms, or known families, else {REFUSED}",
    ("Joint", "Joint"): f"as many blocks of equal event shapes, with a pair each, else {REFUSED}",
    ("Independent", "Independent"): f"equal event shapes, and a pair of the bases, else {REFUSED}",
    **{pair: f"the Independent is of Normal, else {REFUSED}" for pair in AS if "Independent" in pair},
    **{pair: f"two parts, else {REFUSED}" for pair in AS if "Dirichlet" in pair},
}  # fmt: skip


def condition(p: str, q: str) -> str:
    """Where the formula holds, and what is said elsewhere."""
    return CONDITIONS.get((p, q), NONE)
