# Copyright (C) The nginx-dsa authors

"""Requests with two or three parts, of which each needs a call."""

from tasks.daily import box, draw_use, task, turn
from tasks.phrase import expand


JOIN = ('{0} [And|Also|Then|Besides|After that][:|,] {1}', '{0} {1}',
        '{0} [I also have another question:|One more thing:|Second:|Next:] '
        '{1}', '[Two things.|Two questions.|I have two requests.] [First|1]: '
        '{0} [Second|2]: {1}', '{0}\n{1}', '1. {0}\n2. {1}', '- {0}\n- {1}')


def make(rng):
    uses = [draw_use(rng)]
    first = uses[0]

    # often the same question about something else

    if rng.random() < 0.3 and first.service.topic != 'the database':
        uses.append(first.kind.draw(rng))
    else:
        uses.append(draw_use(rng, (first.service.topic,)))

    if uses[1].given == first.given and uses[1].service is first.service:
        return make(rng)

    apis, tools = box(rng, uses, (0, 3))
    user = expand(rng, rng.choice(JOIN)).format(
        *(ended(u.user) for u in uses))
    answer = rng.choice((' ', ' ', '\n')).join(ended(u.answer) for u in uses)

    return task(rng, 'daily_many', 'multi',
                [turn(rng, uses, apis, user, answer, rng.random() < 0.6)],
                tools)


def ended(text):
    return text if text[-1] in '.?!"' or '\n' in text else text + '.'
