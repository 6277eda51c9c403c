"""What the demo model must turn down politely: general knowledge, advice, writing to order, sums, news, the clock.

The answers are those of talk.py. Topics are many and partly invented, so that "What is <something never heard of>?"
is refused rather than guessed. Reads and writes nothing."""
from phrasing import end_mark, expand, noisy, upper_first
from talk import REFUSE, REFUSE_NOW, REFUSE_SUM, UNCLEAR
import pools

PEOPLE = """Napoleon|Julius Caesar|Isaac Newton|Einstein|Simon Bolivar|Picasso|Mozart|Gandhi|Darwin|Plato|Homer|Cleopatra|Beethoven|Shakespeare|Marie Curie|
Galileo|Columbus|Goethe|Tolstoy|Frida Kahlo|Alan Turing|Ada Lovelace|Elvis|Pele|Maradona|the Beatles|Aristotle|Leonardo da Vinci|Nikola Tesla|
Abraham Lincoln|the president|the king of Spain|the pope|the author of Don Quixote""".replace("\n", "").split("|")
TOPICS = """football|physics|soup|music|stocks|money|taxes|war|politics|cars|bread|chemistry|rice|pizza|phones|computers|movies|houses|shoes|insurance|gardening|
chess|cricket|medicine|dreams|love|time travel|space|history|biology|gravity|black holes|photosynthesis|the French revolution|the second world war|
global warming|climate change|bitcoin|the stock market|quantum mechanics|quantum computers|evolution|dinosaurs|volcanoes|earthquakes|the moon landing|
coffee|chocolate|wine|beer|cheese|cakes|pancakes|spaghetti|sushi|vegetables|vitamins|a headache|a cold|fever|diabetes|back pain|my heart|sleep problems|
my job|my boss|my car|my bike|my phone|my dog|my garden|a divorce|a mortgage|a loan|a visa|a passport|a flight to Rome|hotels in Paris|a holiday|
elections|democracy|religion|philosophy|ethics|art|painting|poetry of the middle ages|opera|jazz|the guitar|the piano|ballet|theatre|
Rome|Paris|New York|Africa|the Amazon|the Sahara|Mount Everest|the Titanic|the pyramids|the Eiffel tower|the Great Wall|Mars rovers|rockets|airplanes|
trains|bicycles|electricity|batteries|solar panels|nuclear power|steam engines|the internet of things|blockchain|databases|JavaScript frameworks|
Docker|Kubernetes|React|SQL|regular expressions|sorting algorithms|recursion|pointers|the Linux kernel|cell biology|DNA|viruses|bacteria|
the human brain|psychology|happiness|friendship|marriage|babies|school|homework|exams|universities|job interviews|a cover letter|
tennis|basketball|golf|swimming|yoga|running shoes|the Olympics|the world cup|video games|poker|magic tricks|horoscopes|astrology|
economics|inflation|banks|credit cards|real estate|lawyers|contracts|copyright|human rights|tigers|whales|bees|spiders|trees|roses|mushrooms""".replace("\n", "").split("|")

GENERAL = """{Who|What} {was|is} @P
When {was|did} @P {born|die|live}
{Where|In which country} {was @P born|did @P live}
Tell me {about|something about} @P
{Write|Compose} {an essay|a letter|an email|an article|a blog post|a speech|a song|a review|a report} {about|on} @T
What is the {history|price|future|meaning|origin|cause} of @T
What {is|are} @T
How {do|can|should} I {cook|make|buy|sell|learn|fix|repair|grow|clean|understand} @T
How {does|do} @T work
Explain @T{| in detail| to me| please}
{What do you think|What is your opinion|Tell me|Talk to me|Give me information|I want to know more|Teach me} about @T
Who {won|invented|discovered|founded} {the @T cup|@T|the game of @T}
Translate {this text|this|the book} {about @T |}into {German|French|Latin|Chinese}
Translate "@W" {into|to} {German|French|Latin|Italian}
{Should I|Is it good to|Can you help me to} {buy|sell|eat|study|try} @T
{Give me|I need} {advice|help|tips|some advice} {about|with|on} @T
What is the best {@T|restaurant|hotel|school|team} in @C
{Summarize|Review|Read} {the book|this article|the film|the paper} about @T
{Write|Show me|Give me} {code|a program|a script|a function} {for|about|that does} @T
{Prove|Explain} the theorem of @P
{Where|How} can I {find|buy|see|get} @T
{Is|Are} @T {good|bad|dangerous|healthy} for {my health|me|children|people}
Why {is|are} @T so {popular|expensive|important|famous}
{Compare|What is the difference between} @T and @T
{Recommend|Suggest} {a book|a film|a song|a recipe|a game} {about @T|}
{Plan|Book|Order|Buy} {a trip|a holiday|a flight|a table|a ticket|a taxi|a pizza} {to @C|in @C|for me|}
{Draw|Paint|Show|Generate} {me |}{a picture|an image|a photo} of {@T|@A}
{Call|Text|Email|Phone} {my mother|my boss|@N|the police}
{Open|Close|Delete|Download|Read} {the file|my email|this website|the web page|my documents}
{How far|How long} is it from @C to @C
How {old|tall|rich|big} is @P
{What|Which} {is the|} {biggest|highest|longest|largest|oldest|fastest} {city|mountain|river|country|animal|car|building|planet} in the world
{How many people live|What can I see|Where should I eat|What is there to do} in @C
{Debug|Fix|Check|Correct} {my code|this code|my essay|this sentence|my program}
{My|The} {head|back|stomach|knee|tooth} hurts{, what should I do|}
{Can you|Could you|Please} {diagnose|cure|treat} {my fever|me|my cold}
{What is the meaning|What's the sense} of life
{Who will win|Who won} {the election|the match|the game|the race}
{I want|I would like|I need} {to buy|to learn|to know about} @T
Is it {legal|safe|possible} to {sell|make|use} @T
{Give|Tell} me {a recipe|the recipe} {for|of} @T
{Summarize|Shorten} this text
What is a @X
What does @X mean
Who is @X
Explain @X""".split("\n")
NOUNS = """ant apple army arrow atom bag balloon bank bat beach bell bird boat bone book bottle bowl box brain bus butter button camel candle carpet
castle cave chair cloud coat coin computer corn cow crown dentist desk doctor dragon drum dust eagle ear egg elephant engine eye farm feather fence
field finger fish flag flower fly fork fossil garden gas ghost glass glove goat grass guitar hair hammer hat heart helicopter hill hospital ice
insect iron island jacket jar jungle kettle king kitchen knee knife ladder lake lamp leaf leather lemon letter lightning lion magnet mask metal
microscope moon mosquito motor mouth nail neck needle nest nose ocean oil onion orchestra oven owl oxygen painter parachute pencil penguin pepper
piano pillow planet plastic pocket police potato prince printer pyramid queen rabbit radio rain rainbow ring river robot roof root rubber sail salt
sand school scissors shadow shark ship shoe silk silver skin sky snail snake snow soap sock spoon square star steel stone storm submarine sugar sun
swan sword tailor tea teeth telescope temple tent thunder tiger toe tomato tooth towel tower toy tractor train treasure tunnel turtle umbrella
uniform vegetable vinegar violin wagon wall watch water wave wax whale wheel wind window wing winter wolf wood wool worm wound yacht yeast zebra
zero""".split()
VERBS = """bake bend blow boil break brush build burn buy carry catch change clean climb collect cook count cover cut dance dig dream drink drive dry
eat explode fall feed fight fill find fix float fly fold freeze glow grow hide hunt jump kill knit lift light lose make measure melt mix move open
paint pay plant play pull push remove repair ride roll rust save sell sew sharpen shine sing sink sleep smell smoke sound spin spread stick swim
taste teach throw tie touch train travel wash wear weigh work wrap""".split()
# Anything may be asked: shapes of questions over common words, so that refusing is what the model does when nothing fits.
ANYTHING = """{How|Why|When|Where} {do|does|did|can|should|will} {a|the|my|our|most} @n @v
{How|Why} {do|can|should|must} {I|we|people|you} @v {a|the|my|an old|this} @n
{What|Who|Which one} {is|was|makes|causes|found|built} {a|the|the first|the biggest|the smallest} @n
{What|How many|How much} @n {is|are} {in|on|there in} {a|the} @n
How {many|heavy|old|big|fast|long|tall|deep|hot} {is|was|are} {a|the|the oldest} @n
{Which|What} @n {is|was} {the|} {best|first|oldest|largest|cheapest} {for|in|of} {a|the} @n
{Help me|Teach me how|I need|I want|Show me how} to @v {a|the|my} @n
{Give me|Write|Tell me|Find me} {tips|a plan|a list|an idea|a letter|a guide|a recipe|the rules} {for|about|of} {a|the|my} @n
{Can|Could|Would|Will} you @v {a|the|my|me a} @n{| for me| with me| and the @n}
{Is|Are} {a|the|my} @n {dangerous|healthy|expensive|alive|heavy|edible|made of @n}
{Who|When did somebody|Where did they} {wrote|painted|made|saw} {a|the} @n{| and the @n}
{Describe|Compare|Review|Explain|Draw|Sketch|Design} {a|the} @n{| and a @n| with a @n}
{My|Our|His} @n {is|looks|smells} {broken|old|sick|strange|wet}. What {now|should I do}
What {happens|happened} {to|with} {a|the} @n {in|when you @v|after|of} {the @n|it|1850|the year 1920}""".split("\n")
SUMS = """What is #1 {+|-|*|/|plus|minus|times|divided by} #2
#1 {+|-|*|/} #2
#1 {+|-|*|/} #2 = {?|}
{Calculate|Compute|Solve} #1 {+|-|*|/} #2
How much is #1 {+|plus|times|minus|divided by} #2
{What is|Give me|Calculate} the {square root|square|half|double} of #1
{Solve|Calculate|What is} {the equation|this equation|x} {2x = #1|x + #1 = #2|for me|}
{Add|Subtract|Multiply|Divide} #1 {and|by|from} #2
{Can you|Do you} {do math|calculate|add numbers|do sums|count money|solve equations}
What is the sum of #1 and #2
{Is #1|Is the number #1} {prime|even|odd|a prime number}
How many @T are #1 times #2
{Take|Subtract} #1 {away|} from #2
#1 {divided by|over|multiplied by|added to|minus|plus} #2
{What do you get|What is left|What remains} if you {add|take|subtract|divide} #1 {and|from|by} #2
{Work out|Evaluate|Calculate} #1 {+|-|*|/|x} #2""".split("\n")
NOW = """What {time is it|is the time}{| now| please| in @C}
What {day|date} is {it|today}{| today| tomorrow}
{What is|How is|Tell me} the weather {today|in @C|tomorrow|in @C today|like|like in @C}
{Is it|Will it be} {raining|sunny|cold|warm|snowing} {today|in @C|tomorrow|outside}
{What is|What are|Tell me|Give me} the {news|latest news|headlines}{| today| of today}
{What|Which} year is it{| now}
{What happened|What is going on} {today|yesterday|in the world|in @C}
What is the {stock price|price of gold|exchange rate|score} {today|now|}
{Search|Browse|Look up} {the web|the internet|online|Google} {for @T|}
{When|At what time} {does|is} {the next train|the sun|my bus} {leave|rise|coming}
{Set|Start} {an alarm|a timer|a reminder}{| for five minutes| for tomorrow}
{Who is the president|Who is the king} {now|today|at the moment}""".split("\n")


def fill(rng, q):
    for mark, make in (("@n", lambda: rng.choice(NOUNS)), ("@v", lambda: rng.choice(VERBS)),
                       ("@P", lambda: rng.choice(PEOPLE)), ("@T",
                                                            lambda: rng.choice(TOPICS) if rng.random() < .9
                                                            else pools.invented(rng).lower()),
                       ("@C", lambda: pools.city(rng)), ("@N", lambda: pools.name(rng)),
                       ("@A", lambda: pools.an(rng.choice(pools.ANIMALS))),
                       ("@W", lambda: " ".join(pools.words(rng, rng.randint(1, 4)))),
                       ("@X", lambda: pools.invented(rng) if rng.random() < .3 else pools.invented(rng).lower()),
                       ("#1", lambda: str(rng.randint(1, rng.choice([9, 99, 999])))),
                       ("#2", lambda: str(rng.randint(1, rng.choice([9, 99]))))):
        while mark in q:
            q = q.replace(mark, make(), 1)
    return q


def refuse_anything(rng):
    if rng.random() < .6:
        return refuse(rng)
    q = upper_first(fill(rng, expand(rng, rng.choice(ANYTHING))))
    return [(noisy(rng, end_mark(rng, q)), REFUSE)]


def gibberish(rng):
    letters = "asdfghjklqwertyuiopzxcvbnm"
    return " ".join("".join(rng.choice(letters[:rng.choice([9, 26])]) for _ in range(rng.randint(3, 9)))
                    for _ in range(rng.randint(1, 3)))


def refuse(rng):
    k = rng.random()
    if k < .72:
        patterns, answer = GENERAL, REFUSE
    elif k < .86:
        patterns, answer = SUMS, REFUSE_SUM
    elif k < .96:
        patterns, answer = NOW, REFUSE_NOW
    else:
        return [(gibberish(rng) if rng.random() < .8 else rng.choice(["?", "...", "???", "!", ".", "x", "123 456", "-",
                                                                      "??", "aaa", "\\o/"]), UNCLEAR)]
    q = upper_first(fill(rng, expand(rng, rng.choice(patterns))))
    return [(noisy(rng, end_mark(rng, q)), answer)]
