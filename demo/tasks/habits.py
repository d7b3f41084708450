# Copyright (C) The nginx-dsa authors

"""How people name and describe tools and their parameters.  What is drawn here
has no meaning: a model must learn to read over it."""

import re

from tasks.parts import Split
from tasks.phrase import capital, expand


STYLES = ('snake',) * 8 + ('camel',) * 4 + ('kebab', 'pascal', 'flat', 'parts')

# words that stand before a name, as many services of one program have them, or
# after it

BEFORE = Split('''acme api app assist assistant bot cli client cloud core corp
crm demo ext external fn func global hub inhouse int internal lib local main
mcp my office open org platform portal prod public remote skill srv svc sys
team tool tools user util v1 v2 vendor web work x'''.split())
AFTER = Split('''action api async call cmd command endpoint fn func function
handler helper impl job method new now op plugin proxy query request rpc
service skill sync task tool util v2 v3 wrapper'''.split())

SHORT = {
    'address': 'addr', 'appointment': 'appt', 'book': 'bk', 'calendar': 'cal',
    'check': 'chk', 'contact': 'cntct', 'convert': 'conv', 'create': 'mk',
    'currency': 'ccy', 'delete': 'del', 'departures': 'deps', 'device': 'dev',
    'directory': 'dir', 'distance': 'dist', 'event': 'evt',
    'exchange': 'exch', 'file': 'f', 'forecast': 'fcst', 'image': 'img',
    'information': 'info', 'location': 'loc', 'lookup': 'lkp',
    'message': 'msg', 'number': 'num', 'order': 'ord', 'package': 'pkg',
    'price': 'prc', 'product': 'prod', 'query': 'qry', 'recipe': 'rcp',
    'record': 'rec', 'remove': 'rm', 'reservation': 'resv', 'search': 'srch',
    'service': 'svc', 'temperature': 'temp', 'text': 'txt',
    'tracking': 'trk', 'translate': 'xlate', 'translation': 'xlat',
    'weather': 'wx'}


# verbs that may follow their noun

VERBS = '''add book check convert create delete fetch find get list look read
remove save search send set show track translate update write'''.split()


def joined(words, style):
    if style == 'camel':
        return words[0] + ''.join(w.capitalize() for w in words[1:])

    if style == 'pascal':
        return ''.join(w.capitalize() for w in words)

    if style == 'parts' and len(words) > 1:
        return words[0] + '__' + '_'.join(words[1:])

    return {'kebab': '-', 'flat': ''}.get(style, '_').join(words)


def tool_words(rng, words):
    """Returns the words of a tool's name as one program or another has
    them."""

    if rng.random() < 0.08:
        words = [SHORT.get(w, w) for w in words]

    way = rng.random()

    if way < 0.12:
        words = [rng.choice(BEFORE), *words]
    elif way < 0.2:
        words = [*words, rng.choice(AFTER)]
    elif way < 0.25 and len(words) > 1 and words[0] in VERBS:
        words = [*words[1:], words[0]]

    return words


def parameter_style(rng):
    """Returns the function that changes the names of a tool's parameters."""

    way = rng.random()

    if way < 0.12:
        return lambda name: joined(name.split('_'), 'camel')

    if way < 0.15:
        return lambda name: joined(re.sub('([A-Z])', r'_\1', name).lower()
                                   .split('_'), 'kebab')

    if way < 0.18:
        return capital

    if way < 0.2:
        return str.upper

    if way < 0.24:
        before = rng.choice(('p_', 'in_', 'arg_', 'my_', 'req_', 'param_'))

        return lambda name: before + name

    if way < 0.27:
        after = rng.choice(('_value', '_param', '_arg', '_in', '_str', '_1'))

        return lambda name: name + after

    return lambda name: name


# {0} is a description

TOOL_ABOUT = Split('''{0}. [Returns|Result:|Answers with] [JSON|a JSON object|text|plain text].
{0}. [Use this|Call this|Use this tool|To be used] [when|if|whenever] the user asks for it.
{0}. [Read-only.|Public.|Internal use.|Cached for a minute.|No login needed.|Needs network access.]
[Tool|Function|Endpoint|Method|Skill|Action|Plugin]: {0}
{0} ([v2|beta|stable|new|internal|sync]).
[Purpose|What it does|Summary|Description]: {0}.
{0}. [Call it once per request.|One item per call.|May be called several times.|Fast.|Takes a second.]
This [tool|function] [does the following|has one job|is for this]: {0}.
{0}. [Do not guess the arguments.|Letters may be small or capital.|Errors are returned as text.]
[@tool|Short:|#|//] {0}'''.splitlines())
ROLE_ABOUT = Split('''{0} (required)
{0}. Required.
Required. {0}.
[string|str|value|input|arg]: {0}
{0}, [as the user wrote it|as given by the user|as stated]
{0}[, must not be empty|, never empty|, plain text|; no default]
[in|param|field]: {0}
{0}.'''.splitlines())


def tool_about(rng, text):
    return dressed(rng, TOOL_ABOUT, text, 0.2)


def role_about(rng, text):
    return dressed(rng, ROLE_ABOUT, text, 0.15)


def dressed(rng, ways, text, chance):
    if rng.random() >= chance:
        return rng.choice((text, text, text, text, text.lower(), text + '.'))

    return expand(rng, rng.choice(ways)).format(text.rstrip('.'))
