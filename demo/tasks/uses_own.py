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
- [Has|Did] {sender} [written|sent] me [anything|mails|any mail]? [Just the number.|How many were there?]
- {sender}: how many [mails|emails]?
- [I'm|I am] waiting for {sender}'s mails. How many [arrived|came in|are there]?
- What's the number of [emails|mails] from {sender} in my inbox?
- how many mails {sender} rn
- [I have the feeling|It seems to me] that {sender} writes [a lot|too much]. How many mails is it?
- Check the inbox for {sender}; I only want [the count|to know how many].
- [Please look|Have a look], how many times {sender} has written to me?
- In my mailbox, how many messages have {sender} as the sender?
- Number of mails from {sender}?
- My inbox is full. How much of that is from {sender}? Count the mails.
- [Can|Could] you count what {sender} has mailed me?
- Give me a count: mails, sender {sender}.
- [Is it just one mail|Is it one mail or more] that {sender} sent? How many exactly?
> [You have|There are|I found] {n} [from {sender}|in all].
> {n}[ from {sender}|].
> {sender} [wrote|sent] {n}.
> [It is|That makes] {n}[ from {sender}|].
> In your inbox [there are|are] {n} from {sender}.
> {sender}: {n}.
> [I count|It comes to] {n}[ from {sender}|].
> {n} [in your inbox|so far].
+ {n}

= find the first mail from {sender}
@ sender
- What [is the subject of|does] the first [mail|email] from {sender}[ say in its subject|]?
- What did {sender} write[ to me|] about? [The first mail will do.|The first one.|]
- [Check|Look at] my [mails|inbox] for {sender} and [tell|give] me the first subject.
- [Any|Is there] mail from {sender}? [Name the first subject.|]
- {sender} mailed me. What's it about? [Just the first one.|The first mail is enough.]
- [Which|What] subject [has|does] the first mail from {sender} [have|carry][?|, please?]
- [I think|I believe] {sender} wrote to me. Read me the subject of the first mail[ please|].
- subject of first mail from {sender}
- [Look|Search] for {sender} in my inbox: what is the first mail called?
- I'm [looking for|trying to find] an email by {sender}. What does the first one [say as|have as] subject?
- [Can|Could] you tell me what {sender}'s first email is about?
- Mails from {sender} - first subject only.
- What did {sender} want? The subject of the first mail tells me enough.
- [Give|Read] me the title of the first email that {sender} sent.
- Please you look what subject is in first mail of {sender}.
- Under which subject did {sender} first write to me?
- Before I call {sender}: what's the first mail about?
> [The subject is|It is about|The first is] "{subject}"[ ({day})|].
> {sender} wrote about "{subject}".
> "{subject}"[, from {day}| from {sender}|].
> [The first mail|The first one] [from {sender}|] is "{subject}".
> [That one|It] has the subject "{subject}".
> {sender}'s first mail is about "{subject}".
> [I found|There is] "{subject}" from {sender}.
> [Subject|First subject]: "{subject}".
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
- {day}?? What's in my calendar?
- [Anything|What's] [on|planned] {day}?
- [Walk|Take] me through my {day}.
- [I'm|I am] planning {day}. What do I have [already|so far]?
- my calendar {day} pls
- [What do I have|What's scheduled] {day}, and when?
- Can I [sleep in|take it easy] {day}, or is there something in my calendar? List it all.
- [Someone|My boss] asked me if I'm free {day}. What is in my calendar?
- [Can|Could|Would] you [read out|list|show] my calendar [for|of] {day}?
- Tell me everything that I have {day}, with times.
- Agenda {day}
- Which appointments are there {day} and at what time?
- [Remind me|I forgot] what {day} looks like. All appointments, please.
- What plans have I for {day}?
- I want to see my calendar of {day}.
- Do I have to be anywhere {day}? [Where and when?|All of it, please.]
- Calendar check: {day}.
- How full is {day}? List the appointments.
- whats happening {day} in my calendar
> [You have|There is|In your calendar:] {all}.
> {day}: {all}.
> [Your appointments are|I see]: {all}.
> {all}[ - that is all|].
> {day} you have: {all}.
> [It's|There's|Here is what I see]: {all}.
> Your {day}: {all}.
> [On your calendar|In your agenda] {day}: {all}.
> [Planned|Scheduled] {day}: {all}.
+ {event}; {time}

= count the appointments of {day}
@ day
- How many [appointments|events|meetings] do I have {day}?
- [Count|Give me the number of] my [appointments|events] [on|for] {day}.
- [Is {day} busy|Will {day} be busy]? How many appointments [are there|do I have]?
- number of appointments {day}
- {day}: how many [meetings|events|appointments]?
- Just tell me how many things are in my calendar {day}.
- [Can|Could] you count my [meetings|appointments] {day}?
- [How often|How many times] do I have to be somewhere {day}?
- What's the number of entries in my calendar {day}?
- How many appointments I have {day}?
- I'm afraid {day} is packed. How many events is it?
- [I need the count|A number is enough]: appointments {day}.
> [You have|There are|It is|I count] {n}.
> {n}[, {day}| in all|].
> {day} has {n}.
> {n} in your calendar.
> Your calendar shows {n}.
> {day} you have {n}.
+ {n}

= find when the {event} is
@ day
- [When|At what time] is the {event} {day}?
- {day} there is a {event}. [When does it begin?|At what time?]
- What time does my {event} [start|begin] {day}?
- {event} {day} - [when|what time]?
- [I don't remember|I forgot] when the {event} is {day}. [Look it up.|Can you check?]
- [Can|Could] you check my calendar {day} for the {event}? I need the time.
- [How long can I sleep|When do I have to be there] {day}? I mean the {event}[, when does it start|; tell me its start].
- [I don't want to be late for|I don't want to miss] the {event} {day}. When is it?
- what time is {event} {day}
- Look at {day} in my calendar and tell me the time of the {event}.
- The {event} is {day}, I know that. But at what time?
- Start of the {event} {day}?
- Please say me when is the {event}, {day}.
- When must I leave for the {event} {day}? Just tell me when it starts.
> [At|It is at|It begins at|The {event} is at] {time}.
> {time}[, {day}|].
> [Your|The] {event} [starts|begins] at {time}.
> {day} at {time}.
> The {event} [is|starts|begins] at {time}.
> Your calendar says {time}[ for the {event}|].
> [Be there at|You have it at] {time}.
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
- {path}: what's the {key}?
- [Somewhere in|In] {path} [there is|it says] the {key}. What is it?
- [Take|Have] a look at {path}. Which {key} [is it|do you see|is set there]?
- {key} from {path}[ pls|, please]
- Tell me the {key} that is [written|stored|given] in {path}.
- [I'm configuring something|I'm filling in a form] and need the {key} from {path}.
- According to {path}, what is the {key}?
- Check {path} for the {key}.
- Which value does {key} have in the file {path}?
- What does {path} say about the {key}?
- The file {path} has a line with the {key}. Give me the value.
- grep the {key} out of {path} for me
- [Extract|Get] the {key} from {path}.
- Please to open {path} and say what is {key}.
- [Is there|Do we have] a {key} in {path}? Which one?
> [The {key} is|It is|It says] {value}.
> {value}[ is the {key}| according to {path}|].
> {path} has {value}[ as the {key}|].
> [In {path}|There] the {key} is {value}.
> {path} says: {value}.
> [It's|That's] {value}[ in {path}|].
> {key}: {value}.
> The value of {key} is {value}.
> [I read|I found] {value} there.
+ {value}

= count the lines of {path}
@ path
- How many lines does {path} have?
- [Count|Give me the number of] the lines [of|in] {path}.
- {path}, how many lines?
- line count of {path}
- [Is {path} a long file|Would you say {path} is a long file]? How many lines are in it?
- [Can|Could] you count the lines in {path}?
- Open {path} and count its lines.
- How long is {path}, in lines?
- [I need|I want] to know the number of lines in {path}.
- Of how many lines does {path} consist?
- Tell me how many lines I find in {path}.
> {n}[ lines|].
> [It has|There are|I count] {n} lines.
> {path} has {n} lines.
> {path}: {n}.
> [The file|It] consists of {n} lines.
> The number of lines is {n}.
+ {n}

= show {path}
@ path
- [Show|Print|Read|Display] [me |][the file |]{path}.
- What [is in|does it say in] {path}?
- [Can|Could] you [open|read] {path} for me?
- cat {path}
- {path}, [please|show it]
- [I want|I need] to see [what's in|the content of|the text of] {path}.
- Open {path} and show me [everything|all of it|its content].
- What's [inside|in] the file {path}?
- [Let me see|Let me have a look at] {path}.
- Give me the [full |whole |]text of {path}.
- [Type|Dump|Output] {path}[ for me|].
- I can't open {path} on my phone. What does it say?
- Is there something in {path}? Show it.
- The content of {path}, please.
- Please you show me file {path} complete.
> [Here is {path}|{path} says|It says|The file says|The content is|This is in it]:
  {text}
> [This is|That's] {path}:
  {text}
> {text}
> [Content of|In] {path}:
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
- [Put|Store] the text "{text}" in {path}.
- {path} should [contain|say|read] "{text}". [Please write it.|Save that.]
- Write a file. Name: {path}. Content: {text}
- [I'd like|I want] to keep "{text}" in a file, {path}.
- [Overwrite|Fill] {path} with "{text}".
- save "{text}" -> {path}
- Into {path}, [please write|write] "{text}".
- Make me a text file [called|named] {path} that says "{text}".
- [New file|File]: {path}\\n[Content|Text]: {text}
- Would you store "{text}"? The file name is {path}.
- Type "{text}" into a file and call it {path}.
- The words "{text}" must go in the file {path}.
- pls create {path} w/ "{text}"
- [My script|The program] expects a file {path} with "{text}" in it. Create it.
- Please write to file {path} this: {text}
> {path} is [written|saved|there][ now|].
> [I wrote|I saved|I have saved] [it to|the text to|] {path}.
> [Done|OK|Saved]: {path}.
> The [text|file] is [saved|stored] [as|in] {path}.
> [It's|The text is] in {path}[ now|].
> {path} now [has|contains] the text.
> [The file {path} is in place|I created {path}|{path} is ready].
> [All right|Sure], {path} is saved.
> [Written to|Stored in] {path}.
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
- ls {folder}
- {folder}: which files?
- What's [stored|lying around] in {folder}?
- [I'm looking for a file|I forgot the name of a file]. What is in {folder}?
- [Name|Give me] all files [of|in] {folder}.
- Look into {folder} and tell me what files [you see|there are].
- Which files does {folder} [have|contain|hold]?
- [Open|Check] the folder {folder}. What do you [find|see]?
- files in {folder} pls
- Show the directory {folder}.
- Do I have anything in {folder}? List it.
- I need [a list|an overview] of the files in {folder}.
- Tell me the content of folder {folder}.
- Before I delete {folder}: what's in it?
> [There are|I see|It has|The files are]: {all}.
> {all}
> {folder} [contains|has]: {all}.
> [Here are the files|In it]: {all}.
> In {folder} [there are|I see|I find]: {all}.
> [These|The following] files: {all}.
> [You have|It holds]: {all}.
> {folder}: {all}.
+ {first}; {last}

= count the files in {folder}
@ folder
- How many files are [there |]in {folder}?
- Count the files in {folder}.
- {folder}, how many files?
- [Is {folder} full|Is {folder} empty|Would you call {folder} full]? How many files does it have?
- What is the number of files in {folder}?
- [Can|Could] you count what's in {folder}?
- file count {folder}
- [Tell|Give] me the number of files in the folder {folder}.
- How many files did I put in {folder}?
- How many files are stored under {folder}?
- Of files, how many has {folder}?
> {n}[ files|].
> [There are|I count|It has] {n}.
> {folder} has {n}[ files|].
> [It is|That makes] {n}[ in all|].
> [In {folder} there are|You have] {n}.
> {folder}: {n}.
> The folder [holds|contains] {n}.
+ {n}

= find the largest file in {folder}
@ folder
- [Which|What] is the [largest|biggest] file in {folder}?
- Which file in {folder} [needs|takes] the most space?
- {folder}: what's the largest file?
- [I need space|The disk is full]. What is the biggest file in {folder}?
- Find the [largest|biggest] file [of|in] {folder}.
- biggest file in {folder}?
- [Of all|Among the] files in {folder}, which one is largest?
- What takes up most of the space in {folder}?
- Look in {folder} and name the file with the greatest size.
- Which one of the files in {folder} is the most big?
- [Can|Could] you find out which file in {folder} is the largest?
> [It is|The largest is|That is] {big}.
> {big}[ is the largest|].
> {big} [takes the most space|is the biggest].
> [In {folder} it's|The biggest one is] {big}.
> {big} is the biggest one.
> [Its name is|You want] {big}.
+ {big}
''', 'folder')

TASKS = service('the to-do list', '''[list|get|show|read] [reminders|tasks|todos|to do list]
[reminders|tasks|todo] [list|get|read|show]''',
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
- {day}: what's on my to-do list?
- my todos {day} pls
- [Which|What] [jobs|chores|tasks] are [due|waiting] {day}?
- [I want to plan|I'm planning] {day}. Read me my [to-dos|reminders|tasks].
- [Am I free|Is there anything to do] {day}? Tell me all my tasks.
- [What did I want|What have I promised] to do {day}?
- [Can|Could] you list my reminders for {day}?
- Go through my tasks {day}.
- What must I not forget {day}?
- To-do list, {day}.
- [I've got some time|I have a free hour] {day}. What's on the list?
- What have I to make {day}? Show my tasks.
- What's left to do {day}? All tasks, please.
- [Give me|I need] an overview of my tasks {day}.
> [You have to|You wanted to|Your tasks]: {all}.
> {day}: {all}.
> [There is|Do not forget]: {all}.
> {all}
> {day} you [have to|need to]: {all}.
> [On your list|On your to-do list]: {all}.
> [Here they are|Your list says]: {all}.
> [These are due|To do] {day}: {all}.
+ {first}; {last}

= count the tasks of {day}
@ day
- How many [tasks|reminders|things] [do I have|are there] {day}?
- Count my [tasks|reminders] [for|of] {day}.
- [How long is|How many entries has] my to-do list [for|of] {day}?
- {day}, how many tasks?
- [Is {day} a lot of work|Will {day} be a lot of work]? How many [to-dos|tasks] have I got?
- number of reminders {day}
- [Can|Could] you count my to-dos {day}?
- How much is there to do {day}? Just the number of tasks.
- Tell me how many reminders are set for {day}.
- What's the number of entries on my to-do list {day}?
- How many things did I put on the list for {day}?
- I have how many tasks {day}?
> {n}[ tasks|].
> [There are|You have|I count] {n}.
> [It is|That makes] {n}[ for {day}|].
> {n} on [your|the] list.
> {day} you have {n}.
> Your list [has|shows] {n}.
+ {n}
''', 'day')
