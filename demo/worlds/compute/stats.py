# Copyright (C) The nginx-dsa authors

"""Shares over tasks and their differences, with intervals of 95 %."""

import math

from eval.table import wilson


def pass_at(right, n, k):
    """Returns the probability that one of k samples is right that are drawn
    from n without replacement, of which so many are right: what an estimate
    of pass@k without bias is for a task (Chen et al., 2021)."""

    if not 0 <= right <= n or not 0 < k <= n:
        raise ValueError(f'pass@{k} of {n} samples, {right} right')

    return 1 - math.comb(n - right, k) / math.comb(n, k)


def mean(values):
    return sum(values) / len(values)


def interval(values):
    """Returns the bounds for the mean of values between 0 and 1, one for each
    task: Wilson's.  For values that are not 0 or 1 it is wider than needed,
    because their variance is smaller than that of a yes or no."""

    return wilson(sum(values), len(values))


def gain(before, after):
    """Returns (difference, low, high) of the means of two lists over the same
    tasks.

    The bounds are Newcombe's (1998, method 10), from the intervals of both
    means.  They do not use that the tasks are the same, so for results that
    agree in most tasks they are wider than needed.
    """
    p, q = mean(before), mean(after)
    (l1, u1), (l2, u2) = interval(after), interval(before)
    d = q - p

    return (d, d - math.hypot(q - l1, u2 - p), d + math.hypot(u1 - q, p - l2))


def percent(values):
    """Returns a cell: the mean in % with its interval."""

    if not values:
        return ''

    low, high = interval(values)

    return f'{100 * mean(values):.1f} ({100 * low:.1f}-{100 * high:.1f})'


def points(before, after):
    """Returns a cell: the gain in points with its interval."""

    if not before:
        return ''

    return '{:+.1f} ({:+.1f} to {:+.1f})'.format(
        *(100 * x for x in gain(before, after)))
