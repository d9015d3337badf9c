"""A part of the cases of a test is always the same, has a case of each, and with the others makes the whole."""

from types import SimpleNamespace

from tests.parts import left_out

CASES = [SimpleNamespace(nodeid=f"tests/test_x.py::test_{name}[{k}]") for name in "abc" for k in range(60)]
ALONE = SimpleNamespace(nodeid="tests/test_x.py::test_alone")


def test_one_in_so_many_is_left():
    out = left_out(CASES, 3)
    assert 90 < len(out) < 150
    assert left_out(list(CASES), 3) == out
    assert not left_out(CASES, 1)


def test_tests_of_the_same_cases_are_left_with_the_same():
    out = left_out(CASES, 3)
    first, *others = (
        {case.nodeid.partition("[")[2] for case in out if f"test_{name}[" in case.nodeid} for name in "abc"
    )
    assert all(one == first for one in others)


def test_a_test_is_never_left_out_whole():
    for count in (3, 10**9):
        out = left_out([*CASES, ALONE], count)
        left = [case for case in [*CASES, ALONE] if case not in out]
        assert {case.nodeid.partition("[")[0] for case in left} == {
            case.nodeid.partition("[")[0] for case in [*CASES, ALONE]
        }


def case(**params):
    name = "-".join(map(str, params.values()))
    return SimpleNamespace(nodeid=f"tests/test_x.py::test_pairs[{name}]", callspec=SimpleNamespace(params=params))


def test_every_value_that_stands_in_several_cases_is_left():
    pairs = [case(p=p, q=q) for p in "abcdef" for q in "abcdef"]
    for count in (3, 10**9):
        out = left_out(pairs, count)
        left = [one.callspec.params for one in pairs if one not in out]
        assert {one["p"] for one in left} | {one["q"] for one in left} == set("abcdef")
        assert len(left) < len(pairs)
    alone = [case(p=p) for p in range(60)]  # a value in one case is no reason to take that
    assert len(left_out(alone, 10**9)) == 59


pytest_plugins = ["pytester"]


def test_cases_left_out_run_with_the_slow_tests(pytester):
    pytester.makeconftest("from tests.conftest import pytest_collection_modifyitems")
    pytester.makeini("[pytest]\nmarkers =\n    slow: slow\n    part(count): a part")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.part(3)
        @pytest.mark.parametrize("k", range(60))
        def test_some(k):
            pass

        @pytest.mark.part(10**9)
        @pytest.mark.parametrize(
            ("k", "m"), [pytest.param(0, 1, marks=pytest.mark.slow), (0, 2), (1, 3), (1, 4), (0, 5), (1, 6)]
        )
        def test_each_has_one_that_is_not_slow(k, m):
            pass

        def test_whole():
            pass
    """)
    counts = [
        pytester.inline_run("-m", wanted).countoutcomes()[0] for wanted in ("slow", "not slow", "slow or not slow")
    ]
    assert counts[0] + counts[1] == counts[2] == 67
    assert 12 < counts[1] < 33
    result = pytester.runpytest("-m", "not slow", "-k", "each_has_one", "--collect-only", "-q")
    result.stdout.fnmatch_lines_random(["*is_not_slow[[]0-2]", "*is_not_slow[[]1-3]"])
    result.stdout.no_fnmatch_line("*is_not_slow[[]0-1]")
