# Copyright (C) The nginx-dsa authors

"""Services of computers: a shell, whose commands the model must write, and a
database, which it queries in SQL or by a filter."""

import json
import re
import sqlite3

from tasks import names
from tasks.api import parameter, service
from tasks.parts import Split
from tasks.task import Text
from tasks.uses import Kind, kinds, one_of
from tasks.uses_own import path


SHELL = service('the shell', '''[run|execute|exec] [command|shell|bash|shell command|in terminal]
[shell|bash|terminal|sh|command] [exec|run|execute|]
[bash|terminal|shell]''',
'''[Runs|Executes|Run] a [command|shell command|bash command][ and returns its output|]
[Shell|Terminal|Bash] [access|]
Execute a command [in the shell|on the server|in a terminal]''', [
    parameter('command', 'command cmd code script input line',
              '[The|] command[ line|][, e.g. ls|]'),
    parameter('timeout', 'timeout timeout_seconds', 'Seconds', kind='integer',
              needed=False)], 'text', plain=True)


def tidy(role, wanted, value):
    """Returns true if two commands differ only in blanks and quotes."""

    def words(text):
        return re.sub(r'[\s"\']+', ' ', str(text)).strip()

    return words(wanted) == words(value)


def shell_case(rng):
    folder = rng.choice(names.FOLDERS)
    files = [f'{rng.choice(names.STEMS)}.{rng.choice(names.ENDINGS)}'
             for _ in range(rng.randint(1, 4))]
    user = rng.choice(names.FIRST).lower()

    return dict(folder=one_of(rng, f'{folder}|/{folder}|/var/{folder}'
                                   f'|~/{folder}'),
                path=path(rng), files=files, user=user,
                word=rng.choice(names.NOUNS), n=rng.randrange(2, 4000),
                percent=rng.randrange(3, 99), host=f'{rng.choice(names.NOUNS)}'
                f'-{rng.randrange(1, 40)}', size=rng.randrange(2, 900),
                branch=one_of(rng, f'{rng.choice(names.STEMS)}-'
                                   f'{rng.choice(names.NOUNS)}'),
                version=f'{rng.randrange(1, 9)}.{rng.randrange(30)}.'
                        f'{rng.randrange(99)}',
                to=f'{rng.choice(names.STEMS)}.{rng.choice(names.ENDINGS)}',
                process=one_of(rng, 'nginx|redis-server|postgres|python3|node'
                                    '|java|sshd|cron|docker'))


# want; command; result; requests; answers; keys

COMMANDS = r'''
list the files in {folder}
ls {folder}
{lines}
Use the shell to list {folder}.|Which files are in {folder}? Use the terminal.|ls {folder}[ please|]|[Show|List] the files in {folder} on the [server|machine].
[There are|I see|It has|The files are|ls shows|In it]: {comma}.
{first}

find out how full the disk is
df -h /
Filesystem Size Used Avail Use% Mounted\n/dev/sda1 {size}G {used}G {free}G {percent}% /
How full is [my|the] disk?|How much of the disk [is used|is taken], in percent?|Is the disk full? How many percent?|Check the disk usage.
[It is|The disk is|/ is] {percent}% full.|{percent}%[ is used| of the disk are used|].|[The disk has used|Used are] {percent}%.
{percent}%

find out the free memory
free -m
       total used free\nMem: {total} {n} {size}
How much memory is free?|How many megabytes of memory are free?|Check the free [memory|RAM].|Do I have enough RAM? What is free?
{size} MB[ are free|].|[There are|You have] {size} MB free.|[Free are|The free memory is] {size} MB[ of {total}|].
{size}

count the lines of {path}
wc -l {path}
{n} {path}
How many lines has {path}? Use the shell.|Count the lines of {path} [in|with] the [shell|terminal].|Run a line count on {path}.|wc {path}: how many lines?
{n}[ lines|].|[It has|{path} has|There are] {n} lines.|[I count|wc says] {n}.
{n}

find out the name of the machine
hostname
{host}
What is [the name of this machine|this machine called|the hostname]?|Which host [is this|are we on]?|Print the hostname.|What's the server called?
[It is|The host is|The machine is|We are on] {host}.|{host}|[This machine is called|Its name is] {host}.
{host}

find out the current user
whoami
{user}
Which user [am I|are you running as|is logged in]?|Who am I on this [machine|server]?|Print the current user.|What is my user name?
[You are|It is|The user is|I run as] {user}.|{user}|[Logged in as|The name is] {user}.
{user}

count {word} in {path}
grep -c {word} {path}
{n}
How many lines of {path} contain "{word}"?|[Count|grep] the lines with "{word}" in {path}.|How often is "{word}" in {path}? Count lines.
{n}[ lines|].|[There are|I count|It is in|grep finds] {n}[ lines|].|{n} lines of {path}[ have it|].
{n}

copy {path} to {to}
cp {path} {to}
-
Copy {path} to {to}.|Make a copy of {path}[ called|,] {to}.|[Can|Could] you copy {path} to {to}?|I need {path} [again|twice]. Copy it to {to}.
{path} is copied to {to}.|[Done|OK|I copied it]: {to}.|[I made|There is] a copy[ called|,] {to}.|{to} is a copy of {path}[ now|].
{to}

rename {path} to {to}
mv {path} {to}
-
[Rename|Move] {path} to {to}.|{path} should be called {to}.|[Can|Could] you [rename|move] {path} to {to}?
{path} is [now|called] {to}.|[Done|OK|I moved it]: {to}.|[I renamed|I moved] {path} to {to}.|It is [called|] {to}[ now|].
{to}

make the folder {folder}
mkdir {folder}
-
[Create|Make] [a|the] [folder|directory] {folder}.|I need a [folder|directory] {folder}.|New [folder|directory]: {folder}.|mkdir {folder}[ please|]
[The folder|] {folder} [is there|exists|is made].|[Done|OK|I made it]: {folder}.|[I created|I made|There is] {folder}[ now|].
{folder}

find the size of {folder}
du -sh {folder}
{size}M {folder}
How [large|big] is [the folder |]{folder}?|How much space does {folder} [take|need]?|[Check|Measure] the size of {folder}.|du {folder}
{folder} [takes|has|is] {size}M.|{size}M[ in all|].|[It is|It takes|The size is] {size}M.
{size}M

find the git branch
git branch --show-current
{branch}
[Which|What] [git |]branch [am I on|is checked out|are we on]?|What's the current branch?|Print the git branch.
[It is|You are on|We are on|The branch is] {branch}.|{branch}|[Checked out is|On] {branch}.
{branch}

find the version of Linux
uname -r
{version}
Which kernel [is running|do I have|does this machine run]?|What is the kernel version?|uname: which [version|release]?
[It is|The kernel is|You have|It runs] {version}.|{version}|[Version|Kernel] {version}.
{version}

count the processes of {process}
pgrep -c {process}
{percent}
How many {process} processes [are running|run|are there]?|Is {process} running? How many processes?|Count the processes of {process}.
{percent}[ processes|].|[There are|I count|It has] {percent}.|{process} has {percent}[ processes| running|].|Yes, {percent}[ processes|].
{percent}

show the last line of {path}
tail -n 1 {path}
{last}
What is the last line of {path}?|Show [me |]the last line of {path}.|How does {path} end? The last line.
[It is|The last line is|It says|{path} ends with]: {last}|{last}|"{last}"[ is the last line|].
{last}

show the first line of {path}
head -n 1 {path}
{last}
What is the first line of {path}?|Show [me |]the first line of {path}.|How does {path} begin? The first line.
[It is|The first line is|It says|{path} begins with]: {last}|{last}|"{last}"[ is the first line|].
{last}

find out for how long the machine is up
uptime -p
up {hours} hours
How long [is|has been] [the server|this machine] [up|running]?|What is the uptime?|When did it start? I mean the uptime.
[It is up|Up|It runs] for {hours} hours.|{hours} hours.|[The uptime is|The machine is up] {hours} hours.
{hours}

delete {path}
rm {path}
-
[Delete|Remove] [the file |]{path}.|{path} can go. Delete it.|[Can|Could] you [delete|remove] {path}?|rm {path}[ please|]
{path} is [deleted|gone|removed].|[Done|OK|Deleted]: {path}.|[I deleted|I removed|I have deleted] {path}.
{path}
'''


def bars(text):
    """Returns the alternatives between bars outside of brackets."""

    found, depth = [''], 0

    for c in text:
        depth += (c == '[') - (c == ']')

        if c == '|' and depth == 0:
            found.append('')
        else:
            found[-1] += c

    return found


def shell_kinds():
    found = []

    for block in COMMANDS.strip().split('\n\n'):
        want, command, result, asks, answers, keys = block.split('\n')

        def case(rng, command=command, result=result):
            slots = shell_case(rng)
            total = slots['n'] + slots['size']
            slots.update(
                lines='\n'.join(slots['files']), first=slots['files'][0],
                comma=', '.join(slots['files']), total=total,
                used=slots['size'] * slots['percent'] // 100,
                free=slots['size'] * (100 - slots['percent']) // 100,
                hours=slots['percent'] + 3,
                last=f'{rng.choice(names.ADJECTIVES)} '
                     f'{rng.choice(names.NOUNS)} '
                     f'{rng.choice(names.GOODS)}')
            slots['command'] = command.format(**slots)
            slots['records'] = Text('' if result == '-' else result.replace(
                '\\n', '\n').format(**slots))

            return slots

        found.append(Kind(SHELL, case, want, ('command',), Split(bars(asks)),
                          tuple(bars(answers)), (keys,), '', tidy))

    return found


CODE = shell_kinds()


# ---------------------------------------------------------------- database


class Table:
    """A table with rows, in a database in memory that accepts only
    SELECT."""

    STEPS = 100000          # of SQLite's machine, for a query
    ROWS = 50
    LONGEST = 10000         # bytes of a value or a statement

    def __init__(self, name, columns, rows):
        self.name, self.columns, self.rows = name, columns, rows

    def query(self, sql):
        db = sqlite3.connect(':memory:')

        try:
            db.execute(f'create table {self.name} ('
                       + ', '.join(self.columns) + ')')
            db.executemany(f'insert into {self.name} values ('
                           + ', '.join('?' * len(self.columns)) + ')',
                           self.rows)
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self.LONGEST)
            db.set_authorizer(read_only)
            db.set_progress_handler(lambda: 1, self.STEPS)
            cursor = db.execute(sql)
            found = cursor.fetchmany(self.ROWS)

            return [d[0] for d in cursor.description or ()], found

        except (sqlite3.Error, sqlite3.Warning) as e:
            raise ValueError(f'SQL error: {e}') from None
        finally:
            db.close()


def read_only(action, *names):
    return sqlite3.SQLITE_OK if action in (
        sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION) else sqlite3.SQLITE_DENY


# table name; column of names; column of numbers; column of groups

TABLES = ('orders customer total city', 'sales product units region',
          'employees name salary city', 'students name points school',
          'books author pages language', 'rooms name seats building',
          'flights pilot passengers destination', 'members name age town',
          'products name price warehouse', 'runners name minutes country',
          'invoices client amount city', 'trips driver km city',
          'films director minutes language', 'plants name height room')


def table_case(rng):
    table, who, number, group = rng.choice(TABLES).split()
    pool = names.PRODUCTS if table in ('products', 'sales') \
        else names.GOODS if table == 'plants' else names.FIRST
    groups = names.LANGUAGES if group == 'language' \
        else names.ROOMS if group == 'room' else names.PLACES
    groups = rng.sample(groups, rng.randint(2, 3))
    people = rng.sample(pool, rng.randint(4, 7))
    values = rng.sample(range(2, 900), len(people))
    rows = [(p, v, rng.choice(groups)) for p, v in zip(people, values)]
    name, n, place = rng.choice(rows)
    top = max(rows, key=lambda r: r[1])
    low = min(rows, key=lambda r: r[1])

    return dict(table=table, who=who, number=number, group=group, name=name,
                n=n, place=place, top=top[0], least=low[0], rows=rows,
                count=sum(r[2] == place for r in rows), all=len(rows),
                big=top[1], small=low[1])


DATABASE = '''
find the {number} of {name} in {table}
SELECT {number} FROM {table} WHERE {who} = '{name}'
What is the {number} of {name} in [the table |]{table}?|Look up the {number} of {name} [in|from] {table}.|Which {number} does {name} have in {table}?|In {table}, find the {number} for {name}.
[It is|The {number} of {name} is|{name} has] {n}.|{n}[ is the {number}| for {name}|].|{name}: {n}.|The {number} is {n}.
{n}

count the rows of {table} with {place}
SELECT COUNT(*) FROM {table} WHERE {group} = '{place}'
How many {table} have {place} as {group}?|Count the {table} [with the|whose] {group} [is |]{place}.|How many [rows|entries] of {table} have the {group} {place}?
[There are|It is|I count] {count}.|{count}[ with {place}| in all|].|{count} {table}[ have {place}|].
{count}

find the row of {table} with the highest {number}
SELECT {who} FROM {table} ORDER BY {number} DESC LIMIT 1
Who or what has the highest {number} in {table}?|Which {who} of {table} has the [most|highest|largest] {number}?|Find the {who} with the [highest|largest] {number} in {table}.
[It is|That is] {top}.|{top}[ has the highest {number}|].|The highest {number} [has|belongs to] {top}.
{top}

find the row of {table} with the lowest {number}
SELECT {who} FROM {table} ORDER BY {number} ASC LIMIT 1
Which {who} of {table} has the [lowest|smallest|least] {number}?|Find the {who} with the [lowest|smallest] {number} in {table}.|Who or what has the lowest {number} in {table}?
[It is|That is] {least}.|{least}[ has the lowest {number}|].|The lowest {number} [has|belongs to] {least}.
{least}

count the rows of {table}
SELECT COUNT(*) FROM {table}
How many {table} are [there|in the database]?|Count [all |]the [rows|entries] of [the table |]{table}.|How [large|long] is the table {table}? [Count its rows.|]
[There are|It has|I count] {all}[ rows|].|{all}[ in all|].|{table} has {all} rows.|[It is|That makes] {all}.
{all}

find the largest {number} in {table}
SELECT MAX({number}) FROM {table}
What is the [largest|highest] {number} in {table}?|Give me the maximum of {number} in {table}.|How high is the {number} at most, in {table}?
[It is|The highest is|At most] {big}.|{big}[ at most|].|The [largest|highest] {number} is {big}.|The maximum is {big}.
{big}

find the {group} of {name} in {table}
SELECT {group} FROM {table} WHERE {who} = '{name}'
What is the {group} of {name} in {table}?|Which {group} does {name} have in {table}?|Look up the {group} of {name} in {table}.
[It is|The {group} of {name} is|{name} has] {place}.|{place}[ is the {group}| for {name}|].|{name}: {place}.|The {group} is {place}.
{place}
'''


def sql_service(case):
    table = case['table']
    columns = f'{case["who"]}, {case["number"]}, {case["group"]}'

    return service('the database', '''[run|execute|] [sql|query|sql query|database query]
[database|db|sql] [query|run|execute|select]
query [database|db|sql]''',
f'''[Runs|Executes] an SQL query[ on the database|]. [Tables|Schema]: {table}({columns})
[SQL|Database] access. [There is the|The only] table {table}({columns})
Query the database with SELECT. {table} has the columns {columns}''', [
        parameter('sql', 'sql query statement q command',
                  '[The|] [SQL|query|SELECT statement]')], 'text', plain=True)


def database_kinds():
    found = []

    for block in DATABASE.strip().split('\n\n'):
        want, sql, asks, answers, keys = block.split('\n')
        found.append((want, sql, Split(bars(asks)), tuple(bars(answers)),
                      keys))

    return found


DATABASE = database_kinds()


class Query:
    """A kind of use with a service and a table of its own in each task.  Any
    query is right whose result has the wanted value."""

    def __init__(self, want, sql, asks, answers, keys):
        self.want, self.sql, self.keys = want, sql, keys
        self.asks, self.answers = asks, answers

    def draw(self, rng):
        case = table_case(rng)
        case['sql'] = self.sql.format(**case)
        table = Table(case['table'], (case['who'], case['number'],
                                      case['group']), case['rows'])
        key = self.keys.format(**case)
        kind = Kind(sql_service(case), None, self.want, ('sql',), self.asks,
                    self.answers, (self.keys,), '',
                    lambda role, wanted, value: key in json.dumps(
                        table.query(str(value))[1], ensure_ascii=False))
        names_of, rows = table.query(case['sql'])
        layout = one_of(rng, 'table|json|list')
        text = ' | '.join(names_of) + '\n' + '\n'.join(
            ' | '.join(map(str, r)) for r in rows)

        if layout == 'json':
            text = json.dumps([dict(zip(names_of, r)) for r in rows],
                              ensure_ascii=False)
        elif layout == 'list':
            text = json.dumps({'rows': rows, 'count': len(rows)},
                              ensure_ascii=False)

        case['records'] = Text(text)

        return kind.use(rng, case)


CODE += [Query(*row) for row in DATABASE]

FILTER = service('records', '''[find|query|search|filter|get] [records|rows|entries|table|documents]
[records|table|crm|documents] [find|query|search|filter]''',
'''[Finds|Returns] the [rows|records] of a table [that match a filter|with a value]
[Records|Table] [search|lookup] by [field and value|a filter]''', [
    parameter('table', 'table collection source dataset from',
              '[Name of the|The] [table|collection]'),
    parameter('field', 'field column key attribute', '[The|] [field|column] '
              'to compare'),
    parameter('value', 'value equals is match', '[The|] value that it must '
              'have')], 'text', plain=True)


def filter_case(rng):
    case = table_case(rng)
    row = next(r for r in case['rows'] if r[0] == case['name'])
    record = dict(zip((case['who'], case['number'], case['group']), row))
    case.update(field=case['who'], value=case['name'], records=Text(
        json.dumps(one_of(rng, 'a|b') == 'a' and [record]
                   or {'matches': [record]}, ensure_ascii=False)))

    return case


CODE += kinds(FILTER, filter_case, '''
= find the {number} of {name} in {table}
@ table field value
- In {table}, what is the {number} where {who} is {name}?
- Find the {number} in the table {table} [for|of] the {who} {name}.
- [Search|Filter] {table} for {who} = {name} and [tell|give] me the {number}.
- What {number} has the {who} {name} in {table}?
> [It is|The {number} is|{name} has] {n}.
> {n}[ is the {number}|].
> The {number} of {name} is {n}.
> {name}: {n}.
+ {n}

= find the {group} of {name} in {table}
@ table field value
- In {table}, what is the {group} where {who} is {name}?
- Find the {group} in the table {table} [for|of] the {who} {name}.
- [Search|Filter] {table} for {who} = {name} and [tell|give] me the {group}.
> [It is|The {group} is|{name} has] {place}.
> {place}[ is the {group}|].
> The {group} of {name} is {place}.
> {name}: {place}.
+ {place}
''')
