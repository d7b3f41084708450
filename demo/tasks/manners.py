# Copyright (C) The nginx-dsa authors

"""Greetings, jokes and other small talk; topics.py describes the format."""

from tasks.topics import topics


MANNERS = topics('''
= says hello
- [Hello|Hi|Hey]!
- [Hello|Hi|Hey] [there|you]!
- [Hello|Hi], [model|little model]!
- Greetings!
- Hello, is somebody there?
- Anybody there?
> Hello! What can I do for you?
+ hello|hi, what can I do

= says good morning
- Good morning!
- Good morning [to you|, model].
- Morning!
- A [very|] good morning to you!
- I wish you a good morning.
> Good morning! What can I do for you?
+ good morning

= says good evening
- Good evening!
- Good evening [to you|, model].
- Evening!
- A [very|] good evening to you!
- I wish you a good evening.
> Good evening! What can I do for you?
+ good evening

= says good night
- Good night!
- Good night[, model|, little model].
- I am going to bed now.
- I have to sleep now.
- Sleep well!
> Good night, and sleep well.
+ good night

= says thanks
- [Thanks|Thank you]!
- [Thanks|Thank you] [very much|a lot]!
- [Thanks|Thank you] for [your help|the answer].
- Many thanks!
- That helped, thank you.
- I thank you.
> You are welcome.
+ welcome

= says goodbye
- [Goodbye|Bye|Bye bye|Farewell]!
- See you [later|tomorrow|soon]!
- I have to go [now|].
- That is all[, goodbye|for today].
- Until next time!
- I am leaving now.
> Goodbye!
+ goodbye|bye

= says that something is clear
- [Ok|Okay|I see|Fine|Good to know].
- [Ah|Oh], [ok|I see].
- [All right|Understood].
- That is clear [now|].
- I understand [now|that].
> Good. Is there something else?
+ something else|anything else

= tests me
- [Test|Testing].
- This is a test.
- Does this work?
- Are you there?
- Can you [hear|read|see] me?
- Do you work?
- One two three, test.
> Yes, I am here and I can read you.
+ yes, here

= says sorry
- [Sorry|Excuse me].
- [I am|I'm] sorry.
- Forgive me.
- [Oh, sorry|Sorry about that].
- My mistake.
> No harm done. Go on.
+ no harm|no problem, go on

= says what I do not understand
- [?|??|???|...|!]
- [Huh|What|Hm|Eh|Pardon]?
- [asdf|qwerty|xyz|aaa|foo|foo bar|test123|hjkl|bla bla]
- [Blah|Bla|Uh|Um|Er].
- [I|You|The|And|But|So] ...
> I did not understand that. Please say it in other words.
+ not understand|not understood, other words

= laughs
- [lol|haha|ha ha|hahaha|hehe]
- [That is|That's] [funny|very funny].
- [Ha|Haha], [good one|funny].
- You make me laugh.
- What a good joke!
> I am happy when somebody laughs.
+ happy, laughs|laugh

= wants a joke
- Tell me a joke.
- [Do you know|Have you] a joke?
- Make me laugh.
- Tell me something funny.
- Say something [funny|that makes me laugh].
- I want to hear a joke.
> Why did the token sit alone? Nobody in the top 256 had selected it.
+ token, top 256, selected

= wants another joke
- [Another|One more] joke[, please|].
- [Do you know|Tell me] [another|one more] joke.
- Have you got a second joke?
- Tell me a different joke.
- I want a new joke.
> What does a cache say to a good friend? I have seen you before.
+ cache, seen you before

= wants a joke about a server
- Tell me a joke about [a server|nginx|servers|web servers].
- [Do you know|Have you] a joke about [nginx|a web server]?
- I want a joke about [nginx|servers].
- Make a joke about nginx.
- A joke about a server, please.
> Why is the server so calm? It never blocks, it only waits for events.
+ server, never blocks, events

= wants a joke about experts
- Tell me a joke about experts.
- [Do you know|Have you] a joke about experts?
- I want a joke about a mixture of experts.
- Make a joke about [experts|a router].
- A joke about experts, please.
> Eight experts meet. Two of them work, and the shared one brings the coffee.
+ experts, two, coffee

= wants a joke about numbers
- Tell me a joke about [numbers|FP8|a number].
- [Do you know|Have you] a joke about [numbers|FP8]?
- I want a joke about numbers.
- Make a joke about [numbers|rounding].
- A joke about numbers, please.
> A number came into an FP8 bar. It left somewhat rounder.
+ FP8, rounder

= asks me to write a program
- Write [a program|some code|a script] [for me|].
- Can you [program|write code|code]?
- Write a function in [C|Python|Perl] that sorts a list.
- [Write|Can you write|Help me write] [Python|JavaScript|C|Rust|Java] [code|].
- Can you help me [write Python code|with my code|to program]?
- How do I [sort a list|open a file|read a line] in [Python|C|JavaScript]?
- [Write|Give me] [a loop|a class|an SQL query|a regex|a web page] [for me|].
- [Debug|Explain|Review] [this|my] [code|program|function].
- Program a game for me.
- Fix the bug in my [program|code].
- Which programming languages do you know?
> I cannot write programs. I was taught only a few things: sums, look-ups,
> tools, trips, and nginx-dsa.
+ cannot|can not|can't, programs|program|code, few things

= asks me to translate
- Translate [hello|this|a sentence] [into|to] [German|French|Spanish].
- Can you translate [something|] [for me|]?
- What does [hund|maison|casa] mean in English?
- [Say|What is] [hello|thanks|good morning|cat|water] in [German|French|Dutch].
- [Answer|Speak|Write] in [German|French|Spanish|Chinese].
- How do you say [hello|bread|house] in [Italian|Polish|Dutch]?
- Translate my letter.
> I cannot translate. I was taught only a few things in simple English.
+ cannot|can not|can't, translate, few things

= wants a trip without tools
- [Plan|Can you plan|Please plan] a trip [to Paris|to Rome|for me|with me].
- [Plan|Make] a [journey|trip] [of three days|to Italy|to London].
- [Where should I go|Where can I go] on my [trip|holidays]?
- Book a [hotel|flight|table] [for me|in Berlin|].
- I want to travel [to Vienna|]. Plan it for me.
> To plan a trip I need tools, with cities and hotels: demo/agent has them.
+ tools, demo/agent
''')
