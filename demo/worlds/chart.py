# Copyright (C) The nginx-dsa authors

"""Draws points with names as SVG."""

from html import escape


WIDTH, HEIGHT, MARGIN = 480, 260, 50


def scatter(points, x_label, y_label):
    """points are (name, x, y) with y from 0 to 100.  Returns the SVG."""

    most = max(x for _, x, _ in points) * 1.25 or 1

    def place(x, y):
        return (MARGIN + x / most * WIDTH,
                MARGIN + (100 - y) / 100 * HEIGHT)

    lines = []

    for n in range(0, 101, 25):
        x0, y = place(0, n)
        lines.append(f'<path d="M{x0:.0f} {y:.0f}h{WIDTH}" stroke="#ddd"/>'
                     f'<text x="{x0 - 8:.0f}" y="{y + 4:.0f}" '
                     f'text-anchor="end">{n}</text>')

    for n in range(5):
        x, y = place(most * n / 4, 0)
        lines.append(f'<text x="{x:.0f}" y="{y + 18:.0f}" '
                     f'text-anchor="middle">{most * n / 4:.0f}</text>')

    for name, px, py in points:
        x, y = place(px, py)
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" '
                     f'fill="#4a7ab5"/><text x="{x + 7:.1f}" '
                     f'y="{y + 4:.1f}">{escape(name)}</text>')

    x, y = place(most / 2, 0)
    lines.append(f'<text x="{x:.0f}" y="{y + 38:.0f}" text-anchor="middle">'
                 f'{escape(x_label)}</text><text x="{MARGIN}" '
                 f'y="{MARGIN - 16}">{escape(y_label)}</text>')

    return (f'<svg xmlns="http://www.w3.org/2000/svg" '
            f'width="{WIDTH + 2 * MARGIN}" height="{HEIGHT + 2 * MARGIN}" '
            f'font-family="sans-serif" font-size="12">\n'
            f'<rect width="100%" height="100%" fill="#fff"/>\n'
            + '\n'.join(lines) + '\n</svg>\n')
