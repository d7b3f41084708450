# Copyright (C) The nginx-dsa authors

"""Services that read what the user has: the inbox, the calendar, reminders,
files."""

from tasks import names
from tasks.api import parameter, service
from tasks.task import Text
from tasks.uses import kinds, loosely, one_of
from tasks.times import clock, day
from tasks.uses_act import message


def person(rng):
    return f'{rng.choice(names.FIRST)} {rng.choice(names.LAST)}'


def subject(rng):
    return one_of(rng, f'{rng.choice(names.TOPICS)}'
                       f'|{rng.choice(names.EVENTS)}'
                       f'|the {rng.choice(names.PRODUCTS)}'
                       f'|[question|invoice|offer|photos] about '
                       f'{rng.choice(names.GOODS)}')


INBOX = service('the inbox', '''[list|get|read|search|check] [emails|mails|inbox|messages|mail]
[inbox|mail|email] [list|search|read|check]
search [email|mailbox]''',
'''[Lists|Returns|Finds] [mails|emails|messages] [of the inbox|from a sender|]
[Searches|Search] the [inbox|mailbox|mails] [by sender|]
[Inbox|Mailbox][: sender, subject and day of mails|]''', [
    parameter('sender', 'from sender from_name author query search',
              '[Name of the|The] sender'),
    parameter('limit', 'limit max_results count', 'How many at most',
              kind='integer', needed=False)],
    'sender subject day')


def inbox_case(rng):
    who = rng.choice(names.FIRST)
    records = [dict(sender=who, subject=subject(rng), day=day(rng))
               for _ in range(rng.randint(1, 4))]

    return dict(sender=who, records=records, n=len(records),
                subject=records[0]['subject'], day=records[0]['day'],
                all=' and '.join(f'"{r["subject"]}"' for r in records[:2]))


OWN = kinds(INBOX, inbox_case, '''
= count the mails from {sender}
@ sender
- How many [emails|mails|messages] [did I get|have I got|do I have|are there] from {sender}?
- Count the [mails|emails] from {sender}.
- Did {sender} write to me? How often?
> [You have|There are|I found] {n} [from {sender}|in all].
> {n}[ from {sender}|].
> {sender} [wrote|sent] {n}.
> [It is|That makes] {n}[ from {sender}|].
+ {n}

= find the first mail from {sender}
@ sender
- What [is the subject of|does] the first [mail|email] from {sender}[ say in its subject|]?
- What did {sender} write[ to me|] about? [The first mail will do.|The first one.|]
- [Check|Look at] my [mails|inbox] for {sender} and [tell|give] me the first subject.
- [Any|Is there] mail from {sender}? [Name the first subject.|]
> [The subject is|It is about|The first is] "{subject}"[ ({day})|].
> {sender} wrote about "{subject}".
> "{subject}"[, from {day}| from {sender}|].
> [The first mail|The first one] [from {sender}|] is "{subject}".
+ {subject}
''', 'sender', loosely)

AGENDA = service('the agenda', '''[list|get|show|read] [events|calendar|appointments|agenda|calendar events]
[calendar|agenda|schedule] [list|get|read|events|view]''',
'''[Lists|Returns|Shows] the [events|appointments] [of a day|on a day|in the calendar]
[Calendar|Agenda|Schedule] of a day''', [
    parameter('day', 'day date on when', '[Day|Date][, e.g. today|]'),
    parameter('limit', 'limit max', 'How many at most', kind='integer',
              needed=False)],
    'event time')


def agenda_case(rng):
    when = day(rng)
    events = rng.sample(names.EVENTS, rng.randint(1, 4))
    records = [dict(event=e, time=clock(rng)) for e in events]

    return dict(day=when, records=records, n=len(records), event=events[0],
                time=records[0]['time'],
                all=', '.join(f'{r["event"]} at {r["time"]}'
                              for r in records))


OWN += kinds(AGENDA, agenda_case, '''
= list the appointments of {day}
@ day
- What [is|do I have] [on my calendar|in my calendar|planned|on] {day}?
- What's on {day}?
- [Show|Read|Give] me my [appointments|events|agenda|schedule] [for|of] {day}.
- Which [appointments|events|meetings] [do I have|are there] {day}?
- How does my {day} look?
- Am I busy {day}? [List everything.|What do I have?]
> [You have|There is|In your calendar:] {all}.
> {day}: {all}.
> [Your appointments are|I see]: {all}.
> {all}[ - that is all|].
+ {event}; {time}

= count the appointments of {day}
@ day
- How many [appointments|events|meetings] do I have {day}?
- [Count|Give me the number of] my [appointments|events] [on|for] {day}.
> [You have|There are|It is|I count] {n}.
> {n}[ on {day}| in all|].
> {day} has {n}.
+ {n}

= find when the {event} is
@ day
- [When|At what time] is the {event} {day}?
- {day} there is a {event}. [When does it begin?|At what time?]
- What time does my {event} [start|begin] {day}?
> [At|It is at|It begins at|The {event} is at] {time}.
> {time}[, {day}|].
> [Your|The] {event} [starts|begins] at {time}.
+ {time}
''', 'day')

FILE = parameter('path', 'path file filename file_path name',
                 '[Path|Name] of the file')

READ = service('reading files', '''[read|open|get|load|view|show] [file|text file|document]
[file|fs|document] [read|get|open|content]''',
'''[Reads|Returns|Shows] [a file|the content of a file|a text file]
[File system|Files]: read a file''', [
    FILE, parameter('encoding', 'encoding charset', 'Encoding',
                    needed=False)], 'text', plain=True)


def path(rng):
    file = f'{rng.choice(names.STEMS)}.{rng.choice(names.ENDINGS)}'
    way = rng.random()

    if way < 0.4:
        return file

    if way < 0.5:
        return f'{rng.choice(names.STEMS)}_{file}'

    return one_of(rng, f'{rng.choice(names.FOLDERS)}/{file}'
                       f'|/{rng.choice(names.FOLDERS)}/{file}'
                       f'|/srv/{rng.choice(names.FIRST).lower()}/{file}'
                       f'|~/{rng.choice(names.FOLDERS)}/{file}')


def read_case(rng):
    fields = {'owner': person(rng), 'city': rng.choice(names.PLACES),
              'port': rng.randrange(1000, 9999), 'color': one_of(
                  rng, 'red|blue|green|black|white|yellow|purple'),
              'version': f'{rng.randrange(9)}.{rng.randrange(20)}',
              'phone': rng.randrange(100000, 999999),
              'timeout': rng.randrange(1, 300), 'user': rng.choice(
                  names.FIRST).lower(), 'limit': rng.randrange(10, 5000),
              'title': subject(rng), 'language': rng.choice(names.LANGUAGES)}
    used = rng.sample(sorted(fields), rng.randint(2, 5))
    sign = rng.choice((': ', '=', ' = ', ' '))
    text = '\n'.join(f'{k}{sign}{fields[k]}' for k in used)
    key = rng.choice(used)

    return dict(path=path(rng), records=Text(text), key=key,
                value=fields[key], n=len(used), first=text.split('\n')[0],
                text=text)


OWN += kinds(READ, read_case, '''
= find the {key} in {path}
@ path
- What is the {key} in {path}?
- [Read|Open|Look into] {path} and [tell|give] me the {key}.
- Which {key} does {path} [have|contain|name]?
- [Can|Could] you look up the {key} in [the file |]{path}?
- [I forgot|I need] the {key}. It is in {path}.
> [The {key} is|It is|It says] {value}.
> {value}[ is the {key}| according to {path}|].
> {path} has {value}[ as the {key}|].
> [In {path}|There] the {key} is {value}.
+ {value}

= count the lines of {path}
@ path
- How many lines does {path} have?
- [Count|Give me the number of] the lines [of|in] {path}.
> {n}[ lines|].
> [It has|There are|I count] {n} lines.
> {path} has {n} lines.
+ {n}

= show {path}
@ path
- [Show|Print|Read|Display] [me |][the file |]{path}.
- What [is in|does it say in] {path}?
- [Can|Could] you [open|read] {path} for me?
> [Here is {path}|{path} says|It says|The file says|The content is|This is in it]:
  {text}
+ {first}
''', 'path')

WRITE = service('writing files', '''[write|save|create] [file|text file|to file|document]
[file|fs|document] [write|save|create|put]''',
'''[Writes|Saves|Creates] [a file|a text to a file|a text file]
[File system|Files]: write a file''', [
    FILE, parameter('text', 'content text data contents body',
                    '[The|] [text|content]'),
    parameter('append', 'append add', 'Whether to keep what is there',
              kind='boolean', needed=False)])


def write_case(rng):
    return dict(path=path(rng), text=one_of(
        rng, f'{message(rng)}|{rng.choice(names.ERRANDS)}'
             f'|{rng.choice(names.GOODS)}|{rng.randrange(1000)}'
             f'|hello {rng.choice(names.FIRST)}'))


OWN += kinds(WRITE, write_case, '''
= write {path}
@ path text
- [Write|Save|Put] "{text}" [to|into] [the file |]{path}.
- [Create|Make] a file {path} [with|that contains|with the text] "{text}".
- Save this as {path}: {text}
- [Can|Could] you [write|save] "{text}" [to|in] {path}?
- I need a file {path}. [Its content is|It should say] "{text}".
> {path} is [written|saved|there][ now|].
> [I wrote|I saved|I have saved] [it to|the text to|] {path}.
> [Done|OK|Saved]: {path}.
> The [text|file] is [saved|stored] [as|in] {path}.
+ {path}
''', 'path', loosely)

LIST = service('folders', '''[list|get|show] [files|directory|folder|dir|folder contents]
[directory|folder|fs|files] [list|listing|contents]
ls''',
'''[Lists|Returns|Shows] the files [of a folder|in a directory|in a folder]
[Directory|Folder] [listing|contents]''', [
    parameter('folder', 'path folder directory dir name where',
              '[Path of the|The] [folder|directory]'),
    parameter('hidden', 'show_hidden hidden all', 'Whether to list hidden '
              'files', kind='boolean', needed=False)],
    'file size')


def list_case(rng):
    files = {f'{rng.choice(names.STEMS)}.{rng.choice(names.ENDINGS)}'
             for _ in range(rng.randint(1, 5))}
    sizes = rng.sample(range(1, 9000), len(files))
    records = [dict(file=f, size=s) for f, s in zip(sorted(files), sizes)]
    most = max(records, key=lambda r: r['size'])

    return dict(folder=one_of(rng, f'{rng.choice(names.FOLDERS)}'
                                   f'|/{rng.choice(names.FOLDERS)}'
                                   f'|~/{rng.choice(names.FOLDERS)}'
                                   f'|/srv/{rng.choice(names.FIRST)}'
                              ).lower(),
                records=records, n=len(records), first=records[0]['file'],
                last=records[-1]['file'], big=most['file'],
                all=', '.join(r['file'] for r in records))


OWN += kinds(LIST, list_case, '''
= list the files in {folder}
@ folder
- [Which|What] files are [there |]in {folder}?
- List [the files in|the content of|] {folder}.
- [What is|What's|Show me what is] in [the folder |]{folder}[?|]
- [Can|Could] you list {folder}[ for me|]?
> [There are|I see|It has|The files are]: {all}.
> {all}
> {folder} [contains|has]: {all}.
> [Here are the files|In it]: {all}.
+ {first}; {last}

= count the files in {folder}
@ folder
- How many files are [there |]in {folder}?
- Count the files in {folder}.
> {n}[ files|].
> [There are|I count|It has] {n}.
> {folder} has {n}[ files|].
> [It is|That makes] {n}[ in all|].
+ {n}

= find the largest file in {folder}
@ folder
- [Which|What] is the [largest|biggest] file in {folder}?
- Which file in {folder} [needs|takes] the most space?
> [It is|The largest is|That is] {big}.
> {big}[ is the largest|].
> {big} [takes the most space|is the biggest].
+ {big}
''', 'folder')

TASKS = service('the to-do list', '''[list|get|show|read] [reminders|tasks|todos|to do list]
[reminders|tasks|todo] [list|get|all|show]''',
'''[Lists|Returns|Shows] [the reminders|the tasks|all reminders] of [the user|a day]
[To-do list|Reminders|Tasks] of a day''', [
    parameter('day', 'day date when due', '[Day|Date]')],
    'task time')


def todo_case(rng):
    tasks = rng.sample(names.ERRANDS, rng.randint(1, 4))
    records = [dict(task=t, time=clock(rng)) for t in tasks]

    return dict(day=day(rng), records=records, first=tasks[0],
                last=tasks[-1], n=len(tasks), time=records[0]['time'],
                all='; '.join(tasks))


OWN += kinds(TASKS, todo_case, '''
= list the tasks of {day}
@ day
- What do I have to do {day}?
- [Which|What] [tasks|reminders] [do I have|are there] for {day}?
- [Read|Show|Give] me my [to-do list|tasks|reminders] [of|for] {day}.
- What should I not forget {day}?
> [You have to|You wanted to|Your tasks]: {all}.
> {day}: {all}.
> [There is|Do not forget]: {all}.
> {all}
+ {first}; {last}

= count the tasks of {day}
@ day
- How many [tasks|reminders|things] [do I have|are there] {day}?
- Count my [tasks|reminders] [for|of] {day}.
- [How long is|How many entries has] my to-do list [for|of] {day}?
> {n}[ tasks|].
> [There are|You have|I count] {n}.
> [It is|That makes] {n}[ for {day}|].
+ {n}
''', 'day')
