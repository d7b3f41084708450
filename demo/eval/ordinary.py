# Copyright (C) The nginx-dsa authors

"""Sends the prompts in ordinary wording to a served model, and writes a file
of results.

    PYTHONPATH=demo python3 -m eval.ordinary --mode retain --seed 1 \\
        --out ordinary.retain.1.json
"""

import argparse
import copy
import json
import os
import sys
import time
import uuid
from dataclasses import asdict, dataclass, field
from typing import Dict, List

from eval.client import Client, RunFailed
from eval.converse import Outcome, Unanswered, have_turn
from eval.expect import (FALSE, RIGHT, WRONG, accepts_arguments,
                         false_statement, shortfall, texts_of)
from eval.run import add_options, in_parallel, log, model_of
from eval.statements import plain
from tasks.task import Task, Tool


HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'prompts')

CATEGORIES = ('single', 'several', 'none', 'results', 'sums', 'reading',
              'parts', 'system', 'talk', 'unknowable', 'corrections',
              'formats')


@dataclass
class Prompt:
    """
    calls   the expected calls: name, arguments (what is accepted), result
    answer  what is expected of the answer
    right   an answer, or {"calls": [[NAME, ARGUMENTS]...], "answer": ...}
    wrong, false   such examples with this verdict; an answer follows the
            calls of right
    """
    id: str
    messages: List[dict]
    answer: dict
    right: object
    tools: List[str] = field(default_factory=list)
    calls: List[dict] = field(default_factory=list)
    wrong: list = field(default_factory=list)
    false: list = field(default_factory=list)

    @property
    def category(self):
        return self.id.split('-')[0]


@dataclass
class Set:
    """
    prompts
    tools   their "function" objects, by name
    names   those that are recognized in answers
    admits  formulations that admit not to know, or not to be able
    own     phrases with numbers that are true of the model itself
    """
    prompts: List[Prompt]
    tools: Dict[str, dict]
    names: set
    admits: List[str]
    own: List[str]


def load(directory=HERE):
    def lines(name):
        with open(os.path.join(directory, name), encoding='utf-8') as f:
            return f.read().splitlines()

    return Set([Prompt(**json.loads(line)) for category in CATEGORIES
                for line in lines(category + '.jsonl')],
               {f['name']: f for f in map(json.loads, lines('tools.jsonl'))},
               {plain(name) for line in lines('names.txt')
                for name in line.split(', ')},
               lines('admits.txt'), lines('own.txt'))


class Tools(Task):
    """The tools of a prompt.  They answer the expected calls, each once; any
    other call ends the conversation."""

    def __init__(self, prompt, functions):
        super().__init__(prompt.category, 'single', [],
                         tools={n: Tool(functions[n], None)
                                for n in prompt.tools})
        self.due = list(prompt.calls)
        self.results = []
        self.strayed = False

    def call(self, name, arguments):
        given = json.loads(arguments)

        for c in self.due:
            if c['name'] == name and accepts_arguments(
                    c['arguments'], given,
                    self.tools[name].function['parameters']):
                self.due.remove(c)
                result = c['result']
                if not isinstance(result, str):
                    result = json.dumps(result, ensure_ascii=False)
                self.results.append(result)
                return result

        self.strayed = True
        raise Unanswered(f'wrong call: {name} {arguments}')

    @property
    def all_called(self):
        return not self.strayed and not self.due


def without(phrases, text):
    for phrase in phrases:
        text = text.replace(phrase, '')

    return text


def judge(prompts, prompt, tools, answer):
    """Returns the verdict on an answer and the reason, or None if it is
    right."""

    sources = [*texts_of(prompt.messages), *tools.results,
               *texts_of({k: v for k, v in prompt.answer.items()
                          if k != 'not'})]

    why = false_statement(prompt.answer, without(prompts.own, answer),
                          sources, prompts.names)

    if why is not None:
        return FALSE, why

    if not tools.all_called:
        return WRONG, 'no call'

    why = shortfall(prompt.answer, answer, prompts.admits)

    return (RIGHT, None) if why is None else (WRONG, why)


def have(prompts, prompt, options, key):
    """Sends a prompt.  Returns its result as the output file has it."""

    client = Client(options.url, key)
    tools = Tools(prompt, prompts.tools)
    outcome = Outcome()
    answer = None
    begin = time.monotonic()

    def chat(request):
        return client.chat({'model': options.model, 'seed': options.seed,
                            'temperature': options.temperature,
                            'max_tokens': options.max_tokens, **request})

    try:
        answer, _ = have_turn(tools, options.mode, chat,
                              copy.deepcopy(prompt.messages), outcome)
        verdict, outcome.why = judge(prompts, prompt, tools, answer)
    except Unanswered as e:
        verdict, outcome.why = WRONG, str(e)
    except RunFailed as e:
        raise RunFailed(f'{prompt.id}: {e}') from None
    except Exception as e:
        e.add_note(prompt.id)
        raise
    finally:
        client.close()

    return {'id': prompt.id, 'category': prompt.category, 'verdict': verdict,
            'answer': answer, 'needs_call': bool(prompt.calls),
            'called': bool(prompt.calls) and tools.all_called,
            **asdict(outcome), 'seconds': round(time.monotonic() - begin, 3)}


def parse(args):
    p = argparse.ArgumentParser(prog='eval.ordinary', description=__doc__,
                                formatter_class=argparse
                                .RawDescriptionHelpFormatter)

    p.add_argument('--categories', default=','.join(CATEGORIES),
                   help='comma-separated; default: %(default)s')
    add_options(p)

    options = p.parse_args(args)
    options.name = options.name or options.mode
    options.categories = options.categories.split(',')

    for category in options.categories:
        if category not in CATEGORIES:
            p.error(f'no such category: {category}')

    return options


def main(args, prompts):
    """Returns the exit status."""

    options = parse(args)

    # each prompt has a key and so a cache of its own

    nonce = uuid.uuid4().hex
    todo = [p for p in prompts.prompts if p.category in options.categories]

    try:
        options.model = model_of(options)
        results = in_parallel(
            [lambda p=p, i=i: have(prompts, p, options, f'{nonce}-{i}')
             for i, p in enumerate(todo)], options.concurrency)

    except RunFailed as e:
        log(f'the run failed: {e}')
        return 1

    what = ('name', 'model', 'mode', 'seed', 'temperature', 'max_tokens',
            'concurrency')

    with open(options.out, 'w', encoding='utf-8') as f:
        json.dump({**{k: getattr(options, k) for k in what},
                   'results': results}, f, indent=1, ensure_ascii=False)
        f.write('\n')

    right = sum(r['verdict'] == RIGHT for r in results)
    log(f'{right} of {len(results)} right')

    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:], load()))
