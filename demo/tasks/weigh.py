# Copyright (C) The nginx-dsa authors

"""What is thought before a call: which of the tools fits, and what each of its
parameters gets.

The thoughts go through the tools and the parameters one by one, in the order
of the list that the model has.  Each word to decide about is then written just
before the decision, so that few steps of attention lead to it, and every tool
and parameter of a task is something to learn from, not only the right ones."""


ENOUGH = 60             # letters of the values of an enum that are repeated


def weighed(tools, name=None):
    """Returns whether each of these tools fits, up to the one with this name;
    without it, none of them does."""

    tools = list(tools)
    until = tools.index(name) + 1 if name in tools else len(tools)

    return ' '.join(f'{t}: {"yes" if t == name else "no"}.'
                    for t in tools[:until])


def filled(function, arguments):
    """Returns what each parameter of a function gets in a call with these
    arguments: "city: Oslo, days (integer): 3, unit (C, F): not said"."""

    parts = []
    gather(function.get('parameters') or {}, arguments, parts)

    return ', '.join(parts) or 'no arguments'


def gather(schema, given, parts):
    for name, s in schema.get('properties', {}).items():
        if s.get('type') == 'object':
            gather(s, given.get(name) or {}, parts)
        else:
            parts.append(f'{name}{kind(s)}: {shown(given.get(name))}')


def kind(schema):
    """Returns in brackets what a value must be, or '' for any text."""

    values = ', '.join(map(str, schema.get('enum', ())))

    if values:
        return f' ({values})' if len(values) <= ENOUGH else ' (listed)'

    return '' if schema.get('type', 'string') == 'string' \
        else f' ({schema["type"]})'


def shown(value):
    if value is None:
        return 'not said'

    if isinstance(value, bool):
        return 'true' if value else 'false'

    return ', '.join(map(str, value)) if isinstance(value, list) \
        else str(value)
