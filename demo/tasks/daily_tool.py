# Copyright (C) The nginx-dsa authors

"""One request, for which one of the tools fits."""

from tasks.daily import box, draw_use, task, turn
from tasks.uses_frame import mailed


def make(rng):
    use = draw_use(rng)
    apis, tools = box(rng, [use])

    return task(rng, 'daily_tool', 'single',
                [turn(rng, [use], apis, mailed(rng, use), use.answer, True)],
                tools)
