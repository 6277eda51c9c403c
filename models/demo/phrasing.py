"""How the same question is asked in many ways: a small pattern grammar, question templates, and surface noise.

  expand(rng, "Which {port|address} is it")  picks one alternative of every {a|b|}; braces may be nested
  ask(rng, fact)                             one phrasing of a fact's question
  noisy(rng, text)                           the same text as people really type it
  scramble(rng, text)                        its content words, torn out of their sentence

A model of three million parameters does not understand paraphrases; it has to have seen that order, case, politeness
and spelling do not matter. That is what this file is for. Reads and writes nothing."""
import re

INNER = re.compile(r"\{([^{}]*)\}")
ARTICLE = re.compile(r"^(a|an|the) ")

CONCEPT = """
What is @
What is @
What's @
What are @
what exactly is @
Tell me about @
Tell me {something|more|a bit|a little|what you know} about @
Explain @
Explain @ {to me|please|briefly|in simple words|in one sentence|for a beginner}
{Can|Could|Would} you {please |}{explain|describe|define} @ {to me|for me|}
{Please explain|Explain} what @ {is|means|does}
How does @ work
How do @ work
What does @ do
What does @ mean
What do you mean by @
What is meant by @
Define @
Describe @ {in a sentence|in short|for me|}
Give me {a definition|a short explanation|a description|the definition|an explanation} of @
I {do not|don't} {understand|know|get} @
I {do not|don't} know what @ {is|means}
Why {do we need|is there|do you have|does it need|does Chasqui have|do people use} @
What is @ {for|good for|used for}
What's the {point|purpose|use|idea|role} of @
What is the {point|purpose|use|meaning|idea|role|definition} of @
I {want|would like|need} to {know|learn} {what @ is|about @|more about @|something about @}
{Do|Don't} you know {what @ is|anything about @|@}
{Can|Could} you tell me {what @ is|about @|what @ means}
@
@ please
@ {explained|definition|meaning|explanation}
{In short|In simple words|In a nutshell|Briefly}, what is @
{Help me|Make me} understand @
How would you {describe|explain|define} @
{Teach|Show} me {about |}@
What can you {say|tell me} about @
{Where|When|How} is @ used
{When|Why} {do|would} I need @
{Is|Are} @ {useful|important|needed}
Who needs @
What {kind|sort} of thing is @
{Give me|Write} {a sentence|one sentence|a short text} about @
{I heard|I read} about @{, what is it|, what is that|}
{I keep hearing|Somebody told me} about @{. What is it|. What does it mean|}
{And|So|Ok|Well}{,|} what is @
what about @
""".strip().split("\n")

BEFORE = ["Please tell me: ", "I have a question. ", "Can you help me? ", "Hello! ", "Hi, ", "Hey, ", "Please, ",
          "Excuse me, ", "One question: ",
          "Quick question: ", "ok, ", "So ", "And ", "Sorry, ", "Now ", "Hello, ", "Question: ", "Dear Chasqui, ",
          "I wonder: ", "Well, "]
AFTER = [" Thanks!", " please", ", please", " Please be brief.", " Thank you.", " I am new to this.", " in short",
         " Answer in one sentence.", ", thanks"]


def expand(rng, pattern):
    while True:
        m = INNER.search(pattern)
        if not m:
            break
        pattern = pattern[:m.start()] + rng.choice(m.group(1).split("|")) + pattern[m.end():]
    return re.sub(r" +", " ", pattern).strip()


def upper_first(text):
    return text[:1].upper() + text[1:]


def end_mark(rng, q):
    """A question mark or a full stop, by the first word."""
    if q[-1] in "?.!":
        return q
    first = q.split()[0].lower().rstrip(",'s")
    asks = first in ("what", "which", "how", "why", "who", "where", "when", "is", "are", "can", "could", "do", "does",
                     "will", "would", "in", "on", "under",
                     "at", "for", "may", "must", "out", "by", "from", "if", "so", "and", "whom", "wha", "was", "did",
                     "with")
    return q + ("?" if asks or rng.random() < .3 else ".")


def ask(rng, fact):
    """One phrasing of a fact. Facts with topics get the general templates for about half of their questions."""
    if fact.topics and rng.random() < .5:
        topic = rng.choice(fact.topics)
        if rng.random() < .15:
            topic = ARTICLE.sub("", topic)
        q = expand(rng, rng.choice(CONCEPT)).replace("@", topic)
        if rng.random() < .06 and "Chasqui" not in q:
            q += " in Chasqui"
    else:
        q = expand(rng, rng.choice(fact.questions))
    return end_mark(rng, upper_first(q))


def typo(rng, text):
    """One slip of the finger inside a longer word."""
    spots = [m for m in re.finditer(r"[A-Za-z]{4,}", text)]
    if not spots:
        return text
    m = rng.choice(spots)
    w, i = m.group(), rng.randrange(1, len(m.group()) - 1)
    k = rng.random()
    if k < .35:
        w = w[:i] + w[i + 1] + w[i] + w[i + 2:]
    elif k < .65:
        w = w[:i] + w[i + 1:]
    elif k < .85:
        w = w[:i] + w[i] + w[i:]
    else:
        w = w[:i] + rng.choice("etaoinsrhl") + w[i + 1:]
    return text[:m.start()] + w + text[m.end():]


def noisy(rng, q, wrap=True):
    """Case, punctuation, politeness and typos as people type them; 35 in 100 stay as they are."""
    if rng.random() < .35:
        return q
    if wrap and rng.random() < .16:
        head = rng.choice(BEFORE)
        q = head + (q[0].lower() + q[1:] if rng.random() < .7 and not q.startswith("I ") else q)
    if wrap and rng.random() < .08:
        tail = rng.choice(AFTER)
        q = (q.rstrip("?.!") if tail[0] == "," or tail[1].islower() else q) + tail
    if rng.random() < .35:
        q = q.rstrip("?.!")
    k = rng.random()
    if k < .3:
        q = q.lower()
    elif k < .4:
        q = q[0].lower() + q[1:]
    elif k < .42:
        q = q.upper()
    if rng.random() < .1:
        q = typo(rng, q)
    if rng.random() < .03 and q[-1] == "?":
        q += rng.choice(["?", "??", "!", " :)"])
    return q


FUNCTION_WORDS = set("""a an the is are was do does did can could would should will shall i you we it to of for in on at me my your please what which how why who when where
tell explain give about with by be this that there so and or any some""".split())
STARTS = """Would you say|Do you know|I wonder|By the way|Hmm|Listen|Let me ask|Well then|Just curious|Now tell me|Next question|Remind me|My question|Please answer|
Could you say|In your words|Honestly|Say|Quickly|For my notes|Another thing|I was asked|Somebody wants to know|It would be nice to know|I read about this|Look|Once more|
For beginners|Right|Short answer please|Yes or no|I am curious|Perhaps you know|Let us talk about|A word about|On the topic of|Info on|Regarding|Concerning""".replace("\n", "").split("|")


def scramble(rng, q):
    """Only the words that carry meaning stay for sure: some function words go, some other start comes before, two
    words may change places."""
    words = [w for w in q.rstrip("?.!").split() if w.lower().strip(",") not in FUNCTION_WORDS or rng.random() < .55]
    if not words:
        return q
    if len(words) > 2 and rng.random() < .3:
        i = rng.randrange(len(words) - 1)
        words[i], words[i + 1] = words[i + 1], words[i]
    if rng.random() < .55:
        words = (rng.choice(STARTS) + rng.choice(["", ",", ":"])).split() + words
    return end_mark(rng, upper_first(" ".join(words)))


def normal(text):
    """What counts as the same prompt when held-out questions are looked up: letters and digits, lower case."""
    return " ".join(re.findall(r"\w+", text.lower()))
