# Copyright (C) The nginx-dsa authors

"""A program in the place of a model, to measure what is done with its answers.

It has the gold policy of its task, and makes mistakes: whether a sample is
right is drawn by the seed of the request, from a skill that is drawn for each
task.  Right samples have more reasoning on average.  It evaluates its own
solutions, also with mistakes, and improves some of them.  So it shows what the
clients do, and nothing about a model.
"""

import copy
import json
import random

from tasks.task import CHAT, RETAIN, play
from worlds.answers import programming
from worlds.compute import keep, refine
from worlds.general.mutate import changed
from worlds.general.task import SUBMIT


THINKING = 0.1      # added to the skill in thinking mode
SEES = 0.85         # how often an evaluation is right
IMPROVES = 0.5      # how often a wrong solution becomes right
REFUSED = 0.15      # of the wrong samples

REFUSAL = 'I cannot solve this.'


class Player:
    """
    task    (family, seed, level), for what differs by family
    make    returns the Task, newly made
    """

    def __init__(self, task, make):
        self.name, self.seed, self.level = task
        self.make = make
        self.gold = {}
        made = make()
        self.modes = made.modes
        self.turns = len(made.turns)
        self.submits = SUBMIT in made.tools
        self.skill = random.Random(f'{task}/skill').random() ** 1.5

    def chat(self, request):
        """Returns a completion for a request."""

        messages = request['messages']
        thinks = request['thinking']['type'] == 'enabled'
        first = messages[-1]['content'] or ''
        reasoning = 0

        if first.startswith(keep.REFUSES[:20]):
            message = {'content': 'yes' if REFUSAL in first else 'no'}
        elif first.startswith(refine.VERIFY[:20]):
            message = {'content': self.evaluation(request)}
        else:
            message, reasoning = self.answer(request, thinks)

        size = len(json.dumps(message)) // 4

        return {'choices': [{'message': {'role': 'assistant', **message},
                             'finish_reason': 'tool_calls'
                             if 'tool_calls' in message else 'stop'}],
                'usage': {'prompt_tokens': len(json.dumps(messages)) // 4,
                          'completion_tokens': size + reasoning,
                          'completion_tokens_details':
                          {'reasoning_tokens': reasoning}}}

    def right(self, seed, revisions, thinks):
        """Whether the solution of a sample is right after so many
        revisions."""

        rng = random.Random(f'{self.name}/{self.seed}/{seed}/right')
        right = rng.random() < self.skill + THINKING * thinks

        for _ in range(revisions):
            right = rng.random() < (0.95 if right else IMPROVES)

        return right

    def evaluation(self, request):
        rng = random.Random(f'{request["seed"]}/{request["messages"]}')
        solution = request['messages'][-1]['content']
        right = self.wrong_part(request['seed']) not in solution

        if rng.random() > SEES:
            right = not right

        return 'I went through the conditions.\nScore: ' + (
            '2' if right else str(rng.randint(0, 1)))

    def wrong_part(self, seed):
        """Returns what a wrong solution of a sample has, and a right one has
        not."""

        return f'(sample {seed})'

    def answer(self, request, thinks):
        """Returns (message, tokens of reasoning)."""

        messages, seed = request['messages'], request.get('seed', 0)
        user = [i for i, m in enumerate(messages) if m['role'] == 'user']
        revisions = max(0, len(user) - self.turns)
        right = self.right(seed, revisions, thinks)
        rng = random.Random(f'{self.name}/{self.seed}/{seed}/how')

        if not right and revisions == 0 and rng.random() < REFUSED:
            return {'content': f'{REFUSAL} {self.wrong_part(seed)}'}, 0

        spent = max(1, int(rng.gauss(400 if right else 250, 120))) \
            if thinks else 0

        if right or self.submits:
            message = self.step(messages, user, thinks)
        else:
            message = {}

        if not right:
            self.spoil(message, seed, rng)

        return message, spent

    def step(self, messages, user, thinks):
        """Returns the message of the gold policy, which goes through its
        calls once more for a revision."""

        mode = CHAT if not thinks and CHAT in self.modes else RETAIN

        if mode not in self.gold:
            self.gold[mode] = [m for m in play(self.make(), mode)
                               if m['role'] == 'assistant']

        # a revision is a turn that the task does not have

        begin = user[-1] if len(user) > self.turns else 0
        made = sum(m['role'] == 'assistant' for m in messages[begin:])
        message = copy.deepcopy(self.gold[mode][made])
        message.pop('reasoning_content', None)

        return message

    def spoil(self, message, seed, rng):
        """Makes the result that a message submits, or its answer, wrong."""

        if 'tool_calls' not in message:
            message['content'] = self.wrong_answer(seed, rng)

        for call in message.get('tool_calls', ()):
            if call['function']['name'] == SUBMIT:
                given = json.loads(json.loads(
                    call['function']['arguments'])['answer_text'])
                other = changed(rng, given, ['Nowhere'])
                call['function']['arguments'] = json.dumps(
                    {'answer_text': json.dumps(
                        [other, self.wrong_part(seed)])})

    def wrong_answer(self, seed, rng):
        text = self.other_program(rng) + '\n' \
            if self.name == 'programming' else ''

        return text + self.wrong_part(seed)

    def other_program(self, rng):
        """Returns a program that is wrong: sometimes for the samples, and
        sometimes only for other lists."""

        problem = programming.problem_of(self.seed, self.level)

        if rng.random() < 0.7:
            return f'```python\n{problem.program(problem.steps[1:])}```'

        known = {str(xs): problem.result(xs)
                 for xs in problem.inputs[:programming.SAMPLES]}

        return (f'```python\ndef {problem.name}(xs):\n'
                f'    return {known}.get(str(xs))\n```')
