"""Frontiers as a drawing: SVG, which needs no library."""

from collections.abc import Sequence
from html import escape

from hopscope.lab.budget.frontier import Frontier, FrontierComparison

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 460, 60, 20, 200, 50
COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2",
    "#7f7f7f", "#bcbd22", "#17becf", "#393b79", "#637939", "#8c6d31", "#843c39",
)  # fmt: skip


def draw(found: FrontierComparison, *, unit: str, utility: str) -> str:
    """Utility against cost: dots for settings, lines for hulls; the reference is the thick one."""
    points = [point for each in found.frontiers for point in each.hull]
    costs, worths = [c for c, _ in points], [u for _, u in points]
    scale = _Scale(min(costs), max(costs), min(worths), max(worths))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_axes(scale, unit, utility),
    ]
    for place, each in enumerate(found.frontiers):
        thick = each.policy == found.reference
        parts += _frontier(each, scale, COLOURS[place % len(COLOURS)], place, thick=thick)
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """From values to places in the drawing."""

    def __init__(self, low: float, high: float, bottom: float, top: float) -> None:
        self.low, self.high = low, max(high, low + 1e-9)
        self.bottom, self.top = bottom, max(top, bottom + 1e-9)

    def x(self, cost: float) -> float:
        share = (cost - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, worth: float) -> float:
        share = (worth - self.bottom) / (self.top - self.bottom)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _axes(scale: _Scale, unit: str, utility: str) -> Sequence[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="black"/>']
    for step in range(5):
        cost = scale.low + step * (scale.high - scale.low) / 4
        worth = scale.bottom + step * (scale.top - scale.bottom) / 4
        parts.append(_text(scale.x(cost), bottom + 18, f"{cost:.4g}"))
        parts.append(_text(LEFT - 6, scale.y(worth) + 4, f"{worth:.3f}", "end"))
    middle = (LEFT + right) / 2
    return [
        *parts,
        _text(middle, HEIGHT - 10, f"{unit} per question"),
        _text(LEFT, TOP - 6, utility, "start"),
    ]


def _frontier(
    found: Frontier, scale: _Scale, colour: str, place: int, *, thick: bool
) -> Sequence[str]:
    line = " ".join(f"{scale.x(c):.1f},{scale.y(u):.1f}" for c, u in found.hull)
    dots = [
        f'<circle cx="{scale.x(p.cost):.1f}" cy="{scale.y(p.utility):.1f}" r="2.5" '
        f'fill="{colour}"><title>{escape(p.setting)}</title></circle>'
        for p in found.points
        if scale.low <= p.cost <= scale.high and scale.bottom <= p.utility <= scale.top
    ]
    y = TOP + 14 + 18 * place
    return [
        f'<polyline points="{line}" fill="none" stroke="{colour}" '
        f'stroke-width="{3 if thick else 1.2}"/>',
        *dots,
        f'<text x="{WIDTH - RIGHT + 16}" y="{y}" fill="{colour}">{escape(found.policy)}</text>',
    ]
