# Copyright (C) The nginx-dsa authors

"""A kept candidate as a tasks.task.Task, and families of them."""

import functools
import json
import threading

from tasks.task import CHAT, DISCARD, RETAIN, Step, Task, Tool, Turn, function
from worlds.code import cage
from worlds.form import Family, Refused
from worlds.general import box
from worlds.general.candidate import judge
from worlds.general.loop import ATTEMPTS, Result, settle


SUBMIT = 'submit_result'
RECEIVED = {'received': True}
TRIES = 30      # environments for one seed
RECENT = 16     # candidates that are remembered


def submit(arguments):
    try:
        json.loads(arguments['answer_text'])
    except (ValueError, RecursionError):
        raise ValueError('answer_text must be JSON') from None

    return RECEIVED


class Process:
    """The tools and the verifier of a candidate.  Their process is started
    when it is first needed, and again after it failed or ended.  Threads that
    have the same task take turns."""

    def __init__(self, candidate):
        self.candidate = candidate
        self.opened = None
        self.lock = threading.Lock()

    def run(self, what):
        with self.lock:
            try:
                if self.opened is None or not self.opened.runs():
                    self.close()
                    self.opened = self.candidate.open()

                return what(self.opened)

            except box.Failed as e:
                if not e.refused:
                    self.close()
                raise ValueError(str(e)) from None

            except cage.NoCage as e:
                raise ValueError(str(e)) from None

    def close(self):
        if self.opened is not None:
            self.opened.close()
            self.opened = None


def task_of(kept, family):
    """Returns the Task of a Kept."""

    c = kept.candidate
    process = Process(c)

    def tool(name):
        return lambda arguments: process.run(
            lambda opened: opened.call(name, arguments))

    tools = {d['name']: Tool(d, tool(d['name'])) for d in c.definitions()}
    tools[SUBMIT] = Tool(function(
        SUBMIT, 'Submits the result.', answer_text='string'), submit)

    def check(answer, calls):
        given = [x.arguments.get('answer_text') for x in calls
                 if x.name == SUBMIT and json.loads(x.result) == RECEIVED]

        if not given:
            return 'no result was submitted'

        try:
            return process.run(
                lambda opened: judge(opened, json.loads(given[-1])))
        except ValueError as e:
            return f'the verifier failed: {e}'

    return Task(family=family, kind='plan', modes=(RETAIN, DISCARD, CHAT),
                tools=tools, turns=[Turn(c.text, check, gold(c))])


def gold(candidate):
    """Returns the policy that makes the calls of the solution, and submits its
    answer.  It does not write out the solution's search."""

    def policy(mode):
        def thought(text):
            return '' if mode == CHAT else text

        run = box.steps(candidate.solution, candidate.signatures())
        reply = None

        while True:
            try:
                name, arguments = run.send(reply)
            except StopIteration as e:
                answer = e.value
                break

            result, = yield Step(thought(f'I need {name}.'),
                                 calls=[(name, arguments)])
            failed = isinstance(result, dict) and result.keys() == {'error'}
            reply = ('error', result['error']) if failed \
                else ('result', result)

        yield Step(thought('This keeps all limits.'),
                   calls=[(SUBMIT, {'answer_text': json.dumps(answer)})])
        yield Step(content='I have submitted the result.')

    return policy


@functools.lru_cache(maxsize=RECENT)
def kept_of(name, propose, seed, level):
    """Returns the Kept of a seed, whose candidate several samples of a model
    have; tools and verifier are started anew for each Task."""

    for n in range(TRIES):
        proposer = propose(seed if n == 0 else f'{seed}/{n}')
        kept = settle(proposer, proposer.propose(level), Result(), ATTEMPTS)

        if kept is not None and kept.successes > 0:
            return kept

    raise ValueError(f'{name}: nothing was kept for {seed}')


def family(name, propose, levels):
    """Returns the Family of a category.  propose takes a seed and returns a
    proposer.

    A seed whose candidate is not kept at a level is replaced by SEED/1,
    SEED/2, ... there.  Where programs cannot be isolated, no task can be
    verified: Refused.
    """
    full = 'general_' + name

    def make(seed, level):
        try:
            return task_of(kept_of(full, propose, seed, level), full)
        except cage.NoCage as e:
            raise Refused(f'{full}: {e}') from None

    return Family(full, make, levels, {
        'category': name, 'made_by': 'worlds.general'})
