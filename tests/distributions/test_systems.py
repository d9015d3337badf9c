"""The table of systems tells the truth about the PyTorch that is installed, and every pair in it is one of ours."""

import pytest

from klnumba.distributions import registered_pairs
from tests.reference import pair_formulas, systems

OURS = {(pair.p.__name__, pair.q.__name__) for pair in registered_pairs()}
LISTED = (
    {(name, name) for name in systems.SAME}
    | set(systems.CROSS)
    | {(p, q) for p, families in systems.TORCH_ONLY.items() for q in families}
)


def test_nothing_is_listed_that_is_not_there():
    assert LISTED <= OURS


@pytest.mark.parametrize("pair", sorted(LISTED))
def test_letters(pair):
    letters = systems.of_pair(*pair)
    assert letters
    assert set(letters) <= systems.NAMES.keys()


def test_pytorch_has_what_the_table_says():
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    from torch.distributions.kl import _KL_REGISTRY

    registered = {(p.__name__, q.__name__) for p, q in _KL_REGISTRY}
    for p, q in sorted(OURS - {(p, q) for p, q in OURS if p == q}):
        assert ("T" in systems.of_pair(p, q)) == ((p, q) in registered), (p, q)
    for p in {p for p, q in OURS if p == q and hasattr(torch.distributions, p)}:
        assert "T" in systems.of_pair(p, p) or (p, p) not in registered, p


FINITE = sorted((x.p.__name__, x.q.__name__) for x in registered_pairs() if x.function.__name__ != "infinite")


@pytest.mark.parametrize("pair", FINITE)
def test_every_pair_has_a_formula_and_a_condition(pair):
    assert pair_formulas.formula(*pair)
    assert pair_formulas.condition(*pair)


def test_no_formula_or_condition_is_of_a_pair_that_is_not_there():
    same = {p for p, q in FINITE if p == q}
    assert set(pair_formulas.SAME) == same
    assert set(pair_formulas.AS) <= set(FINITE)
    assert set(pair_formulas.CONDITIONS) - set(FINITE) <= {pair for pair in OURS if pair[0] == "Delta"}
    assert set(pair_formulas.CROSS) <= {q for _, q in FINITE}


def test_what_other_systems_have_besides():
    assert systems.not_here().count("\n") == len(systems.NOT_HERE) + 2
    assert all(set(x.systems) <= systems.NAMES.keys() and x.why for x in systems.NOT_HERE)
