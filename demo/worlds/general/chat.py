# Copyright (C) The nginx-dsa authors

"""A proposer that is any model behind a chat API.

It sends what a candidate must have, and the faults that the loop found, in one
conversation.  The independent check is written in another conversation, which
has the database and the request only.
"""

import json

from worlds.general import box, source
from worlds.general.candidate import Candidate


LEVELS = 5
TRIES = 3       # answers that cannot be read

RULES = f'''You write tasks for assistants that call tools. Answer with one
JSON object and nothing else. Its fields are texts, but for "database":

"database": a JSON object with all data, and names that you made up;
"tools": Python functions whose first parameter is db, the database. Each has a
docstring; the other parameters have annotations (str, int, float or bool).
They raise ValueError for arguments that do not exist;
"task": the request of a user. It says which JSON the result is. An assistant
that has only the tools must be able to solve it;
"solution": Python: one function solve() without parameters, which calls the
tools with positional arguments and computes, and returns the result. It must
not use db;
"verifier": Python: verify(db, answer) returns None if the answer is right, or
else a text with the reason. It must accept every right answer, and must not
fail for any JSON value.

Only these functions may be called, besides the tools: {", ".join(
    source.BUILTINS)}; and these methods: {", ".join(source.METHODS)}. There are
no imports, lambdas, classes, f-strings or try.'''

HARDER = '''Make the task harder: add a limit, or make one stricter. Keep the
database; add tools if they do not suffice. Answer with the whole object.'''

REPAIR = '''There is a fault: {why}
Repair the solution, the verifier or the tools. Answer with the whole
object.'''

AGAIN = '''Your answer could not be read: {why}. Answer with one JSON object and
nothing else.'''

CHECK = f'''You are given a database and a request. Write Python: one function
right(db, answer) that returns True if the answer is right, and else False. It
must not fail for any JSON value. Only these functions may be called:
{", ".join(source.BUILTINS)}. Answer with the source and nothing else.'''


class Failed(Exception):
    """The model wrote no candidate; the text is the reason."""


class Chat:
    """
    chat      takes the messages of a chat request and returns the text of an
              answer
    attempt   (candidate, rng) -> an answer: a bounded policy, or None
    """

    def __init__(self, category, seed, chat, attempt=None, policy='',
                 levels=LEVELS):
        self.category = category
        self.seed = seed
        self.chat = chat
        self.try_once = attempt
        self.policy = policy
        self.levels = levels
        self.messages = [{'role': 'system', 'content': RULES}]
        self.opened = []

    def propose(self, level=1):
        return self.ask(f'The category is: {self.category}. Begin with a '
                        'simple task.', level)

    def harder(self, candidate):
        return self.ask(HARDER, candidate.level + 1)

    def repair(self, candidate, fault):
        return self.ask(REPAIR.format(why=fault.why), candidate.level)

    def ask(self, text, level):
        """Returns the Candidate of an answer.  If it cannot be read, the model
        is asked again."""

        for _ in range(TRIES):
            self.messages.append({'role': 'user', 'content': text})
            answer = self.chat(self.messages)
            self.messages.append({'role': 'assistant', 'content': answer})

            try:
                return self.candidate(read(answer), level)
            except Failed as e:
                why, text = e, AGAIN.format(why=e)

        raise Failed(f'{TRIES} answers in a row: {why}')

    def candidate(self, parts, level):
        c = Candidate(
            category=self.category, seed=self.seed, level=level,
            db=parts['database'], tools=parts['tools'], text=parts['task'],
            solution=parts['solution'], verifier=parts['verifier'],
            policy=self.policy)
        c.check = self.check(c)

        if self.try_once is not None:
            c.attempt = lambda rng: self.try_once(c, rng)

        return c

    def check(self, candidate):
        """Returns answer -> bool by source that the model writes without the
        verifier."""

        text = bare(self.chat([
            {'role': 'system', 'content': CHECK},
            {'role': 'user', 'content': json.dumps(candidate.db) + '\n\n'
             + candidate.text}]))

        for x in self.opened:           # of the candidate before
            x.close()

        opened = self.opened = []

        def check(answer):
            try:
                if not opened:
                    source.functions(text)
                    opened.append(box.Functions(text, candidate.db))
                return opened[0].call('right', {'answer': answer}) is True
            except (source.BadSource, box.Failed) as e:
                raise box.Failed(f'the check: {e}') from None

        return check


def bare(text):
    """Returns a text without the fence around it."""

    lines = text.strip().split('\n')

    if len(lines) > 1 and lines[0].startswith('```') and lines[-1] == '```':
        lines = lines[1:-1]

    return '\n'.join(lines)


def read(text):
    """Returns the object of a model's answer."""

    try:
        parts = json.loads(bare(text))
    except (ValueError, RecursionError) as e:
        raise Failed(f'no JSON: {e}') from None

    texts = ('tools', 'task', 'solution', 'verifier')

    if not isinstance(parts, dict) \
            or not isinstance(parts.get('database'), dict) \
            or not all(isinstance(parts.get(k), str) for k in texts):
        raise Failed('it does not have the fields database (an object), '
                     + ', '.join(texts) + ' (texts)')

    return parts
