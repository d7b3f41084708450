# Copyright (C) The nginx-dsa authors

"""A candidate: what a proposer hands in, and what is found wrong with it."""

import ast
from dataclasses import dataclass, field
from typing import Callable, List, Optional

from worlds.general import box, source


@dataclass
class Candidate:
    """
    category, seed, level
    db        the database, a dict for JSON
    tools     source: functions of db that an assistant may call
    text      the request
    solution  source: solve(), which only calls tools and computes
    verifier  source: verify(db, answer) -> None, or the reason why not
    check     answer -> bool, made independently of the verifier; or None
    probes    answers on which check and verifier must agree
    attempt   a bounded policy: rng -> an answer; or None
    policy    its name
    kinds     kinds of constraints
    """
    category: str
    seed: str
    level: int
    db: dict
    tools: str
    text: str
    solution: str
    verifier: str
    check: Optional[Callable] = None
    probes: List[object] = field(default_factory=list)
    attempt: Optional[Callable] = None
    policy: str = ''
    kinds: tuple = ()

    def signatures(self):
        """Returns name -> the names of the parameters of each tool."""

        return {name: [a.arg for a in f.args.args[1:]]
                for name, f in source.functions(self.tools).items()}

    def definitions(self):
        """Returns the "function" objects of the tools."""

        return [source.definition(f)
                for f in source.functions(self.tools).values()]

    def open(self):
        """Returns a process with the tools and the verifier."""

        return box.Functions(self.tools + '\n' + self.verifier, self.db)


@dataclass
class Fault:
    """
    kind   'source'    the solution is not allowed
           'tools'     it calls tools that do not exist
           'failed'    it failed or ended without an answer
           'rejected'  the verifier rejects its answer
           'broken'    the tools or the verifier are not allowed, or fail
           'strict', 'lenient'    the verifier rejects a right answer, accepts
                       a wrong one
           'wrong'     the verifier accepts a solution that is wrong
    why    the reason as text
    """
    kind: str
    why: str
    tools: tuple = ()


def missing_tools(text, known):
    """Returns the names of functions that a solution calls and that do not
    exist."""

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()

    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call)
              and isinstance(n.func, ast.Name)}

    return tuple(sorted(called - set(known) - set(source.BUILTINS)))


def solve(candidate, opened):
    """Runs the solution with the tools of an opened process.  Returns its
    answer; raises box.Failed."""

    run = box.steps(candidate.solution, candidate.signatures())
    reply = None

    while True:
        try:
            name, arguments = run.send(reply)
        except StopIteration as e:
            return e.value

        try:
            reply = 'result', opened.call(name, arguments)
        except box.Failed as e:
            if not e.refused:
                run.close()
                raise
            reply = 'error', str(e)


def judge(opened, answer):
    """Returns None if the verifier accepts an answer, else the reason."""

    why = opened.call('verify', {'answer': answer})

    return why if why is None or isinstance(why, str) else 'not accepted'
