# Copyright (C) The nginx-dsa authors

"""A shell, whose commands the model must write: files and folders, and the
state of a machine.  The commands of git are in uses_git.py.

A kind of use is some lines, as in uses.py, with two marks more:

    $ the command
    < its output; the lines are divided by \\n, and without this line it is
      empty
"""

import json
import re

from tasks import names
from tasks.api import parameter, service
from tasks.parts import Split
from tasks.task import Text
from tasks.uses import Kind, one_of
from tasks.uses_own import path


SHELL = service('the shell', '''[run|execute|exec] [command|shell|bash|shell command|in terminal]
[shell|bash|terminal|sh|command] [exec|run|execute|]
[bash|terminal|shell]
[ssh|remote|server|vm|container|sandbox|linux] [exec|command|run|shell]
[os|sys|system|host] [shell|exec|command|run command]
[cmd|cli|console] [run|exec|]
[dev|ops|acme|infra] [shell|terminal] [exec|run|]
run [cli|script|on server|terminal command|bash script|shell script|cmd]
[start|launch|spawn|invoke] [process|command|shell command]
execute [bash|terminal|cli] command''',
'''[Runs|Executes|Run] a [command|shell command|bash command][ and returns its output|]
[Shell|Terminal|Bash] [access|]
Execute a command [in the shell|on the server|in a terminal]
[Gives|Provides] access to [a|the] [Linux|Unix] [machine|server|host] through its shell
Whatever you pass is [run by bash|executed by sh]; [stdout is returned|you get what it prints]
Use this [for files, git, processes and the system|to look at the machine|for anything on the command line]
Non-interactive [bash|shell][, one command at a time|; no prompts|]
[Remote|Local] command execution
A [persistent|sandboxed|plain] [bash|shell] session for [the user's machine|the project|the server]
Sends a command line to the [machine|container|host] and [waits for|reads] its output''', [
    parameter('command', 'command cmd code script input line cmdline '
              'command_line bash shell_command run exec commandLine args '
              'instruction',
              '[The|] command[ line|][, e.g. ls|]'),
    parameter('timeout', 'timeout timeout_seconds timeout_s max_seconds '
              'time_limit', '[Seconds|Time limit in seconds]',
              kind='integer', needed=False),
    parameter('directory', 'cwd workdir working_directory dir',
              'Where it runs', needed=False)], 'text', plain=True)


def tidy(role, wanted, value):
    """Returns true if two commands differ only in blanks and quotes."""

    def words(text):
        return re.sub(r'[\s"\']+', ' ', str(text)).strip()

    return words(wanted) == words(value)


MESSAGES = ('[fix|update|add|remove|rename|improve|rewrite|move|check|drop] '
            '[the|old|new|missing|unused] {noun} [page|test|link|icon|form'
            '|list|button|text|table|style]')


def shell_case(rng):
    folder = rng.choice(names.FOLDERS)
    files = [f'{rng.choice(names.STEMS)}.{rng.choice(names.ENDINGS)}'
             for _ in range(rng.randint(1, 4))]
    user = rng.choice(names.FIRST).lower()
    slots = dict(
        folder=one_of(rng, f'{folder}|/{folder}|/var/{folder}|~/{folder}'
                           f'|/srv/{folder}|/opt/{folder}'),
        path=path(rng), files=files, user=user,
        word=rng.choice(names.NOUNS), n=rng.randrange(2, 4000),
        percent=rng.randrange(3, 99), size=rng.randrange(2, 900),
        host=f'{rng.choice(names.NOUNS)}-{rng.randrange(1, 40)}',
        branch=one_of(rng, f'[|feature/|fix/]{rng.choice(names.STEMS)}-'
                           f'{rng.choice(names.NOUNS)}'),
        version=f'{rng.randrange(1, 9)}.{rng.randrange(30)}.'
                f'{rng.randrange(99)}',
        to=f'{rng.choice(names.STEMS)}.{rng.choice(names.ENDINGS)}',
        process=one_of(rng, 'nginx|redis-server|postgres|python3|node|java'
                            '|sshd|cron|docker|mysqld|apache2|php-fpm'
                            '|rabbitmq|grafana|haproxy|memcached'),
        end=rng.choice(names.ENDINGS), pid=rng.randrange(200, 40000),
        few=rng.randrange(2, 30), cores=one_of(rng, '2|4|6|8|12|16|32|64'),
        address='.'.join(str(rng.randrange(1, 255)) for _ in range(4)),
        state=one_of(rng, 'active|inactive|failed'),
        archive=f'{rng.choice(names.STEMS)}-{rng.randrange(1, 99)}.tar.gz',
        hash=''.join(rng.choice('0123456789abcdef') for _ in range(7)),
        person=f'{rng.choice(names.FIRST)} {rng.choice(names.LAST)}',
        tag=f'v{rng.randrange(1, 9)}.{rng.randrange(30)}',
        note=one_of(rng, MESSAGES).format(noun=rng.choice(names.NOUNS)),
        line=f'{rng.choice(names.ADJECTIVES)} {rng.choice(names.NOUNS)} '
             f'{rng.choice(names.GOODS)}',
        package=one_of(rng, 'requests|flask|numpy|pandas|rich|httpx|pytest'
                            '|black|pillow|redis|jinja2|click|lxml|tqdm'),
        clock=f'{rng.randrange(24):02}:{rng.randrange(60):02}',
        script=f'{rng.choice(names.STEMS)}.{one_of(rng, "sh|py|pl|rb")}',
        inner=one_of(rng, f'[src/|docs/|tests/|lib/|]{rng.choice(names.STEMS)}'
                          f'.{rng.choice(names.ENDINGS)}'),
        place=f'/{one_of(rng, "home|srv|opt")}/{user}/{folder}')
    slots.update(lines='\n'.join(files), first=files[0],
                 comma=', '.join(files), total=slots['n'] + slots['size'],
                 used=slots['size'] * slots['percent'] // 100,
                 free=slots['size'] * (100 - slots['percent']) // 100,
                 hours=slots['percent'] + 3,
                 found=f'{slots["folder"]}/{rng.choice(names.STEMS)}'
                       f'.{slots["end"]}')

    return slots


def shown(rng, output):
    """Returns the result of a command: its output, or an object with it."""

    way = rng.random()

    if way < 0.75 or output == '':
        return Text(output)

    return Text(json.dumps(
        {'stdout': output, 'exit_code': 0} if way < 0.85 else
        {'output': output, 'returncode': 0} if way < 0.92 else
        {'code': 0, 'out': output, 'err': ''}, ensure_ascii=False))


def shell_kinds(text):
    found = []

    for block in text.strip().split('\n\n'):
        part = {mark: [] for mark in '=$<->+'}

        for line in block.splitlines():
            part[line[0]].append(line[2:])

        def case(rng, command=part['$'][0], output=''.join(part['<'])):
            slots = shell_case(rng)
            slots['command'] = command.format(**slots)
            slots['records'] = shown(rng, output.replace(
                '\\n', '\n').format(**slots))

            return slots

        found.append(Kind(SHELL, case, part['='][0], ('command',),
                          Split(part['-']), tuple(part['>']),
                          tuple(part['+']), '', tidy))

    return found


SHELLS = shell_kinds(r'''
= list the files in {folder}
$ ls {folder}
< {lines}
- Use the [shell|terminal|command line] to list {folder}.
- Which files are in {folder}? [Use the terminal.|Look with the shell.|]
- ls {folder}[ please| pls|]
- [Show|List] the files in {folder} on the [server|machine].
- What is in {folder}?
- whats in {folder}
- Can you tell me what's inside {folder} on that box?
- {folder}: what's there?
- Someone put files into {folder}. Which ones?
- I want to see everything in {folder}.
- I've lost track of what I keep in {folder}, have a look for me
- [Please|Pls] list the directory {folder}.
- Look into {folder} and tell me the [names|file names].
- The content of the directory "{folder}", please.
- Before I clean up {folder} I'd like to know what is in it.
- My script writes to {folder}. Did anything arrive? Name the files.
- directory listing of {folder} plz
- Which files does {folder} contain?
- Have a look at {folder} for me. What do you see?
- I need a listing. Directory: {folder}
- Give me all file names in {folder}.
- do an ls in {folder} and tell me what you get
- Is there something in {folder}? What?
- Would you mind listing {folder}?
- The backup should be in {folder}, I just don't remember under what name. Show me the files.
> [There are|I see|It has|The files are|ls shows|In it]: {comma}.
> {folder} [contains|has|holds] {comma}.
> In {folder}: {comma}
> {comma}
> [Here is|This is] what is in {folder}: {comma}.
> [I looked.|Done.|] {folder} has: {comma}.
> [The listing|The directory] has {comma}.
> Files in {folder}: {comma}[.|]
+ {first}

= find out how full the disk is
$ df -h /
< Filesystem Size Used Avail Use% Mounted\n/dev/sda1 {size}G {used}G {free}G {percent}% /
- How full is [my|the] disk?
- How much of the disk [is used|is taken], in percent?
- Is the disk full? How many percent?
- Check the disk usage.
- disk usage?
- df please
- I keep getting "no space left". How full is the disk?
- Do we need a bigger disk? Tell me how many percent are used.
- The [server|box] is slow, maybe its disk is full. Have a look.
- What percentage of the root file system is [in use|taken]?
- Run df and give me the percentage for /.
- [Please|Can you] look how full the root partition is.
- I want to download something large. Is the disk nearly full?
- whats the disk at rn
- disk space check, percent used is enough
- Before the upgrade: how full is / at the moment?
- how much disk did we use up already? in percent
- Storage report please: how full is it?
- Could you see whether the hard drive is filling up? A percentage will do.
- Tell me the usage of the disk, I have to put it in a report.
- How close to full is the drive?
- My colleague says that the disk is almost full. What does df say?
- Is there still room on the disk or is it full? Percent, please.
- I'd like to know the fill level of the root disk.
> [It is|The disk is|/ is] {percent}% full.
> {percent}%[ is used| of the disk are used|].
> [The disk has used|Used are] {percent}%.
> [Right now|Currently] {percent}% of the disk is [used|taken|in use].
> According to df: {percent}%.
> {percent}% used[, {free}G free|, {free}G are left|].
> [Your|The] disk is at {percent}%.
> [Disk usage|Usage of /]: {percent}%
+ {percent}%

= find out the free memory
$ free -m
<        total used free\nMem: {total} {n} {size}
- How much memory is free?
- How many megabytes of memory are free?
- Check the free [memory|RAM].
- Do I have enough RAM? What is free?
- free ram?
- how much ram is left on this thing
- My program was killed, maybe by lack of memory. How much is free?
- Run free and tell me the megabytes that are free.
- [Please|Could you] tell me how much memory is still free.
- memory check pls
- I'd like to start another {process}. How much RAM is free for it?
- Is the machine out of memory? Give me the free megabytes.
- What does the server have left in memory, in MB?
- Before I open more tabs: free memory?
- Tell me how much RAM nobody uses.
- How many MB of RAM can I still use?
- we are swapping like crazy, whats the free memory
- Look at the memory and say how much of it is free.
- The free memory, please, in megabytes.
- Would you check whether there's memory left? The number of free MB.
- Give me the amount of unused memory.
- I need the value in the "free" column of free -m.
- Memory still available on the host?
- Has the box any RAM free? How much?
> {size} MB[ are free|].
> [There are|You have] {size} MB free.
> [Free are|The free memory is] {size} MB[ of {total}|].
> Free memory: {size} MB[.|]
> [Currently|Right now|At the moment] {size} MB [are|is] free.
> [The machine|The server] has {size} MB [left|free].
> It [says|shows] {size} MB free.
> {size} of {total} MB are free.
+ {size}

= count the lines of {path}
$ wc -l {path}
< {n} {path}
- How many lines has {path}? Use the shell.
- Count the lines of {path} [in|with] the [shell|terminal].
- Run a line count on {path}.
- wc {path}: how many lines?
- How long is {path}, in lines?
- {path} - how many lines?
- line count of {path} please
- number of lines in {path}?
- I wonder how many lines there are in {path}.
- Could you count the lines in the file {path} for me?
- how many lines does {path} have
- My editor is too slow for {path}. How many lines is it?
- Is {path} a long file? Give me the number of its lines.
- [Please|Pls] run wc -l on {path}.
- I need the number of lines in "{path}" for my statistics.
- We may import at most 5,000 lines. How many are in {path}?
- Count: lines of {path}
- The file is {path}. How many lines does it contain?
- Every line in {path} is one order. How many lines are there?
- With wc, find out how many lines {path} has.
- What does wc -l say for {path}?
- Tell me the length of {path} in lines.
- hey can u count lines in {path}
- I'd like a line count. File: {path}
- Whats the line count for {path}? Just the number.
> {n}[ lines|].
> [It has|{path} has|There are] {n} lines.
> [I count|wc says] {n}.
> {path}: {n} lines[.|]
> {path} is {n} lines long.
> The file has {n} lines.
> [In all|Together], {n} lines.
> The number of lines is {n}.
+ {n}

= find out the name of the machine
$ hostname
< {host}
- What is [the name of this machine|this machine called|the hostname]?
- Which host [is this|are we on]?
- Print the hostname.
- What's the server called?
- hostname?
- whats this box called
- I have six terminals open. Which machine is this one?
- On which computer are we?
- Am I on the right server? Tell me its name.
- [Please|Could you] tell me the name of the host.
- Give me the host name for the ticket.
- Run hostname.
- I need the machine's name.
- What do they call this machine?
- Where are you running? The host name, I mean.
- They ask me for the name of my computer. What is it?
- host name pls
- Before I reboot anything: which host are we logged in to?
- I am not sure which server I am connected to.
- Find out what this computer is called.
- Name of the server?
- The machine must have a name. Which one?
- Say me the hostname of this machine please.
- What does the hostname command print?
> [It is|The host is|The machine is|We are on] {host}.
> {host}[.|]
> [This machine is called|Its name is] {host}.
> [You are|We are] [on|logged in to] {host}.
> Hostname: {host}
> The [server|computer|machine] is called {host}.
> The name is {host}.
> This is {host}.
+ {host}

= find out the current user
$ whoami
< {user}
- Which user [am I|are you running as|is logged in]?
- Who am I on this [machine|server]?
- Print the current user.
- What is my user name?
- whoami
- who am i logged in as
- Am I root or someone else? Tell me the user.
- Under which account do these commands run?
- Permission denied again. As which user am I working?
- [Please|Can you] check which user I am.
- The current user, please.
- I forgot whether I switched users. Who am I now?
- Give me my login name on this box.
- What's the account called that I use here?
- My user name on the server?
- Look up who I am logged in as.
- Run whoami for me.
- For the form I need my user name on this computer.
- whats my username here
- As who are we logged in?
- I need the name of the user that runs the shell.
- Find out the user of this shell.
- Which account is this shell using?
> [You are|It is|The user is|I run as] {user}.
> {user}[.|]
> [Logged in as|The name is] {user}.
> You are logged in as {user}.
> [Current user|User]: {user}
> The [account|user] is {user}.
> The commands run as {user}.
> According to whoami: {user}.
+ {user}

= count {word} in {path}
$ grep -c {word} {path}
< {n}
- How many lines of {path} contain "{word}"?
- [Count|grep] the lines with "{word}" in {path}.
- How often is "{word}" in {path}? Count lines.
- In how many lines of {path} does {word} occur?
- {path}: number of lines with "{word}"?
- count lines matching {word} in {path} pls
- grep -c {word} in {path}?
- I want to know on how many lines {path} mentions {word}.
- Does {path} mention "{word}"? On how many lines?
- Use grep to count lines with {word} in {path}.
- "{word}" in {path}, how many lines?
- Search {path} for {word} and count the lines that match.
- We had many errors with {word}. How many lines in {path} have it?
- Could you count for me in how many lines "{word}" appears? The file is {path}.
- How many matches has {word} in {path}, counted in lines?
- Tell me the number of lines of {path} in which {word} stands.
- File: {path}. Word: {word}. How many lines?
- i need the count of lines w/ "{word}" from {path}
- The word is {word}, the file is {path}. Count the lines with it.
- Of all lines in {path}, how many have the word {word}?
- What does grep -c give for {word} in {path}?
- How many times does {path} have a line with "{word}"?
> {n}[ lines|].
> [There are|I count|It is in|grep finds] {n}[ lines|].
> {n} lines of {path}[ have it|].
> "{word}" is [on|in] {n} lines.
> {path} has {n} lines with {word}.
> {n} lines [match|contain it|mention {word}].
> The count is {n}.
> [I found|grep found] {n} lines [with|that contain] "{word}".
+ {n}

= copy {path} to {to}
$ cp {path} {to}
- Copy {path} to {to}.
- Make a copy of {path}[ called|,] {to}.
- [Can|Could] you copy {path} to {to}?
- I need {path} [again|twice]. Copy it to {to}.
- cp {path} {to}
- [Please|Pls] cp {path} to {to}
- Before I edit {path}, save a copy as {to}.
- Duplicate {path} as {to}.
- I'm going to change {path}. Keep a copy called {to} first.
- {path} -> {to}, copy please
- {to} should be a copy of {path}.
- Back up {path} to {to}.
- Put a copy of {path} into {to}.
- Let {to} be the same file as {path}: copy it.
- Would you mind copying {path}? The copy should be called {to}.
- There must be a second version of {path}. Name it {to}.
- make me a dupe of {path} named {to}
- The file {path} has to be copied, the new name is {to}.
- I'd like to have {path} under the name {to} as well (the old one stays).
- copy the file. from: {path}, to: {to}
- For safety, copy {path} to "{to}".
- Create {to} from {path} with cp.
> {path} is copied to {to}.
> [Done|OK|I copied it]: {to}.
> [I made|There is] a copy[ called|,] {to}.
> {to} is a copy of {path}[ now|].
> [Copied|Done]: {path} to {to}.
> I [have |]copied {path} to {to}.
> You [now |]have {to} as a copy.
> The copy is [called|in] {to}.
+ {to}

= rename {path} to {to}
$ mv {path} {to}
- [Rename|Move] {path} to {to}.
- {path} should be called {to}.
- [Can|Could] you [rename|move] {path} to {to}?
- mv {path} {to}
- Give {path} a new name: {to}.
- The name {path} is wrong. It must be {to}.
- rename pls: {path} => {to}
- I don't like the name {path}. Make it {to}.
- Change the name of {path} to {to}.
- From now on {path} shall be {to}. Please rename it.
- I misspelled {path}, rename it to {to} please.
- Call {path} {to} from now on; just rename the file.
- Rename a file for me? It's {path} and should become {to}.
- The file {path} needs another name, {to}.
- old name {path}, new name {to}. do it
- Use mv to turn {path} into {to}.
- My boss wants {path} to be named {to}. Would you rename it?
- {to} is a better name for {path}. Rename.
- Please move the file {path} to "{to}".
- We agreed on {to} as the name, so {path} has to be renamed.
- I'd like to rename "{path}" as "{to}".
- Set the name of the file {path} to {to}.
> {path} is [now|called] {to}.
> [Done|OK|I moved it]: {to}.
> [I renamed|I moved] {path} to {to}.
> It is [called|] {to}[ now|].
> [Renamed|Done]: {path} to {to}.
> The file is now [called|named] {to}.
> {path} has been renamed to {to}.
> [All right|OK], its name is {to}.
+ {to}

= make the folder {folder}
$ mkdir {folder}
- [Create|Make] [a|the] [folder|directory] {folder}.
- I need a [folder|directory] {folder}.
- New [folder|directory]: {folder}.
- mkdir {folder}[ please|]
- There should be a directory {folder}. Make it.
- Can you create {folder} for me? It's a directory.
- {folder} does not exist yet. Create the directory.
- Add a directory named {folder}.
- make dir {folder} pls
- My script complains that {folder} is missing, so please make that folder.
- Set up an empty folder, {folder}.
- I want to store things in {folder}. Make the directory, please.
- Would you make a new folder called {folder}?
- Please create the directory "{folder}" with mkdir.
- Open up a new folder at {folder}.
- folder needed: {folder}
- Let us put that in a new directory, {folder}. Create it.
- I'd like to have a folder {folder} on the server.
- The installer wants a folder {folder}; can you create one?
- We need {folder} (a directory) before we begin.
- Create for me directory {folder}, thank you.
- Directory {folder}: please create.
> [The folder|] {folder} [is there|exists|is made].
> [Done|OK|I made it]: {folder}.
> [I created|I made|There is] {folder}[ now|].
> [The directory|The folder] {folder} has been created.
> {folder} [now exists|was created].
> [Created|Made]: {folder}
> You have [a|the] [folder|directory] {folder} now.
> [All right|Sure], {folder} is [created|there].
+ {folder}

= find the size of {folder}
$ du -sh {folder}
< {size}M {folder}
- How [large|big] is [the folder |]{folder}?
- How much space does {folder} [take|need]?
- [Check|Measure] the size of {folder}.
- du {folder}
- {folder}, how big?
- whats the size of {folder}
- size of directory {folder} please
- Is {folder} large? Tell me how much it takes.
- I think {folder} is eating my disk. How big is it?
- How much would I free if I deleted {folder}?
- I want to burn {folder} to a disc. What size is it in all?
- Find out how much disk space {folder} uses.
- Please tell me the total size of {folder}.
- Use du to get the size of {folder}.
- What does {folder} weigh?
- Can you add up everything in {folder}? I mean the size on the disk.
- The folder {folder} grows and grows. How large by now?
- how many megabytes has {folder}
- I have to upload {folder} and would like to know its size first.
- Total size, directory {folder}?
- du -sh for {folder}, pls
- Would {folder} fit on a small USB stick? Tell me its size.
> {folder} [takes|has|is] {size}M.
> {size}M[ in all|].
> [It is|It takes|The size is] {size}M.
> The size of {folder} is {size}M.
> {folder}: {size}M
> [In all|Altogether], {folder} has {size}M.
> According to du: {size}M.
> [It uses|It needs] {size}M[ of disk space|].
+ {size}M

= find the version of Linux
$ uname -r
< {version}
- Which kernel [is running|do I have|does this machine run]?
- What is the kernel version?
- uname: which [version|release]?
- kernel version?
- whats the linux kernel here
- Tell me the version of the kernel.
- A driver needs to know my kernel. Which one is it?
- Is the kernel new? Its version, please.
- I am filing a bug and have to name the kernel version.
- [Please|Can you] look up the kernel release of this machine.
- Which Linux kernel are we on?
- Run uname -r and give me the result.
- The release of the running kernel?
- We patched the kernel yesterday. Which version runs now?
- Did the kernel update work? Say which one is running.
- For the documentation I need the kernel version.
- Kernel release of this box pls
- Could you find out what kernel the server uses?
- How new is my kernel? Give me the version number.
- I'd like to know the version of Linux that runs here.
> [It is|The kernel is|You have|It runs] {version}.
> {version}[.|]
> [Version|Kernel] {version}.
> The [kernel version|release] is {version}.
> [This machine|The server] runs {version}.
> Kernel: {version}
> According to uname: {version}.
> [Running|In use] is {version}.
+ {version}

= count the processes of {process}
$ pgrep -c {process}
< {percent}
- How many {process} processes [are running|run|are there]?
- Is {process} running? How many processes?
- Count the processes of {process}.
- number of {process} processes?
- how many {process} procs rn
- {process}: how many processes?
- I started {process} several times by mistake. How many run now?
- Something is wrong with {process}. Count how many of them run.
- Tell me how many instances of {process} there are.
- Please count the running {process} processes.
- With pgrep, how many {process}?
- Did all workers of {process} start? Give me the number of processes.
- We should have a few processes of {process}. How many are there really?
- Could you see how many times {process} is running?
- How often does {process} run at the moment?
- process count for {process}, please
- I need the number of processes named {process}.
- The machine is busy. How many {process} processes is it running?
- What does pgrep -c {process} say?
- how much process of {process} is running now?
> {percent}[ processes|].
> [There are|I count|It has] {percent}.
> {process} has {percent}[ processes| running|].
> Yes, {percent}[ processes|].
> {percent} {process} processes[ are running| run|].
> [Currently|Right now] there are {percent}.
> {process}: {percent} processes
> {process} runs {percent} times.
+ {percent}

= show the last line of {path}
$ tail -n 1 {path}
< {line}
- What is the last line of {path}?
- Show [me |]the last line of {path}.
- How does {path} end? The last line.
- last line of {path}?
- {path}: final line please
- tail -n 1 {path}
- Print the bottom line of {path}.
- What was written last into {path}? One line.
- Something crashed. What does the last line of {path} say?
- Give me the final line in the file {path}.
- I only want to see the very last line of {path}.
- Could you read me the end of {path}? One line is enough.
- whats the last thing in {path}, just the line
- Look at the log {path}: what is the newest line?
- Did the job finish? The last line of {path} will tell.
- Use tail to get the last line of {path}.
- The file {path} ends with which line?
- I need the last line from "{path}".
- [Please|Can you] show the final line of {path}.
- What does {path} end with?
> [It is|The last line is|It says|{path} ends with]: {line}
> {line}
> "{line}"[ is the last line|].
> The [final|last] line [reads|says] "{line}".
> {path} ends with "{line}".
> [At the end|At the bottom] it says "{line}".
> [Here it is|Here you go]: {line}
> Last line: {line}
+ {line}

= show the first line of {path}
$ head -n 1 {path}
< {line}
- What is the first line of {path}?
- Show [me |]the first line of {path}.
- How does {path} begin? The first line.
- first line of {path}?
- head -n 1 {path}
- {path}: top line please
- What stands at the very top of {path}? Just one line.
- I want to see the heading of {path}, its first line.
- Print line one of {path}.
- Give me the opening line in the file {path}.
- Could you read me the beginning of {path}? One line will do.
- whats on line 1 of {path}
- The columns are named in the first line of {path}. Show it.
- Use head to get the first line of {path}.
- With which line does {path} start?
- I don't remember what {path} is. Show its first line.
- [Please|Can you] show the top line of {path}.
- What does {path} begin with?
- The first line of "{path}", nothing else.
- Open {path} and read out the first line only.
> [It is|The first line is|It says|{path} begins with]: {line}
> {line}
> "{line}"[ is the first line|].
> The [first|top] line [reads|says] "{line}".
> {path} begins with "{line}".
> [At the top|At the beginning] it says "{line}".
> [Here it is|Here you go]: {line}
> First line: {line}
+ {line}

= find out for how long the machine is up
$ uptime -p
< up {hours} hours
- How long [is|has been] [the server|this machine] [up|running]?
- What is the uptime?
- When did it start? I mean the uptime.
- uptime?
- how long has this box been up
- Did the machine reboot? Tell me for how long it is up.
- Since when does the server run? The uptime, please.
- I want to know how long ago the machine was started.
- For how many hours has the computer been on?
- Run uptime -p.
- [Please|Can you] check the uptime of this host.
- Somebody restarted the server, I think. What is its uptime?
- Has the box been up all night? For how long?
- Uptime of the machine pls
- The status page needs the uptime. What is it?
- How many hours is it since the last boot?
- Tell me the time since the last restart.
- I'd like to see the uptime of the server.
- For how long do we run without a reboot?
- whats our uptime at the moment
> [It is up|Up|It runs] for {hours} hours.
> {hours} hours.
> [The uptime is|The machine is up] {hours} hours.
> [The server|This machine] has been up for {hours} hours.
> Uptime: {hours} hours
> It [started|booted] {hours} hours ago.
> [For|Since] {hours} hours.
> It has run for {hours} hours[ without a reboot|].
+ {hours}

= delete {path}
$ rm {path}
- [Delete|Remove] [the file |]{path}.
- {path} can go. Delete it.
- [Can|Could] you [delete|remove] {path}?
- rm {path}[ please|]
- I no longer need {path}. Please delete it.
- Get rid of {path}.
- Throw {path} away.
- {path} is obsolete, remove it
- pls delete {path} from the server
- Erase the file {path}.
- The file "{path}" should be deleted.
- We have a copy of {path} elsewhere, so remove this one.
- Clean up: {path} can be deleted.
- {path} was only a test. Delete it, please.
- I made {path} by mistake. Could you remove it for me?
- Would you rm the file {path}?
- There is old stuff in {path}, and it may be removed. Do that.
- Use rm on {path}.
- I want {path} gone.
- nuke {path}
- Delete file: {path}
- The disk is nearly full, so delete {path}.
> {path} is [deleted|gone|removed].
> [Done|OK|Deleted]: {path}.
> [I deleted|I removed|I have deleted] {path}.
> {path} has been [deleted|removed].
> [The file|] {path} no longer exists.
> [All right|Sure], {path} is [gone|deleted].
> [Removed|Deleted] {path}.
> {path} does not exist any more.
+ {path}
''')
