# Copyright (C) The nginx-dsa authors

"""The layouts of results: (records, the name of an outer object) -> a value
for json.dumps, or a text.  A record is a dict."""

import json


def rows(records, between=' | '):
    return [between.join(map(str, r.values())) for r in records]


def table(records, outer):
    return '\n'.join([' | '.join(records[0])] + rows(records)) if records \
        else 'no rows'


def comma_table(records, outer):
    return '\n'.join([','.join(records[0])] + rows(records, ',')) \
        if records else '(empty)'


def markdown(records, outer):
    if not records:
        return '_nothing_'

    head = list(records[0])

    return '\n'.join('| ' + line + ' |' for line in
                     [' | '.join(head), ' | '.join('---' for _ in head),
                      *rows(records)])


def lines(records, outer):
    return '\n\n'.join('\n'.join(f'{k}: {v}' for k, v in r.items())
                       for r in records) or 'No results.'


def sentence(records, outer):
    return '\n'.join(', '.join(f'{k} {v}' for k, v in r.items())
                     for r in records) or 'Nothing found.'


def assignments(records, outer):
    return '\n'.join(' '.join(f'{k}={json.dumps(v, ensure_ascii=False)}'
                              for k, v in r.items())
                     for r in records) or 'none'


def bullets(records, outer):
    return '\n'.join('- ' + '; '.join(f'{k}: {v}' for k, v in r.items())
                     for r in records) or '- none'


def numbered(records, outer):
    return f'{outer}: {len(records)}\n' + '\n'.join(
        f'[{i}] ' + ', '.join(f'{k}: {v}' for k, v in r.items())
        for i, r in enumerate(records, 1))


def indented(records, outer):
    """As YAML."""

    return f'{outer}:\n' + '\n'.join(
        ('  - ' if n == 0 else '    ') + f'{k}: {v}'
        for r in records for n, (k, v) in enumerate(r.items()))


def tags(records, outer):
    """As XML."""

    return f'<{outer}>' + ''.join(
        '<item>' + ''.join(f'<{k}>{v}</{k}>' for k, v in r.items())
        + '</item>' for r in records) + f'</{outer}>'


def bare(records, outer):
    return records[0] if len(records) == 1 else records


def whole(records, outer):
    return records


def inside(records, outer):
    return {outer: bare(records, outer)}


def twice(records, outer):
    return {'data': {outer if outer != 'data' else 'rows':
                     bare(records, outer)}}


def counted(records, outer):
    return {'count': len(records), outer: records}


def status(records, outer):
    return {'status': 'ok', outer: bare(records, outer)}


def success(records, outer):
    return {'success': True, outer: bare(records, outer), 'error': None}


def meta(records, outer):
    return {outer: records, 'meta': {'took_ms': 12, 'page': 1}}


def columns(records, outer):
    return {'columns': list(records[0]) if records else [],
            outer if outer != 'columns' else 'rows':
                [list(r.values()) for r in records]}


def contents(records, outer):
    """As some protocols of tools return texts."""

    return {'content': [{'type': 'text', 'text': ', '.join(
        f'{k}: {v}' for k, v in r.items())} for r in records]}


def fields(records, outer):
    """A list of names and values for each record."""

    return {outer: [[{'name': k, 'value': v} for k, v in r.items()]
                    for r in records]} if len(records) < 3 \
        else counted(records, outer)


def by_number(records, outer):
    return {str(i): r for i, r in enumerate(records, 1)} \
        if len(records) != 1 else bare(records, outer)


LAYOUTS = (bare, bare, bare, whole, inside, inside, twice, counted, status,
           success, meta, columns, contents, fields, by_number, lines, table,
           sentence, comma_table, markdown, assignments, bullets, numbered,
           indented, tags)

OUTER = '''data result results response output payload items current body value
entries records hits rows list answer found content reply matches info'''

# the names of fields in one more style: a name -> a name

KEYED = (None,) * 10 + (
    str.upper, lambda k: k[:1].upper() + k[1:],
    lambda k: k.split('_')[0] + ''.join(w.capitalize()
                                        for w in k.split('_')[1:]),
    lambda k: k.replace('_', '-'), lambda k: k.replace('_', ' '))

# fields that no request asks for: (name, values)

NOISE = (('id', (7, 41, 'a81f', '0x3c', 'k-19')), ('lang', ('en', 'en-GB')),
         ('source', ('cache', 'live', 'feed-2', 'primary', 'internal')),
         ('cached', (True, False)), ('version', (1, 2, '1.0', 'v3')),
         ('type', ('record', 'entry', 'item', 'object')),
         ('ok', (True,)), ('_index', (0,)), ('note', ('', None)),
         ('region', (None, 'eu', 'us-east')), ('deprecated', (False,)),
         ('confidence', ('high', 'medium')), ('etag', ('W/7f', '9b1')),
         ('warnings', (None, 'none')), ('kind', ('public', 'basic')))


def noise(rng, names):
    """Returns a dict of such fields, often empty, without those names."""

    if rng.random() < 0.7:
        return {}

    chosen = rng.sample([n for n in NOISE if n[0] not in names],
                        rng.choice((1, 1, 2)))

    return {name: rng.choice(values) for name, values in chosen}


# results of actions: a number -> a value

DONE = (lambda n: {'ok': True}, lambda n: {'success': True, 'id': n},
        lambda n: {'status': 'ok'}, lambda n: {'status': 'success'},
        lambda n: {'id': str(n), 'status': 'created'}, lambda n: 'OK',
        lambda n: 'Done.', lambda n: {'result': 'done', 'error': None},
        lambda n: {'data': {'id': n}, 'errors': []}, lambda n: {'code': 200},
        lambda n: f'success (id {n})', lambda n: {'queued': True, 'ref': n},
        lambda n: {'message': 'Success'}, lambda n: {'acknowledged': True},
        lambda n: f'completed, ref {n}', lambda n: 'true', lambda n: 'ok',
        lambda n: {'status': 201, 'id': n}, lambda n: {'done': True},
        lambda n: {'content': [{'type': 'text', 'text': 'Done'}]},
        lambda n: {'response': {'status': 'COMPLETED', 'number': n}},
        lambda n: {'result': {'success': True}}, lambda n: 'status: success',
        lambda n: {'error': None}, lambda n: f'<ok id="{n}"/>',
        lambda n: {'state': 'accepted', 'job': f'j-{n}'},
        lambda n: {'affected': 1}, lambda n: 'Request processed.')
