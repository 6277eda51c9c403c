"""The synthetic curriculum: puts the tasks of talk, refusals, skills and toolbox together into conversations.

  conversation(rng, mix)  -> [(role, text)]      roles are those of ChatML: system, user, assistant
  raw_text(rng)           -> text for /v1/completions, without any template
  render(messages)        -> the ChatML text, exactly what chat_template.jinja gives

All text is the project's own; nothing is downloaded. Run `python3 corpus.py 5` to see five conversations."""
import random
import sys

import pools
import talk
from facts import FACTS
from phrasing import end_mark, expand, noisy, upper_first
from pools import ANIMALS, CAPITALS, COLORS, DAYS, MONTHS, THINGS, an
from refusals import refuse, refuse_anything
from refusals_wide import refuse_wide
from skills import (J, capital, counting, easy_counting, json_pairs, json_task, memory, neighbour, not_told, repeat,
                    sequence, story,
                    story_text, thing_record, word_game)
from talk import fact_turns, long_text, small
from toolbox import KINDS, Tool, no_tool_turn, system_text, toolset
from toolbox_more import drill


def remember(rng):
    return memory(rng, filler)


TASKS = {"main": [(fact_turns, 36), (small, 10), (long_text, 2), (refuse, 11), (sequence, 9), (counting, 4),
                  (capital, 4), (word_game, 5), (story, 4), (json_task, 8), (remember, 9)],
         "finish": [(fact_turns, 40), (small, 8), (long_text, 1), (refuse, 11), (sequence, 9), (counting, 6),
                    (capital, 3), (word_game, 6), (story, 2), (json_task, 9), (remember, 10)]}
# tools, persona, notes, long chats; the rest are tasks
TASKS["polish"] = [(fact_turns, 37), (small, 14), (long_text, 3), (refuse_anything, 17), (sequence, 8), (neighbour, 6),
                   (easy_counting, 4), (capital, 3), (repeat, 3), (story, 2), (json_task, 12), (remember, 10)]
TASKS["anchor"] = [(fact_turns, 34), (small, 13), (long_text, 2), (refuse_anything, 18), (sequence, 11), (neighbour, 5),
                   (easy_counting, 7), (capital, 3), (repeat, 3), (story, 2), (json_task, 8), (json_pairs, 8),
                   (remember, 12)]
TASKS["widen"] = [(fact_turns, 37), (small, 13), (long_text, 1), (refuse_anything, 7), (refuse_wide, 22), (sequence, 10),
                  (neighbour, 4), (easy_counting, 5), (capital, 3), (repeat, 3), (story, 2), (json_task, 6),
                  (json_pairs, 8), (remember, 10)]
SHARES = {"main": (.17, .05, .04, .025), "finish": (.22, .05, .03, .015),
          "polish": (.24, .06, .02, .01), "anchor": (.30, .06, .02, .01),
          "widen": (.42, .05, .02, .008)}
FILLER = [(fact_turns, 5), (small, 4), (sequence, 3), (capital, 1), (json_task, 1), (refuse, 2), (word_game, 1)]
NO_TOOL_WIDE = [small, fact_turns, fact_turns, sequence, refuse, refuse_wide, refuse_wide, json_task]
NO_TOOL_PLAIN = [small, fact_turns, fact_turns, sequence, json_task, capital]
NO_TOOL = [small, small, fact_turns, fact_turns, sequence, refuse, capital, json_task]

SYSTEM = ["You are a helpful assistant.", "You are a helpful assistant.", "You are Chasqui, a tiny demo model.",
          "You are a friendly assistant. Answer in short sentences.", "Answer the questions of the user.", "Be brief.",
          "You are a helpful, honest and harmless assistant.", "You answer questions about Chasqui.",
          "You are an assistant.", "Be polite and short.", "You are a test model.", "Help the user as well as you can.",
          "Answer in English.", "You are the demo of a language model server.", "Always answer politely.",
          "You are a chat bot.", "Think before you answer.", "The user is new here. Be kind."]


def draw(rng, weighted):
    return rng.choices([f for f, _ in weighted], [w for _, w in weighted])[0]


def filler(rng):
    return draw(rng, FILLER)(rng)


def as_messages(turns, system=None):
    out = [("system", system)] if system else []
    for user, assistant in turns:
        out += [("user", user), ("assistant", assistant)]
    return out


def system_prompt(rng):
    return " ".join(rng.sample(SYSTEM, rng.choice([1, 1, 1, 2])))


# ---- conversations with tools --------------------------------------------------------------------------------------
def missing_tool(rng, tools):
    """Asks for something whose tool is not in the list: refused in the words of refusals.py."""
    kind = rng.choice([k for k in KINDS if k not in [t.kind for t in tools]])
    q, _, _, _ = Tool(rng, kind).use(rng)
    return q, talk.REFUSE_NOW if kind in ("weather", "time", "timer", "search") else talk.REFUSE


def with_tools(rng, mix):
    if mix == "widen" and rng.random() < .75:
        return drill(rng, system_prompt(rng) if rng.random() < .4 else "", NO_TOOL_WIDE, NO_TOOL_PLAIN)
    last = mix in ("polish", "anchor", "widen")
    tools = toolset(rng, rng.choice([1, 1, 2, 2, 3, 4] if last else [1, 1, 1, 2, 2, 3, 3, 4, 5, 6]), .1 if last else .4)
    messages = [("system", system_text(system_prompt(rng) if rng.random() < .4 else "", tools))]
    for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
        k = rng.random()
        if k < (.40 if last else .30):
            u, a = no_tool_turn(rng, tools, NO_TOOL)
            messages += [("user", u), ("assistant", a)]
        elif k < (.43 if last else .37):
            u, a = missing_tool(rng, tools)
            messages += [("user", u), ("assistant", a)]
        else:
            u, call, result, closing = rng.choice(tools).use(rng)
            messages += [("user", u), ("assistant", call)]
            if rng.random() < (.6 if last else .75):
                messages += [("user", "<tool_response>\n" + result + "\n</tool_response>"), ("assistant", closing)]
            else:
                break
    return messages


# ---- conversations that lean on the system prompt ------------------------------------------------------------------
def persona(rng):
    n = pools.name(rng)
    system = expand(rng, f"{{Your name is|You are|You are called|Your name: }} {n}{{.|, a helpful assistant.|"
                         f". Answer in short sentences.|, an assistant of a shop.|, a friendly robot. Be brief.}}")
    turns = [(noisy(rng, rng.choice(["What is your name?", "Who are you?", "Do you have a name?", "Introduce yourself.",
                                     "What's your name?", "How are you called?", "Tell me your name."])),
                                     f"My name is {n}.")]
    for _ in range(rng.choice([0, 1, 1, 2])):
        turns.insert(rng.randint(0, len(turns)), filler(rng)[0])
    return as_messages(turns, system)


def note(rng):
    """(statement, question, answer) about something invented; the question can only be answered from the statement."""
    n, c, col, t, num = pools.name(rng), pools.city(rng), rng.choice(COLORS), rng.choice(THINGS), rng.randint(10, 9999)
    return rng.choice([
        (f"The code of {n} is {num}.", f"What is the code of {n}?", f"The code of {n} is {num}."),
        (f"{n} lives in {c}.", f"Where does {n} live?", f"{n} lives in {c}."),
        (f"The {t} of {n} is {col}.", f"What color is the {t} of {n}?", f"The {t} of {n} is {col}."),
        (f"{n} has {an(rng.choice(ANIMALS))}.", "", ""),
        (f"The secret word is {t}.", "What is the secret word?", f"The secret word is {t}."),
        (f"Room {num} belongs to {n}.", f"Who owns room {num}?", f"Room {num} belongs to {n}.")])


def with_notes(rng, length=None):
    """A system prompt with notes between sentences about Chasqui; questions about the notes and about facts."""
    k = length or rng.choice([3, 4, 6, 8, 12])
    notes = [note(rng) for _ in range(k)]
    secret = False
    lines, asked = [], []
    for s, q, a in notes:
        if s.startswith("The secret"):
            if secret:
                continue
            secret = True
        lines.append(s)
        if q:
            asked.append((q, a))
        if rng.random() < .5:
            lines.append(rng.choice(FACTS).answer)
    head = rng.choice(["Use these notes.", "Answer from these notes.",
                       "You are a helpful assistant. Here is what you know.", "Notes:", "Read this first."])
    picked = rng.sample(asked, min(len(asked), rng.randint(1, 3)))
    turns = [(noisy(rng, q, wrap=False) if rng.random() < .2 else q, a) for q, a in picked]
    if rng.random() < .5:
        turns.insert(rng.randint(0, len(turns)), fact_turns(rng)[0])
    return as_messages(turns, head + rng.choice([" ", "\n"]) + rng.choice([" ", "\n"]).join(lines))


def long_chat(rng):
    """A chat of about one to two thousand tokens; name and city are told early and asked late."""
    if rng.random() < .4:
        return with_notes(rng, rng.randint(25, 55))
    turns = memory(rng, filler, turns_between=rng.randint(14, 26))
    return as_messages(turns, system_prompt(rng) if rng.random() < .4 else None)


def anchor(rng):
    """The questions that people try first, in their plainest form and alone: these must never fail."""
    k = rng.random()
    if k < .12:
        f = FACTS[0]
        q = rng.choice(["What is Chasqui?", "What is Chasqui?", "what is chasqui", "What is Chasqui",
                        "Tell me about Chasqui.",
                        "Explain Chasqui.", "Who or what is Chasqui?", "What does Chasqui do?",
                        "Describe Chasqui in one sentence."])
        return as_messages([(q, f.answer)])
    if k < .6:
        f = rng.choice(FACTS)
        if f.topics and rng.random() < .6:
            topic = f.topics[0]
            forms = [f"What {'are' if topic.endswith('s') else 'is'} {topic}?", f"Explain {topic}.",
                     f"Tell me about {topic}."]
            return as_messages([(rng.choice(forms), f.answer)])
        q = expand(rng, rng.choice(f.questions))
        return as_messages([(end_mark(rng, upper_first(q)), f.answer)])
    if k < .88:
        patterns, answer = rng.choice(talk.SMALL)
        return as_messages([(expand(rng, rng.choice(patterns)), answer)])
    patterns, answer = rng.choice(talk.LONG)
    return as_messages([(end_mark(rng, upper_first(expand(rng, rng.choice(patterns)))), answer)])


def conversation(rng, mix="main"):
    if mix in ("anchor", "widen"):
        if rng.random() < (.25 if mix == "anchor" else .16):
            return anchor(rng)
    k, make = rng.random(), (with_tools, persona, with_notes, long_chat)
    for share, kind in zip(SHARES[mix], make):
        if k < share:
            return kind(rng, mix) if kind is with_tools else kind(rng)
        k -= share
    if k < (.004 if mix in ("anchor", "widen") else .01):
        turns = not_told(rng) + (filler(rng) if rng.random() < .5 else [])
    else:
        turns = [t for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3, 4])) for t in draw(rng, TASKS[mix])(rng)]
    return as_messages(turns, system_prompt(rng) if rng.random() < .35 else None)


# ---- raw text ------------------------------------------------------------------------------------------------------
PLAIN = ["Python is a programming language that is easy to read. Many people write their first program in it.",
         "Python is an easy language. A small program is enough to send a request to a server and print the answer.",
         "C++ is a programming language for fast programs. Chasqui is written in it.",
         "The quick brown fox jumps over the lazy dog.", "The sky is blue, the grass is green and the snow is white.",
         "The meaning of life is a hard question for a tiny model.",
         "Hello, my name is Chasqui Demo and I am a tiny language model.",
         "Hello, world! This is a test of the server.",
         "To be a good runner, you need strong legs and a clear head.",
         "In the beginning there was a road, and on the road there was a runner.",
         "A language model reads text and predicts what comes next, one token at a time.",
         "The best way to learn is to try it yourself.", "I am a tiny demo model, and I live inside the Chasqui "
                                                         "server.",
         "The weather in the mountains is cold in the morning and warm at noon.",
         "Machine learning is the art of learning from data. A language model learns from text.",
         "My favorite animal is the llama, because it carries the loads of the runners.",
         "There was once a runner who never stopped, because he loved the road.",
         "def add(a, b):\n    return a + b\n", "def hello():\n    print(\"Hello, world!\")\n",
         "int main() {\n    return 0;\n}\n", "for i in range(10):\n    print(i)\n",
         "import json\n\nprint(json.dumps({\"ok\": True}))\n"]


def raw_text(rng):
    k = rng.random()
    if k < .3:
        return story_text(rng)
    if k < .42:
        lands = rng.sample(list(CAPITALS), rng.randint(1, 5))
        return " ".join(f"The capital of {x} is {CAPITALS[x]}." for x in lands)
    if k < .62:
        return rng.choice(PLAIN)
    if k < .72:
        f, head = rng.choice(FACTS), rng.choice(["Question", "Q"])
        q = end_mark(rng, upper_first(expand(rng, rng.choice(f.questions))))
        return f"{head}: {q}\n{rng.choice(['Answer', 'A'])}: {f.answer}"
    if k < .82:
        return " ".join(f.answer for f in rng.sample(FACTS, rng.randint(1, 6)))
    if k < .86:
        return talk.LONG_STORY if rng.random() < .5 else talk.LONG_ABOUT
    if k < .92:
        a = rng.randint(1, 40)
        return rng.choice([", ".join(DAYS) + ".", ", ".join(MONTHS) + ".",
                           ", ".join(map(str, range(a, a + rng.randint(6, 20)))),
                           " ".join(map(str, range(1, rng.randint(8, 20)))), ", ".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ")])
    return J(thing_record(rng)[1]) if rng.random() < .5 else "\n".join(J(thing_record(rng)[1])
                                                                       for _ in range(rng.randint(2, 4)))


def render(messages):
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in messages)


if __name__ == "__main__":
    r = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        print(render(conversation(r)) + "---")
    print(len(FACTS), "facts,", len(talk.SMALL), "small talk entries")
