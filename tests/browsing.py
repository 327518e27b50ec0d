"""What tests in a browser have in common."""

import re

import pytest


def wait_until(page, condition: str, seconds: int = 2) -> None:
    """Playwright's own waiting evaluates strings in the page, which the page forbids."""
    for _ in range(50 * seconds):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    pytest.fail(f"not within {seconds} seconds: {condition}")


def overflow(page) -> int:
    """How far the widest element sticks out of the window."""
    return page.evaluate(
        "Math.max(...[...document.body.querySelectorAll('*')].map("
        "element => element.getBoundingClientRect().right)) - document.documentElement.clientWidth"
    )


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two CSS colours, 1 to 21."""

    def luminance(colour: str) -> float:
        channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)
