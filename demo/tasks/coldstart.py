# Copyright (C) The nginx-dsa authors

"""The system prompts of the paper's cold start (3.2.2, appendix B): Tables 6, 7
and 8 word for word.  Their line breaks, which the text of the paper lost, are
restored.

A request has such a prompt as its system message, and the Python tool in
"tools".  The server appends its own text about tools to a system message, which
is why {TOOLCALL-FORMAT}, the last words of the prompts, is left to it.
{TOOL-DESCRIPTIONS} is filled with the functions as the server writes them.

The experiment: a model is tuned on data of Table 6 (reasoning without tools)
and Table 7 (tools without reasoning) only; then the prompt of Table 8 should
elicit calls inside the reasoning, at least sometimes (train/elicit.py).
"""

import ast
import json

from tasks import names
from tasks.parts import Split
from tasks.phrase import expand, manner
from tasks.task import CHAT, RETAIN, Step, Task, Text, Tool, Turn, function


TABLE_6 = """\
You are an expert Python programmer. You will be given a question (problem \
specification) and will generate a correct Python program that matches the \
specification and passes all tests. Please first reason before giving the \
final answer. The reasoning process enclosed within <think> </think>. The \
final answer is output after the </think> tag."""

TABLE_7 = """\
Use Python interpreter tool to execute Python code. The code will not be \
shown to the user. This tool should be used for internal reasoning, but not \
for code that is intended to be visible to the user (e.g. when creating \
plots, tables, or files). When you send a message containing Python code to \
python, it will be executed in a stateful Jupyter notebook environment. \
python will respond with the output of the execution or time out after 120.0 \
seconds.

## Tools

You have access to the following tools:

{TOOL-DESCRIPTIONS}

Important: ALWAYS adhere to this exact format for tool use:

{TOOLCALL-FORMAT}"""

TABLE_8 = """\
You are a helpful assistant with access to a Python interpreter.

- You may use the Python tool **multiple times** during your reasoning, \
a.k.a in <think></think>, with a maximum of 20 code executions.
- Call the Python tool early in your reasoning to aid in solving the task. \
Continue reasoning and invoking tools as needed until you reach the final \
answer. Once you have the answer, stop reasoning and present your solution \
using Markdown and LaTeX.
- Do NOT invoke any tools in your presented final solution steps.
- To improve efficiency and accuracy, you should prefer code execution over \
language-based reasoning whenever possible. Keep your reasoning succinct; \
let the code do the heavy lifting.

## Tools

You have access to the following tools:

{TOOL-DESCRIPTIONS}

Important: ALWAYS adhere to this exact format for tool use:

{TOOLCALL-FORMAT}"""

PYTHON = function('python', 'Executes Python code and returns its output',
                  code=('string', 'The code'))


def filled(table):
    """Returns a table's text as a system message beside the tool; the server
    appends what {TOOLCALL-FORMAT} stands for."""

    return table.replace('{TOOL-DESCRIPTIONS}', json.dumps(
        PYTHON, ensure_ascii=False)).replace('{TOOLCALL-FORMAT}', '').rstrip()


# ------------------------------------------------------------- interpreter


METHODS = ('upper', 'lower', 'split', 'count')
BUILTINS = {f.__name__: f for f in (len, sum, max, min, sorted, abs, str, int,
                                    list, set)}
LONGEST = 500       # characters of code, elements and digits of a value
MOST = 10 ** 12


class Refused(ValueError):
    """The code is not of the part of Python that runs here."""


def run_python(code):
    """Runs code of a small part of Python, which can neither loop nor grow:
    functions of one return statement, and print.  Returns the output."""

    if len(code) > LONGEST:
        raise Refused('the code is too long')

    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise Refused(f'syntax error: {e}') from None

    functions, out = {}, []

    try:
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef):
                functions[statement.name] = statement
            elif isinstance(statement, ast.Expr):
                show(statement.value, functions, out)
            else:
                raise Refused('only def and print are available here')

    except RecursionError:
        raise Refused('the code is nested too deeply') from None

    return '\n'.join(out) or '(no output)'


def show(node, functions, out):
    """Prints what print() would, or the value as a notebook does."""

    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) \
            and node.func.id == 'print':
        out.append(' '.join(str(value(a, {}, functions)) for a in node.args))
    else:
        out.append(repr(value(node, {}, functions)))


def value(node, known, functions, depth=0):
    """Returns the value of an expression; known are the variables."""

    def of(part):
        return value(part, known, functions, depth)

    try:
        if isinstance(node, ast.Constant):
            found = node.value
        elif isinstance(node, ast.Name):
            found = known[node.id]
        elif isinstance(node, ast.List):
            found = [of(e) for e in node.elts]
        elif isinstance(node, ast.UnaryOp) \
                and isinstance(node.op, ast.USub):
            found = -of(node.operand)
        elif isinstance(node, ast.BinOp):
            found = operate(type(node.op), of(node.left), of(node.right))
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            found = compare(type(node.ops[0]), of(node.left),
                            of(node.comparators[0]))
        elif isinstance(node, ast.Subscript):
            found = of(node.value)[piece(node.slice, of)]
        elif isinstance(node, ast.Call):
            found = called(node, of, functions, depth)
        else:
            raise Refused(f'{type(node).__name__} is not available here')

    except (TypeError, KeyError, IndexError, ZeroDivisionError,
            AttributeError, OverflowError) as e:
        raise Refused(f'{type(e).__name__}: {e}') from None

    return bounded(found)


def piece(node, of):
    if isinstance(node, ast.Slice):
        return slice(*(None if p is None else of(p)
                       for p in (node.lower, node.upper, node.step)))

    return of(node)


def operate(op, a, b):
    if op is ast.Add:
        return a + b

    if op is ast.Mult:
        if isinstance(a, int) and isinstance(b, int):
            return a * b

        n = a if isinstance(a, int) else b
        if n * len(a if n is b else b) > LONGEST:
            raise Refused('the value is too long')

        return a * b

    if isinstance(a, str):
        raise Refused('% of texts is not available here')

    return {ast.Sub: lambda: a - b, ast.FloorDiv: lambda: a // b,
            ast.Mod: lambda: a % b}[op]()


def compare(op, a, b):
    return {ast.Eq: lambda: a == b, ast.NotEq: lambda: a != b,
            ast.Lt: lambda: a < b, ast.LtE: lambda: a <= b,
            ast.Gt: lambda: a > b, ast.GtE: lambda: a >= b}[op]()


def called(node, of, functions, depth):
    given = [of(a) for a in node.args]

    if node.keywords or depth > 3:
        raise Refused('such a call is not available here')

    if isinstance(node.func, ast.Attribute):
        if node.func.attr not in METHODS \
                or not isinstance(of(node.func.value), (str, list)):
            raise Refused(f'.{node.func.attr} is not available here')

        return getattr(of(node.func.value), node.func.attr)(*given)

    name = node.func.id

    if name in functions:
        body = functions[name].body

        if len(body) != 1 or not isinstance(body[0], ast.Return):
            raise Refused('a function must be one return statement')

        return value(body[0].value, dict(zip(
            [a.arg for a in functions[name].args.args], given)), functions,
            depth + 1)

    if name not in BUILTINS:
        raise Refused(f'name {name} is not defined')

    return BUILTINS[name](*given)


def bounded(found):
    """Returns a value that is not too large."""

    if isinstance(found, int) and abs(found) > MOST \
            or isinstance(found, (str, list, set)) and len(found) > LONGEST:
        raise Refused('the value is too large')

    return found


# ---------------------------------------------------------------- problems


# what the function does; its expression; the kind of its argument

PROBLEMS = Split('''adds {n} to a number;x + {n};number
multiplies a number by {n};x * {n};number
subtracts {n} from a number;x - {n};number
tells whether a number is divisible by {n};x % {n} == 0;number
returns the rest of a number divided by {n};x % {n};number
divides a number by {n} without the rest;x // {n};number
doubles a number and adds {n};x * 2 + {n};number
tells whether a number is larger than {n};x > {n};number
tells whether a number is smaller than {n};x < {n};number
returns the square of a number plus {n};x * x + {n};number
returns the sum of a list plus {n};sum(x) + {n};list
returns the largest number of a list;max(x);list
returns the smallest number of a list;min(x);list
returns the length of a list plus {n};len(x) + {n};list
sorts a list;sorted(x);list
reverses a list;x[::-1];list
returns the first element of a list;x[0];list
returns the last element of a list;x[-1];list
counts how often {n} is in a list;x.count({n});list
tells whether a list has {n} elements;len(x) == {n};list
returns the difference of the largest and the smallest number of a list;max(x) - min(x);list
writes a text in capital letters;x.upper();text
writes a text in small letters;x.lower();text
returns the length of a text;len(x);text
reverses a text;x[::-1];text
repeats a text {k} times;x * {k};text
counts the letter {c} in a text;x.count('{c}');text
returns the first letter of a text;x[0];text
returns the number of words of a text;len(x.split());text
tells whether a text is the same backwards;x == x[::-1];text'''.splitlines())

ASK = Split('''[Write|Give me|Implement] a [Python |]function {f} that {what}.
[Write|Program] a function `{f}` [in Python|]. It {what}.
Given a {kind}, write [a function|the function] {f} that {what}.
I need a Python function {f}[, please|]. It {what}.
[Problem|Specification]: {f} {what}. [Write it.|Write the program.|]
Please [implement|write] {f}, which {what}.
How do I write a function {f} that {what}?
[Can|Could] you write {f}, a function that {what}?'''.splitlines())


WORDS = names.GOODS + names.FIRST


class Problem:
    def __init__(self, rng):
        what, self.body, self.kind = rng.choice(PROBLEMS).split(';')
        slots = dict(n=rng.randrange(2, 100), k=rng.randrange(2, 6),
                     c=rng.choice('aeionrst'))
        self.what = what.format(**slots)
        self.body = self.body.format(**slots)
        self.name = f'{rng.choice(names.ADJECTIVES)}_{rng.choice(names.NOUNS)}'
        self.argument = rng.choice({
            'number': ('n', 'x', 'number', 'value'),
            'list': ('xs', 'items', 'numbers', 'values'),
            'text': ('s', 'text', 'word', 'name')}[self.kind])
        self.user = manner(rng, expand(rng, rng.choice(ASK)).format(
            f=self.name, what=self.what, kind=self.kind))
        self.tests = [self.draw(rng) for _ in range(3)]

    def draw(self, rng):
        if self.kind == 'number':
            return rng.randrange(-50, 300)

        if self.kind == 'list':
            return [rng.randrange(100) for _ in range(rng.randint(2, 5))]

        return rng.choice(WORDS)

    def program(self):
        body = ast.unparse(Rename(self.argument).visit(
            ast.parse(self.body, mode='eval')))

        return f'def {self.name}({self.argument}):\n    return {body}'

    def check(self, answer, calls):
        """The program must give the right results of the tests."""

        lines = [s for s in answer.splitlines()
                 if not s.strip().startswith('```')]
        at = next((i for i, s in enumerate(lines)
                   if s.startswith(f'def {self.name}(')), None)

        if at is None:
            return f'no def {self.name} in: {answer}'

        code = '\n'.join([lines[at]] + [
            s for s in lines[at + 1:] if s.startswith(' ')])

        for given in self.tests:
            try:
                said = run_python(f'{code}\n{self.name}({given!r})')
            except Refused as e:
                return f'the program failed: {e}'

            right = run_python(f'{self.program()}\n{self.name}({given!r})')

            if said != right:
                return f'{self.name}({given!r}) is {said}, not {right}'

        return None


class Rename(ast.NodeTransformer):
    def __init__(self, name):
        self.name = name

    def visit_Name(self, node):
        return ast.Name(self.name if node.id == 'x' else node.id, node.ctx)


def answered(rng, program):
    if rng.random() < 0.5:
        return program

    return f'```python\n{program}\n```'


def reasoning(rng):
    """A task of Table 6: reasoning, no tools."""

    p = Problem(rng)
    answer = answered(rng, p.program())
    body = p.program().split('return ')[1]
    thoughts = expand(rng, f'[The argument|The input] is a {p.kind}. [The '
                           'function|It] {what}. [So it returns|The '
                           'expression is|That is] {body}.').format(
        what=p.what, body=body) if '[' not in body else \
        f'The argument is a {p.kind}. The function {p.what}. So it ' \
        f'returns {body}.'

    def gold(mode):
        yield Step(thoughts, answer)

    return Task('cold_reason', 'single', [Turn(p.user, p.check, gold)],
                (RETAIN,), filled(TABLE_6))


def agent(rng, table=TABLE_7):
    """A task of Table 7: calls without reasoning."""

    p = Problem(rng)
    answer = answered(rng, p.program())
    call = ('python', {'code': f'{p.program()}\n'
                               f'print({p.name}({p.tests[0]!r}))'})

    def gold(mode):
        yield Step('', '', [call])
        yield Step('', answer)

    def check(text, calls):
        return p.check(text, calls) if calls else 'python was not called'

    return Task('cold_agent', 'multi', [Turn(p.user, check, gold)], (CHAT,),
                filled(table), {'python': Tool(PYTHON, lambda a: Text(
                    run_python(a['code'])))})


def required(rng):
    """A request with the prompt of Table 8, for which there is no training
    data."""

    return agent(rng, TABLE_8)
