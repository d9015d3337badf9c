"""The demo: handwritten digits as distributions of ink, classified by their divergence from the class means."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import klnumba as kl
from klnumba.cli.errors import needs

CLASSES = 10
PSEUDO_COUNT = 0.5  # ink added to every cell of a class mean, so that no cell of a mean is zero
REPEATS = 15
SHADES = " ░▒▓█"

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Result:
    """What the demo found."""

    images: Array  # (n, 64) ink counts
    labels: Array  # (n,)
    held_out: Array  # (n,) True where the image is not in any class mean
    divergence: Array  # (n, 10) KL of each image to each class mean, in nats
    seconds: dict[str, list[float]]  # of each repeat
    disagreement: float  # greatest relative difference from SciPy

    @property
    def accuracy(self) -> float:
        """The share of held-out images whose nearest class mean is their own."""
        nearest = self.divergence.argmin(axis=1)
        return float((nearest == self.labels)[self.held_out].mean())

    @property
    def to_own_class(self) -> Array:
        """KL of each image to the mean of its own class."""
        return self.divergence[np.arange(len(self.labels)), self.labels]


def first_half_of_each_class(labels: Array) -> Array:
    """Tell which images train: within each class, in the order of the data set, the first half."""
    train = np.zeros(len(labels), dtype=bool)
    for label in range(CLASSES):
        places = np.flatnonzero(labels == label)
        train[places[: len(places) // 2]] = True
    return train


def class_means(images: Array, labels: Array) -> Array:
    """The ink of all images of a class, cell by cell, plus `PSEUDO_COUNT`; KL divides by the sums itself."""
    sums = [images[labels == label].sum(axis=0) for label in range(CLASSES)]
    return np.stack(sums) + PSEUDO_COUNT


def run() -> Result:
    """Compute every divergence, and time the job here and in SciPy, turn by turn."""
    with needs("demo"):
        from scipy.stats import entropy
        from sklearn.datasets import load_digits
    images, labels = load_digits(return_X_y=True)
    train = first_half_of_each_class(labels)
    means = class_means(images[train], labels[train])

    jobs: dict[str, Callable[[], Array]] = {
        "klnumba.kl_divergence": lambda: kl.kl_divergence(images[:, None, :], means[None, :, :]),
        "scipy.stats.entropy": lambda: entropy(images[:, None, :], means[None, :, :], axis=-1),
    }
    ours, theirs = (np.asarray(job()) for job in jobs.values())
    disagreement = float(np.max(np.abs(ours - theirs) / theirs))
    return Result(images, labels, ~train, ours, _time(jobs), disagreement)


def _time(jobs: dict[str, Callable[[], Array]]) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(REPEATS):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def show(result: Result, console: Console) -> None:
    """Print the tables, the two images and the times."""
    n, cells = result.images.shape
    held = int(result.held_out.sum())
    console.print(
        f"{n:,} images of {cells} cells, each a distribution of ink. A class mean is all ink of the first half of "
        f"its images ({n - held} in all) plus {PSEUDO_COUNT} a cell; the other {held} are held out.\n"
    )
    console.print(_mean_table(result))
    console.print(_row_table(result, 5))
    console.print(f"Nearest class mean under KL: {result.accuracy:.1%} of the {held} held-out images are right.\n")
    console.print(_extremes(result))
    console.print(_time_table(result))


def _mean_table(result: Result) -> Table:
    table = Table(title="Mean KL (nats) of the held-out images of a class to each class mean", title_justify="left")
    table.add_column("image is a", justify="right")
    for label in range(CLASSES):
        table.add_column(str(label), justify="right")
    for label in range(CLASSES):
        row = result.divergence[result.held_out & (result.labels == label)].mean(axis=0)
        table.add_row(str(label), *_cells(row))
    return table


def _row_table(result: Result, count: int) -> Table:
    table = Table(title=f"KL (nats) of the first {count} images to each class mean", title_justify="left")
    table.add_column("image is a", justify="right")
    for label in range(CLASSES):
        table.add_column(str(label), justify="right")
    for label, row in zip(result.labels[:count], result.divergence[:count], strict=True):
        table.add_row(str(label), *_cells(row))
    return table


def _cells(row: Array) -> list[str]:
    """Two digits after the point, the least in bold."""
    least = int(np.argmin(row))
    return [f"[bold green]{value:.2f}[/]" if place == least else f"{value:.2f}" for place, value in enumerate(row)]


def _extremes(result: Result) -> Table:
    own = result.to_own_class
    table = Table(title="KL to the mean of its own class, least and greatest", title_justify="left", show_lines=True)
    places = {"most typical": int(own.argmin()), "least typical": int(own.argmax())}
    for name, place in places.items():
        table.add_column(f"{name}: a {result.labels[place]}, image {place}, KL {own[place]:.3f}")
    table.add_row(*(draw(result.images[place]) for place in places.values()))
    return table


def draw(image: Array) -> str:
    """Draw 64 ink counts from 0 to 16 as eight lines of blocks, two characters a cell."""
    shade = np.rint(image.reshape(8, 8) / 16 * (len(SHADES) - 1)).astype(int)
    return "\n".join("".join(SHADES[level] * 2 for level in line) for line in shade)


def _time_table(result: Result) -> Table:
    n, cells = result.images.shape
    medians = {name: statistics.median(times) for name, times in result.seconds.items()}
    ours = medians["klnumba.kl_divergence"]
    table = Table(
        title=f"Time for {n:,} x {CLASSES} rows of {cells} cells, float64: median of {REPEATS} turns each",
        title_justify="left",
        caption=f"Greatest relative difference between the two results: {result.disagreement:.1e}",
        caption_justify="left",
    )
    for name in ("", "ms", "least", "greatest", "times klnumba's"):
        table.add_column(name, justify="left" if not name else "right")
    for name, times in result.seconds.items():
        spread = (medians[name], min(times), max(times))
        table.add_row(name, *(f"{second * 1e3:.2f}" for second in spread), f"{medians[name] / ours:.1f}")
    return table
