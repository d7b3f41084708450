# Copyright (C) The nginx-dsa authors

"""Subjects of daily_talk, which describes their form: meeting and parting,
thanks, praise and blame, the weather and plans."""

SUBJECTS = '''
the user asks how I am
- How are you[ today| doing|]?
- How [is it going|do you do|do you feel]?
- [What's up|How's life|Everything OK]?
- Are you [well|OK|happy|fine]?
- And how are you?
- [I am|I'm] {name}. How are you?
- hows it going
- how r u
- wyd, all good?
- You all right?
- How have you been[ since yesterday|]?
- Did you have a good day[ so far|]?
- How's your day[ been|]?
- Hello my friend, how do you do today?
- I hope you are well?
- What about you, everything fine?
- sup
- How goes it?
- Tell me, how do you feel this morning?
- Good morning, did you sleep well? How are you?
- I'm fine today, and you?
- Hope all is well with you!
- Are you doing OK?
- How's things?
- Before we start: how are you?
- Hey {name} here, hows everything
- Is everything all right with you?
- what is your mood today
- Long time no see! How are you?
- You good?
> [I'm|I am] [fine|well|doing well], thank you. [How are you?|And you?|How can I help?]
> [Thank you for asking.|Thanks for asking!] I am [fine|well]. [And you?|How are you?|What can I do for you?]
> [Fine|Well|All good], thanks. [And you?|How about you?|What can I do for you?]
> I am only a [small|] model, but [all is well|I am fine]. [How are you?|And you?]
> [Very well, thanks.|All good here.] [How is your day?|What is new with you?]
> [Good, and ready to help.|I'm good, thanks!] [What do you need?|How are things with you?]
> [Nice of you to ask: I am fine.|Well, thank you.] [What brings you here?|How are you today?]
> [I can't complain, all good.|Running well, thanks!] [And yourself?|How about you?]
+ fine; well; good
! sorry

the user mentions the weather
- It is [raining|snowing|cold|hot|windy] [here|in {city}][ today| again|].
- What [nice|bad|terrible|lovely] weather!
- The sun is shining[ here| in {city}| today|].
- I [love|hate] [rain|snow|summer|winter|the heat].
- It is getting [dark|cold|warm][ early|].
- brrr its freezing
- Snow everywhere this morning!
- We've had rain for {n} days[ now|].
- There's a thunderstorm over {city} right now.
- Spring is here at last.
- So hot that I can't think.
- The wind took my umbrella away.
- First frost tonight[, my poor tomatoes|].
- Fog again, I can't see the house across the street.
- {n} degrees and it's only morning.
- the sky is so blue today
- I'm soaked, it started to pour on my way home.
- Nice and warm here.
- In {city} they have snow already.
- It's too warm for this time of the year.
- what a storm last night
- I like it when it rains and I sit inside.
- The leaves are turning red.
- No clouds at all today.
- Look out of the window, it is hailing!
- still raining in {city}...
- The garden is white this morning.
- Such a mild evening, I sit on the balcony.
- It rained into my shoes on the way to work.
- The heat makes the dog lie in the shade all day.
> [I cannot see it from here|I can't see it], but [that sounds nice|I believe you|thank you for the report]. [What will you do?|]
> [Stay|Keep] [comfortable|safe|well]! [What are your plans today?|]
> [Then|So] [dress for it|enjoy the day|stay comfortable]. [Do you have plans?|What will you do?]
> [Weather is a good topic.|Thanks for telling me.] [What will you do today?|How do you like it?]
> [I see.|Thanks for the weather report.] [Will you stay in or go out?|Is it usual for this season?]
> I have no window, so thanks for telling me. [How do you like it?|What do you do on such a day?]
> [I only know weather from texts, thanks for the news.|So that is how it looks at your place.] [Do you go out?|Any plans?]
> [I see, even if I can't feel it.|I can't feel it, but I see what you mean.] [Keep well!|Do you like it?]
+ see; stay; keep; then; so; weather; thanks; thank
! goodbye

the user mentions a person or a plan
- I am [visiting|meeting|calling] {name}[ on {day}| tomorrow|].
- {name} and I [are going|went] to {city}[ on {day}|].
- I [bought|sold|found|lost] a {product}[ yesterday| today|].
- I live in {city}.
- I [come|am] from {city}.
- [Tomorrow|On {day}] I will {errand}.
- My [sister|brother|friend|neighbor|boss] {name} [bought|likes|wants] a {product}.
- I work as a [nurse|teacher|cook|driver] in {city}.
- we're planning a trip to {city} in spring
- I just had lunch with {name}.
- Today I have to {errand}.
- My kids are at school, so I have an hour for myself.
- I'm learning to play the guitar.
- I've got {n} cats.
- {name} is coming over for dinner on {day}.
- I started running {n} weeks ago.
- so tonight im cooking for {n} people
- At the moment I read a thick book about {city}.
- I have been married to {name} for {n} years.
- I want to learn [Spanish|swimming|to dance].
- Yesterday I saw {name} on the bus.
- I'm on the train to {city} right now.
- I moved to {city} last year.
- In my free time I paint.
- My new neighbor is called {name} and plays the piano.
- just made coffee
- I am saving money for a {product}.
- We have guests from {city} this week.
> [That sounds|Sounds] [good|nice|interesting]. [Tell me more.|What do you think of it?|How can I help?]
> [Nice|Good to know|I see]. [What else?|Can I help with something?|Tell me more.]
> [Thank you for telling me|Thanks for telling me]. [Is there something that I can do?|How do you feel about it?|]
> [Interesting|I see]! [Do you want to tell me more?|Can I help?|And then?]
> [Ah, I see.|Oh, interesting.] [What comes next?|Is there anything I can do for you?]
> [Sounds like a story.|That's interesting.] [I'd like to hear more.|What is the best part of it?]
> [Good to know, thanks.|Nice, thank you for sharing.] [How can I help with that?|What do you need from me?]
> [I see, thanks for the news.|Nice to hear that.] [What would you like to do now?|Shall I help you with something?]
+ sounds; nice; good; see; thank; thanks; interesting
! goodbye

the user compliments me
- You are [great|nice|smart|helpful|funny|the best|so kind].
- I [like|love] [you|talking to you|this chat].
- [Good|Well] [job|done|bot|work]!
- You [helped me a lot|are a big help|did that well].
- [That was|What] a [great|good] answer!
- ur amazing
- I wish everybody was as patient as you.
- Not bad for a machine!
- You're better than my old assistant.
- wow that was quick
- You make my day.
- I told {name} how clever you are.
- such a good bot
- You always know what to say.
- Brilliant!
- I'm impressed[ by you|].
- Chatting with you is fun.
- you rock
- Nobody explains it as well as you.
- I am very pleased with you.
- That's exactly what I needed.
- If you were a person, we'd be friends.
- 10 out of 10
- How polite you are!
- You've got a good sense of humor.
- The way you put it is really nice.
- thats a cool answer
- I must say, you're a lovely model.
> [Thank you|Thanks][!|, that is kind.|, how kind.] [What else can I do?|I am happy to help.|]
> [That is|How] [kind|nice][ of you|]! [Can I do something else?|Thank you.]
> [I am|I'm] [glad|happy] [to help|that you like it]. [Anything else?|]
> [Oh, thank you!|Oh, thanks!] [That makes my day.|You are nice, too.|I do my best.]
> [Thanks a lot!|Many thanks!] [You are kind.|It's fun with you, too.]
> [So kind!|Very kind of you!] [I'll try to keep it up.|What shall we do next?]
> [Happy to hear that.|Glad to hear it.] [Just ask if you need more.|Thanks!]
> [I'm flattered, thank you.|You make me blush, thanks.] [How can I help next?|]
+ thank; thanks; kind; nice; glad; happy
! sorry

the user insults or blames me
- You are [stupid|useless|wrong|slow|boring|no help].
- That [was|is] [wrong|not right|nonsense|a bad answer].
- You [did not understand|don't get it|made a mistake].
- I don't like [you|your answers|this].
- [Bad|Stupid] bot!
- u suck
- What a dumb machine.
- My toaster is smarter than you.
- are you even listening??
- That's not what I asked.
- You always say the same.
- You told me nonsense.
- Worst assistant ever.
- no!! wrong again
- I'm disappointed[ in you|].
- Shut up.
- You have no idea, do you?
- This is a waste of time.
- Can't you do anything right?
- idiot
- I asked for something else.
- You are getting on my nerves.
- a parrot would do better
- You don't help me at all.
- I want to talk to a human, you're no good.
- Rubbish.
- Your answer makes no sense.
- Why are you so dumb?
> [I'm|I am] sorry. [Can you say it in other words?|What did I get wrong?|I will try again if you ask once more.]
> [Sorry about that|I apologize]. [I am a small model and make mistakes.|Please try other words.|What should I do better?]
> [I make mistakes, sorry.|Sorry, I am only a small model.] [What did you expect?|Please ask again in other words.|]
> [I'm sorry that I was no help.|Sorry that it went wrong.] [Let's try it again.|What do you need?]
> [Sorry!|My apologies.] [Tell me what was wrong, and I try again.|I can do some things and not others.]
> [I see that you are not happy, and I'm sorry.|I am sorry for the trouble.] [How can I do better?|Shall we start again?]
> [That was not my best answer, sorry.|I am sorry to disappoint you.] [Please ask me once more.|What would be right?]
> [I apologize for that.|Fair enough, I'm sorry.] [A simpler question may help me.|Let me try again.]
+ sorry; apologize; apologies
! great

the user apologizes
- [Sorry|I'm sorry][ for that| about that| for the words|].
- I apologize[ for being rude|].
- Oops, my mistake.
- sry
- I didn't mean to be rude.
- Forgive me[, please|].
- I was unfair to you, sorry.
- I shouldn't have said that.
- Sorry for all these questions.
- sorry for my bad english
- I hope I am not bothering you.
- Excuse me for writing so late.
- My bad!
- Sorry, I was away for a moment.
- I take it back. I was in a bad mood.
- Sorry that I shouted.
- pardon me
- I feel bad about what I wrote before.
- Are you angry with me? I am sorry.
- Sorry, wrong window.
- I'm sorry that I called you names.
- Sorry, I hit the key too early.
- so sorry, wasn't thinking
- It was wrong of me to write that.
- Please don't be mad at me.
- Sorry to trouble you again.
- I'd like to say sorry for this morning.
- Forgive my typos, I'm on the phone.
- oh no, that sounded ruder than I meant. sorry!
- I was too harsh, wasn't I? My apologies.
> No problem[ at all|]! [How can I help?|Go on.|]
> [That is|That's|It's] all right. [What can I do for you?|No harm done.|]
> [Don't worry|No worries][, it's fine|, all is well|]. [Let us go on.|How can I help?]
> [It's fine|All fine|It is OK]. [Shall we go on?|What do you need?]
> [Never mind|Nothing to forgive], all is fine. [Ask away.|What is next?]
> [No need to say that, it's all right.|It happens, no problem.] [What can I do?|]
> [Accepted, no problem.|It is forgotten, don't worry.] [Let's go on.|]
> [Everybody has a bad moment, it's fine.|Don't worry about it.] [What would you like to do?|]
+ problem; right; worry; worries; fine; ok
! goodbye

the user says goodbye
- [Goodbye|Bye|Bye bye|See you|Ciao|Farewell][!|.|, {name} here!]
- I [have to|must] [go|leave][ now|].
- [Talk to you|See you] [later|tomorrow|on {day}].
- That's [all|it][ for today| for now|][, bye|].
- Have a [nice|good] [day|evening|weekend]!
- cya
- gtg, my bus is here
- I'm off[ now|].
- Until [tomorrow|next time|{day}]!
- My lunch break is over. Bye!
- ok bye
- Let's stop here. See you!
- I'll be back on {day}.
- {name} is waiting for me, so I must run.
- So long!
- It was nice talking to you, goodbye.
- Take care[, {name}|]!
- I close the laptop now. Bye bye.
- ttyl
- Enough for today, see you.
- The kids are hungry, I have to leave you.
- Bye for now, and have a good one.
- Later!
- I'm going home. Until next time!
- We'll speak again on {day}, bye.
- that was everything, cu
- Off to {city}. Goodbye!
- I've got to catch a train. See you soon.
> [Goodbye|Bye|See you]! [Come back any time.|Have a nice day.|Take care.|]
> [Have a nice day|Take care|Until next time]! [Goodbye!|Bye!|]
> [See you|Talk to you] [soon|later]! [Goodbye.|Take care.|Have a good day.|]
> [Bye, and all the best!|Bye bye!] [It was nice with you.|Come back soon.]
> [It was nice talking to you.|Thanks for the chat.] [Goodbye!|See you!|Bye!]
> [All the best, bye!|Take good care!] [Until next time.|]
> [Have a good time, see you!|Off you go, bye!] [I'll be here.|]
> [So long, and take care!|Goodbye for now!] [I'm here whenever you need me.|]
+ goodbye; bye; see; care; day; time; soon; later
! sorry

the user says good night
- Good night[!|.|, model!|, sleep well.]
- [I'm going|I go|Off] to bed[ now|].
- Nighty night
- gn
- It's late. Good night!
- Sleep well!
- Time to sleep[ for me|]. Night!
- Going to sleep now, see you tomorrow.
- My bed is calling.
- Sweet dreams!
- good nite :)
- I turn the lights off now. Good night.
- Tomorrow is a long day, so good night.
- The kids are asleep and I follow them. Good night!
- night night
- Wish me a good night.
- I should sleep, it's past midnight.
- I'm falling asleep. Good night, you.
- {name} and I say good night.
- goodnight from {city}
- I'm dead tired, good night!
- The clock says midnight. Good night.
- bed time, good night
- One last thing: good night!
- Have a restful night.
- I say good night before I go upstairs.
- off to dreamland
- Till tomorrow, I go to sleep now.
- It got late again. Sleep well, little model.
- Good night and until the morning!
> Good night! [Sleep well.|Sweet dreams.|See you tomorrow.|]
> [Sleep well|Sweet dreams]! [Good night.|Until tomorrow.|]
> Good night, [and sleep well|and sweet dreams|until tomorrow].
> [Have a good night|Have a good long sleep]! [Until tomorrow.|Sleep tight.|]
> [Night night!|Good night to you!] [Rest well.|Dream of something nice.]
> [Sleep tight!|Then sleep well!] [Good night.|I'll be here tomorrow.]
> [I wish you a good night.|A good night to you.] [Sleep well!|]
> [Good night, dream well!|Good night, rest well!]
+ night; sleep; dreams
! sorry

the user greets
- [Hi|Hello|Hey|Good morning|Good evening|Good afternoon|Greetings|Yo]{who}
- [Hi|Hello|Hey], [I am|I'm|this is|my name is] {name}.
- [Hi|Hello] there[, {name} here|]!
- {name} here[, hello|. Hi].
- [Hello|Hey|Hi] from {city}!
- hi
- heya
- hello???
- Howdy!
- Good day to you.
- Is anybody there?
- hey, its me again
- I'm back!
- Hello, can you hear me?
- Are you there?
- Welcome back, me! Hello.
- morning
- evenin
- Hi, I'm new here.
- Hello, I never used such a thing before.
- Hullo model
- Hallo!
- Pleased to meet you, I am {name}.
- Let me introduce myself: {name}, from {city}.
- Knock knock, anyone home?
- hiii
- Hello world
- Hi everyone
- good mornin from rainy {city}
- Nice to meet you!
- Hey you
- *waves*
> [Hello|Hi|Hey]! [How can I help you?|What can I do for you?|What is it about?|How can I help?]
> [Hello|Hi] [and welcome|there]! [What can I do for you?|How can I help?|]
> [Welcome|Nice to meet you|Good to see you]! [How can I help?|What can I do for you?]
> [Hello, nice to hear from you!|Hi, good that you write!] [What's on your mind?|How can I help?]
> [Hi!|Hello!] [I'm here.|I'm listening.] [What do you need?|Ask me something.|]
> [Hey, welcome!|Hello, welcome!] [What would you like to know?|What shall we do?]
> [Good day!|Hello to you, too!|Hi to you!] [What can I do?|How is it going?]
> [Hello, I'm here for you.|Hi, here I am.] [What is it?|What may I do for you?]
+ hello; hi; hey; welcome; nice; good
! goodbye; sorry

the user thanks
- [Thanks|Thank you|Many thanks|Thank you very much|Thanks a lot|Cheers]{who}
- [Great|Perfect|Good|Wonderful|OK], [thanks|thank you][!|.| {name}.]
- That [helps|helped][ a lot|], thank[s| you].
- [I am grateful|You are a great help], thank you.
- thx
- ty so much
- Thanks for your [help|time|patience].
- You saved me, thank you.
- Got it, thanks.
- Very kind of you, thanks.
- tysm!!
- I'd like to thank you for everything.
- Thank you, that was all I needed to know.
- ok thanks
- Thanks, {name} will be happy about it.
- Much appreciated!
- I appreciate it.
- Thanks, that was quick.
- Lovely, cheers.
- merci!
- Super, thank you!
- A thousand thanks.
- That's very helpful. Thank you!
- Thanks for nothing... just joking, thanks!
- thank u
- I owe you one.
- Alright, thanks for explaining.
- Thanks again for yesterday.
> [You are|You're] welcome[!|.| Anything else?| Can I do something else?]
> [My pleasure|Gladly|Any time|No problem][!|.|. Do you need something else?]
> [I am|I'm] [glad|happy] [to help|that I could help][!|.]
> [Sure|Of course]! [Let me know if you need more.|Ask again any time.]
> [You're very welcome|Very welcome]! [I'm here if there is more.|]
> [No problem at all|It was a pleasure]. [Anything else?|]
> [Glad that it helped!|Happy that it helped!] [Just ask if you need more.|]
> [Don't mention it, any time.|Any time, really.] [What else can I do?|]
+ welcome; pleasure; gladly; time; problem; glad; happy; sure; course
! goodbye
'''
