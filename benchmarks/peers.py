"""What other packages offer for the same arrays; a package that is not installed is left out of the table."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from benchmarks.arrays import Flags, Floats


def installed(package: str) -> str | None:
    """The version of a package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def roc_points(confidence: Floats, right: Flags) -> object:
    """scikit-learn's ROC curve with every cutoff kept."""
    from sklearn.metrics import roc_curve

    return roc_curve(right, confidence, drop_intermediate=False)


def auroc(confidence: Floats, right: Flags) -> float:
    """scikit-learn's area under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(right, confidence))


def area_of_accuracy(confidence: Floats, right: Flags) -> float:
    """MAPIE's area under accuracy over rejection: one less this is the AURC under the convention `mean`."""
    from mapie.metrics.uncertainty import auarc

    return float(auarc(right, confidence))


def promised_threshold(confidence: Floats, right: Flags, most: float, delta: float) -> float:
    """The lowest cutoff that MAPIE's fixed-sequence testing passes on exact binomial p-values; NaN for none."""
    import numpy as np
    from mapie.risk_control import control_fwer
    from scipy.stats import binom

    cutoffs = np.unique(confidence)[::-1]
    errors = np.array([np.count_nonzero((confidence >= cutoff) & ~right) for cutoff in cutoffs])
    passed = control_fwer(binom.cdf(errors, right.size, most), delta, "fixed_sequence")
    return float(cutoffs[passed[-1]]) if len(passed) else float("nan")


def interval_of_auroc(confidence: Floats, right: Flags, replicates: int) -> object:
    """SciPy's bootstrap of scikit-learn's AUROC: a resampled and re-sorted table for every replicate."""
    from scipy.stats import bootstrap
    from sklearn.metrics import roc_auc_score

    def area(scores: Floats, verdicts: Flags) -> float:
        return float(roc_auc_score(verdicts, scores))

    return bootstrap(
        (confidence, right), area, n_resamples=replicates, paired=True, vectorized=False, method="percentile", rng=0
    )
