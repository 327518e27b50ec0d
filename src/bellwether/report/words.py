"""Numbers as people read them; the page, the terminal and the headline share these."""

import math

from bellwether.experiments.summary import Estimate, Metric, RoundsToTarget

ABSENT = "—"


def value_text(metric: Metric, value: float) -> str:
    """0.9123 as "91.23 %" when it is an accuracy."""
    if not math.isfinite(value):
        return "diverged"
    return f"{100 * value:.2f} %" if metric is Metric.ACCURACY else f"{value:.4g}"


def estimate_text(metric: Metric, estimate: Estimate | None) -> str:
    """Mean ± sample standard deviation."""
    if estimate is None:
        return ABSENT
    if estimate.spread is None or not math.isfinite(estimate.mean):
        return value_text(metric, estimate.mean)
    if metric is Metric.ACCURACY:
        return f"{100 * estimate.mean:.2f} ± {100 * estimate.spread:.2f} %"
    return f"{estimate.mean:.4g} ± {estimate.spread:.2g}"


def goal_text(metric: Metric, target: float) -> str:
    """The target, to follow "rounds to"."""
    return f"{100 * target:g} %" if metric is Metric.ACCURACY else f"{target:g}"


def rounds_text(rounds: RoundsToTarget) -> str:
    """The median, or what is known of it: "> 60" when most seeds never got there."""
    return f"{rounds.bound} {rounds.median:g}".strip()


def difference_text(metric: Metric, value: float) -> str:
    """0.0123 as "+1.23 points" when it is one of accuracies."""
    if metric is Metric.ACCURACY:
        return signed(f"{100 * value:+.2f} points")
    return signed(f"{value:+.4g}")


def interval_text(metric: Metric, low: float, high: float) -> str:
    """From the one difference to the other; points of accuracies without saying so again."""
    ends = (difference_text(metric, end).removesuffix(" points") for end in (low, high))
    return " to ".join(ends)


def signed(text: str) -> str:
    """With a minus sign that is as wide as the plus."""
    return text.replace("-", "\N{MINUS SIGN}")


def ratio_text(ratio: float) -> str:
    """Three digits and a sign of multiplication."""
    return f"{ratio:#.3g}".rstrip(".") + " \N{MULTIPLICATION SIGN}"


def p_text(p: float) -> str:
    """Two digits, and no more than four places."""
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.4f}" if p < 0.001 else f"{p:.3g}" if p < 0.1 else f"{p:.2f}"


def bytes_text(count: float, units: tuple[str, ...] = ("B", "kB", "MB", "GB", "TB")) -> str:
    """Three digits and a decimal unit: 12.3 MB is 12,300,000 bytes."""
    if count >= 999.5 and len(units) > 1:
        return bytes_text(count / 1000, units[1:])
    digits = f"{count:.0f}" if units[0] == "B" else f"{count:#.3g}".rstrip(".")
    return f"{digits} {units[0]}"


def seconds_text(seconds: float) -> str:
    """Three digits where there is a fraction to show."""
    return f"{seconds:#.3g}".rstrip(".") if seconds < 999.5 else f"{seconds:,.0f}"


def listing(items: list[str], comma: str = ", ") -> str:
    """ "A, B and C", and no more than three of them."""
    shown = items if len(items) <= 3 else [*items[:2], f"{len(items) - 2} more"]
    return " and ".join(filter(None, (comma.join(shown[:-1]), shown[-1])))


def span(low: int, high: int) -> str:
    """ "19 to 24", or the one number when they are the same."""
    return f"{low} to {high}" if low < high else f"{low}"
