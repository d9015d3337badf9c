"""The metrics: torchmetrics' cases, ours, and updates that fail."""

import collections
import copy
import pickle
import threading
import time
import warnings

import numpy as np
import pytest

import klnumba as kl
from klnumba.metrics import Decayed, GroupValues, Windowed
from tests.metrics.states import assert_same

METRICS = {
    kl.KLDivergence: kl.kl_divergence,
    kl.JensenShannonDivergence: kl.js_divergence,
    kl.CrossEntropy: kl.cross_entropy,
}
EARLY = "was called before the ``update`` method"
WEIGHTLESS = "was called while no row has weight"


def batches(rows=600, cells=5, seed=0, size=130):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(cells), (2, rows))
    return p, q, [slice(k, k + size) for k in range(0, rows, size)]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", None])
@pytest.mark.parametrize("kind", ["prob", "log_prob", "logit"])
@pytest.mark.parametrize(("metric", "function"), METRICS.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_value_over_batches_is_that_of_all_rows(metric, function, kind, reduction):
    p, q, parts = batches()
    p, q = (p, q) if kind == "prob" else (np.log(p), np.log(q))
    made = metric(reduction=reduction, kind=kind, base=2)
    for part in parts:
        value = made(p[part], q[part])
        rows = function(p[part], q[part], kind=kind, base=2)
        np.testing.assert_allclose(value, {"mean": rows.mean(), "sum": rows.sum()}.get(reduction, rows), rtol=1e-15)
    rows = function(p, q, kind=kind, base=2)
    want = {"mean": rows.mean(), "sum": rows.sum()}.get(reduction, rows)
    np.testing.assert_allclose(made.compute(), want, rtol=4e-16 * rows.size)
    assert made.rows == len(p)


@pytest.mark.parametrize("split", [1, 7, 600])
def test_bits_do_not_depend_on_batches(split):
    p, q, _ = batches()
    whole, parts = kl.KLDivergence(), kl.KLDivergence()
    whole.update(p, q)
    for k in range(0, len(p), split):
        parts.update(p[k : k + split], q[k : k + split])
    assert_same(whole.state_dict(), parts.state_dict())
    assert float(whole.compute()) == float(parts.compute())


def test_options_reach_the_rows():
    p, q, _ = batches()
    logits = kl.KLDivergence(kind="logit", temperature=2.0)
    logits.update(p, q)
    assert logits.compute() == pytest.approx(kl.kl_divergence(p, q, kind="logit", temperature=2.0).mean(), rel=1e-14)
    plain = kl.KLDivergence(normalize=False)
    plain.update(2 * p, q)
    assert plain.compute() == pytest.approx(kl.kl_divergence(2 * p, q, normalize=False).mean(), rel=1e-14)
    unequal = kl.JensenShannonDivergence(weight=0.25)
    unequal.update(p, q)
    assert unequal.compute() == pytest.approx(kl.js_divergence(p, q, weight=0.25).mean(), rel=1e-14)


def test_cells_left_out():
    p, q, _ = batches()
    where = np.array([True, True, False, True, True])
    made = kl.KLDivergence()
    made.update(p, q, where=where)
    assert made.compute() == pytest.approx(kl.kl_divergence(p, q, where=where).mean(), rel=1e-14)


@pytest.mark.parametrize("axis", [0, 1, (0, 2)])
def test_other_axes(axis):
    p, q = np.random.default_rng(2).exponential(size=(2, 3, 4, 5))
    made = kl.KLDivergence(reduction="none", axis=axis)
    made.update(p, q)
    np.testing.assert_array_equal(made.compute(), kl.kl_divergence(p, q, axis=axis).reshape(-1))


def test_weights():
    p, q, parts = batches()
    weights = np.random.default_rng(3).integers(0, 4, len(p))
    made, repeated = kl.KLDivergence(), kl.KLDivergence()
    for part in parts:
        made.update(p[part], q[part], weights=weights[part])
    repeated.update(np.repeat(p, weights, axis=0), np.repeat(q, weights, axis=0))
    assert made.compute() == repeated.compute()


def test_agreement():
    p, q, parts = batches()
    made = kl.KLDivergence(agreement=True)
    for part in parts:
        made.update(p[part], q[part], groups=np.arange(600)[part] % 2)
    same = p.argmax(1) == q.argmax(1)
    assert made.summary().agreement == same.mean()
    assert made.summaries()[1].agreement == same[1::2].mean()


def test_groups():
    p, q, parts = batches()
    names = np.array(["b", "a", "c"])[np.random.default_rng(4).integers(0, 3, len(p))]
    made = kl.KLDivergence()
    for part in parts:
        one = made(p[part], q[part], groups=names[part])
        assert isinstance(one, GroupValues)
    found = made.compute()
    assert found.labels == ["a", "b", "c"] == made.labels
    for label, value in zip(*found, strict=True):
        alone = kl.KLDivergence()
        alone.update(p[names == label], q[names == label])
        assert value == alone.compute()
        assert repr(made.summaries()[label]) == repr(alone.summary())


def test_groups_of_every_kind():
    p, q, _ = batches(rows=4)
    for names, labels in [
        ([3, -1, 3, 2**40], [-1, 3, 2**40]), (np.array([1, 2, 2, 1], np.uint8), [1, 2]),
        ([True, False] * 2, [False, True]),
        (np.array(["x", "y", "x", "x"], object), ["x", "y"]), (np.array([2**63] * 4, np.uint64), [2**63]),
        (np.array([2, 1, 1, 2], object), [1, 2]), ([2**63, 1, 1, 1], [1, 2**63]), (range(4), [0, 1, 2, 3]),
        (np.array(["x", "long enough to lie elsewhere", "x", "x"], "T"), ["long enough to lie elsewhere", "x"]),
    ]:  # fmt: skip
        made = kl.KLDivergence()
        made.update(p, q, groups=names)
        made.update(p, q, groups=names)
        assert made.labels == labels
        assert made.rows == 8


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ({"log_prob": 1}, TypeError, "Expected argument `log_prob` to be bool but got 1"),
    ({"reduction": "foo"}, ValueError, r"Expected argument `reduction` to be one of \['mean', 'sum', 'none', None\]"),
    ({"kind": "odds"}, ValueError, "kind: one of"), ({"base": 1}, ValueError, "base: "),
    ({"log_prob": True, "kind": "logit"}, ValueError, "contradicts log_prob"),
    ({"temperature": 2.0}, ValueError, "temperature: only logits"), ({"invalid": "x"}, ValueError, "invalid: one of"),
    ({"quantile_error": 0.9}, ValueError, "quantile_error: from"),
    ({"quantile_error": "a"}, TypeError, "quantile_error"),
    ({"thresholds": [np.nan]}, ValueError, "thresholds: NaN"),
    ({"thresholds": "1"}, TypeError, "thresholds: a sequence"),
    ({"spill": "x.npy"}, ValueError, "spill: rows are kept with reduction 'none' only"),
    ({"threads": 0}, ValueError, "threads: a positive integer"),
    ({"axis": "rows"}, TypeError, "axis: an integer or a tuple of integers, not 'rows'"),
    ({"axis": (0, 1.5)}, TypeError, "axis: an integer or a tuple of integers, not"),
])  # fmt: skip
def test_wrong_options(arguments, error, text):
    with pytest.raises(error, match=text):
        kl.KLDivergence(**arguments)


def test_wrong_weight_of_p():
    with pytest.raises(ValueError, match="weight: a number from 0 to 1"):
        kl.JensenShannonDivergence(weight=2)


ROWS = np.full((3, 2), 0.5)
FAILING = [
    ((ROWS, ROWS[:2]), {}, RuntimeError, "expected to have the same shape, but got .3, 2. and .2, 2."),
    ((ROWS[0], ROWS[0]), {}, ValueError, "Expected both p and q distribution to be 2D but got 1 and 1 respectively"),
    ((ROWS.astype(complex), ROWS), {}, TypeError, "p: dtype complex128"),
    ((ROWS, [["a", "b"]] * 3), {}, TypeError, "q: dtype"),
    ((-ROWS, ROWS), {}, ValueError, "p: row 0, cell 0 is negative"),
    ((ROWS, ROWS), {"weights": [1, -1, 1]}, ValueError, "weights: row 1 weighs -1.0"),
    ((ROWS, ROWS), {"weights": [1, np.nan, 1]}, ValueError, "weights: row 1 weighs nan"),
    ((ROWS, ROWS), {"weights": [1, 1e-30, 1]}, ValueError, r"a weight is 0 or from 2\*\*-32"),
    (
        (ROWS, ROWS),
        {"weights": [1, 2]},
        ValueError,
        "weights: one a row, of shape .3,., or one for all",
    ),
    ((ROWS, ROWS), {"weights": ["a", "b", "c"]}, TypeError, "weights: dtype <U1 is not a real number"),
    ((ROWS, ROWS), {"groups": [1, 2]}, ValueError, "groups: one label a row"),
    ((ROWS, ROWS), {"groups": [1.5, 2.0, 1.0]}, TypeError, "groups: integers, booleans or text"),
    ((ROWS, ROWS), {"groups": None}, ValueError, "groups: missing; the rows so far have labels"),
    ((ROWS, ROWS), {"where": [1, 0]}, TypeError, "where: a boolean array"),
]


@pytest.mark.parametrize(("arrays", "options", "error", "text"), FAILING)
def test_an_update_that_fails_changes_nothing(arrays, options, error, text):
    made = kl.KLDivergence(invalid="raise", agreement=True)
    made.update(ROWS, ROWS[:, ::-1], groups=["a", "b", "a"])
    before = made.state_dict()
    with pytest.raises(error, match=text):
        made.update(*arrays, **{"groups": ["a", "b", "c"], **options})
    assert_same(made.state_dict(), before)
    assert made.labels == ["a", "b"]


def test_no_labels_after_rows_without():
    made = kl.KLDivergence()
    made.update(ROWS, ROWS)
    with pytest.raises(ValueError, match="groups: the rows so far have no labels"):
        made.update(ROWS, ROWS, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="groups: with reduction 'none'"):
        kl.KLDivergence(reduction="none").update(ROWS, ROWS, groups=[1, 2, 3])


@pytest.mark.parametrize(("reduction", "value"), [("mean", np.nan), ("sum", 0.0), ("none", np.empty(0))])
def test_before_the_first_update(reduction, value):
    with pytest.warns(UserWarning, match=EARLY) as told:
        np.testing.assert_array_equal(kl.KLDivergence(reduction=reduction).compute(), value)
    assert [warning.filename for warning in told] == [__file__]


@pytest.mark.parametrize("metric", [kl.KLDivergence, kl.JensenShannonDivergence, kl.CrossEntropy])
@pytest.mark.parametrize(
    ("reduction", "groups"), [("mean", None), ("sum", None), ("none", None), ("mean", ["a", "b", "b"])]
)
def test_updates_without_a_row_that_has_weight(metric, reduction, groups):
    weightless, empty = metric(reduction=reduction), metric(reduction=reduction)
    weightless.update(ROWS, ROWS, weights=0, groups=groups)
    empty.update(np.empty((0, 2)), np.empty((0, 2)), groups=groups and [])
    window = Windowed(metric(reduction=reduction), 2)
    window.update(ROWS, ROWS, weights=0, groups=groups)
    merged, loaded = metric(reduction=reduction), metric(reduction=reduction)
    merged.merge(weightless)
    loaded.load_state_dict(weightless.state_dict())
    copies = weightless.clone(), pickle.loads(pickle.dumps(weightless)), sum([weightless, empty]), merged, loaded
    for made in (weightless, empty, window, *copies):
        with pytest.warns(UserWarning, match=WEIGHTLESS):
            made.compute()
    weightless.reset()
    new = metric(reduction=reduction)
    for made in (weightless, new, new.clone(), pickle.loads(pickle.dumps(new)), new + new):
        with pytest.warns(UserWarning, match=EARLY):
            made.compute()


def test_no_warning_where_some_group_has_weight():
    made = kl.KLDivergence()
    made.update(ROWS, ROWS, weights=[0, 1, 0], groups=["a", "b", "c"])
    with warnings.catch_warnings(action="error"):
        found = made.compute()
    assert (found.labels, found.values.tolist()) == (["b"], [0.0])


def test_a_failed_update_is_none():
    made = kl.KLDivergence()
    with pytest.raises(ValueError, match="weights: row 1 weighs"):
        made.update(ROWS, ROWS, weights=[1, -1, 1])
    with pytest.warns(UserWarning, match=EARLY):
        made.compute()


def test_reset():
    for reduction in ("mean", "none"):
        made, new = kl.KLDivergence(reduction=reduction), kl.KLDivergence(reduction=reduction)
        made.update(ROWS, ROWS)
        made.reset()
        assert_same(made.state_dict(), new.state_dict())


def test_threads_take_turns():
    p, q, _ = batches(rows=4000)
    made, whole = kl.KLDivergence(), kl.KLDivergence()
    whole.update(p, q)

    def work(first):
        for k in range(first, 4000, 800):
            made.update(p[k : k + 100], q[k : k + 100])
            made.summary()

    workers = [threading.Thread(target=work, args=(100 * k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert_same(made.state_dict(), whole.state_dict())


def test_read_only_and_broadcast_rows():
    p, q = np.broadcast_to([0.2, 0.8], (5, 2)), np.broadcast_to(np.float32(0.5), (5, 2))
    made = kl.KLDivergence()
    made.update(p, q)
    assert made.compute() == kl.kl_divergence([0.2, 0.8], [0.5, 0.5])


def test_no_rows():
    made = kl.KLDivergence(reduction="sum")
    made.update(np.ones((0, 3)), np.ones((0, 3)), groups=[])
    assert made.rows == 0
    assert made.labels is None
    made.update(ROWS, ROWS)
    assert made.rows == 3


class TestWindows:
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    def test_a_window_is_a_metric_of_its_batches(self, reduction):
        p, q, parts = batches()
        window, last = Windowed(kl.KLDivergence(reduction=reduction), 2), kl.KLDivergence(reduction=reduction)
        for part in parts:
            window.update(p[part], q[part])
        for part in parts[-2:]:
            last.update(p[part], q[part])
        np.testing.assert_array_equal(window.compute(), last.compute())
        assert_same(window.metric().state_dict(), last.state_dict())
        assert repr(window) == f"<Windowed: 2 of 2 batches: {last!r}>"
        window.reset()
        with pytest.warns(UserWarning, match=EARLY):
            window.compute()

    def test_a_failed_batch_leaves_the_window(self):
        window = Windowed(kl.KLDivergence(), 1)
        window.update(ROWS, [[0.25, 0.75]] * 3)
        before = window.compute()
        with pytest.raises(RuntimeError):
            window.update(ROWS, ROWS[:1])
        assert window.compute() == before

    def test_decay(self):
        p, q, parts = batches()
        fading = Decayed(kl.KLDivergence(), half_life=2)
        rows, weights = [], []
        for age, part in zip(range(len(parts) - 1, -1, -1), parts, strict=True):
            fading.update(p[part], q[part])
            rows.append(kl.kl_divergence(p[part], q[part]))
            weights.append(np.full(rows[-1].size, 0.5 ** (age / 2)))
        rows, weights = np.concatenate(rows), np.concatenate(weights)
        mean = np.average(rows, weights=weights)
        assert fading.compute() == pytest.approx(mean, rel=1e-12)
        assert fading.std == pytest.approx(np.sqrt(np.average((rows - mean) ** 2, weights=weights)), rel=1e-12)
        assert fading.weight == pytest.approx(weights.sum(), rel=1e-12)

    def test_threads_take_turns(self):
        """No update is lost, nor half of one."""
        p, q, parts = batches()
        whole = kl.KLDivergence()
        fading, window = Decayed(kl.KLDivergence(), half_life=1e9), Windowed(kl.KLDivergence(), 1000)

        def work():
            for part in parts * 2:
                fading.update(p[part], q[part])
                window.update(p[part], q[part])
                fading.compute(), window.compute()

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for _ in range(4 * 2):
            whole.update(p, q)
        assert_same(window.metric().state_dict(), whole.state_dict())
        assert fading.weight == pytest.approx(whole.rows, rel=1e-6)
        assert fading.compute() == pytest.approx(float(whole.compute()), rel=1e-6)

    def test_they_can_be_copied(self):
        p, q, parts = batches()
        for made in (Decayed(kl.KLDivergence(), half_life=2), Windowed(kl.KLDivergence(), 2)):
            made.update(p[parts[0]], q[parts[0]])
            for twin in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
                assert twin.compute() == made.compute()
                twin.update(p[parts[1]], q[parts[1]])
                assert twin.compute() != made.compute()

    def test_decay_does_not_drop_rows_that_are_not_finite(self):
        fading = Decayed(kl.KLDivergence(), half_life=1)
        fading.update([[0.5, 0.5]], [[1.0, 0.0]])
        fading.update([[0.5, 0.5]], [[0.5, 0.5]])
        assert fading.compute() == np.inf
        assert (fading.mean, fading.not_finite) == (0.0, 1)

    @pytest.mark.parametrize(("call", "error", "text"), [
        (lambda: Windowed(kl.KLDivergence(), 0), ValueError, "size: a positive integer"),
        (lambda: Windowed(kl.KLDivergence(), 2**70), ValueError, "size: a positive integer"),
        (lambda: Windowed(kl.kl_divergence, 1), TypeError, "metric: a metric of rows"),
        (lambda: Decayed(kl.KLDivergence(), 0), ValueError, "half_life: a positive number"),
        (lambda: Decayed(kl.KLDivergence(reduction="sum"), 1), ValueError, "metric: its reduction must be 'mean'"),
    ])  # fmt: skip
    def test_wrong_arguments(self, call, error, text):
        with pytest.raises(error, match=text):
            call()

    def test_two_threads_cannot_bring_together_what_does_not_go_together(self):
        """Both look at the window before either has put its batch there."""

        class Slow(collections.deque):
            def __len__(self):
                length = super().__len__()
                time.sleep(0.1)
                return length

        window, refused = Windowed(kl.KLDivergence(), 3), []
        window._batches = Slow(maxlen=3)

        def work(groups):
            try:
                window.update(ROWS, ROWS, groups=groups)
            except ValueError as error:
                refused.append(str(error))

        workers = [threading.Thread(target=work, args=(groups,)) for groups in (None, [1, 2, 3])]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(refused) == 1
        assert window.metric().rows == 3


class TestKeptWindows:
    @staticmethod
    def made(count=3, **options):
        p, q, parts = batches()
        window = Windowed(kl.JensenShannonDivergence(weight=0.25, **options), 2)
        for part in parts[:count]:
            window.update(p[part], q[part], groups=np.arange(len(p[part])) % 3 if "thresholds" in options else None)
        return window

    @pytest.mark.parametrize("count", [0, 1, 3])
    @pytest.mark.parametrize("options", [{}, {"reduction": "none"}, {"thresholds": (0.1,), "agreement": True}], ids=str)
    def test_come_back(self, count, options, tmp_path):
        window = self.made(count, **options)
        window.save(tmp_path / "window.npz")
        other = Windowed(kl.JensenShannonDivergence(weight=0.25, **options), 2)
        other.load_state_dict(window.state_dict())
        for twin in (Windowed.load(tmp_path / "window.npz"), Windowed.from_state_dict(window.state_dict()), other):
            assert_same(twin.state_dict(), window.state_dict())
            assert repr(twin) == repr(window)

    def test_a_window_goes_on_where_it_was(self, tmp_path):
        window = self.made()
        window.save(tmp_path / "window.npz")
        twin = Windowed.load(tmp_path / "window.npz")
        p, q, parts = batches()
        for one in (window, twin):
            one.update(p[parts[0]], q[parts[0]])
        assert_same(twin.metric().state_dict(), window.metric().state_dict())

    @pytest.mark.parametrize(("window", "text"), [
        (lambda: Windowed(kl.JensenShannonDivergence(weight=0.25), 3), "size is 2 there and 3 here"),
        (lambda: Windowed(kl.JensenShannonDivergence(), 2), "weight is 0.25 there and 0.5 here"),
        (lambda: Windowed(kl.KLDivergence(), 2), "of the divergence 'js', not 'kl'"),
    ])  # fmt: skip
    def test_others_are_refused(self, window, text):
        other = window()
        other.update(ROWS, ROWS)
        before = other.state_dict()
        with pytest.raises(ValueError, match=text):
            other.load_state_dict(self.made().state_dict())
        assert_same(other.state_dict(), before)

    @pytest.mark.parametrize("name", ["size", "metric", "metric_class", "batches"])
    def test_damaged_states_are_refused(self, name):
        state = self.made().state_dict()
        del state[name]
        with pytest.raises(ValueError, match=f"state: no '{name}'"):
            Windowed.from_state_dict(state)

    @pytest.mark.parametrize("count", [0, 3])
    def test_what_fades_comes_back(self, count, tmp_path):
        p, q, parts = batches()
        made = Decayed(kl.KLDivergence(base=2), half_life=1.5)
        for part in parts[:count]:
            made.update(p[part], q[part])
        made.save(tmp_path / "fading.npz")
        for twin in (Decayed.load(tmp_path / "fading.npz"), Decayed.from_state_dict(made.state_dict())):
            assert repr(twin.state_dict()) == repr(made.state_dict())
            for one in (made, twin):
                one.update(p[parts[4]], q[parts[4]])
            assert (twin.compute(), twin.std, twin.weight) == (made.compute(), made.std, made.weight)
            made.load_state_dict(Decayed.load(tmp_path / "fading.npz").state_dict())

    def test_others_that_fade_are_refused(self):
        made = Decayed(kl.KLDivergence(), half_life=2)
        made.update(ROWS, ROWS[:, ::-1])
        before = made.state_dict()
        for other, text in (
            (Decayed(kl.KLDivergence(), 3), "half_life is 3.0 there and 2.0 here"),
            (Decayed(kl.KLDivergence(base=2), 2), "base is 2.0 there and None here"),
            (Decayed(kl.CrossEntropy(), 2), "of the divergence 'cross_entropy'"),
        ):
            with pytest.raises(ValueError, match=text):
                made.load_state_dict(other.state_dict())
        with pytest.raises(TypeError, match="state: limit: a real number, not 'none'"):
            made.load_state_dict(before | {"weight": 7.0, "limit": "none"})
        assert repr(made.state_dict()) == repr(before)

    def test_a_metric_of_ones_own(self):
        class Mine(kl.KLDivergence):
            pass

        state = Windowed(Mine(), 2).state_dict()
        with pytest.raises(ValueError, match="state: of a metric 'Mine', which is none of KLDivergence"):
            Windowed.from_state_dict(state)
        Windowed(Mine(), 2).load_state_dict(state)


class TestPlot:
    def test_values_below_zero_only(self):
        """Nothing stands for mean and median, nor in a legend."""
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: nothing to draw with").use("agg")
        made = kl.KLDivergence()
        made.update_values([-2.0, -3.0, 1.0])
        assert made.plot().get_legend() is None

    def test_axes_in_axes_out(self):
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: nothing to draw with").use("agg")
        p, q, _ = batches()
        made = kl.KLDivergence()
        made.update(p, q)
        made.update([[1.0, 0, 0, 0, 0]], [[0.0, 1, 0, 0, 0]])
        axes = made.plot()
        assert made.plot(ax=axes) is axes
        assert axes.get_title() == "601 rows (1 inf not drawn)"
        drawn = sum(bar.get_height() for bar in axes.patches) / 2
        assert drawn == pytest.approx(600 / 601)

    def test_nothing_to_draw(self):
        with pytest.raises(ValueError, match="no row so far"):
            kl.KLDivergence().plot()
        with pytest.raises(ValueError, match="quantile_error: None"):
            kl.KLDivergence(quantile_error=None).plot()


def test_warnings_only_when_due():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = kl.KLDivergence()
        made.update(ROWS, ROWS)
        assert made.compute() == 0.0


@pytest.mark.parametrize(("reduction", "groups"), [("mean", None), ("mean", np.arange(600) % 3), ("none", None)])
def test_one_weight_for_all_rows(reduction, groups):
    p, q, _ = batches()
    one, each = kl.KLDivergence(reduction=reduction), kl.KLDivergence(reduction=reduction)
    one.update(p, q, weights=2.0, groups=groups)
    each.update(p, q, weights=np.full(600, 2.0), groups=groups)
    assert_same(one.state_dict(), each.state_dict())


# --- tables -----------------------------------------------------------------------------------------------------------


def test_rows_and_cells_of_tables_are_matched_by_label():
    pd = pytest.importorskip("pandas")
    p, q, _ = batches(rows=40)
    first = pd.DataFrame(p, columns=list("abcde"))
    second = (
        pd.DataFrame(q, columns=list("abcde")).sample(frac=1.0, axis=1, random_state=1).sample(frac=1.0, random_state=2)
    )
    labels = np.arange(40) % 3
    for options in ({"reduction": "none"}, {"agreement": True}, {"reduction": "sum", "base": 2}):
        tables, arrays = kl.KLDivergence(**options), kl.KLDivergence(**options)
        groups = None if options.get("reduction") == "none" else labels
        tables.update(first, second, groups=groups)
        arrays.update(p, q, groups=groups)
        assert_same(tables.state_dict(), arrays.state_dict())
        tables.update(p, pd.DataFrame(q, index=range(7, 47)), groups=groups)  # beside an array, by place
        arrays.update(p, q, groups=groups)
        assert_same(tables.state_dict(), arrays.state_dict())
    found = kl.KLDivergence(reduction="none")
    found.update(first, second)
    assert type(found.compute()) is np.ndarray


def test_a_mask_makes_no_rows():
    p, q, _ = batches(rows=4)
    metric = kl.KLDivergence()
    with pytest.raises(ValueError, match=r"where: shape .3, 4, 5. is more than the rows have, which is .4, 5."):
        metric.update(p, q, where=np.ones((3, 4, 5), bool))
    assert metric.rows == 0


def test_tables_with_different_labels_are_refused():
    pd = pytest.importorskip("pandas")
    p, q, _ = batches(rows=4)
    metric = kl.KLDivergence()
    metric.update(pd.DataFrame(p), pd.DataFrame(q))
    before = metric.state_dict()
    with pytest.raises(ValueError, match="q lacks cell 0; p lacks cell 9"):
        metric.update(pd.DataFrame(p), pd.DataFrame(q).rename(columns={0: 9}))
    with pytest.raises(ValueError, match="q lacks row 2; p lacks row 7"):
        metric.update(pd.DataFrame(p), pd.DataFrame(q, index=[0, 1, 7, 3]))
    with pytest.raises(ValueError, match="where: with labels"):
        metric.update(pd.DataFrame(p), pd.DataFrame(q)[[1, 0, 2, 3, 4]], where=np.ones((4, 5), bool))
    for name in ("weights", "groups"):
        column = pd.Series([1, 2, 3, 4], index=[0, 2, 1, 3])
        with pytest.raises(ValueError, match=f"{name}: with the labels of the rows of p"):
            metric.update(pd.DataFrame(p), pd.DataFrame(q), **{name: column})
    assert_same(metric.state_dict(), before)


# --- zeros ------------------------------------------------------------------------------------------------------------


def test_no_zero_has_a_sign(tmp_path):
    """In a unit below one nat divided by a negative number, equal rows are -0.0 apart."""
    p = np.full((3, 4), 0.25)
    assert np.signbit(kl.kl_divergence(p, p, base=0.5)).all()
    kept = kl.KLDivergence(reduction="none", base=0.5)
    spilt = kl.KLDivergence(reduction="none", base=0.5, spill=tmp_path / "rows.npy")
    for metric in (kept, spilt):
        assert not np.signbit(metric(p, p)).any()
        metric.update_values([-0.0, 0.0])
        assert not np.signbit(metric.compute()).any()
    mean = kl.KLDivergence(base=0.5)
    assert not np.signbit(mean(p, p))
    for order in ([-0.0, 0.0], [0.0, -0.0]):
        one = kl.KLDivergence(base=0.5)
        one.update(p, p)
        one.update_values(order)
        found = one.summary()
        assert not np.signbit([found.min, found.max, found.mean, one.quantile(0.0), one.quantile(1.0)]).any()
