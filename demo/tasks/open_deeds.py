# Copyright (C) The nginx-dsa authors

"""Tools that all act on the same thing and differ in what is done with it.
People have other verbs for a deed than tools have, or none at all ("key 12,
please"), so that a model must learn which of them mean the same."""

import re
from dataclasses import dataclass, replace
from typing import Tuple

from tasks import names, open_words, spoken, strings
from tasks.api import Use, parameter, same, service
from tasks.daily import box, line, task, turn
from tasks.daily_chain import ended
from tasks.daily_many import JOIN
from tasks.daily_none import declined, refusal, weighed
from tasks.open_details import (FOR_BOOKING, FOR_BUYING, FOR_GOODS,
                                FOR_SEARCH, LIMITS, bare, before, detail,
                                distinct, draw, free, is_bare, is_single,
                                long, longer, meant, telegram, typed,
                                with_text)
from tasks.open_words import (ACTS, FORMS, GROUPS, READS, THINGS, TRAIT_ABOUT,
                              TRAITS, Key, about, field, form_of, key, person,
                              plural, say_about, shown, singular, third, title,
                              value, words)
from tasks.parts import Split, part
from tasks.phrase import capital, expand, say


@dataclass(frozen=True)
class Deed:
    """
    name    of the deed, a plain verb
    past    the participle, with its fields
    on      the groups of things that it is done with (open_words.GROUPS), or
            none for all
    verbs   those that tools have in their names; of one with a * there is no
            form "it ...s"
    ways    in which people ask for it
    """
    name: str
    past: str
    on: Tuple[str, ...]
    verbs: Tuple[str, ...]
    ways: Split

    def does(self, thing):
        return not self.on or any(thing in GROUPS[g] for g in self.on)


# the name | the participle | groups of things | verbs of tools, and then the
# ways to ask for it.  {t} is the thing with its name, {it} a word for it, {x}
# what it gets (a person, a date), {d} what a new thing has.  In brackets
# before a way are the groups that it is for (+), and the deeds and verbs that
# no tool may have, since it could mean them, too (!).

WAYS = '''
get | shown | | get, read, show, fetch, view, retrieve, describe, look up, lookup*, load, display
Show me {t}.
(+papers) What's in {t}?
(+papers) What does {t} say?
(+papers) [Read {t} to me.|Read me {t}.]
What [do we have|have we got] on {t}?
Look up {t}[ for me|, please|].
[Pull|Bring|Call] up {t}[, please|].
(!play) I'd like to see {t}.
Give me the details of {t}.
(!unlock !reopen !start !play !enable !open !resume) Open {t} for me.
(!play !book !buy) [Can|Could|May] I see {t}?
(!play !book !buy !print !export !share) {t}, please.
(!play) Let me [see|have a look at] {t}.
What do you know about {t}?
[Tell me|I need to know] [all|everything] about {t}.
I need the [data|details|information] on {t}.
(!play) Have a look at {t} and tell me what you find.
[details|info] on {t}
(!play) show {t}
(!export !print !share !play !buy !book) [Get|Fetch] me {t}.
Is there anything on {t}? [Show me.|Let me see it.]
(+papers +cases) Remind me what {t} is about.
[Display|View] {t}.
What does the system have for {t}?
(!play) Put {t} on the screen.
{t}: what do we know?

list | listed | | list, show, get, fetch, all*, view, display, enumerate
Show me all {things}.
Which {things} [are there|do we have|do I have]?
What {things} [are there|do we have]?
[List|Name] [all|the] {things}.
Give me a list of [all|our|the] {things}.
I'd like to see all {things}.
all {things}, please
Do we have any {things}? Name them all.
What have we got in the way of {things}?
[an overview of|overview:] [all|our|my] {things}
I need [an overview|a list] of [our|all] {things}.
Can you tell me which {things} exist?
Every {thing} that we have, please.
[Read out|Go through] all {things} for me.
the whole list of {things}
Just show me the {things}, all of them.
What are [all our|my] {things}?
{things}: which ones [are there|do we have]?

search | found | | search, find, query, filter, look for, look up
Find {b}.
Look for {b}.
Search for {b}.
I'm looking for {b}.
{b}
{b}, please
[Show|Get] me {b}.
Can you find me {b}?
I need {b}.
[Do we have|Do you have|Are there] {b}?
I want a list of {b}.
[Any|any] {b}?
I only want to see {b}.
Which ones fit: {b}?
What I need: {b}.
We want {b}.
{b}, what is there?
Go and find {b}.

count | counted | | count, count*, total*, number of*
How many {things} [are there|do we have|do I have]?
Count [the|all|our] {things}[ for me|].
What's the number of {things}?
I need the [total number|number] of {things}.
[number|total number] of {things}?
I need to know how many {things} [we have|there are].
[Do you know|Can you tell me] how many {things} [are in the system|we have]?
{things}: how many?
What is our current count of {things}?
Tell me how large the number of {things} is.
How many {things} have we got by now?
Is it just a few {things} or hundreds? Give me the number.

create | created | | create, add, new*, make, insert, register, open, set up
(+cases +files +selectable +events) Open a [new |]{thing}{d}.
I need a new {thing}{d}.
[Make|Get] me a {thing}{d}.
Put a [new |]{thing} into the system{d}.
New {thing}{d}.
[Create|Add|Make] a [new |]{thing}{d}.
Set up a {thing}{d}.
[Can|Could] you [make|add|set up] a [new |]{thing}{d}?
We need [one more|another] {thing}{d}.
I'd like to have [a new|another] {thing}{d}.
[Enter|Register|Record] a new {thing}{d}.
There is a new {thing} to add{d}.
Let's have a new {thing}{d}.
One more {thing}[, please|]{d}.
another {thing}{d}
Start a new {thing}{d}.
Give me a new {thing}{d}.
The list lacks a {thing}, add one{d}.
I want to [enter|add|register] a {thing}{d}.
(+papers +cases +events) Take down a new {thing}{d}.
Would you mind adding a {thing}{d}?
We've got a new {thing}{d}. [Put it in.|Enter it.]
a [fresh|new] {thing}{d}

update | changed | | update, edit, set*, change, modify, patch, adjust, alter
Change the {words} of {t} to {v}.
Set the {words} of {t} to {v}.
{t}: the {words} is now {v}.
The {words} of {t} [should|must|has to] be {v}[ from now on|].
{t} [has|gets|needs] a new {words}: {v}.
Correct the {words} of {t}, it's {v}.
[Adjust|Edit|Update] {t}: {words} {v}.
I made a mistake with {t}: the {words} is {v}. [Fix it|Correct that], please.
From now on, {t} has the {words} {v}.
We agreed on {v} as the {words} of {t}. Enter that.
Could you put {v} as the {words} of {t}?
{t}, new {words}: {v}
The {words} of {t} is wrong, it should be {v}.
{words} of {t}: {v} from now on.
Replace the {words} of {t} by {v}.
Switch the {words} of {t} to {v}.
In the data of {t}, the {words} has to be {v}.
Make it {v} for {t}, the {words} I mean.
Please put down that {t} has the {words} {v} now.

delete | deleted | | delete, remove, drop, destroy, erase, discard
Get rid of {t}.
(+papers) Throw {t} away.
(+papers) [Tear up|Bin|Trash] {t}[, please|].
(!archive !cancel !stop !disable !close) We don't need {t} any more.
(!archive !cancel !stop !disable !close) {t} can go.
[Delete|Remove|Erase] {t}.
Take {t} [out of the system|off the list].
Wipe {t} from the system.
{t} was [a duplicate|a mistake], so [delete|remove] {it}.
I want {t} gone[ for good|].
Can you make {t} disappear?
Clear {t} out of the list.
Would you [erase|remove|delete] {t}[ for me|]?
(!archive) {t} should not be in the system any more.
Strike {t} from the list.
Delete for good: {t}
Nobody needs {t} now, so delete {it}.
(!archive) Away with {t}!
{t}: out with {it}.
Let's [lose|scrap] {t}.
I never want to see {t} again, delete {it}.
There is no room for {t} any more. Out of the system with {it}.

rename | renamed to {x} | data papers selectable | rename, retitle, rename
Rename {t} to {x}.
{t} should be called {x}[ from now on|].
Give {t} the name {x}.
Call {t} {x} from now on.
Change the name of {t} to {x}.
{t} is now called {x}. Enter that, please.
The new name of {t} is {x}.
From now on, {t} has the name {x}.
I want {t} to be called {x}.
[Can|Could] you give {t} another name? {x} is what I want.
Let {t} be called {x}.
{t}: new name {x}
The name of {t} is no good. Make it {x}.
{t} gets another name: {x}.

copy | copied | data papers | copy, duplicate, clone, replicate
[Copy|Duplicate|Clone] {t}.
I need a second {thing} just like {t}.
Make a copy of {t}.
(!get !export !print) Can I have {t} twice?
Make another one exactly like {t}.
I'd like [a duplicate|a copy] of {t}.
Take {t} and make the same once more.
Give me a second version of {t}.
One more of {t}, identical, please.
[Double|Replicate] {t}.
{t}: I need an identical one.
There should be two of {t}.
Make a twin of {t}.
Do {t} a second time, without any change.

move | moved to {x} | data papers | move, transfer, relocate
Move {t} to {x}.
{t} belongs in {x}, put {it} there.
Put {t} into {x}.
Transfer {t} to {x}.
{t} should be in {x}.
[Take|Bring] {t} over to {x}.
Shift {t} to {x}.
I want {t} in {x}.
[Can|Could] you place {t} in {x}?
{t} is in the wrong place. It has to be in {x}.
From now on, {t} is kept in {x}.
File {t} under {x}.
{x} is the right place for {t}.
{t} goes into {x}.

archive | archived | data papers | archive, archive, shelve
Archive {t}.
Put {t} away for later.
Put {t} into the archive.
File {t} away.
Keep {t}, but take {it} off the active list.
{t} is old, but don't delete {it}. Store {it} away.
{t} can go into the archive.
{t} is history, put {it} with the old ones.
I don't want to see {t} every day, but we must keep {it}.
Stow {t} away.
Set {t} aside with the old {things}.
Away into the archive with {t}.
Lay {t} aside, we may need {it} in some years.

restore | restored | data papers | restore, recover, undelete, bring back
Restore {t}.
Bring {t} back.
I deleted {t} by mistake and need {it} back.
Undo the deletion of {t}.
Get {t} back from the trash.
{t} should not have been deleted. Bring {it} back.
Can you recover {t}?
I want {t} back.
Undelete {t}.
Put {t} back where {it} was.
{t} is gone. Can you get {it} back?
Rescue {t} from the bin.
Who deleted {t}? We still need {it}, so undo that.

close | closed | cases | close, finish, complete, resolve, mark done*
Close {t}.
{t} is [done|finished|solved], close {it}.
We're done with {t}.
{t} is settled, tick it off.
Tick off {t}.
Mark {t} as [done|finished|completed].
Call {t} done.
You can close {t}[ now|].
Wrap up {t}.
I have finished {t}, enter that.
{t} has been dealt with.
Set {t} to done.
There is nothing left to do for {t}.
(!stop) Bring {t} to an end.
Consider {t} solved.
{t} works out, so it's finished.
That's it for {t}, we have a solution.
{t} is off my desk, put it down as complete.

reopen | reopened | cases | reopen, reactivate, open again*
Reopen {t}.
Open {t} again.
{t} is not [solved|done] after all.
{t} was closed too early.
Take up {t} again.
The trouble with {t} is back, so open it again.
Bring {t} back to life.
Undo the closing of {t}.
Put {t} back to open.
{t} should not be closed, change that.
We have to work on {t} once more.
Set {t} to open again.
I closed {t} by mistake.
We are not finished with {t} yet, it was closed by mistake.
{t} isn't over, put it back on the list of open ones.
We thought that {t} was done, but it isn't.

cancel | canceled | events orders | cancel, call off, abort, revoke
Cancel {t}.
Call off {t}.
Call {t} off.
(+events) {t} won't take place.
(+events) {t} isn't going to happen.
(+events) I can't make it to {t}, so call it off.
We have to cancel {t}.
We no longer want {t}, call it off.
I have changed my mind about {t}. Please cancel.
Drop {t} from our plans.
{t} is off.
Please see to it that {t} is called off.
We'll have to do without {t}, cancel it.
(+events) There will be no {thing}, I mean {t}. Call it off.
Withdraw from {t}.
(+events) Nobody has time for {t}, so call it off.

reschedule | moved to {x} | events | reschedule, postpone, set date*, put off, move date*
(!move) Move {t} to {x}.
{t} is now on {x}.
Put {t} off until {x}.
Postpone {t} to {x}.
{t} should be on {x} instead.
Can we have {t} on {x} instead?
Reschedule {t} for {x}.
(!move) Shift {t} to {x}.
Let's have {t} on {x}.
{x} is better for {t}.
{t} doesn't suit me, make it {x}.
The new date of {t} is {x}.
{t} has to wait until {x}.
Delay {t} until {x}.
Find a new day for {t}: {x}.

assign | assigned to {x} | cases | assign, allocate, hand over, delegate
Assign {t} to {x}.
Give {t} to {x}.
{x} [takes over|will take care of] {t}.
{x} should deal with {t}.
Let {x} handle {t}.
Hand {t} over to {x}.
{t} is {x}'s job now.
Put {x} on {t}.
Make {x} responsible for {t}.
{t} goes to {x}.
I want {x} to look after {t}.
{t}: {x} does it.
{x} is the right one for {t}.
From today, {t} is in the hands of {x}.

approve | approved | decisions | approve, accept, confirm, authorize, sign off
Approve {t}.
{t} is fine with me.
I agree with {t}.
Give {t} the green light.
{t} gets my OK.
Say yes to {t}.
Accept {t}.
{t} looks good, let it through.
Wave {t} through.
You have my approval for {t}.
We say yes to {t}.
{t}: approved.
Yes to {t}.
I have checked {t} and have nothing against it.
{t} has my blessing.
No objections to {t}.

reject | rejected | decisions | reject, decline, refuse, deny, turn down
[Reject|Decline|Refuse] {t}.
Turn {t} down.
Say no to {t}.
{t} is not acceptable.
I don't agree with {t}.
No to {t}.
We can't accept {t}.
{t} does not get my OK.
{t}: denied.
We won't go along with {t}.
I'm against {t}.
{t} is out of the question.
Don't let {t} through.
Give {t} the red light.
I have checked {t}, and the answer is no.

start | started | machines | start, run, launch, execute, begin, trigger, start
Start {t}.
Get {t} going.
[Run|Launch] {t}.
Set {t} in motion.
{t} [can|should] start now.
Let {t} run.
Fire up {t}.
Kick off {t}.
I want {t} to run.
It's time to get {t} running.
{t}: go!
Let's begin with {t}.
Set {t} going.
Why is {t} not running yet? Get it going.

stop | stopped | machines | stop, halt, kill, terminate, end, shut down
Stop {t}.
Bring {t} to a halt.
{t} must stop[ now|].
Shut down {t}.
Make {t} stop.
[Halt|Kill] {t}.
{t} has run long enough.
(!cancel !close) Put an end to {t}.
I want {t} to stop for good.
(!pause) That's enough of {t}, stop it.
{t} should not run any longer.
{t} is to stop.
Please bring {t} to a stop.
Why is {t} still running? Stop that.
Abort {t}.
No more of {t}, end it.
{t} has to end now.
Let's end {t} here.
Could you make {t} stop running?

pause | paused | machines media | pause, suspend, interrupt, hold
Pause {t}.
Hold {t} for a moment.
{t} should wait a moment.
Interrupt {t} for a while.
Take a break with {t}.
Put {t} on hold.
Suspend {t}.
Stop {t} for a moment, we go on later.
Freeze {t} for now.
Give {t} a rest for a while.
Hang on with {t}, I'll be back soon.
{t} can wait a little.
Somebody is at the door, hold {t} until I'm back.
A short break with {t}, please.

resume | resumed | machines media | resume, continue, unpause
Resume {t}.
Go on with {t}.
Continue {t}.
Let {t} go on.
Pick {t} up where we left off.
{t} can go on.
The break is over for {t}.
Carry on with {t}.
{t} has waited long enough, go on with it.
Unpause {t}.
Back to {t}, from where it stopped.
I'm back, go on with {t}.
End the break of {t}.

play | playing | media | play, stream, put on, start playback*
Play {t}.
Put on {t}.
Put {t} on, please.
Let's [hear|play] {t}.
I'm in the mood for {t}.
It's time for {t}, put it on.
{t}, from the beginning[, please|].
Could you put {t} on?
Start {t}.
Let {t} play.
A bit of {t} would be nice now.
How about {t}? Put it on.
I want to listen to {t}.
Treat me to {t}.
I'd love some {t} now. Press play.

enable | switched on | switches | enable, activate, turn on, switch on, power on
[Turn|Switch] on {t}.
[Turn|Switch] {t} on.
[Enable|Activate] {t}.
{t} should be on.
I want {t} on.
{t} on, please.
Make {t} active.
Power up {t}.
{t} is off, but should be on.
Bring {t} online.
We need {t} switched on.
Somebody turned {t} off. Undo that.
Put {t} into service.

disable | switched off | switches | disable, deactivate, turn off, switch off, power off
[Turn|Switch] off {t}.
[Turn|Switch] {t} off.
[Disable|Deactivate] {t}.
{t} should be off.
I don't want {t} on.
{t} off, please.
Make {t} inactive.
Nobody needs {t} now, turn it off.
{t} is on, but should be off.
Take {t} offline.
We need {t} switched off.
Somebody left {t} on. Change that.
Take {t} out of service.

lock | locked | locks | lock, secure, lock up, seal
[Lock|Secure] {t}.
Lock up {t}.
Make sure that nobody [gets into|can use] {t}.
{t} must be locked.
Keep everybody out of {t}.
{t} should be under lock and key.
I think I forgot to lock {t}. Do it, please.
Block access to {t}.
{t} is not locked, change that.
No access to {t} for anybody from now on.
Bar the way into {t}.
Protect {t} from others.
Leave {t} locked for the night.

unlock | unlocked | locks | unlock, unseal, release, unblock
Unlock {t}.
Let me into {t}.
I need to get into {t}.
I'm locked out of {t}.
(!get) Open {t}.
Take the lock off {t}.
{t} should not be locked any more.
Give me access to {t}.
Make {t} accessible again.
Remove the lock from {t}.
{t} is locked, change that.
I can't get into {t}, it's locked.
Let people use {t} again.

share | sent to {x} | papers | share, send, forward, pass on, mail
[Send|Forward] {t} to {x}.
Share {t} with {x}.
Pass {t} on to {x}.
{x} [needs|wants] {t}.
Let {x} have {t}.
{x} should get {t}.
Can you get {t} to {x}?
Show {t} to {x}.
{x} is waiting for {t}.
Make sure that {x} gets {t}.
{t} for {x}, please.
Let {x} see {t}.
{x} hasn't got {t} yet.
{x} asked for {t}. Send it over.
I promised {t} to {x}.

print | printed | papers | print, print out, hardcopy*
Print {t}.
I need {t} on paper.
Put {t} on paper.
Make a printout of {t}.
Send {t} to the printer.
{t} as a hard copy, please.
Can I have {t} on paper?
I want to hold {t} in my hands, so print it.
Let the printer do {t}.
I can't read {t} on the screen. On paper, please.
a hard copy of {t}
{t} should lie on my desk as a printout.
I'd like {t} printed out.
Run {t} off on the printer, please.
Ink and paper for {t}, please, I want a printout.
Can you make me a paper version of {t}?
We need {t} as a printout.

export | exported | data papers | export, download, save, dump
[Export|Download] {t}.
Save {t} to a file.
I need {t} as a file.
Write {t} out to a file.
Get {t} onto my computer.
I want {t} on my disk.
Make a file of {t}.
Give me {t} as a file.
Can I have {t} for offline use?
Let me save {t} on my laptop.
Get {t} out of the system as a file.
{t} should be on my hard disk.
I'd like to have {t} on my computer.

upload | uploaded | files | upload, push, upload, put online*
Upload {t}.
Put {t} on the server.
Get {t} online.
Send {t} up to the cloud.
{t} should be on the server.
Store {t} in the cloud.
Push {t} to the server.
Load {t} up.
I want {t} on our website.
Bring {t} from my computer to the server.
Let {t} go online.
{t} is still only on my computer. Up to the cloud with it.

book | booked | bookable | book, reserve, book, hold
Book a {thing}{d}.
Reserve a {thing}{d}.
I'd like to [book|reserve] a {thing}{d}.
We need a {thing}{d}.
Get us a {thing}{d}.
Can we have a {thing}{d}?
Keep a {thing} free for us{d}.
Save us a {thing}{d}.
Hold a {thing} for us{d}.
I want to have a {thing}{d}.
A {thing}{d}, please
Make a reservation for a {thing}{d}.
Put us down for a {thing}{d}.
See that we get a {thing}{d}.

buy | ordered | goods | buy, order, purchase, buy
Buy a {thing}{d}.
Order a {thing}{d}.
We need to get a {thing}{d}.
I want to [buy|order] a {thing}{d}.
Get me a {thing}{d}.
Purchase a {thing}{d}.
I'll take a {thing}{d}.
A {thing}, please{d}.
Let's get ourselves a {thing}{d}.
Our {thing} broke, so order a new one{d}.
I'm going to need a {thing}{d}. Place the order.
Add a {thing} to my next order{d}.
Put in an order for a {thing}{d}.

pay | paid | bills | pay, settle, pay for
Pay {t}.
Settle {t}.
Transfer the money for {t}.
{t} is due, pay it.
Send them the money for {t}.
I want to pay {t}.
{t} has to be paid.
Get {t} paid.
We still owe the money for {t}.
Take care of the payment of {t}.
They are waiting for the money for {t}.
Make the payment for {t}.
{t} is still unpaid, do something about it.

refund | refunded | bills | refund, reimburse, pay back, return money*
Refund {t}.
Give the money for {t} back.
They should get their money back for {t}.
I want my money back for {t}.
{t} was paid by mistake, so return the money.
Reimburse {t}.
Return the payment for {t}.
Transfer the money for {t} back.
Undo the payment of {t}.
Let them have their money for {t} again.
We got paid for {t}, but must give it back.
Send back what was paid for {t}.

switch | selected | selectable | switch to, checkout*, check out, select, use, change to, switch
Switch to {t}.
Change to {t}.
Go to {t}.
I want to work on {t} now.
(!book) Check out {t}.
Take me to {t}.
Select {t}.
Use {t} from now on.
Let's continue with {t}.
Make {t} the current one.
Jump to {t}.
{t} is what I want to work with now.
Go over to {t}.
Leave this one and go to {t}.
'''


def deeds(text):
    """Returns the Deeds of a text by their names."""

    found = {}

    for block in text.strip().split('\n\n'):
        head, *ways = block.splitlines()
        name, past, on, verbs = (p.strip() for p in head.split('|'))
        found[name] = Deed(name, past, tuple(on.split()),
                           tuple(verbs.split(', ')), Split(ways))

    return found


DEEDS = deeds(WAYS)

# Tools of one row are not offered together: a request for one of them could
# mean another.

RIVALS = [set(row.split()) for row in '''delete cancel archive
close cancel
stop disable
start enable resume switch play
resume reopen restore
book buy create
upload create move share
move archive reschedule
update reschedule rename
reject cancel
disable lock
unlock enable
assign share
copy export
export share'''.splitlines()]

# what could also be done with tools of other deeds, in a way, so that it is
# not refused if they are there

STAND_INS = {deed: set(others.split()) for deed, _, others in (
    row.partition(': ') for row in '''get: list search export print play share
list: search count get
search: list get
count: list search
create: copy upload
rename: copy
close: update
reopen: update
assign: update
move: update copy
reschedule: update
archive: update close
restore: create
cancel: update close stop
pause: stop disable
stop: pause
copy: create get print
share: export print get
print: export get share
export: get print
enable: update
disable: update pause
approve: update close
reject: update close
switch: get
pay: update
upload: copy'''.splitlines())}


def rivals(a, b):
    return a == b or any({a, b} <= row for row in RIVALS)


def same_verb(a, b):
    """Returns true if two verbs of tools can mean the same deed."""

    return any(rivals(x.name, y.name) for x in DEEDS.values()
               for y in DEEDS.values() if a in x.verbs and b in y.verbs)


# ------------------------------------------------- what a deed needs, besides


def folder(rng):
    name = rng.choice(names.FOLDERS)

    return expand(rng, f'[the folder {name}|{name}]'), name


def receiver(rng):
    who = person(rng) if rng.random() < 0.6 else strings.mail(rng)

    return who, who


def twice(make):
    """Returns the function that draws a value that is said as it is."""

    def drawn(rng):
        v = make(rng)

        return v, v

    return drawn


# of {x}: names of the parameter, its description, and rng -> (said, value)

NEEDED = {
    'rename': ('new_name new_title new_name name_new target_name',
               'New name[ of the {thing}|]', twice(title)),
    'move': ('target folder destination to target_folder',
             '[Target|New] folder', folder),
    'assign': ('assignee person employee assign_to responsible',
               'Who [gets|does] it', twice(person)),
    'share': ('recipient to receiver send_to share_with',
              '[Who gets it|Name or mail address of the recipient]', receiver),
    'reschedule': ('date new_date day to_date new_day',
                   'New [date|day], as YYYY-MM-DD', spoken.date)}

# of a text that may be added

TEXTS = {'close': ('comment', 'note', 'remark'), 'reject': ('comment', 'note'),
         'approve': ('comment', 'remark', 'note'),
         'cancel': ('message', 'comment'), 'share': ('message', 'text'),
         'reopen': ('comment', 'note'), 'refund': ('remark', 'note'),
         'pay': ('note', 'remark')}

COPIES = open_words.number('copies', 2, 12)


def options(rng, deed):
    """Returns traits that a deed may have, besides."""

    if rng.random() < 0.5:
        return []

    return [free(rng, rng.choice(TEXTS[deed]))] if deed in TEXTS \
        else [COPIES] if deed == 'print' else []


# values of new things, and those that are changed, which are not what another
# deed changes

PLAIN = Split([t for t in TRAITS if t.words not in (
    'status', 'comment', 'reason', 'folder', 'category', 'nickname', 'topic',
    'contents')])
CHANGED = Split([t for t in PLAIN if t.kind != 'array' and t.words not in (
    'owner', 'manager', 'reviewer', 'contact', 'driver', 'teacher',
    'author')])
BARE = Split([t for t in PLAIN if is_bare(t)])

# what only things have that can be touched, and what only others have

BODY = frozenset('''height width length depth weight age speed temperature
power thickness load birthplace capacity volume shape material distance salary
rent driver contents color'''.split()) | {
    'frame color', 'license plate', 'number of seats', 'serial number',
    'contents list', 'room number'}
MIND = frozenset('topic keyword keywords author reviewer page tags'.split())
EATEN = ('dish', 'menu', 'meal', 'bakery', 'kiosk', 'stall')
UNTOUCHED = ('cases', 'events', 'papers', 'data', 'bills', 'decisions',
             'orders', 'people')


def is_touched(thing):
    return not any(singular(thing) in GROUPS[g] for g in UNTOUCHED)


def fitting(rng, traits, thing):
    """Returns those of the traits from which rng draws that a thing may
    have."""

    one = singular(thing)
    without = MIND if is_touched(thing) else BODY

    return [t for t in part(rng, traits)
            if t.words not in without and t.words not in (one, one + 's')
            and (t.words != 'diet' or one in EATEN)
            and (t.words != 'capacity' or one in GROUPS['bookable'])]


# how a value is said after the things that are searched

SOUGHT = {
    'city': 'in {v}|around {v}|near {v}', 'color': 'in {v}',
    'capacity': 'for {v} people|for a party of {v}', 'author': 'by {v}',
    'topic': 'about {v}|on {v}', 'year': 'from {v}', 'origin': 'from {v}',
    'owner': 'owned by {v}|that belong to {v}', 'brand': 'made by {v}',
    'diet': 'that are {v}', 'month': 'in {v}', 'day': 'on {v}',
    'keyword': 'with the word {v}', 'shape': 'that are {v}',
    'max price': 'under {v} euros|below {v} euros|for less than {v} euros'
                 '|up to {v} euros',
    'min rating': 'with at least {v} stars|with {v} stars or more',
    'radius': 'within {v} km|not more than {v} km away'}

SEARCHED = Split([t for t in TRAITS if t.words in SOUGHT] + [
    open_words.number('max price', 5, 900, 'euros'),
    open_words.number('min rating', 2, 6, 'stars'),
    open_words.number('radius', 2, 90, 'km')])


# --------------------------------------------------------------------- tools


NEWS = '''{Verbs} a new {thing}[ in the system| for the user|]
[Tool to|Use this to|] {verb} a {thing}
{Verbs} [one|a single] {thing}
{Things}: {verb} [one|a new one]'''

LISTS = '''{Verbs} all {things}[ of the user| in the system|]
[All|All the] {things}
{Things}: {verb} all
[Use this to|Tool to] {verb} [all|the] {things}
[An overview|A list] of all {things}'''

COUNTS = '''[Returns|Gives] the number of {things}
Counts [all|the] {things}[ in the system|]
How many {things} there are
{Things}: their number'''

SEARCHES = '''{Verbs} {things}[ by their values| that fit| with filters|]
{Verbs} {things} [that match|with] the given values
{Things}: {verb} those that fit
[Use this to|Tool to] {verb} {things}'''

SHOWS = READS + '''
{Verbs} [a|one] {thing}[ by its {key}|]
[Tool to|Use this to] {verb} a [single |]{thing}'''

ABOUT = {'get': SHOWS, 'list': LISTS, 'count': COUNTS, 'search': SEARCHES,
         'create': NEWS, 'book': NEWS, 'buy': NEWS}

MANY = ('list', 'count', 'search')


def tool(rng, deed, thing, verb, takes, gives, program):
    """Returns the Service of a deed.  Its name has this verb; its description
    has it or another one of the deed.  If there is a program, the name has
    that instead of the thing."""

    one = singular(thing)
    last = plural(thing) if deed.name in MANY else one
    said = verb.rstrip('*')
    spoken_verb = verb if '*' not in verb and rng.random() < 0.5 else \
        rng.choice([v for v in deed.verbs if '*' not in v])
    called = f'{program} {said}' if program else \
        f'{said} {last}\n{said} {last}\n{said} {last}' + (
            '' if ' ' in said else f'\n{last} {said}') + (
            f'\n{said} all {last}' if deed.name == 'list' and said != 'all'
            else '' if deed.name in MANY else f'\n{said} [a|the] {one}')

    return service(
        f'{deed.name} a {one}', called,
        about(ABOUT.get(deed.name, ACTS), thing, verb=spoken_verb,
              Verbs=third(spoken_verb).capitalize()), takes, gives,
        schema=bool(program))


def taken(thing, trait, given, needed=False, more=''):
    """Returns the Parameter for a trait; one that is given is always
    there."""

    one, w = singular(thing), words(trait.words)

    return parameter(
        trait.words, f'{w} {w} {one}_{w} {more}',
        say_about(TRAIT_ABOUT, thing, trait.words, form_of(trait)),
        trait.kind, trait.choices, needed=needed, kept=trait.words in given,
        always=bool(trait.unit or trait.form in FORMS))


# ------------------------------------------------------------------ requests


@dataclass(frozen=True)
class Place:
    """What a request is about: a thing, how its like are called, and what
    else is there.

    alone    there are tools for no other thing
    offered  the deeds and the verbs of the tools for this thing
    program  the name of the program that has all tools, or ''
    """
    thing: str
    key: Key
    alone: bool = False
    offered: frozenset = frozenset()
    program: str = ''

    def without(self, deed, verb):
        """Returns the Place for a request for this deed."""

        return replace(self, offered=self.offered - {deed, *verb.split()})


GUARD = re.compile(r'\((.*?)\) ')


def way_of(rng, deed, place):
    """Returns a way to ask for a deed that is natural and clear."""

    one = singular(place.thing)

    def fits(way):
        found = GUARD.match(way)
        rules = found[1].split() if found else []
        groups = [r[1:] for r in rules if r[0] == '+']

        return (not groups or any(one in GROUPS[g] for g in groups)) \
            and not place.offered & {r[1:] for r in rules if r[0] == '!'}

    ways = [w for w in part(rng, deed.ways) if fits(w)]

    return GUARD.sub('', rng.choice(ways), 1)


def exactly(texts):
    """Returns the function that compares arguments: of these roles, texts
    with their question marks and exclamation marks."""

    def accepts(role, wanted, value):
        if role in texts:
            return plain(wanted) == plain(value)

        if role == 'name':
            return same(role, str(wanted).lstrip('#'),
                        str(value).lstrip('#'))

        return same(role, wanted, value)

    return accepts


def plain(text):
    return ' '.join(str(text).split()).strip('"').rstrip('.').lower()


# ------------------------------------------------------- uses of each deed


DID = '''[Done|OK|All right]. The {thing} {name} is {past}.
The {thing} {name} is {past}[ now|].
[Done|Ready]: the {thing} {name} is {past}.
[That worked|It worked]: the {thing} {name} is {past}.'''

MADE = '''[Done|OK|All right]. The new {thing} is {past}{called}.
The {thing} is {past}{called}.
[Done|Ready], the {thing} is {past}{called}.
I have {past} the {thing}{called}.'''

FACTS = '''The {thing} {name}: {facts}.
{Facts}.
[Here it is|That is what I found]: {facts}.
Of the {thing} {name}, {facts}.'''

SAYS = '''{name} says: "{text}"
[There is|It has] this text: "{text}"
"{text}" is what it says.
In the {thing}: "{text}"'''

ALL = '''{v}.
[I found|Found|I got]: {v}.
[The list has|The result is|The answer is]: {v}.
[Here you are|Here it is]: {v}.'''

NUMBER = '''{n}.
[There are|We have|It is] {n}.
The number of {things} is {n}.
{n}, [says the system|as far as I see].'''

INCLUDING = Split('''including the {words}
and the {words} with it
I need the {words}
mainly the {words}
with the {words}'''.splitlines())


def about_one(rng, deed, place, verb):
    """Returns the Use of a deed with a thing that is there."""

    one = singular(place.thing)
    name = place.key.draw(rng)
    form = place.key.form(rng, place.alone)
    way = way_of(rng, deed, place)
    given, takes = {'name': name}, [place.key.parameter(one)]
    said, x = '', ''

    if deed.name in NEEDED:
        called, described, make = NEEDED[deed.name]
        said, x = make(rng)
        given['x'] = x
        takes.append(parameter(
            'x', called, say_about(described, one), kept=True,
            always=deed.name == 'reschedule'))

    elif rng.random() < TERSE and deed.name != 'switch':
        way = rng.choice(SHORTLY)

    request = say(rng, way, verb=deed.name, x=said, thing=one,
                  things=plural(place.thing),
                  t=form.format(thing=one, v=name),
                  it='the entry' if one in GROUPS['people'] else 'it')
    extra = options(rng, deed.name)
    texts = []

    for trait in extra:
        if rng.random() < 0.6:
            v, given[trait.words] = draw(rng, trait)

            if trait.form == 'text':
                texts.append((trait.words, v))
            else:
                request = longer(rng, request, [bare(rng, trait, v)])

    takes += [taken(one, trait, given) for trait in extra]

    for text in texts:
        request = with_text(rng, request, *text)

    slots = dict(thing=one, name=name, past=deed.past.format(x=said))
    user = typed(rng, request, way[:3] == '{x}' or way[:3] == '{t}'
                 and form[:3] == '{v}', bool(texts))

    return Use(tool(rng, deed, place.thing, verb, takes, '', place.program),
               user, given, [], say(rng, line(rng, DID), **slots),
               (str(name),), want_of(deed, one, name, said),
               exactly([words for words, _ in texts]))


def want_of(deed, thing, name, x=''):
    needed = {'move': ' to ', 'rename': ' to ', 'share': ' with ',
              'assign': ' to ', 'reschedule': ' to '}.get(deed.name, '')

    return f'{VERB.get(deed.name, deed.name)} the {thing} {name}{needed}{x}'


# what is done, if it is not the name of the deed

VERB = {'get': 'show', 'update': 'change', 'enable': 'switch on',
        'disable': 'switch off', 'switch': 'switch to', 'buy': 'order'}

# Of requests, so many are as short as in a telegram, and so many of those that
# change a value.

TERSE = 0.1
TERSE_CHANGES = 0.3

SHORTLY = ('{verb} {t}', '{t}: {verb}', '{t} - {verb}', '{verb}: {t}',
           '{t}, {verb}', '{verb} {t}!')


def shown_one(rng, deed, place, verb):
    """Returns the Use that shows a thing."""

    one = singular(place.thing)
    name = place.key.draw(rng)
    form = place.key.form(rng, place.alone)
    way = way_of(rng, deed, place)
    request = say(rng, way, t=form.format(thing=one, v=name), it='it')
    slots = dict(thing=one, name=name)

    if place.key.kind == 'path' and rng.random() < 0.7:
        text = long(rng)
        gives, record, keys = 'text', {'text': text}, (text,)
        answer = say(rng, line(rng, SAYS), text=text, **slots)
    else:
        traits = rng.sample(fitting(rng, TRAITS, place.thing),
                            rng.choice((1, 2, 2, 3)))
        values = [value(rng, t) for t in traits]
        gives = ' '.join(['name'] + [field(t) for t in traits])
        record = {'name': name, **{field(t): v
                                   for t, v in zip(traits, values)}}
        facts = shown([fact(t, v) for t, v in zip(traits, values)])
        answer = say(rng, line(rng, FACTS), facts=facts,
                     Facts=capital(facts), **slots)
        keys = [w for v in values for w in (v if isinstance(v, list)
                                            else [str(v)])]

        if is_single(request) and rng.random() < 0.25:
            request = longer(rng, request, [say(
                rng, rng.choice(INCLUDING), words=rng.choice(traits).words)])

    user = typed(rng, request, way[:3] == '{t}' and form[:3] == '{v}')

    return Use(tool(rng, deed, place.thing, verb,
                    [place.key.parameter(one)], gives, place.program),
               user, {'name': name}, [record], capital(answer), tuple(keys),
               want_of(deed, one, name), exactly(()))


def fact(trait, v):
    many = trait.kind == 'array' and trait.words[-1] == 's' \
        or trait.words == 'contents'

    return f'the {trait.words} {"are" if many else "is"} {shown(v)}'


FIRST = Split('''Show me the first {n} {things}.
Just {n} of the {things}, please.
List {things}, {bare}.
All the {things}, but {bare}.
{things}, {bare}
Give me {n} {things}[, not more|].
What are the first {n} {things}?
I'd like to see {n} of our {things}.
[Show|List] {n} {things}.
the top {n} {things}, please'''.splitlines())


def listed(rng, deed, place, verb):
    """Returns the Use that lists all things, or the first of them."""

    things = plural(place.thing)
    limit, given, way = rng.choice(LIMITS), {}, way_of(rng, deed, place)
    takes = [taken(place.thing, limit, given)] if rng.random() < 0.3 else []
    names_of = found(rng, place.key)
    slots = {}

    if rng.random() < 0.25:
        said, given[limit.words] = draw(rng, limit)
        takes = [taken(place.thing, limit, given)]
        slots = dict(n=said, bare=bare(rng, limit, said))
        way = rng.choice(FIRST)
        names_of = names_of[:given[limit.words]]

    return Use(tool(rng, deed, place.thing, verb, takes, 'name',
                    place.program),
               typed(rng, say(rng, way, things=things,
                              thing=singular(place.thing), **slots)), given,
               [{'name': n} for n in names_of], answered(rng, names_of),
               tuple(map(str, names_of)), f'list the {things}')


def found(rng, key):
    """Returns the names of one thing or some."""

    return list(dict.fromkeys(key.draw(rng)
                              for _ in range(rng.choice((1, 2, 2, 3, 4)))))


def answered(rng, found):
    """Returns the answer that names these."""

    return capital(say(rng, line(rng, ALL), v=shown([str(n) for n in found])))


def counted(rng, deed, place, verb):
    """Returns the Use that counts things."""

    things, n = plural(place.thing), rng.randrange(2, 900)
    user = typed(rng, say(rng, way_of(rng, deed, place), things=things))

    return Use(tool(rng, deed, place.thing, verb, [], 'count', place.program),
               user, {}, [{'count': n}],
               capital(say(rng, line(rng, NUMBER), n=n, things=things)),
               (str(n),), f'count the {things}')


def sought(rng, deed, place, verb):
    """Returns the Use that finds the things with some values."""

    things = plural(place.thing)
    pool = fitting(rng, SEARCHED, place.thing)
    traits = distinct(rng.sample(pool, rng.randint(1, min(3, len(pool)))))
    traits += [meant(rng, traits, FOR_GOODS if is_touched(place.thing)
                     else FOR_SEARCH)] if rng.random() < 0.6 else []
    traits += [rng.choice(LIMITS)] if rng.random() < 0.4 else []
    rng.shuffle(traits)
    given, what = {}, things
    behind, last = [], []

    for t in traits:
        if given and rng.random() < 0.25 or t.words in SOUGHT and behind[1:]:
            continue

        adjective = before(rng, t) if what == things else None

        if t.words in SOUGHT:
            said, given[t.words] = draw(rng, t)
            behind.append(expand(rng, f'[{SOUGHT[t.words]}]').format(v=said))
        elif adjective and rng.random() < 0.7:
            said, given[t.words] = adjective

            if rng.random() < 0.6:
                what = f'{said} {things}'
            else:
                last.append(f'{said} ones')
        else:
            said, given[t.words] = draw(rng, t)
            last.append(bare(rng, t, said))

    what = ' '.join([what] + behind) if rng.random() < 0.7 \
        else ', '.join([what] + behind)
    names_of = found(rng, place.key)
    names_of = names_of[:min([given[t.words] for t in LIMITS
                              if t.words in given] + [9])]
    way = way_of(rng, deed, place)
    user = typed(rng, say(rng, way, b=', '.join([what] + last)))

    return Use(tool(rng, deed, place.thing, verb,
                    [taken(place.thing, t, given) for t in traits], 'name',
                    place.program),
               user, given, [{'name': n} for n in names_of],
               answered(rng, names_of), tuple(map(str, names_of)),
               f'find {what}')


# how the name of a new thing is said

NEW_NAMES = (' called {v}', ' named {v}', ' "{v}"', ', name: {v}', ': {v}',
             ' with the name {v}', ' by the name of {v}', ' called "{v}"',
             ', the name is {v}')

TERSE_NEW = {'create': Split('''{thing}{d}
new {thing}{d}
A {thing}{d}
add {thing}{d}
create {thing}{d}
{thing}, new{d}
another {thing}{d}
a new {thing}{d}
one new {thing}{d}
make a {thing}{d}
set up {thing}{d}
add: {thing}{d}
another new {thing}{d}
register {thing}{d}'''.splitlines()), 'book': Split('''book a {thing}{d}
A {thing}{d}
reserve {thing}{d}
{thing}{d}
{thing} for us{d}
please book: {thing}{d}
reservation: {thing}{d}'''.splitlines()), 'buy': Split('''order a {thing}{d}
buy {thing}{d}
a new {thing}{d}
order: {thing}{d}
to buy: {thing}{d}
please order: {thing}{d}
please buy {thing}{d}
one more {thing}{d}'''.splitlines())}

# the values of what is booked or bought

AMONG = {'book': FOR_BOOKING, 'buy': FOR_BUYING}
OF_NEW = {'book': frozenset(('day', 'time', 'capacity', 'duration', 'month',
                             'start date', 'end date', 'price', 'floor',
                             'number of seats')),
          'buy': frozenset(('quantity', 'price', 'color', 'brand', 'size',
                            'weight', 'height', 'width', 'length', 'power',
                            'material', 'shape'))}


def made(rng, deed, place, verb):
    """Returns the Use that makes a new thing, or books or buys one."""

    one = singular(place.thing)
    terse = rng.random() < 0.4
    pool = [t for t in fitting(rng, BARE if terse else PLAIN, place.thing)
            if t.words in OF_NEW.get(deed.name, (t.words,))]
    traits = rng.sample(pool, min(len(pool), rng.choice((0, 1, 1, 2, 3))))
    traits += [meant(rng, traits, AMONG.get(deed.name, ()))] \
        if rng.random() < 0.5 or not traits else []
    traits = distinct(traits) if terse else traits
    text = free(rng) if deed.name == 'create' and rng.random() < 0.5 else None
    given, details, thing, takes = {}, [], one, []

    if deed.name == 'create' and place.key.kind != 'number' and (
            text is None or not terse and rng.random() < 0.2):
        given['name'] = place.key.draw(rng)
        takes.append(parameter('name', f'name {one}_name new_name',
                               '[Name|The name] of the new {thing}'.format(
                                   thing=one)))

    for t in traits:
        adjective = before(rng, t) if thing == one else None

        if details and rng.random() < 0.2:
            continue

        if adjective and rng.random() < 0.35:
            thing = f'{adjective[0]} {one}'
            given[t.words] = adjective[1]
        else:
            said, given[t.words] = draw(rng, t)
            details.append(bare(rng, t, said) if terse
                           else detail(rng, t, said, traits))

    takes += [taken(one, t, given) for t in traits]

    # with a name, it would seem to be there already

    way = rng.choice([w for w in part(rng, TERSE_NEW[deed.name])
                      if 'name' not in given or ' {thing}' in w
                      and w != 'A {thing}{d}']) if terse \
        else way_of(rng, deed, place)
    v = None

    if text is not None:
        v, given[text.words] = draw(rng, text)
        takes.insert(rng.randint(0, len(takes)), taken(one, text, given,
                                                       True))

    called = rng.choice(NEW_NAMES).format(v=given['name']) \
        if 'name' in given else ''
    d = called + (telegram(rng, v, details) if terse and not called
                  else after(rng, details))
    request = say(rng, way, thing=thing, d=d)

    if v is not None and not terse:
        request = with_text(rng, request, text.words, v)

    user = typed(rng, request, False, v is not None or terse)
    key = given.get('name') or v or one
    slots = dict(thing=one, past=deed.past, called=f': {key}' if key != one
                 else '')
    answer = say(rng, line(rng, MADE), **slots)

    return Use(tool(rng, deed, place.thing, verb, takes, '', place.program),
               user, given, [], re.sub(r'([?!])\.$', r'\1', answer), (key,),
               f'{VERB.get(deed.name, deed.name)} the {one}'
               + (f' {given["name"]}' if 'name' in given else ''),
               exactly([text.words] if text else []))


def after(rng, details):
    """Returns details as they follow a noun."""

    if not details:
        return ''

    said = re.sub('^and ', '', ', '.join(details))

    return (', ' if re.match('(a|as|at|by|for|from|in|it|on|to|with) ', said)
            or rng.random() < 0.5 else ': ') + said


TERSE_CHANGE = Split('''{t}: {words} {v}
{t}, {words} {v}
{t}: {bare}
{t}, {bare}
{t} - {bare}
{t} -> {bare}
{t} now: {bare}
change {t}: {bare}
{t}, new: {bare}
update {t}, {bare}'''.splitlines())


def changed(rng, deed, place, verb):
    """Returns the Use that changes a value of a thing."""

    one = singular(place.thing)
    name = place.key.draw(rng)
    form = place.key.form(rng, place.alone)
    traits = distinct(rng.sample(fitting(rng, CHANGED, place.thing), 3))
    trait = meant(rng, traits) if rng.random() < 0.35 else traits[0]
    traits = [trait] + traits[1:rng.randint(1, 2)]
    said, v = draw(rng, trait)

    # a value that is a code, such as "thu", is not said as it is

    terse = is_bare(trait) and (rng.random() < TERSE_CHANGES
                                or trait.said is not None
                                and len(v) < 4)
    way = rng.choice(TERSE_CHANGE) if terse else way_of(rng, deed, place)
    shortly = bare(rng, trait, said) if is_bare(trait) else ''
    full = v.lower() if trait.said else said + (
        '%' if trait.unit == '%' else f' {trait.unit}'.rstrip())
    request = say(rng, way, t=form.format(thing=one, v=name),
                  words=trait.words, v=full, bare=shortly)
    given = {'name': name, trait.words: v}

    if terse and is_bare(traits[-1]) and rng.random() < 0.4:
        for second in traits[1:]:
            said, given[second.words] = draw(rng, second)
            request += ', ' + bare(rng, second, said)

    user = typed(rng, request, way[:3] == '{t}' and form[:3] == '{v}')
    rng.shuffle(traits)
    takes = [place.key.parameter(one)] + [
        taken(one, t, given, more=f'new_{words(t.words)}') for t in traits]
    slots = dict(thing=one, name=name, past=deed.past)

    return Use(tool(rng, deed, place.thing, verb, takes, '', place.program),
               user, given, [], say(rng, line(rng, DID), **slots),
               (str(name),),
               f'change the {trait.words} of the {one} {name}', exactly(()))


USES = {'get': shown_one, 'list': listed, 'count': counted, 'search': sought,
        'create': made, 'book': made, 'buy': made, 'update': changed}


def use_of(rng, name, place, verb):
    return USES.get(name, about_one)(rng, DEEDS[name], place, verb)


# --------------------------------------------------------------------- tasks


PROGRAMS = Split('''admin app cli crm desk erp hub ops portal shop store sys
team vault work'''.split())


# the shares of tasks with a request that no tool is for, with tools for other
# things, with two requests, and with one for several things

REFUSED = 0.1
OTHERS = 0.3
TWO = 0.12
SEVERAL = 0.06


def make(rng):
    """Tools that do different things with one thing, beside a few that do the
    same with another."""

    thing = rng.choice(THINGS)
    can = [n for n, d in DEEDS.items() if d.does(singular(thing))]
    name = rng.choice(can)
    refused = rng.random() < REFUSED
    beside = some(rng, [n for n in can if not (
        refused and n in STAND_INS.get(name, ()))], name)
    strange = strangers(rng, name, thing) if rng.random() < OTHERS else []
    verbs = {n: rng.choice(DEEDS[n].verbs) for n in (name, *beside)}
    place = Place(thing, key(rng, thing), not strange,
                  frozenset(verbs) | {v for verb in verbs.values()
                                      for v in verb.rstrip('*').split()},
                  '' if strange or rng.random() < 0.85
                  else 'git' if thing in ('branch', 'commit')
                  else rng.choice(PROGRAMS))
    uses = [use_of(rng, n, place.without(n, verbs[n]), verbs[n])
            for n in (name, *beside)]
    other = [use_of(rng, n, Place(t, key(rng, t)), rng.choice(DEEDS[n].verbs))
             .service for n, t in strange]

    if refused:
        return nothing(rng, uses[0], [u.service for u in uses[1:]] + other)

    if rng.random() < SEVERAL and name in WITH_VERB:
        asked, user, answer = several(rng, name, place, uses[0])
    elif rng.random() < TWO and len(uses) > 1:
        asked = uses[:2]
        user = expand(rng, rng.choice(JOIN)).format(*(ended(u.user)
                                                      for u in asked))
        answer = ' '.join(ended(u.answer) for u in asked)
    else:
        asked, user, answer = uses[:1], uses[0].user, uses[0].answer

    services = [u.service for u in uses if u not in asked] + other
    apis, tools = box(rng, asked, (len(services), len(services)), (),
                      services or [uses[0].service])

    # only the names are left

    if not place.program and rng.random() < 0.15:
        for tool in tools.values():
            tool.function.pop('description', None)

    return task(rng, 'daily_open', 'multi' if asked[1:] else 'single', [turn(
        rng, asked, apis, user, answer, rng.random() < 0.6)], tools)


def nothing(rng, use, services):
    """No tool does what is requested."""

    _, tools = box(rng, [], (len(services), len(services)), (), services)

    return declined(rng, 'daily_open', use.user,
                    weighed(rng, use.want, use.user, tools),
                    refusal(rng, use.want), tools)


# the deeds that need only the name, with a verb to which any name can be added

WITH_VERB = {**{n: n for n in '''delete archive restore close reopen cancel
approve reject start stop pause resume lock unlock print copy pay
refund'''.split()}, 'enable': 'switch on', 'disable': 'switch off'}

OF_SEVERAL = Split('''{Verb} the {things} {v}.
{verb} {things} {v}
Please {verb} these {things}: {v}.
[Can|Could] you {verb} the {things} {v}?
I want to {verb} {things} {v}.
The {things} {v}: {verb} all of them.
[We have to|It's time to] {verb} the {things} {v}.
{things}: {v}. Please {verb} [all of these|every one of them].
I'd like you to {verb} {things} {v}[ for me|, please|].
{verb}: {things} {v}
Would you {verb} the following {things}: {v}?'''.splitlines())


def several(rng, name, place, use):
    """Returns the Uses for two or three things with which the same is done as
    in a use, their request, and the answer."""

    found, n = [], rng.choice((2, 2, 3))

    while len(found) < n:
        another = place.key.draw(rng)
        found += [] if another in found else [another]

    verb, one, things = WITH_VERB[name], singular(place.thing), \
        plural(place.thing)
    user = typed(rng, say(
        rng, rng.choice(OF_SEVERAL), verb=verb, Verb=capital(verb),
        things=things, v=spoken.listed(rng, [str(n) for n in found])))
    answer = f'Done: {shown([str(n) for n in found])} are ' \
        f'{DEEDS[name].past}.'

    return [replace(use, user=user, given={'name': n}, keys=(str(n),),
                    answer=answer, want=want_of(DEEDS[name], one, n))
            for n in found], user, answer


def some(rng, can, name):
    """Returns two to five other deeds, of which no two could be taken for
    each other."""

    rng.shuffle(can)
    found, n = [name], rng.randint(3, 6)

    for other in can:
        if len(found) < n and not any(rivals(other, f) for f in found):
            found.append(other)

    return found[1:]


def strangers(rng, name, one):
    """Returns [(deed, other thing)]: the deed with this name, often, or
    another one."""

    found = []

    for _ in range(rng.randint(1, 2)):
        thing = rng.choice(THINGS)
        can = [n for n, d in DEEDS.items() if d.does(singular(thing))]

        if thing != one:
            found.append((name if name in can and rng.random() < 0.7
                          else rng.choice(can), thing))

    return list(dict.fromkeys(found))
