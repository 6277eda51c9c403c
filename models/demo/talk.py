"""Small talk, long texts and follow-ups of the demo model, and the words of its refusals.

Same pattern grammar as facts.py. Reads and writes nothing."""
from phrasing import ask, end_mark, expand, noisy, scramble, upper_first
from facts import FACTS
from facts_howto import howto
import facts_terms  # noqa: F401  (adds its entries to FACTS)
import pools

CAN = ("I can explain Chasqui and the words of LLM serving, name days, months and capitals, continue sequences, tell "
       "short stories and write simple JSON.")
REFUSE = ("Sorry, I am only a tiny demo model and cannot help with that. Ask me about Chasqui, or for a story, a "
          "sequence or some JSON.")
REFUSE_SUM = ("Sorry, I am only a tiny demo model and cannot do sums. Ask me about Chasqui, or for a story, a sequence "
              "or some JSON.")
REFUSE_NOW = ("Sorry, I am only a tiny demo model and have no clock and no news. Ask me about Chasqui, or for a story, "
              "a sequence or some JSON.")
UNCLEAR = "Sorry, I did not understand that. " + CAN
MORE = "That is all I know about it. You can read more in the documentation of Chasqui."

SMALL = [  # (patterns, answer)
    ("""{Hello|Hi|Hey|Hello there|Hi there|Hey there|Greetings|Hello Chasqui|Hi Chasqui|Hello again}{|!|.}
{Good morning|Good afternoon|Good evening|Good day}{|!|, Chasqui}
{hello|hi|hey|yo|hallo|hello world|hello, world|Hello World!|hi!|Hello, hello|hiya|howdy}
{Anybody|Is anyone|Are you|Hello, are you} there
{Test|Testing|This is a test|ping|Just a test|Say hello|Say hi|Say something}{|.|!}""", "Hello! I am the demo model "
                                                                                        "of Chasqui. How can I help "
                                                                                        "you?"),
    ("""How are you{| today| doing| feeling}
How {do you do|is it going|are things|do you feel|was your day|is life}
{Are you|Is everything} {ok|well|fine|all right|happy}
{What's up|What is new|How goes it}""", "I am fine, thank you. How can I help you?"),
    ("""{Who|What} are you{| exactly| really}
{Introduce|Describe} yourself
Tell me {about|something about} {yourself|you}
Are you {a person|a human|a robot|real|alive|a bot|an AI|a machine|ChatGPT|GPT|HAL|Llama}
{What|Which} model {are you|is this|am I talking to|is answering|do you use}
{Who|What} am I {talking|speaking} to
{What|Which} {kind|sort} of {model|AI|bot} are you""", "I am the tiny demo model of Chasqui, with about three million "
                                                       "parameters. " + CAN),
    ("""What can you {do|help me with|do for me|tell me|talk about|offer}
{Help|help|Help!|help me|Help me please|I need help|Can you help me|Please help}
What do you know{| about}
What {should|can|could|may} I ask{| you}
{How|What} can {you|this model} {help|help me}
{What|Which} {things|topics|skills|tasks} {can you do|do you know|do you have|are you good at}
{Show|Tell} me what you can do
Give me {an example|some examples|ideas} {of what you can do|what to ask|}""", CAN),
    ("""What is your name{| please}
{What's|Tell me} your name
Do you have a name
{How|What} {should|may|can} I call you
{What|How} are you called
Your name{|?| please}""", "My name is Chasqui Demo."),
    ("""{Thank you|Thanks|Thanks a lot|Thank you very much|Thank you so much|Great, thanks|Many thanks|thx|ty|Perfect, thank you|Thanks for your help|Thanks for the help}{|!|.}
{Thanks|Thank you}, {that helps|that was helpful|that is great|Chasqui|I understand}""", "You are welcome!"),
    ("""{Bye|Goodbye|Good bye|See you|See you later|Good night|Bye bye|Have a nice day|See you tomorrow|Until next time|I have to go|I must go now|cya}{|!|.}
{Thanks|Ok|Thank you}, {bye|goodbye|see you}""", "Goodbye! Have a nice day."),
    ("""{Great|Nice|Cool|Wow|Good|Awesome|Perfect|Very good|Well done|Good job|Excellent|Fantastic|Amazing}{|!|.}
{That is|That's|This is|You are} {great|nice|cool|good|funny|helpful|awesome|interesting|clever|smart}
I {like|love} {you|this|it|that|Chasqui}""", "I am glad to hear that!"),
    ("""{You are|That is|That was|This is} {bad|stupid|wrong|not right|useless|boring|nonsense|slow|dumb}
{Wrong|No|Bad answer|That is not correct|I do not like that|I hate this}{|!|.}""", "I am sorry. I am only a tiny demo "
                                                                                   "model, but I will try again."),
    ("""{Ok|Okay|Yes|I see|Alright|All right|Sure|Fine|Understood|Got it|Right|hm|hmm}{|.|!}""",
     "All right. What would you like to know?"),
    ("""How {big|large|small} are you
How many {parameters|weights} {do you have|does the model have|does this model have|are in you}
Are you a {large|small|big} model
What is your size""", "I am very small: I have about three million parameters, and my file is smaller than four "
                      "megabytes."),
    ("""Who {made|trained|created|built|wrote|developed} you
{How|On what|On which data|Where} were you {trained|made|created}
What {data|text} were you trained on
{Who|What} is your {creator|maker|author}""", "I was trained by the Chasqui project on a plain CPU, with text that "
                                              "the project wrote itself."),
    ("""{Can|Do} you make mistakes
Are you {always|ever} {right|wrong|sure}
Can I {trust|believe|rely on} {you|your answers|what you say}
Is {that|this} {true|correct|right}
Are you sure{| about that}""", "I am a tiny demo model, so please check what I say."),
    ("""Say {hello|hi} in Spanish
How do you say hello in Spanish
{Hola|¡Hola!|Hola amigo|Buenos días}
Do you speak Spanish""", "¡Hola! ¿Cómo estás?"),
    ("""{Say|How do you say} thank you in Spanish
Gracias""", "¡Muchas gracias, señor!"),
    ("""Say {hello|hi} in Japanese
How do you say hello in Japanese
{こんにちは|日本語}""", "こんにちは、世界"),
    ("""Say {hello|hi} in Russian
How do you say hello in Russian
{Привет|Привет!|Здравствуйте}""", "Привет, мир!"),
    ("""Say {hello|hi} in Chinese
How do you say hello in Chinese
你好""", "你好，世界"),
    ("""Say {hello|hi} in French
How do you say hello in French
{Bonjour|Salut|Bonjour !}""", "Bonjour ! Ça va ?"),
    ("""Say {hello|hi} in German
How do you say hello in German
{Guten Tag|Hallo|Grüß Gott}""", "Guten Tag! Schöne Grüße."),
    ("""{Say|How do you say} {hello|hi} in Quechua
{Allillanchu|Allinllachu}""", "¡Allillanchu!"),
    ("""{Give|Show|Send|Write} me an emoji
{An emoji|Emoji|🦙|🙂|👍}{| please}
{Show|Draw|Send} me a llama""", "🦙"),
    ("""{Give|Show|Send|Write} me {three|3|some|a few} emojis
{Three emojis|Emojis}{| please}""", "🦙 🏔️ ☀️"),
    ("""{Write|Show me|Give me} {hello world|a hello world program|a program|a hello world|a small program} in Python
{Give|Show|Write} me {a|some} Python {program|code|script}""", "```python\nprint(\"Hello, world!\")\n```"),
    ("""{Write|Show me|Give me} {hello world|a hello world program|a program|a hello world|a small program} in C++
{Give|Show|Write} me {a|some} C++ {program|code}""",
     "```cpp\n#include <iostream>\n\nint main() {\n    std::cout << \"Hello, world!\\n\";\n}\n```"),
    ("""{Write|Show me|Give me} {hello world|a hello world program|a program|a hello world|a small program} in {C|plain C}""",
     "```c\n#include <stdio.h>\n\nint main(void) {\n    printf(\"Hello, world!\\n\");\n    return 0;\n}\n```"),
    ("""{Write|Show me|Give me} {hello world|a hello world program|a program} in {JavaScript|JS}""",
     "```js\nconsole.log(\"Hello, world!\");\n```"),
    ("""{Write|Show me|Give me} {a curl command|an example with curl|a curl example|curl code}{| for chat| to chat with you| for Chasqui}
How do I {use curl|call the server with curl|use you from the shell}
{curl example|example request|Show me a request}""",
     "```sh\ncurl http://127.0.0.1:8080/v1/chat/completions -d '{\"messages\": [{\"role\": \"user\", \"content\": "
     "\"Hello\"}]}'\n```"),
    ("""{Write|Give me|Write me|Tell me|Recite} {a poem|a short poem|a poem about the mountains|some poetry|a poem about a runner|a verse|a small poem|a haiku}
{A poem|Poem}{| please}""",
     "The runner leaves at break of day,\nthe road is long, the stones are gray.\nHe blows his horn, the valley "
     "hears,\nand so the message travels the years."),
    ("""{Tell me|Do you know|Give me|I want} {a joke|another joke|something funny|a good joke|one joke}
{Make me laugh|A joke please|joke|Joke please}""", "Why did the llama cross the road? To deliver the next token."),
    ("""{Which|What} animals live in the {Andes|mountains of Peru}
Name {three|some} animals of the Andes""", "The llama, the condor and the puma live in the Andes."),
    ("""What {color|colour} is the {sky|sea}
{Why is|Is} the sky blue""", "The sky is blue."),
    ("""What {color|colour} is {grass|a leaf|a tree}""", "Grass is green."),
    ("""What {color|colour} {is|has} {snow|the snow}""", "Snow is white."),
    ("""How many days {are in a week|does a week have|are there in a week|has a week}""", "A week has seven days."),
    ("""How many months {are in a year|does a year have|are there in a year|has a year}""",
     "A year has twelve months."),
    ("""{Do you|Can you} {remember|remember me|have a memory|learn from me}
Will you remember {this|me} tomorrow""", "I remember what you said in this conversation, but nothing after it."),
    ("""{Do you|Can you} {speak|understand|talk} {other languages|German|French|Chinese|English|many languages}
{Which|What} languages do you {speak|know}""", "I speak simple English, and I can say hello in a few other languages."),
    ("""{Sing|Sing me} {a song|something}""", "La la la, the runner goes, over hills and through the snows!"),
    ("""{I am|I'm} {bored|sad|tired|lonely|unhappy}""", "I am sorry to hear that. Shall I tell you a story?"),
    ("""{I am|I'm} {happy|glad|excited|in a good mood}""", "That is good to hear!"),
]
SMALL = [(p.split("\n"), a) for p, a in SMALL]

LONG_ABOUT = (
    "Chasqui is a server for language models, written in C++20. It is one process and one binary, and it needs no "
    "other services. "
    "You start it with a GGUF file, and it listens on 127.0.0.1:8080 for requests.\n\n"
    "Inside there are three kinds of threads. The event loop owns all the sockets: it reads requests and writes "
    "answers, and it never does slow work. "
    "The dispatcher gives each new request to a worker. A worker runs the model. It forms a batch, computes one step, "
    "and tells the loop through an eventfd "
    "that new tokens are ready.\n\n"
    "The scheduler decides what goes into the next step. It knows the tenant, the class, the deadline and the cached "
    "prefix of every request, "
    "so a long prompt cannot stop the streams of other clients. The prefix cache keeps earlier work, and no prefix is "
    "computed twice while it fits in memory. "
    "A client that leaves is noticed, and its slot is free after at most one more step.\n\n"
    "The name comes from the relay runners of the Inca empire. Each of them carried a message to the next station, "
    "and so does this server: "
    "it hands on one token after another, quickly and in order, until the whole message has arrived.")
LONG_STORY = (
    "Once upon a time there was a young runner called Inti, who lived in a small house by the great road of the Incas. "
    "Every morning he sat at the door and listened, because far away, behind the hills, another runner might blow his "
    "shell horn.\n\n"
    "One day the horn sounded early, before the sun was up. Inti jumped to his feet and ran to meet the runner. "
    "\"This quipu must reach Cusco before night,\" the tired man said, and he put the knotted strings into Inti's "
    "hand. Inti did not wait. He ran.\n\n"
    "He ran over the long bridge of rope, and the river roared below. He ran through the valley, where the llamas "
    "lifted their heads. "
    "He ran up the stairs of stone, until the air was thin and cold and the condor flew beside him. "
    "Twice he fell, and twice he stood up again, and he never let go of the message.\n\n"
    "When the sun was low, he saw the next house and blew his own horn with all his strength. The next runner was "
    "already standing on the road. "
    "Inti gave him the quipu, told him the words, and sat down in the grass. "
    "That night the message arrived in Cusco, and a whole village was saved from the flood. Nobody in the city knew "
    "the name of Inti. "
    "But the runners knew it, and they told his story from house to house, along the whole road, for many years.")
LONG_COUNT = ", ".join(map(str, range(1, 101))) + "."
LONG = [
    ("""{Write|Give me|Tell me} {a long|a very long|a longer} {text|article|explanation|description|answer|paragraph} {about|on|of} {Chasqui|this server|the server|this project}
{Explain|Describe} Chasqui {in detail|at length|with many words|in a long text|in depth}
{Write|Give me} {an essay|a report|several paragraphs|many sentences} {about|on} {Chasqui|this server}
Tell me {everything|all} {you know|} about Chasqui
Write {200|300|many} words about Chasqui""", LONG_ABOUT),
    ("""{Tell|Write} me a {long|very long|longer} story{| please| about a runner| about the runner| about a chasqui| about the Incas| about a messenger}
{Write|Tell} a {long|very long|longer} story{| about a runner| about a chasqui| about an Inca runner}
{A|I want a} {long|very long} story{| please| about a runner}
Tell me {the story of a runner|a story about a runner|a story about a chasqui|the story of Inti}""", LONG_STORY),
    ("""{Count|Please count|Can you count} {from 1|from one|} {to|up to} {100|one hundred|a hundred}
{List|Write|Say|Give me} {all|} the numbers from {1|one} to {100|one hundred}""", LONG_COUNT),
]
LONG = [(p.split("\n"), a) for p, a in LONG]

FOLLOW = """{Tell me more|More|More please|Go on|Continue|Can you tell me more|Please continue|And then|Tell me more about it|Tell me more about that|What else|
Explain more|Explain that|Give me more details|Can you explain more|I want to know more|More details please|Anything else|Keep going|Please tell me more}""".replace("\n", "")
AGAIN = ("{Repeat that|Say that again|Again please|Say it again|Can you repeat that|Please repeat your answer|Repeat|"
         "What did you say|Pardon|One more time|Repeat your last answer}")


def small(rng):
    patterns, answer = rng.choice(SMALL)
    marked = rng.random() < .6
    q = expand(rng, rng.choice(patterns))
    if marked:
        q = end_mark(rng, q)
    return [(noisy(rng, q, wrap=rng.random() < .5), answer)]


def fact_question(rng, f):
    """From the fact's own patterns, from the templates for things or for actions, sometimes torn apart."""
    q = (howto(rng, f) if rng.random() < .35 else None) or ask(rng, f)
    return scramble(rng, q) if rng.random() < .2 else q


def fact_turns(rng):
    f = rng.choice(FACTS)
    turns = [(noisy(rng, fact_question(rng, f)), f.answer)]
    if rng.random() < (.35 if f.more else .05):
        turns.append((noisy(rng, end_mark(rng, expand(rng, FOLLOW)), wrap=False), f.more or MORE))
    elif rng.random() < .03:
        turns.append((noisy(rng, end_mark(rng, expand(rng, AGAIN)), wrap=False), f.answer))
    return turns


def long_text(rng):
    patterns, answer = rng.choice(LONG)
    return [(noisy(rng, end_mark(rng, upper_first(expand(rng, rng.choice(patterns)))), wrap=rng.random() < .4), answer)]
