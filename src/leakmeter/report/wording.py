"""How numbers are written: the same figure reads the same in the verdict, the tables and the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from leakmeter.core.attack import Scalar
from leakmeter.core.result import Result

ABSENT = "–"
NARROW = "\N{NARROW NO-BREAK SPACE}"
_MOST_DIGITS = 6


def number(value: float | None, digits: int = 3) -> str:
    """A plain decimal with a true minus sign."""
    if value is None:
        return ABSENT
    text = f"{value:.{digits}f}"
    if not text.strip("-0."):  # no "−0.000"
        text = text.lstrip("-")
    return text.replace("-", "−")


def bracket(result: Result | None, digits: int = 3) -> str:
    """The interval of a figure, "[0.841, 0.902]"; empty where it has none."""
    if result is None or result.low is None or result.high is None:
        return ""
    return f"[{number(result.low, digits)}, {number(result.high, digits)}]"


def to(low: str, high: str) -> str:
    """A range as it is said: a dash, or "to" where a minus sign would meet the dash."""
    return f"{low} to {high}" if "−" in low + high else f"{low}–{high}"


def cases(result: Result, pivot: float) -> tuple[str, str]:
    """A share of 100 cases and its interval, "87" and "84–90".

    As few digits as possible, but enough that rounding moves no bound onto or across the pivot: an interval that
    excludes chance must not read as if it touched it.
    """
    value, bounds = result.value, [b for b in (result.low, result.high) if b is not None]
    if value is None:
        return ABSENT, ""
    digits = next((d for d in range(_MOST_DIGITS) if _keeps_sides(bounds, pivot, d)), _MOST_DIGITS)
    said = [number(100 * bound, digits) for bound in bounds]
    return number(100 * value, digits), to(*said) if len(said) == 2 else ""


def _keeps_sides(bounds: list[float], pivot: float, digits: int) -> bool:
    rounded = [round(100 * bound, digits) for bound in bounds]
    sides = [(b > pivot, b < pivot) for b in bounds]
    return sides == [(r > 100 * pivot, r < 100 * pivot) for r in rounded] and len(set(rounded)) == len(set(bounds))


def percent(value: float | None, sign: str = f"{NARROW}%") -> str:
    """A rate as a percentage, small ones with more digits: "23 %", "4.1 %", "0.08 %"."""
    if value is None:
        return ABSENT
    digits = 0 if value >= 0.0995 or value == 0 else 1 if value >= 0.00995 else 2
    return f"{100 * value:.{digits}f}{sign}"


def rate(result: Result) -> str:
    """A rate with its interval: "23 % (19–28 %)"."""
    if result.low is None or result.high is None:
        return percent(result.value)
    return f"{percent(result.value)} ({percent(result.low, '')}–{percent(result.high)})"


def one_in(alpha: str) -> str:
    """A nominal false-positive rate as it is said: "1%" → "1 in 100"."""
    return f"1 in {round(100 / float(alpha.rstrip('%'))):,}"


def p_value(value: float | None) -> str:
    """A p-value, never printed as zero."""
    if value is None:
        return ABSENT
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def named(of: Mapping[str, Scalar]) -> str:
    """A slice or a setting as a short text: "pool = wiki, repeats = 8"."""
    return ", ".join(f"{name} = {value}" for name, value in of.items()) or "everything"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
