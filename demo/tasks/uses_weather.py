# Copyright (C) The nginx-dsa authors

"""Services about the weather: now, on a day, the air, and the sun."""

from tasks import names
from tasks.api import parameter, service
from tasks.stated import Typed
from tasks.times import DAY
from tasks.uses import kinds, one_of


DRY = ('clear sky|sunny|cloudy|overcast|fog|windy|partly cloudy|mist|haze'
       '|broken clouds|bright')
WET = ('light rain|heavy rain|drizzle|thunderstorms|hail|showers|rain'
       '|steady rain')
COLD = 'light snow|snow|sleet|freezing rain|heavy snow|snow showers'


def sky_of(rng, temp):
    """Returns the sky, and "yes" if rain or snow falls, else "no"."""

    if rng.random() < 0.5:
        return one_of(rng, DRY), 'no'

    return one_of(rng, COLD if temp < 3 else WET), 'yes'

WEATHER = service('the weather', '''[get|fetch|check|look up|show|query|read]
  [weather|current weather|city weather|weather report|conditions]
[weather|current weather|local weather|weather now|conditions]
[weather|climate|meteo|wx] [lookup|service|info|report|check|now|by city|data]
current [conditions|weather|temperature]
[how is|whats] [weather|the weather]
[live|today|outdoor] [weather|conditions]
[weathercast|weatherbox|skycast] [get|current|query|city]'''.replace(
    '\n  ', ' '),
'''[Get|Returns|Fetches|Look up|Shows] the [current|latest|] weather [for|of|in]
  a [city|location|place|town]
[Weather|Current weather|Weather report] [for|by|of] [city|location|place]
[Temperature|Conditions] and [sky|wind] [in|at] a given [city|location]
Use this to find out [what the weather is like|about the weather] somewhere
[Given|From] a [city|place], [gives|returns] temperature, sky, wind and humidity
What it is like outside [right now|at the moment] in a [city|town]
[Reads|Asks] the nearest weather station [of a city|to a place]
[Current|Live] [observations|readings|measurements] of the weather [by city|]
'''.replace('\n  ', ' ').strip(), [
    parameter('city', 'city location place town city_name q query where loc '
              'locality name area destination',
              '[The|Name of the] [city|location|place][, e.g. Paris'
              '| to look up|]'),
    parameter('unit', 'unit units temperature_unit', '[Unit|Units] of the '
              'temperature', choices=('celsius', 'fahrenheit'),
              needed=False),
    parameter('lang', 'lang language locale', 'Language of the text',
              needed=False)],
    'city temp sky wind humidity')


def weather_case(rng):
    temp = rng.randrange(-18, 39)
    sky, wet = sky_of(rng, temp)

    return dict(city=Typed(rng.choice(names.PLACES)), temp=temp, sky=sky,
                wind=rng.randrange(1, 90), humidity=rng.randrange(20, 100),
                wet=wet, cold='yes' if temp < 0 else 'no')


LOOK = kinds(WEATHER, weather_case, r'''
= [look up|find out|check] the weather in {city}
@ city
- [What's|What is|How is|How's] the weather [like|] in {city}[ right now| today| at the moment|]?
- [Tell|Give] me the [current|] weather [for|in] {city}.
- [Can|Could] you [check|look up|tell me] the weather in {city}[ for me|]?
- [I'm|I am] [travelling|flying|going|heading] to {city}[, what is| - how's|. How is] the weather there?
- {city} weather[ now| please|]?
- What's it like outside in {city}[ today|]?
- I need [a weather report|the weather] for {city}.
- [How does|What does] the weather look [like|] in {city}?
- {city:l} weather [rn|pls|now|today]
- weather {city:l}
- Weather: {city}
- whats the weather [in|like in] {city:l}[ rn|]
- I'm off to {city} and have no idea what to pack.
- [My sister|My son|A friend of mine|My boss] [lives|is|works] in {city}. [What weather do they have|How is the weather over there]?
- [Is it nice out|Nice day] in {city}? [Temperature and sky, please.|I'd like the temperature and the sky.]
- [Packing|I'm packing] for {city} - what are conditions like there?
- [Before I leave for|Before we set off to] {city}, [could you check|I'd like to know] the weather.
- Weather [report|update] [for|from] {city}[, please|], [temperature|degrees] and [sky|conditions].
- [We land|The plane lands|My train gets] [in|into] {city} soon[.|,] [what|which] weather [awaits us|will we step out into|is waiting for us]?
- [Any idea|Do you know] what the weather's [doing|up to] in {city}?
- [Please|Would you] have a look at the weather [over|] in {city}[.|?]
- In {city}, [how is|what is] the weather [at present|at the moment|just now]?
- [I plan to|We want to] [picnic|walk|cycle|play tennis] in {city}[ this minute| right away|]. [Weather?|What's the weather?]
- Could you please say me how is the weather in {city}?
- [What kind of|Which] weather [do they|are they] [have|having] in {city}[ now|]?
- [Quick one|Quick question|Just quickly]: weather in {city}?
- [Hope you can help|Help me out], what's the weather ([city|place]: {city})?
- I was supposed to call my aunt in {city}, she always asks me to [talk about|mention] the weather. What is it like there?
- [City|Place|Location]: {city}\n[What is the weather|Weather] there?
- Sun, rain, snow? What [are they getting|is it] in {city}, and how many degrees?
- [Show|Fetch|Get] [current|the] conditions for {city}.
- How's {city} looking weather wise?
- [Curious|Just curious|I wonder] how the weather is [over|] in {city}.
- Heading out the door in {city}. [Weather check, please.|How is it outside?]
> [It is|It's|Right now it is|There] {temp} degrees in {city}[, with|,] {sky}.
> In {city} it is [currently|now|] {temp} degrees [and|with] {sky}.
> [The weather in|Weather in] {city}: {temp} degrees, {sky}.
> {city} has {temp} degrees [and|with] {sky}[ at the moment| now|].
> {temp} degrees and {sky} in {city}.
> {sky}, {temp} degrees.
> Currently {sky} in {city}, [at|with] {temp} degrees.
> [Expect|You can expect] {sky} and {temp} degrees in {city}.
> [The report for|Outside in] {city}: {sky} at {temp} degrees.
> The sky: {sky}. The temperature: {temp} degrees.
+ {temp}; {sky}

= [look up|find out|check] the temperature in {city}
@ city
- How [warm|cold|hot] is it in {city}[ right now| today|]?
- What[ is|'s] the [current |]temperature in {city}?
- [Tell|Give] me {city}'s temperature.
- How many degrees [does {city} have|is it in {city}|are there in {city}]?
- [Do I need a coat|Can I wear shorts|Is it freezing] in {city}? [Just|] give me the temperature.
- temp in {city:l}[?|]
- {city} temperature[ please| now|]?
- temperature {city:l} [rn|now|pls]
- [I never know what to wear|I can't decide between coat and jumper]. [How warm|How cold] is it in {city}?
- {city}: how many degrees?
- [What does|What would] the thermometer [say|show] in {city}?
- [I'd like|I want] to know how [hot|cold|warm] it is [over|] in {city}[ at the moment|].
- [Is it still so|People say it's] [hot|cold] in {city}. What's the [exact |actual |]temperature?
- Could you [check|find out] how [warm|cold|hot] {city} is [right now|today]?
- [My plants|The tomatoes|My orchids] in {city} [don't like the cold|are on the balcony]. How many degrees do they have now?
- degrees in {city:l}?
- [Only|Just] the temperature for {city}, [nothing else|no wind, no sky][, please|].
- Temperature [check|reading] for {city}.
- [I'm about to go|We're going] [running|swimming|for a walk] in {city}. How [warm|cold] is it?
- What temperature [do they have|are they having|has it] in {city}?
- How much degrees it is in {city} now?
- [The heating broke in our flat|My flat has no heating] in {city}. What temperature is it outside?
- [Please get|Get] me the temperature [outside|outdoors] in {city}.
- In {city}, how [warm|cold] is it?
- Temperature[:|,] {city}[.|]
- [On a scale of celsius|In numbers], how warm is {city} now?
- [I bet|I guess] it's [warm|freezing|boiling] in {city}. What is the real number?
- [Jacket or no jacket|Coat or no coat|Scarf, yes or no]: how cold is {city}?
> [It is|It's] [currently|now|] {temp} degrees in {city}.
> The temperature in {city} is {temp} degrees.
> {temp} degrees[ in {city}|].
> {city}: {temp} degrees.
> In {city} it is {temp} degrees[ right now| at the moment|].
> {city} has {temp} degrees[ now|].
> [They have|The thermometer shows] {temp} degrees in {city}.
> [Right now|At the moment]: {temp} degrees.
> [Outside it is|It is] {temp} degrees there.
+ {temp}

= [look up|find out|check] the wind in {city}
@ city
- How [strong|fast] is the wind in {city}?
- Is it windy in {city}[ today|]?
- What's the wind speed in {city}?
- [Tell|Give] me the wind in {city}.
- I want to go sailing [near|at] {city}. How much wind is there?
- wind in {city:l}[?|]
- {city} wind speed[, please|?|]
- How [hard|strongly] does the wind blow in {city}?
- [Can|Could] I fly my [kite|drone] in {city} [now|today]? What's the wind [speed|] there?
- [Wind|Wind speed]: {city}
- I [hang out the laundry|put up the parasol] in {city}. How windy is it?
- [My hat blew away|It's so windy here]. How fast is the wind in {city}?
- [In km/h|In numbers], how strong is the wind in {city}?
- [Check|Look up|Find] the wind speed [for|in] {city}, please.
- Wind [report|check|data] for {city}?
- [We cycle|I cycle|I'm cycling] to {city} and fear the wind. How [strong|fast] is it there?
- [Which|What] wind [speed|strength] do they [have|measure|report] in {city}?
- How many km/h of wind has {city}?
- is it blowy in {city:l}? how many km/h
- [Not the temperature, just|I only need] the wind in {city}.
- For [surfing|kiting|sailing] in {city}: how much wind is there [now|]?
- There [was a storm|were gusts] in {city} [this morning|yesterday]. How strong is the wind now?
- [I wonder|Let me know] how windy it is in {city}.
- The wind in {city}, how fast is it?
- Hows the wind over in {city}
- Note to self: flat in {city}, balcony plants. [Which reminds me, how strong is the wind there?|So: how strong is the wind there now?]
- Temperature doesn't matter to me, wind does. {city}, please.
- [Subject: regatta|Re: regatta]\nWe start in {city}. Please send us the wind speed.
- [Is today a day|Would it be a day] for kites in {city}? The wind in km/h would tell me.
> The wind in {city} [is|blows at|has] {wind} km/h.
> [It blows at|The wind speed is] {wind} km/h[ in {city}|].
> {city} has [a wind|wind] of {wind} km/h.
> {wind} km/h[ in {city}|].
> {city}: wind at {wind} km/h.
> [There is a wind of|They measure] {wind} km/h[ in {city}|].
> Wind: {wind} km/h.
> [Right now|Currently] the wind blows at {wind} km/h[ in {city}|].
+ {wind}

= [look up|find out|check] the humidity in {city}
@ city
- [How humid is it|What is the humidity] in {city}?
- [Tell|Give] me the humidity in {city}[ right now|].
- Is the air [dry|humid] in {city}? What is the humidity?
- humidity {city:l}[?|]
- {city} humidity[ now|, please|]?
- How [damp|moist|humid] is the air in {city}?
- My skin is [so|always] dry in {city}. What's the humidity [there|] now?
- [Paint|Plaster|My laundry] dries slowly in {city}. How humid is it [there|]?
- [Which|What] humidity [do they have|is reported|is measured] in {city}?
- Relative humidity in {city}?
- [I need|I'd like|Get me] the [relative |]humidity of {city}.
- How many percent is the humidity in {city}?
- [Check|Look up] how humid it is in {city}.
- [It feels sticky|The air is like soup] here in {city}. What's the humidity?
- Humidity: {city}
- In {city}, how much moisture is in the air? In percent, please.
- [For my guitar|For the piano|For my cigars] I must know the humidity in {city}.
- whats the humidity like over in {city:l}
- [Percentage|Percent] of humidity for {city}, please.
- [Please|Kindly] find the humidity ({city}).
- How is humidity in {city} today?
- Is it muggy in {city}? [A number would help|I'd like a number] - the humidity.
- [Could|Can] you [find|check|read] the humidity for {city}?
- They store cellos in {city}. [What humidity does the air have there?|How humid is the air?]
- I moved from the desert to {city} and my hair went curly. How humid is it?
- Humidity please, I'm in {city}.
- Temperature is clear, sky is clear, but what's the humidity of {city}?
- A mail from the museum in {city}: "How humid is the air outside?" [Answer that.|Can you answer?]
> The humidity in {city} is {humidity} percent.
> {humidity} percent[ in {city}|].
> It is {humidity} percent humid in {city}.
> In {city} the [air has a|] humidity is {humidity} percent.
> {city}: {humidity} percent humidity.
> [They have|It has] {humidity} percent humidity[ there|].
> Humidity[ in {city}|]: {humidity} percent.
> [Right now|Currently] it is {humidity} percent[ in {city}|].
+ {humidity}

= find out whether it is wet in {city}
@ city
- Do I need an umbrella in {city}[ now| right now|]?
- Is it [raining or snowing|wet outside|dry outside, or do I get wet] in {city}?
- [Will|Do] I get wet if I [go out|step outside|walk] in {city} now?
- umbrella in {city:l}[?| yes or no]
- Should I take [my umbrella|a raincoat|rain boots] in {city}?
- Any rain or snow in {city} [right now|at the moment]?
- I [just washed the car|left the windows open|hung out the washing] in {city}. Is anything falling from the sky there?
- {city}: umbrella, yes or no?
- [We're having a barbecue|There's a street party|My wedding is] in {city} [right now|this minute]. Do we need umbrellas?
- [Can you check|Check] if I need an umbrella in {city}.
- Umbrella needed in {city}?
- Is there any [precipitation|rain, hail or snow] in {city} at the moment?
- I'm about to walk the dog in {city}. Is anything coming down?
- do i need a umbrella for going out in {city:l}
- Tell me whether something falls from the sky in {city}[, rain or snow|].
- I'm leaving the office in {city}, umbrella or not?
- [Raincoat|Rain gear] necessary in {city}?
- [Dry shoes matter to me.|I hate wet shoes.] Is rain or snow falling in {city}?
- Need I an umbrella when I am in {city}?
- It [looked|looks] grey over {city}. Umbrella?
- [He|She] left without a coat this morning, in {city}. Is rain or snow coming down there?
- Do people in {city} walk under umbrellas right now?
- Is it dry in {city}, or do I need [my|an] umbrella?
- Two questions, but only one is for you: umbrella in {city}? (The other is whether I like rain.)
- The pitch in {city} must be dry for the game. Does it rain or snow there?
- Whether I need an umbrella in {city} is all I want to know.
> [{wet}|{wet}, they have|{wet}, it says] {sky}[ in {city}|].
> {wet}: {sky}[ in {city}|].
> {wet}. The report [for {city}|] says {sky}.
> {wet}, [the conditions in {city} are|conditions there:] {sky}.
> {wet}. [Right now|Currently]: {sky}.
> {wet} - it is reported as {sky}[ in {city}|].
> [For {city} the answer is|The answer is] {wet}: {sky}.
> {wet}[, I would say|]. They report {sky}[ there|].
> [Short answer|Umbrella]: {wet}. [Reason|Sky]: {sky}.
+ {wet}; {sky}

= find out whether it is below zero in {city}
@ city
- Is it [freezing|below zero|below freezing|under zero] in {city}[ right now| at the moment|]?
- Does it freeze in {city}[ now|]?
- [Is there|Have they] frost in {city}[ now|]?
- is it minus in {city:l}
- Do I have to [scrape my windscreen|bring in the plants|drain the hose] in {city}, is it below zero?
- {city}: below zero or not?
- [Could|Can] you see if {city} is below freezing?
- Are temperatures [in {city} |]below zero[ in {city}| right now|]?
- The [pipes|puddles|roads] in {city} could freeze. Is it below zero there?
- Below zero in {city}?
- I left [my lemon tree|the cat|water] outside in {city}. Is it under zero degrees there?
- [Check|Find out] whether it is freezing in {city}.
- Is the temperature in {city} negative?
- [Minus degrees|Sub-zero] in {city} or not yet?
- [Winter tires|Slippery roads], hm. Is {city} below zero now?
- Frost check for {city}, please. [Is it below zero?|Minus?]
- Has it minus degrees in {city} today?
- Are they below freezing over in {city}?
- Will water turn to ice outside in {city} [at the moment|right now]?
- [I'm a gardener|We have a garden] in {city}. [Is it below zero there?|Frost now?]
- [Could|Might] there be ice on the {city} roads, I mean, is it below zero?
- I park outside in {city}. Does it freeze right now?
- Yes or no: {city}, under zero?
- Are we talking minus degrees in {city}, or not?
- Our neighbor in {city} forgot to turn off the garden tap. Is it freezing there at the moment?
- Does {city} have frost, yes or no, and how many degrees?
> {cold}: {temp} degrees[ in {city}|].
> {cold}, it is {temp} degrees[ in {city}| there| now|].
> {cold}. [The temperature is|They have|{city} has] {temp} degrees.
> {cold}, {temp} degrees.
> {cold}, [currently|right now] {city} has {temp} degrees.
> {cold}, the thermometer [there |in {city} |]shows {temp} degrees.
> [Below zero|Frost]: {cold}. [The temperature is|It is] {temp} degrees[ in {city}|].
> [The answer is|For {city}:] {cold}, with {temp} degrees.
> {cold} - {temp} degrees[ are measured in {city}|].
+ {cold}; {temp}
''', 'city')

FORECAST = service('the forecast', '''[get|fetch|show|check] [forecast|weather forecast|day forecast|outlook]
[forecast|outlook|daily forecast] [for day|by day|lookup|city|service|daily|]
[weather|meteo] [forecast|outlook|prediction|for day]
predict weather''',
'''[Weather forecast|Forecast|Outlook] for a [city|place] [on a day|and a day]
[Returns|Gets|Shows] [low, high, sky and rain|the expected weather] [of|for] a [day|coming day]
[Predicts|Forecasts] the weather [of one day|for a day of the week]
[Temperatures and chance of rain|The outlook] on a day [to come|that the user names]
What the weather will be like on a [given|certain] day''', [
    parameter('city', 'city location place town where q loc near',
              '[The|Name of the] [city|place|location]'),
    parameter('day', 'day date when on for_day weekday target_day',
              '[Day|The day|Which day][, e.g. tomorrow or Monday|]')],
    'low high sky rain')

COMING = DAY.replace('today|', '').replace('tonight|', '')


def forecast_case(rng):
    low = rng.randrange(-12, 24)
    high = low + rng.randrange(2, 12)

    return dict(city=Typed(rng.choice(names.PLACES)),
                day=Typed(one_of(rng, COMING)), low=low, high=high,
                sky=sky_of(rng, high)[0],
                rain=rng.randrange(0, 100))


LOOK += kinds(FORECAST, forecast_case, r'''
= find the forecast for {city}, {day}
@ city day
- What will the weather be like in {city} {day}?
- [Forecast|Weather forecast] for {city}[, {day}| {day}][, please|].
- [I'm|We're] in {city} {day}[.|,] [what|which] weather [can I expect|is forecast|is coming]?
- {day} in {city}: [what will the weather be|how will the weather be|weather forecast]?
- {city:l} {day:l} weather[?|]
- [How's|How is] {day} looking in {city}, weather wise?
- [Can|Could] you [get|find|look up] the forecast for {day} in {city}?
- [We have planned|I'm planning] [a barbecue|a hike|a garden party|a bike ride] in {city} {day}. [What does the forecast say?|Forecast?]
- What does the forecast say for {city} {day}?
- [Weather|Forecast]\n[City|Place]: {city}\nDay: {day}
- [City|Where]: {city}. [Day|When]: {day}. [The forecast, please.|I need the forecast.]
- forecast ({city}, {day})
- [My train goes|I fly|We drive] to {city} {day}. What weather is [predicted|expected] there?
- [Tell|Give] me what they forecast for {city} {day}.
- I need to know how the weather [is going to be|will be] {day}, in {city}.
- [Is it going to be nice|Will it be nice] in {city} {day}? [The forecast, please.|Give me the forecast.]
- How will be the weather {day} in {city}?
- [Not today, but|I don't mean today:] {day}, what will the weather be in {city}?
- [Show me|Get] {day}'s [forecast|weather] for {city}.
- Outlook for {city}, {day}?
- whats the weather gonna be {day:l} in {city:l}
- We [moved|shifted] the match to {day}. [What weather will {city} have?|It is in {city}. What will the weather be?]
- For {day} I need the weather prediction of {city}.
- [If I visit|When I visit] {city} {day}, what will it be like outside?
- [She wrote: "See you in|The mail says: "We meet in] {city} {day}!" [What will the weather be then?|Check the forecast for that.]
- I have tickets for an [open-air concert|outdoor cinema] in {city} {day}. Forecast, please?
> [The forecast for|Outlook for] {city} [{day}|({day})]: {sky}, up to {high} degrees.
> {day} [in {city}|] [it will be|expect]: {sky}, [at most|up to] {high} degrees.
> {sky}, with a high of {high} degrees[ in {city}|].
> [They expect|Expect] {sky} and {high} degrees[ in {city}| {day}|].
> {day}: {sky}, {low} to {high} degrees.
> It should get to {high} degrees in {city}, with {sky}.
> [For {day} the forecast says|The forecast says] {sky}, {high} degrees at most.
> {city}, {day}: {sky}, [high of|maximum] {high} degrees.
+ {sky}; {high}

= find the chance of rain in {city}, {day}
@ city day
- [What is|What's] the chance of rain in {city} {day}?
- How likely is [rain|it to rain] in {city} {day}?
- Will it rain in {city} {day}? [Give me the probability.|How likely is it?|In percent, please.]
- rain chance {city:l} {day:l}[?|]
- [Chance|Probability] of rain[:|,] {city}, {day}[?|]
- {day} in {city}: how probable is rain?
- [We dance|We eat|They marry] outdoors in {city} {day}. What's the probability of rain?
- [Should I worry about rain|Do I have to fear rain] {day} in {city}? [The percentage, please.|How many percent?]
- [Can|Could] you [check|find out] the chance of rain for {city} {day}?
- How many percent chance of rain [does {city} have|is there in {city}] {day}?
- My [washing|tent|painting] must stay dry {day}. What's the rain probability in {city}?
- [Give|Tell] me the rain probability for {day} in {city}.
- I need [a number|a percentage]: the chance of rain in {city} {day}.
- Is rain probable {day} in {city}? How many percent?
- [Gardeners want to know|The gardener asks]: will there be rain {day} in {city}, and how likely is it?
- For {city} {day}, what rain risk do they give?
- [Precipitation|Rain] probability for {city} {day}, please.
- [whats|hows] the chance it rains {day:l} in {city:l}
- Only the chance of rain, {city}, {day}.
- [The umbrella is broken|I lost my umbrella]. How likely is rain {day} in {city}?
- Forecast for {city} {day}, but only how likely it is to rain.
- Must I count with rain in {city} {day}? The percent please.
- Rain is my enemy: I paint a fence in {city} {day}. How likely is it?
- "{day}, {city}, all outdoors", says the invitation. What's the chance of rain?
- How big is the risk that it rains in {city} {day}?
- [Town|Place]: {city}\n[Day|When]: {day}\nChance of rain?
> [The chance of rain|The probability of rain] [in {city}|] is {rain} percent[ {day}|].
> {rain} percent[ for {city}| {day}|].
> [There is|It has] a {rain} percent chance of rain[ in {city}|].
> {city}, {day}: {rain} percent.
> [They say|The forecast says] {rain} percent[ for rain|].
> Rain: {rain} percent[ {day}|].
> [For {day} it is|It is] {rain} percent[ in {city}|].
> {city}: {rain} percent[ chance of rain|].
> [Rain has|Rain is given] a chance of {rain} percent[ in {city}| {day}|].
> [Count with|Reckon with] {rain} percent[ {day}|].
+ {rain}

= find how cold it gets in {city}, {day}
@ city day
- How cold will it get in {city} {day}?
- What's the [lowest temperature|low|minimum] in {city} {day}?
- [How low|How far down] does the temperature go {day} in {city}?
- lowest temp {city:l} {day:l}
- [The plants are outside|I sleep in a tent] in {city} {day}. What is the lowest temperature?
- [Low|Minimum] for {city}, {day}?
- [Tell|Give] me the minimum temperature forecast for {city} {day}.
- {day} in {city}: what's the coldest it gets?
- Forecast low [for|in] {city} {day}, please.
- [My camper has no heating|We camp]. How cold does it get in {city} {day}?
- How many degrees will it be at the least {day} in {city}?
- What is the low they forecast in {city} for {day}?
- [Check|Look up] how cold it will be {day} in {city}[, the minimum|].
- [I'm bringing in the lemon trees|I worry about frost]. What's the minimum {day} in {city}?
- For {day}, what's the expected low of {city}?
- coldest temperature in {city}, {day}, pls
- The minimum in {city} {day}, how many degrees?
- What will be lowest temperature on {day} for {city}?
- I wonder how cold a day {day} will be in {city} - the low, I mean.
- The night is what worries me: how cold will {city} get {day}?
- Pipes, plants, pets: what low do I prepare for in {city} {day}?
- {day}'s minimum temperature in {city}, that's all I need.
- If I leave my bike batteries outside {day} in {city}, how cold will they get?
- Place: {city}\nDay: {day}\n[Minimum temperature?|Low?]
- [Not the high|I know the high], what is the forecast low for {city} {day}?
> [The low|The minimum|The lowest temperature] [in {city}|] is {low} degrees[ {day}|].
> [It gets down to|It goes down to|It will be at least] {low} degrees[ in {city}|].
> {low} degrees[ in {city}| {day}|].
> {city}, {day}: {low} degrees at the lowest.
> [Expect|They expect] a low of {low} degrees.
> Low[ in {city}|]: {low} degrees.
> {day} the minimum [in {city} |]is {low} degrees.
> At the coldest it is {low} degrees[ in {city}|].
> [The forecast says|Forecast:] no colder than {low} degrees.
+ {low}
''', 'city')

AIR = service('air quality', '''[get|check|fetch|read] [air quality|air|aqi|air index|pollution]
[air quality|air|aqi|pollution|pollen] [lookup|check|now|by city|monitor|index|info]
[clean air|airwatch|breathe] [get|query|index]''',
'''[Returns|Gets|Reads] the [current|] air quality [of a city|in a city|at a place]
[Air quality index|Air pollution] and pollen [by city|of a place]
[How clean|How dirty] the air is [in a city|somewhere]
AQI, level and pollen for a [city|town|place]''', [
    parameter('city', 'city location place town where station near area '
              'city_name', '[The|Name of the] [city|place|town]'),
    parameter('detail', 'detail verbose details', 'More values',
              kind='boolean', needed=False)],
    'index level pollen')


def air_case(rng):
    index = rng.randrange(5, 260)
    level = ('good' if index <= 50 else 'moderate' if index <= 100
             else 'poor' if index <= 150 else 'very poor')

    return dict(city=Typed(rng.choice(names.PLACES)), index=index,
                level=level,
                pollen=one_of(rng, 'low|medium|high|very high|moderate'))


LOOK += kinds(AIR, air_case, r'''
= check the air quality in {city}
@ city
- [How is|How's|What is|What's] the air quality in {city}[ today| right now|]?
- [How clean|How dirty|How polluted] is the air in {city}?
- air quality {city:l}[?|]
- AQI [for|in|of] {city}[, please|]?
- {city} AQI?
- [Can I|Is it OK to] [jog|run|cycle|open the windows] in {city}? What's the air quality[ index|]?
- [My asthma is acting up|I have asthma]. How is the air in {city}?
- [Smog|Is there smog] in {city}? [Check the air quality.|What is the index?]
- [Tell|Give] me the air quality index [of|for] {city}.
- [There are forest fires|There's a fire] near {city}. How bad is the air?
- Is the air in {city} [fine|okay|safe] to breathe? I want the index.
- [Check|Look up] the [air pollution|air quality|pollution level] in {city}.
- How good is the air that people breathe in {city}?
- [Kids|The children] [want to play outside|have sports day] in {city}. Air quality?
- Air: {city}. [Index and level, please.|How is it?]
- I'd like to know how [polluted|clean] {city} is at the moment.
- [What's the pollution like|How's the pollution] in {city}?
- [Mask or no mask|Do I need a mask] in {city}? How's the air?
- Which AQI has {city} now?
- [Before I open the window|Before we air the rooms]: what is the air quality in {city}?
- [Please could you|Could you] find out about the air in {city}?
- how bad is the air in {city:l} rn
- The sky over {city} looks brown. What's the air quality?
- [We consider moving|I might move] to {city}, but [the air|air pollution] matters to me. How is it today?
- [Location|City]: {city}\nPlease report the air quality.
- The air quality of {city} interests me.
- [Asthma nurse here.|I'm a nurse.] A patient in {city} wants to go out; what is the air quality index?
> The air quality in {city} is {level}, with an index of {index}.
> {city}: {index}, {level}.
> [It is|The air is] {level}[ in {city}|], [the index is|AQI] {index}.
> {level} ({index})[ in {city}|].
> [The index is|AQI] {index}, [which is|that is|meaning] {level}.
> [Right now|Currently] the index is {index} in {city}: {level}.
> {level}: the [AQI|index] [of {city}|] is {index}.
> The air is {level}[ there| in {city}|] ([index|AQI] {index}).
> {city} has {level} air: {index}.
+ {index}; {level}

= check the pollen in {city}
@ city
- [How much|How bad is the] pollen [is there |]in {city}?
- What's the pollen [level|situation|load] in {city}[ today|]?
- pollen {city:l}[?|]
- I have hay fever. [How is the pollen in|How much pollen has] {city}?
- {city} pollen[ level|]?
- [My nose is running|My eyes itch|I can't stop sneezing] in {city}. How high is the pollen?
- Is there [a lot of|much] pollen in {city}[ now|]?
- [Check|Look up] the pollen level in {city}.
- [Tell|Give] me the pollen level [of|for] {city}, please.
- [We go hiking|I go running] in {city}, and birch pollen kills me. What's the pollen level?
- Pollen: {city}
- Do I need my [allergy pills|antihistamines] in {city}? How's the pollen?
- How is pollen today in {city}?
- [Allergy|Pollen] report for {city}, please.
- pollen count [in|for] {city:l} rn
- [Which|What] pollen level do they report for {city}?
- [Could|Can] you check the pollen for me? I'm in {city}.
- [My daughter|My husband] is allergic. Is the pollen bad in {city}?
- I'd like the pollen level [in {city}|of {city}], not the air quality.
- For people with hay fever: what's the pollen like in {city}?
- Achoo! Is pollen to blame? [I'm in {city}.|{city} is where I am.]
- Allergy season... {city} is where I live. Pollen?
- My boy sneezes all day, we are in {city}. Can you check the pollen?
- Should people with hay fever stay inside in {city}? The pollen level, please.
- Place: {city}\nI want to know: pollen.
- Does {city} have much pollen at present?
- I don't care about smog in {city}, only about pollen. How is it?
> The pollen level in {city} is {pollen}.
> {pollen}[ in {city}|].
> [Pollen|The pollen level] is {pollen}[ in {city}| there| today|].
> {city}: pollen {pollen}.
> [It is|They say it is] {pollen}[ in {city}|].
> [Right now|Currently] the pollen level is {pollen}.
> {city} has a pollen level of {pollen}.
> Pollen today: {pollen}.
> The report says {pollen}[ for {city}|].
+ {pollen}
''', 'city')

SUN = service('sunrise and sunset', '''[get|fetch|find|compute] [sun times|sunrise|sunset|sunrise sunset|daylight]
[sun|sunrise|daylight|sunset] [times|times by city|lookup|info|calculator|clock]
[when sun|sun] [rises|sets|up down]''',
'''[Sunrise and sunset|Times of the sun] [in a city|for a place] [today|on this day|]
[Returns|Computes|Finds] [when the sun rises and sets|sunrise and sunset]
[Daylight|Sun] [times|hours] of a [city|town|location]
When it gets light and dark [somewhere|in a city]''', [
    parameter('city', 'city location place where town position name area',
              '[The|Name of the] [city|place|town]')],
    'rises sets')


def sun_case(rng):
    up, down = rng.randrange(4 * 60, 9 * 60), rng.randrange(16 * 60, 22 * 60)

    return dict(city=Typed(rng.choice(names.PLACES)),
                rises=f'{up // 60:02}:{up % 60:02}',
                sets=f'{down // 60:02}:{down % 60:02}')


LOOK += kinds(SUN, sun_case, r'''
= find when the sun rises in {city}
@ city
- When does the sun [rise|come up] in {city}?
- [What time|At what time] is sunrise in {city}?
- sunrise {city:l}[?|]
- {city} sunrise time[?|, please]
- [I want to|We'd like to] [photograph|see|film] the [sunrise|morning sun] in {city}. When is it?
- When does it get light in {city}[ in the morning|]?
- [Tell|Give] me the [time of sunrise|sunrise] in {city}.
- [I'm a fisherman|I go fishing] and start at sunrise. When is that in {city}?
- Sunrise: {city}
- How early does the sun come up in {city}?
- [We eat|I eat] nothing from sunrise on. I'm in {city} - when does the sun rise?
- [Look up|Check|Find] the sunrise time for {city}.
- What time does the day begin in {city}? Sunrise, I mean.
- At which hour rises the sun in {city}?
- wats the time of sunrise in {city:l}
- Is the sun up at six in {city}? When does it rise?
- [My cockerel crows|The rooster crows] at sunrise. When will that be in {city}?
- [Can|Could] you [find out|check] when the sun rises in {city}?
- I need sunrise for {city}, [not sunset|only that].
- [Yoga|Our yoga class] on the beach of {city} starts at sunrise. What time is that?
- The sun in {city}: when is it up?
- I get up with the sun. When would that be in {city}?
- Tomorrow I'll hike up a hill near {city} for the sunrise. What time is it these days?
- Place: {city}\nSunrise?
- I drive better in daylight. When's sunrise in {city}?
- How early is it light in {city}? I mean sunrise.
> The sun rises at {rises}[ in {city}|].
> [Sunrise is|It rises|It is] at {rises}[ in {city}|].
> [At|It gets light at] {rises}.
> {city}: sunrise at {rises}.
> Sunrise[ in {city}|]: {rises}.
> In {city} the sun comes up at {rises}.
> {rises}[ in {city}| in the morning|].
> You see the sun from {rises} on[ in {city}|].
> The day begins at {rises}[ there|].
+ {rises}

= find when the sun sets in {city}
@ city
- When does the sun [set|go down] in {city}?
- [What time|At what time] is sunset in {city}?
- sunset {city:l}[?|]
- {city} sunset time[?|, please]
- When does it get dark in {city}[ in the evening|]?
- [We want|I'd love] to [watch the sunset|have drinks at sunset] in {city}. When should we be there?
- [Tell|Give] me the [time of sunset|sunset time|sunset] in {city}.
- Sunset: {city}
- [My bike has no light|My bike lamp is broken]. Until when is the sun up in {city}?
- How late does the sun go down in {city}?
- How long do I have daylight in {city}? When does the sun set?
- [Look up|Check|Find] sunset for {city}.
- [We hike|I hike] near {city} and must be back before dark. When is sunset?
- At which hour goes the sun down in {city}?
- when is sundown in {city:l}
- [Can|Could] you [find out|check] when the sun sets in {city}?
- Golden hour, I need you! When does the sun go down in {city}?
- [Sabbath|The fast|Our shop] [begins|ends|closes] at sunset. When is it in {city}?
- I must know when the sun goes down, [I'm in {city}|the place is {city}].
- The street lights in {city} go on at sunset. What time is that?
- [Evening picnic|A walk in the evening] in {city}: when is sunset?
- [Only the sunset|Sunset only], not sunrise: {city}.
- The lamp on my terrace in {city} should go on at sunset. When is that?
- Place: {city}\nSunset?
- I can't stand driving in the dark. When's sunset in {city}?
- Balloon flights in {city} end when the sun is down. At what time?
> The sun sets at {sets}[ in {city}|].
> [Sunset is|It sets|It goes down|It is] at {sets}[ in {city}|].
> [At|It gets dark after] {sets}.
> {city}: sunset at {sets}.
> Sunset[ in {city}|]: {sets}.
> In {city} the sun goes down at {sets}.
> {sets}[ in {city}| in the evening|].
> The sun is up until {sets}[ in {city}|].
> The day ends at {sets}[ there|].
+ {sets}
''', 'city')
