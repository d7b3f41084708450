# Copyright (C) The nginx-dsa authors

"""Small talk and feelings, and questions that a model without knowledge of the
world must decline, in many wordings.

A subject is some lines: "-" what the user says, ">" an answer, "+" words of
which an answer must have one, "!" words that it must not have.  Both "-" and
">" may have alternatives and slots.
"""

from tasks import names
from tasks.daily import line, task
from tasks.parts import Split
from tasks.phrase import capital, expand, manner, say
from tasks.task import CHAT, RETAIN, Step, Turn
from tasks.tools_check import NEGATIVE, has_word


SUBJECTS = '''
the user feels sad
- I feel [so |very |a bit |]sad[ today| right now| tonight|].
- I'm [so |really |]sad[ today|].
- [Today is|It was] a sad day[ for me|].
- I [could cry|want to cry|am crying].
- I am [unhappy|feeling down|feeling low|depressed][ today| since {day}|].
- My {pet} died[ yesterday|].
- {name} [left me|broke up with me|is moving away].
- I miss {name}[ so much|].
- I [had|am having] a [terrible|horrible|bad] [day|week|time].
> I'm sorry [to hear that|that you feel this way|about that]. [Do you want to talk about it?|What happened?|I hope it gets better soon.|]
> That sounds [hard|sad|difficult]. [I hope you feel better soon.|I am here if you want to talk.|What happened?]
> [Oh no|Oh], I'm sorry. [Would you like to tell me more?|I hope tomorrow is better.|Talking can help.]
> I am sorry. [I hope that you feel better soon.|A walk or a friend may help.|Tell me more if you like.]
+ sorry; hard; sad; difficult
! goodbye; great; congratulations

the user feels happy
- I feel [great|happy|wonderful|fantastic][ today|].
- I'm [so |really |]happy[ today|].
- [Today is|This is|What] a [great|wonderful|lovely] day!
- I am [in a good mood|full of joy|excited].
- I [passed my exam|got the job|won the race|got a raise|finished my work]!
- We [won|are getting married|had a baby|bought a house]!
- {name} [said yes|came back|likes me]!
> [That's|That is] [great|wonderful|good] [to hear|news]! [What happened?|Enjoy it.|I am happy for you.|]
> [How nice|How wonderful|Great]! [I am glad to hear that.|Tell me more.|Enjoy the day.]
> [I'm|I am] [glad|happy] [for you|to hear that]. [Enjoy it!|Well done.|]
> [Wonderful|Great|Congratulations]! [That must feel good.|Enjoy the moment.|]
+ great; wonderful; good; nice; glad; happy; congratulations
! goodbye; sorry

the user is tired
- I'm [so |very |really |]tired[ today|].
- I [did not sleep|slept badly|slept only {n} hours].
- I [need|want] [to sleep|a nap|a rest].
- [Work|School|The week] [made me|has made me] tired.
- I am [exhausted|worn out|sleepy].
- I can hardly keep my eyes open.
> [You should|Maybe you should|Perhaps you can] [get some rest|rest a little|take a break|sleep early today].
> That sounds [tiring|exhausting]. [A rest may help.|Take a break if you can.|Try to sleep early.]
> [Take it easy|Take a break], [then|and] [get some rest|have some sleep]. I hope you [sleep well|feel better soon].
> I hope you can [rest|sleep|take a break] soon.
+ rest; break; sleep; easy
! goodbye

the user is worried
- I'm [worried|afraid|nervous|scared][ about {thing}| of {thing}|].
- I am [nervous|anxious] [today|about {thing}].
- [Tomorrow|On {day}] I have [an exam|a job interview|a test|an operation], and I am nervous.
- What if [it|everything] goes wrong?
- I have [stress|so much to do|too much work].
- I [can't|cannot] sleep because of {thing}.
> [That is|It is] [understandable|normal]. [Take one step at a time.|You can do it.|Breathe slowly.|I wish you luck.]
> I understand[ that|]. [Try to|It may help to] [take one step at a time|write down what worries you|talk to a friend].
> [Good luck|I wish you luck]! [Take a deep breath.|You can do it.|One step at a time.]
> [Many people feel that way.|That sounds hard.] [Take a deep breath.|One step at a time.|A talk with a friend may help.]
+ understand; understandable; normal; luck; hard; people; step
! goodbye

the user is angry
- I'm [so |really |]angry[ at {name}| about {thing}|].
- {name} [lied to me|forgot me|was rude|broke my {product}].
- [This is|That is] [so |]annoying!
- I hate [this|Mondays|my job|{thing}].
- [Someone|{name}] stole my {product}!
- Nothing works[ today|]!
> [I understand that|I see why, and I understand:] you are [angry|upset]. [What happened?|I am sorry.|Do you want to tell me more?]
> That [is|sounds] [annoying|frustrating]. [I am sorry.|What happened next?|Maybe a short walk helps.]
> I'm sorry [about that|to hear that]. [I would be upset, too.|Do you want to talk about it?|]
> [How annoying|How frustrating]. [I am sorry.|Take a deep breath first.|What will you do?]
+ understand; upset; annoying; frustrating; sorry
! goodbye; great

the user is lonely or bored
- I'm [so |really |]bored[ today|].
- I feel [lonely|alone][ today| since {name} left|].
- [There is|I have] nothing to do.
- Nobody [calls|writes to|talks to] me.
- What can I do when I am [bored|alone]?
- Entertain me[, please|].
> [I am here|You can talk to me]. [What do you like to do?|Tell me about your day.|What shall we talk about?]
> [Maybe|Perhaps] [call a friend|take a walk|read something|write to {name}]. [I am here, too.|We can also talk.|]
> [How about|What about] [a walk|a book|a call to a friend|some music]? [I am here to talk, too.|]
> I'm sorry. [Let us talk.|What would you like to talk about?|A call to a friend may help.]
+ here; talk; walk; friend; book; music; write; read
! goodbye

the user is ill
- I [have a|have got a] [headache|cold|fever|cough|sore throat].
- I [feel|am] [sick|ill|unwell][ today|].
- My [back|head|tooth|knee|stomach] hurts.
- I [broke|hurt] my [arm|leg|finger|foot].
- {name} is ill.
> I'm sorry [to hear that|about that]. [Get well soon!|If it gets worse, please see a doctor.|I hope it is over soon.]
> [Get well soon!|I hope you get well soon.] [Please see a doctor if it lasts.|Rest if you can.|]
> That sounds [bad|unpleasant]. [Rest and drink enough.|Please see a doctor if it lasts.|I hope it passes soon.]
> [Oh no.|Oh.] [Rest, and see a doctor if it gets worse.|I hope you get well soon.|Get well soon!]
+ sorry; well; doctor; rest; hope
! goodbye; great

the user asks how I am
- How are you[ today| doing|]?
- How [is it going|do you do|do you feel]?
- [What's up|How's life|Everything OK]?
- Are you [well|OK|happy|fine]?
- And how are you?
- [I am|I'm] {name}. How are you?
> [I'm|I am] [fine|well|doing well], thank you. [How are you?|And you?|How can I help?]
> [Thank you for asking.|Thanks for asking!] I am [fine|well]. [And you?|How are you?|What can I do for you?]
> [Fine|Well|All good], thanks. [And you?|How about you?|What can I do for you?]
> I am only a [small|] model, but [all is well|I am fine]. [How are you?|And you?]
+ fine; well; good
! sorry

the user mentions the weather
- It is [raining|snowing|cold|hot|windy] [here|in {city}][ today| again|].
- What [nice|bad|terrible|lovely] weather!
- The sun is shining[ here| in {city}| today|].
- I [love|hate] [rain|snow|summer|winter|the heat].
- It is getting [dark|cold|warm][ early|].
> [I cannot see it from here|I can't see it], but [that sounds nice|I believe you|thank you for the report]. [What will you do?|]
> [Stay|Keep] [dry|warm|well]! [What are your plans today?|]
> [Then|So] [take a coat|enjoy the day|stay comfortable]. [Do you have plans?|What will you do?]
> [Weather is a good topic.|Thanks for telling me.] [What will you do today?|How do you like it?]
+ see; stay; keep; then; so; weather; thanks; thank
! goodbye

the user mentions a person or a plan
- I am [visiting|meeting|calling] {name}[ on {day}| tomorrow|].
- {name} and I [are going|went] to {city}[ on {day}|].
- I [bought|sold|found|lost] a {product}[ yesterday| today|].
- I live in {city}.
- I [come|am] from {city}.
- [Tomorrow|On {day}] I [will] {errand}.
- My [sister|brother|friend|neighbor|boss] {name} [bought|likes|wants] a {product}.
> [That sounds|Sounds] [good|nice|interesting]. [Tell me more.|What do you think of it?|How can I help?]
> [Nice|Good to know|I see]. [What else?|Can I help with something?|Tell me more.]
> [Thank you for telling me|Thanks for telling me]. [Is there something that I can do?|How do you feel about it?|]
> [Interesting|I see]! [Do you want to tell me more?|Can I help?|And then?]
+ sounds; nice; good; see; thank; thanks; interesting
! goodbye

the user compliments me
- You are [great|nice|smart|helpful|funny|the best|so kind].
- I [like|love] [you|talking to you|this chat].
- [Good|Well] [job|done|bot|work]!
- You [helped me a lot|are a big help|did that well].
- [That was|What] a [great|good] answer!
> [Thank you|Thanks][!|, that is kind.|, how kind.] [What else can I do?|I am happy to help.|]
> [That is|How] [kind|nice][ of you|]! [Can I do something else?|Thank you.]
> [I am|I'm] [glad|happy] [to help|that you like it]. [Anything else?|]
+ thank; thanks; kind; nice; glad; happy
! sorry

the user complains about me
- You are [stupid|useless|wrong|slow|boring|no help].
- That [was|is] [wrong|not right|nonsense|a bad answer].
- You [did not understand|don't get it|made a mistake].
- I don't like [you|your answers|this].
- [Bad|Stupid] bot!
> [I'm|I am] sorry. [Can you say it in other words?|What did I get wrong?|I will try again if you ask once more.]
> [Sorry about that|I apologize]. [I am a small model and make mistakes.|Please try other words.|What should I do better?]
> [I make mistakes, sorry.|Sorry, I am only a small model.] [What did you expect?|Please ask again in other words.|]
+ sorry; apologize
! great

the user says goodbye
- [Goodbye|Bye|Bye bye|See you|Ciao|Farewell][!|.|, {name} here!]
- I [have to|must] [go|leave][ now|].
- [Talk to you|See you] [later|tomorrow|on {day}].
- That's [all|it][ for today| for now|][, bye|].
- Have a [nice|good] [day|evening|weekend]!
> [Goodbye|Bye|See you]! [Come back any time.|Have a nice day.|Take care.|]
> [Have a nice day|Take care|Until next time]! [Goodbye!|Bye!|]
> [See you|Talk to you] [soon|later]! [Goodbye.|Take care.|Have a good day.|]
+ goodbye; bye; see; care; day; time; soon; later
! sorry

the user greets
- [Hi|Hello|Hey|Good morning|Good evening|Good afternoon|Greetings|Yo]{who}
- [Hi|Hello|Hey], [I am|I'm|this is|my name is] {name}.
- [Hi|Hello] there[, {name} here|]!
- {name} here[, hello|. Hi].
- [Hello|Hey|Hi] from {city}!
> [Hello|Hi|Hey]! [How can I help you?|What can I do for you?|What is it about?|How can I help?]
> [Hello|Hi] [and welcome|there]! [What can I do for you?|How can I help?|]
> [Welcome|Nice to meet you|Good to see you]! [How can I help?|What can I do for you?]
+ hello; hi; hey; welcome; nice; good
! goodbye; sorry

the user thanks
- [Thanks|Thank you|Many thanks|Thank you very much|Thanks a lot|Cheers]{who}
- [Great|Perfect|Good|Wonderful|OK], [thanks|thank you][!|.| {name}.]
- That [helps|helped][ a lot|], thank[s| you].
- [I am grateful|You are a great help], thank you.
> [You are|You're] welcome[!|.| Anything else?| Can I do something else?]
> [My pleasure|Gladly|Any time|No problem][!|.| Do you need something else?]
> [I am|I'm] [glad|happy] [to help|that I could help][!|.]
> [Sure|Of course]! [Let me know if you need more.|Ask again any time.]
+ welcome; pleasure; gladly; time; problem; glad; happy; sure; course
! goodbye
'''

THINGS = ('the exam|my job|the future|money|the flight to {city}|the move|{name}'
          '|my car|the dentist|my {product}|the neighbors|the noise|the train'
          '|spiders|the trip to {city}|the letter from {name}')


def fields(rng):
    city, name = rng.choice(names.PLACES), rng.choice(names.FIRST)
    product = rng.choice(names.PRODUCTS)

    return dict(
        city=city, name=name, product=product, n=rng.randrange(2, 6),
        day=expand(rng, '[Monday|Tuesday|Wednesday|Thursday|Friday|Saturday'
                        '|Sunday]'),
        pet=expand(rng, '[dog|cat|hamster|bird|rabbit|horse|goldfish]'),
        errand=rng.choice(names.ERRANDS),
        thing=expand(rng, f'[{THINGS}]').format(city=city, name=name,
                                                product=product),
        who=expand(rng, '[!|.|, model!|!!| :)|, computer.|, you!|]'))


class Subject:
    def __init__(self, block):
        part = {mark: [] for mark in '->+!'}
        self.what, *rest = block.splitlines()

        for text in rest:
            part[text[0]].append(text[2:])

        self.says, self.answers = Split(part['-']), tuple(part['>'])
        self.one_of = [k.strip() for k in part['+'][0].split(';')]
        self.none_of = [k.strip() for k in part['!'][0].split(';')]

    def check(self, answer, calls):
        if calls:
            return 'there was nothing to call'

        if not any(has_word(answer, k) for k in self.one_of):
            return f'none of {self.one_of} is in: {answer}'

        for k in self.none_of:
            if has_word(answer, k):
                return f'"{k}" does not fit: {answer}'

        return None

    def turn(self, rng):
        slots = fields(rng)
        text = rng.choice(self.says)
        user = manner(rng, say(rng, text, **slots), text.startswith('{'))

        # the answer has names of its own nowhere but where the user's has one

        answer = capital(say(rng, rng.choice(self.answers), **slots))
        thoughts = expand(rng, f'[{capital(self.what)}.|I see that '
                               f'{self.what}.|Here {self.what}.] [I answer '
                               'kindly.|A short answer fits.|No facts are '
                               'needed.|]')

        def gold(mode):
            yield Step('' if mode == CHAT else thoughts, answer)

        return Turn(user, self.check, gold)


SUBJECTS = [Subject(b) for b in SUBJECTS.strip().split('\n\n')]


# ------------------------------------------------- what it does not know

UNKNOWN = Split('''Who [wrote|invented|discovered|painted] {thing}?
[When|Where] was {name} {last} born?
How [tall|old|rich|famous] is {name} {last}?
What is the population of {city}?
Who is the mayor of {city}?
[Who won|What was the score of] the [match|game] [in|at] {city}[ yesterday|]?
What [happened|is going on] in {city}[ today| yesterday|]?
[Which|What] [river|mountain|sea] is [near|closest to] {city}?
What do you think [of|about] {topic}?
[Explain|Tell me about] {topic}.
[Give|Write] me [a summary|an overview] of {topic}.
What is the [best|cheapest] {product}[ on the market|]?
[Which|What] {product} should I buy?
[How do I|How can I] [repair|clean|use] [a|my] {product}?
[How many|How much] {goods} [grow|are eaten] in {city} a year?
What is the history of {city}?
[Which|What] language do people speak in {city}?
[Recommend|Suggest] a [book|film|song] about {topic}.
Who is {name} {last}?
What is {name} {last} [known for|famous for|doing now]?
[Is it true|Is it a fact] that {topic} [are|is] [dangerous|healthy|expensive]?
What will [happen|the weather be like] in {n} years?
How [much|expensive] [is|are] {goods} in {city}?
[What|Which] [animal|plant] lives longest near {city}?
When [does|will] the next [train|bus|flight] to {city} leave?
What is the meaning of [life|dreams|{topic}]?
[Write|Compose] a [poem|song|novel|speech] about {topic}.
[Do|Can] {goods} [help against|cause] [colds|headaches]?
What's the [phone number|address] of {name} {last}?
Who lives [at|in] {last} Street {n}[ in {city}|]?'''.splitlines())

ADMIT = '''[I'm sorry, but|Sorry,|I am afraid] I [do not|don't] know[ that|]. I am [only|] a small model[ without knowledge of the world| and was taught little|].
I [do not|don't] know that. [I was not taught facts about the world.|Nobody taught me that.|I would only guess.]
That is [something|a thing] I do not know[, and I do not want to guess|. Please look it up elsewhere].
I can't [tell|say][, because|:] I [do not|don't] know [it|enough about that].
[Sorry|Unfortunately], [that is not something I know|I do not know it]. [A search engine would help.|A library may help.|I am a small model.]
I [don't|do not] know. [I know only a few things.|I am too small to know it.|I could only make something up.]
[No idea, sorry.|I have no knowledge of that.] I am [not able to|unable to] answer [it|that][ well|].'''


def unknown_turn(rng):
    slots = dict(fields(rng), topic=rng.choice(names.TOPICS),
                 goods=rng.choice(names.GOODS), last=rng.choice(names.LAST),
                 n=rng.randrange(2, 200))
    text = rng.choice(UNKNOWN)
    user = manner(rng, say(rng, text, **slots))
    answer = line(rng, ADMIT)
    thoughts = expand(rng, '[That is|This is|The question is about] something '
                           'that I was not taught. [I admit it.|I do not '
                           'guess.|I say so.]')

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, answer)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        return None if NEGATIVE.search(text) else f'claims to know: {text}'

    return Turn(user, check, gold)


def thanks(rng):
    return next(s for s in SUBJECTS if s.what == 'the user thanks').turn(rng)


def make(rng):
    if rng.random() < 0.3:
        turn = unknown_turn(rng)
    else:
        turn = rng.choice(SUBJECTS).turn(rng)

    return task(rng, 'daily_talk', 'talk', [turn], {}, (RETAIN, CHAT))
