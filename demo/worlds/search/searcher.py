# Copyright (C) The nginx-dsa authors

"""A program in the place of a model that answers search questions, to measure
what is done when a context fills up.

It has the steps of the question, but no memory: what it can use is what the
messages of a request have.  It is distractible: a share of its calls looks at
something else, drawn by the seed of the request.
"""

import json
import random
import re

from worlds.search.corpus import Reader


DISTRACTED = 0.5


def count(value):
    """Returns the number of words and signs of a value as JSON."""

    return len(re.findall(r'\w+|[^\w\s]', json.dumps(value)))


class Searcher:
    """
    pages   titles, for what distracts it
    """

    def __init__(self, question, part, pages, distracted=DISTRACTED):
        self.question = question
        self.reader = Reader(part)
        self.pages = pages
        self.distracted = distracted

    def chat(self, request):
        """Returns a completion for a request."""

        messages = request['messages']
        text, call = self.next(messages, random.Random(request['seed']))
        message = {'role': 'assistant', 'content': text}

        if call is not None:
            name, arguments = call
            message['tool_calls'] = [{
                'id': f'call_{len(messages)}', 'type': 'function',
                'function': {'name': name,
                             'arguments': json.dumps(arguments)}}]

        return {'choices': [{'message': message, 'finish_reason': 'stop'}],
                'usage': {'prompt_tokens': count(messages),
                          'completion_tokens': count(message)}}

    def seen(self, messages):
        """Returns {(entity, fact): value} and the titles that the messages
        have."""

        facts, titles = {}, set()

        for m in messages:
            text = m['content']
            if m['role'] == 'tool':
                result = json.loads(text)
                titles |= {r['page'] for r in result.get('results', ())}
                text = result.get('text', '')
            elif m['role'] == 'user':
                text = text.partition('Summary so far: ')[2]
                for x, f, y in re.findall(r'\[(.*?)\|(.*?)\|(.*?)\]', text):
                    facts[x, f] = int(y) if y.isdigit() else y
                continue
            else:
                continue
            for x, f, v in self.reader.facts(text):
                facts.setdefault((x, f), v)

        return facts, titles

    def next(self, messages, rng):
        """Returns (text, call or None)."""

        facts, titles = self.seen(messages)
        x, steps = self.question.start, []

        for f in self.question.chain:
            if (x, f) not in facts:
                break
            steps.append((x, f, facts[x, f]))
            x = facts[x, f]

        if messages[-1]['role'] == 'user' \
                and messages[-1]['content'].startswith('Your context'):
            return ' '.join(f'[{a}|{f}|{b}]' for a, f, b in steps), None

        if len(steps) == len(self.question.chain):
            return f'It is {x}.', None

        if rng.random() < self.distracted:
            x = rng.choice(self.pages)
            return '', rng.choice((('search', {'query': x}),
                                   ('open_page', {'page': x})))

        return '', ('open_page', {'page': x}) if x in titles \
            else ('search', {'query': x})
