# Copyright (C) The nginx-dsa authors

"""What the source text of a candidate may contain.

A solution is one function, solve(), that may only call tools and compute.
Tools and verifiers are functions whose first parameter is the database.  All
are restricted to a part of Python without imports, attributes other than
methods of built-in types, and functions that reach anything outside.
"""

import ast


BUILTINS = '''abs all any bool dict divmod enumerate float int isinstance len
list max min range reversed round set sorted str sum tuple zip
ValueError'''.split()

METHODS = '''add append copy count discard endswith extend get index insert
items join keys lower pop remove reverse setdefault sort split startswith strip
update upper values'''.split()

NODES = tuple(getattr(ast, name) for name in '''Module FunctionDef arguments
arg Return Assign AugAssign For While If Break Continue Pass Expr Raise BoolOp
And Or BinOp Add Sub Mult Div FloorDiv Mod UnaryOp Not USub IfExp Dict Set List
Tuple ListComp SetComp DictComp GeneratorExp comprehension Compare Eq NotEq Lt
LtE Gt GtE Is IsNot In NotIn Call keyword Constant Attribute Subscript Slice
Name Load Store Starred BitAnd BitOr LShift RShift'''.split())


class BadSource(ValueError):
    """The text is the reason."""


def solution(text, tools):
    """Checks the source of a solution.  tools are the names that it may
    call."""

    tree = parsed(text)

    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef) \
            or tree.body[0].name != 'solve' \
            or any(ast.iter_child_nodes(tree.body[0].args)):
        raise BadSource('a solution is one function, solve()')

    check(tree, set(tools), {'solve'})


def functions(text):
    """Checks the source of tools or of a verifier.  Returns name -> the
    ast.FunctionDef."""

    tree = parsed(text)
    found = {}

    for f in tree.body:
        if not isinstance(f, ast.FunctionDef) or not f.args.args \
                or f.args.args[0].arg != 'db':
            raise BadSource('only functions whose first parameter is db are '
                            'allowed')
        found[f.name] = f

    check(tree, set(found), set())

    return found


def parsed(text):
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise BadSource(f'no Python: {e}') from None

    return tree


def check(tree, callable_names, refused_calls):
    """Raises BadSource for what is not in the part of Python above."""

    known = set(BUILTINS) | callable_names
    bound = bound_names(tree)

    for node in ast.walk(tree):
        line = f'line {getattr(node, "lineno", 0)}: '

        if not isinstance(node, NODES):
            raise BadSource(f'{line}{type(node).__name__} is not allowed')

        if isinstance(node, ast.Call):
            check_call(node, line, known - refused_calls)

        if isinstance(node, ast.Attribute) \
                and (node.attr not in METHODS
                     or not isinstance(node.ctx, ast.Load)):
            raise BadSource(f'{line}.{node.attr} is not allowed')

        if isinstance(node, ast.Name) and node.id not in known | bound:
            raise BadSource(f'{line}{node.id} is neither a variable nor a '
                            f'tool')

        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) \
                and node.id in known:
            raise BadSource(f'{line}{node.id} is assigned to')

        if isinstance(node, (ast.FunctionDef, ast.arguments)):
            check_function(node, line)


def check_call(node, line, known):
    f = node.func

    if not isinstance(f, ast.Attribute) \
            and not (isinstance(f, ast.Name) and f.id in known):
        raise BadSource(f'{line}a call of {ast.unparse(f)}, which is no tool')


def check_function(node, line):
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        raise BadSource(f'{line}a decorator is not allowed')

    if isinstance(node, ast.arguments) \
            and (node.vararg or node.kwarg or node.kwonlyargs):
        raise BadSource(f'{line}only plain parameters are allowed')


def bound_names(tree):
    """Returns the names of parameters and of variables that are assigned."""

    names = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}

    return names | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)
                    and isinstance(n.ctx, ast.Store)}


TYPES = {'str': 'string', 'int': 'integer', 'float': 'number', 'bool':
         'boolean'}


def definition(f):
    """Returns the "function" object of a tool, from its ast.FunctionDef: the
    docstring and the annotations of its parameters."""

    text = ast.get_docstring(f)
    arguments = f.args.args[1:]

    if not text:
        raise BadSource(f'{f.name} has no docstring')

    for a in arguments:
        if not isinstance(a.annotation, ast.Name) \
                or a.annotation.id not in TYPES:
            raise BadSource(f'{f.name}: {a.arg} needs one of the types '
                            + ', '.join(TYPES))

    return {
        'name': f.name, 'description': ' '.join(text.split()),
        'parameters': {
            'type': 'object',
            'properties': {a.arg: {'type': TYPES[a.annotation.id]}
                           for a in arguments},
            'required': [a.arg for a in arguments],
        },
    }


class Normal(ast.NodeTransformer):
    """Replaces all names and constants by one of their kind."""

    def visit_Name(self, node):
        return ast.copy_location(ast.Name('name', node.ctx), node)

    def visit_Attribute(self, node):
        self.generic_visit(node)
        node.attr = 'method'
        return node

    def visit_Constant(self, node):
        return ast.copy_location(ast.Constant(0), node)

    def visit_keyword(self, node):
        self.generic_visit(node)
        node.arg = 'name'
        return node

    def visit_arg(self, node):
        return ast.arg('name')


def normalized(text):
    """Returns the syntax tree of a source as text without its names and
    constants: two sources with the same one differ in nothing else."""

    return ast.dump(Normal().visit(ast.parse(text)))
