# Copyright (C) The nginx-dsa authors

"""Requests with two or three parts, of which each needs a call; those of
daily_both.py, which are one sentence; those of daily_chain.py and
daily_found.py, of which a part needs another; and questions about several
records (daily_records.py)."""

from tasks import daily_both, daily_chain, daily_found, daily_records
from tasks.daily import box, draw_use, task, turn
from tasks.daily_chain import ended
from tasks.parts import Split
from tasks.phrase import expand


JOIN = Split(t.replace('\\n', '\n') for t in r'''{0} [And|Also|Then|Besides|After that][:|,] {1}
{0} {1}
{0} [I also have another question:|One more thing:|Second:|Next:] {1}
[Two things.|Two questions.|I have two requests.] [First|1]: {0} [Second|2]: {1}
{0}\n{1}
1. {0}\n2. {1}
- {0}\n- {1}
{0} [Oh, and|Oh and by the way,|By the way:|While you're at it:] {1}
[Please do both:|Do this and that:|Both of these, please:]\n* {0}\n* {1}
{0} [When that's done|Once you have that|And when you are finished]: {1}
a) {0}\nb) {1}
{0}\n\n[PS|P.S.|Also]: {1}
{0} [That's the first thing. The other one:|That is one. Two:|Apart from that:] {1}
My list for today:\n- {0}\n- {1}
{0} [Separately|Unrelated|Different topic]: {1}
[Busy day.|So much to do.|I need your help with two things.] {0} {1}
{0} + {1}
First this: {0} Then this: {1}
{0} [And one more, please.|And something else.|Also, if it's no trouble:] {1}
[Start with this|Begin with this]: {0} [Continue|Go on] with this: {1}
{0} And now something else. {1}
{0} thx. [also|and] {1}
I've two questions for you. {0} {1}
{0} / {1}
[Could you do two things for me?|Can you help me with this?] {0} {1}
Task 1: {0}\nTask 2: {1}
{0} [As well|Additionally|On top of that], {1}
[If you have a minute|When you have time]: {0} {1}
{0} [That's all. No wait|Hang on, I forgot something]: {1}'''.splitlines())

THREE = Split(t.replace('\\n', '\n') for t in r'''{0} {1} {2}
1. {0}\n2. {1}\n3. {2}
- {0}\n- {1}\n- {2}
{0} [Then|Also]: {1} [Finally|Last]: {2}
[Three things.|I have three requests.] {0} {1} {2}
First: {0} Second: {1} Third: {2}
{0}\n{1}\n{2}
{0} And: {1} Oh, and {2}
My list:\n* {0}\n* {1}\n* {2}
{0} {1} [And one more thing.|Last but not least:] {2}
a) {0} b) {1} c) {2}
[Please do the following|To do]:\n- {0}\n- {1}\n- {2}'''.splitlines())


# the shares of tasks with several records, and of the others, of those that are
# one sentence

RECORDS = 0.25
ONE = 0.35


def make(rng):
    if rng.random() < RECORDS:
        return daily_records.make(rng)

    if rng.random() < ONE:
        return daily_both.make(rng)

    way = rng.random()

    if way < 0.4:
        return joined(rng)

    return (daily_chain.tell if way < 0.54 else daily_chain.condition
            if way < 0.68 else daily_chain.compare if way < 0.78
            else daily_found.found if way < 0.87 else daily_found.toggle
            if way < 0.9 else daily_found.several)(rng)


def joined(rng):
    """Parts that have nothing to do with each other."""

    uses = [draw_use(rng)]
    first = uses[0]

    # often the same question about something else

    if rng.random() < 0.3 and first.service.topic != 'the database':
        uses.append(first.kind.draw(rng))
    else:
        uses.append(draw_use(rng, (first.service.topic,)))

    if uses[1].given == first.given and uses[1].service is first.service:
        return joined(rng)

    if rng.random() < 0.2:
        uses.append(draw_use(rng, [u.service.topic for u in uses]))

    apis, tools = box(rng, uses, (0, 3))
    user = expand(rng, rng.choice(JOIN if len(uses) == 2 else THREE)).format(
        *(ended(u.user) for u in uses))
    answer = rng.choice((' ', ' ', '\n')).join(ended(u.answer) for u in uses)

    return task(rng, 'daily_many', 'multi',
                [turn(rng, uses, apis, user, answer, rng.random() < 0.6)],
                tools)
