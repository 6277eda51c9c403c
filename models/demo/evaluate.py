"""Scores the demo model, from the file or over HTTP:

  python3 evaluate.py --gguf chasqui-demo.gguf [--prompts prompts.txt] [--json OUT] [--only facts,memory] [--verbose]
  python3 evaluate.py --url http://127.0.0.1:8080

With --gguf the file is decoded by infer.py (needs torch); with --url any OpenAI-compatible server is asked (standard
library only). Reads prompts.txt of build_data.py to prove that the held-out prompts do not occur in the training data.
Prints one line per task and writes OUT."""
import argparse
import concurrent.futures
import json
import random
import re
import sys
import urllib.request

import corpus
import eval_prompts as held
import pools
import skills
import talk
import toolbox
from facts import FACTS
from phrasing import ask, end_mark, expand, normal, upper_first

MAX_TOKENS = 480


class Reply:
    def __init__(self, text, ended, gap=0.0):
        self.text, self.ended, self.gap = text, ended, gap


# ---- who answers ---------------------------------------------------------------------------------------------------
def chatml(messages, tools):
    """What chat_template.jinja makes of the messages."""
    system = messages[0]["content"] if messages and messages[0]["role"] == "system" else ""
    rest = messages[1:] if system else messages
    out = ""
    if tools:
        out = "<|im_start|>system\n" + toolbox.system_text(system, tools) + "<|im_end|>\n"
    elif system:
        out = f"<|im_start|>system\n{system}<|im_end|>\n"
    for m in rest:
        if m["role"] == "tool":
            out += f"<|im_start|>user\n<tool_response>\n{m['content']}\n</tool_response><|im_end|>\n"
        elif m.get("tool_calls"):
            f = m["tool_calls"][0]["function"]
            out += "<|im_start|>assistant\n" + toolbox.call_text(f["name"], json.loads(f["arguments"])) + "<|im_end|>\n"
        else:
            out += f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n"
    return out + "<|im_start|>assistant\n"


class File:
    def __init__(self, path):
        import infer
        self.model = infer.Reference(path)

    def chat(self, conversations, tools=None):
        texts = [chatml(m, tools[i] if tools else None) for i, m in enumerate(conversations)]
        return [Reply(a.text, a.ended, a.gap) for a in self.model.greedy(texts, MAX_TOKENS)]


class Server:
    def __init__(self, url, parallel):
        self.url, self.pool = url.rstrip("/"), concurrent.futures.ThreadPoolExecutor(parallel)

    def one(self, messages, tools):
        body = {"messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS}
        if tools:
            body["tools"] = [t.schema for t in tools]
        request = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as r:
            choice = json.load(r)["choices"][0]
        message = choice["message"]
        text = message.get("content") or ""
        for call in message.get("tool_calls") or []:
            f = call["function"]
            text += toolbox.call_text(f["name"], json.loads(f["arguments"]))
        return Reply(text, choice["finish_reason"] in ("stop", "tool_calls"))

    def chat(self, conversations, tools=None):
        return list(self.pool.map(self.one, conversations, tools or [None] * len(conversations)))


# ---- tasks ---------------------------------------------------------------------------------------------------------
class Score:
    def __init__(self, verbose):
        self.rows, self.ended, self.asked, self.verbose = [], 0, 0, verbose

    def add(self, task, prompts, replies, right):
        good = [bool(r) for r in right]
        self.rows.append((task, sum(good), len(good)))
        self.ended, self.asked = self.ended + sum(r.ended for r in replies), self.asked + len(replies)
        print(f"{task:34s} {sum(good):4d} of {len(good):4d}  {100 * sum(good) / len(good):5.1f} %", flush=True)
        for p, r, g in zip(prompts, replies, good):
            if self.verbose and not g:
                print(f"    {p!r} -> {r.text[:160]!r}")


def user(text, system=None):
    return ([{"role": "system", "content": system}] if system else []) + [{"role": "user", "content": text}]


def singles(who, score, task, pairs, same=lambda got, want: got == want):
    replies = who.chat([user(q) for q, _ in pairs])
    score.add(task, [q for q, _ in pairs], replies, [same(r.text, want) for r, (_, want) in zip(replies, pairs)])


def facts(who, score, rng):
    trained = []
    for f in FACTS:
        trained.append((end_mark(rng, upper_first(expand(rng, rng.choice(f.questions)))), f.answer))
        if f.topics:
            topic = f.topics[0]
            trained.append((f"{'What is' if not topic.endswith('s') else 'What are'} {topic}?", f.answer))
    singles(who, score, "facts, trained phrasings", trained)
    answer = lambda start: next(f.answer for f in FACTS if f.answer.startswith(start))
    singles(who, score, "facts, unseen phrasings (a)", [(a, answer(k)) for k, a, _ in held.UNSEEN_FACTS])
    singles(who, score, "facts, unseen phrasings (b)", [(b, answer(k)) for k, _, b in held.UNSEEN_FACTS])


def sequences(who, score, rng, n=150):
    singles(who, score, "sequences, trained phrasings", [skills.sequence(rng)[0] for _ in range(n)])
    pairs = []
    while len(pairs) < n:
        kind = rng.choice(["after", "before", "continue", "continue"])
        if kind == "continue":
            q, a = skills.continued(rng)[0]
            shown = re.sub(r"^[^:?]*[:?] ", "", q).strip(" ,.?")
            if not re.fullmatch(r"(\w+, )+\w+", shown):
                continue
            pairs.append((rng.choice(held.SEQUENCE_WORDINGS[kind]).format(shown), a))
        else:
            items, single, _, _, ring = rng.choice(skills.SEQS)
            i, d = rng.randrange(len(items)), 1 if kind == "after" else -1
            if ring or 0 <= i + d < len(items):
                pairs.append((rng.choice(held.SEQUENCE_WORDINGS[kind]).format(items[i], single),
                              f"{upper_first(items[(i + d) % len(items)])} comes {kind} {items[i]}."))
    singles(who, score, "sequences, unseen wordings", pairs)
    singles(who, score, "counting", [skills.easy_counting(rng)[0] for _ in range(n)])
    singles(who, score, "capitals", [skills.capital(rng)[0] for _ in range(60)])
    singles(who, score, "repeating words", [skills.repeat(rng)[0] for _ in range(60)])


def valid_json(text, _=None):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


def json_tasks(who, score, rng, n=150):
    pairs = [skills.json_task(rng)[0] for _ in range(n)]
    singles(who, score, "JSON is valid", pairs, valid_json)
    new = []
    for _ in range(60):
        o = rng.choice([{"name": rng.choice(held.NEW_NAMES), "city": rng.choice(held.NEW_CITIES)},
                        {"name": rng.choice(held.NEW_NAMES), "age": rng.randint(18, 80)},
                        {"city": rng.choice(held.NEW_CITIES), "people": rng.randint(1, 900) * 1000},
                        {"color": rng.choice(pools.COLORS), "animal": rng.choice(pools.ANIMALS)}])
        new.append((rng.choice(["Give me a JSON object with {}.", "Make JSON with {}.",
                                "Write JSON with {}."]).format(" and ".join(f"{k} {v}" for k, v in o.items())),
                                skills.J(o)))
    singles(who, score, "JSON with new names, exact", new)


def tool_calls(who, score, rng, n=150):
    sets, asked, wanted = [], [], []
    for _ in range(n):
        tools = toolbox.toolset(rng, rng.randint(1, 5))
        tool = rng.choice(tools)
        with_pools(lambda: asked.append(tool.use(rng)))
        sets.append(tools)
        wanted.append(tool)
    prompts = [a[0] for a in asked]
    replies = who.chat([user(p) for p in prompts], sets)
    score.add("tool call, well formed, right tool", prompts, replies,
              [well_formed(r.text, t) for r, t in zip(replies, wanted)])
    score.rows.append(("tool call, arguments exact", sum(r.text == a[1] for r, a in zip(replies, asked)), n))
    print(f"{'tool call, arguments exact':34s} {score.rows[-1][1]:4d} of {n:4d}")
    for r, a in zip(replies, asked):
        if score.verbose and r.text != a[1]:
            print(f"    {a[0]!r} -> {r.text!r} instead of {a[1]!r}")
    again = []
    for (q, call, result, _), tool in zip(asked, wanted):
        f = json.loads(call.split("\n")[1])
        again.append(user(q) + [{"role": "assistant", "content": "",
                                 "tool_calls": [{"id": "c1", "type": "function",
                                                 "function": {"name": f["name"],
                                                              "arguments": json.dumps(f["arguments"])}}]},
                                {"role": "tool", "tool_call_id": "c1", "content": result}])
    replies = who.chat(again, sets)
    score.add("answer after the tool result", prompts, replies, [r.text == a[3] for r, a in zip(replies, asked)])
    idle = [q for _, q in held.UNSEEN_SMALL] + [a for _, a, _ in held.UNSEEN_FACTS] + held.UNSEEN_REFUSALS[:30]
    rng.shuffle(idle)
    idle = idle[:n]
    replies = who.chat([user(q) for q in idle], [toolbox.toolset(rng, rng.randint(1, 5)) for _ in idle])
    score.add("no tool call when none fits", idle, replies, ["<tool_call>" not in r.text
                                                             and '"arguments"' not in r.text for r in replies])


def with_pools(action):
    """Runs with the held-out names and cities in place of the pools that the corpus was made from."""
    saved = pools.name, pools.city
    pools.name, pools.city = (lambda rng: rng.choice(held.NEW_NAMES)), (lambda rng: rng.choice(held.NEW_CITIES))
    try:
        return action()
    finally:
        pools.name, pools.city = saved


def well_formed(text, tool):
    m = re.fullmatch(r"<tool_call>\n(.*)\n</tool_call>", text)
    if not m or not valid_json(m.group(1)):
        return False
    call = json.loads(m.group(1))
    return set(call) == {"name", "arguments"} and call["name"] == tool.name and list(call["arguments"]) == tool.keys


def memory(who, score, rng, n=60):
    """Name and city in the first turns, other talk up to the fifth, then both questions. All answers are the model's
    own."""
    scripts = []
    for _ in range(n):
        name, city = rng.choice(held.NEW_NAMES + pools.NAMES[:20]), rng.choice(held.NEW_CITIES + pools.CITIES[:20])
        turns = [rng.choice([f"My name is {name}.", f"Hello, I am {name}.", f"Hi, my name is {name}."]),
                 rng.choice([f"I live in {city}.", f"I come from {city}."])]
        turns += rng.sample(held.FILLER_FOR_MEMORY, 3) + [rng.choice(held.MEMORY_QUESTIONS["name"]),
                                                          rng.choice(held.MEMORY_QUESTIONS["city"])]
        scripts.append((name, city, turns))
    chats = [[] for _ in scripts]
    heard = []
    for t in range(7):
        for c, s in zip(chats, scripts):
            c.append({"role": "user", "content": s[2][t]})
        heard.append(who.chat(chats))
        for c, r in zip(chats, heard[-1]):
            c.append({"role": "assistant", "content": r.text})
    score.add("memory over five turns: name", [s[0] for s in scripts], heard[5],
              [s[0] in r.text for r, s in zip(heard[5], scripts)])
    score.add("memory over five turns: city", [s[1] for s in scripts], heard[6],
              [s[1] in r.text for r, s in zip(heard[6], scripts)])
    names = [rng.choice(held.NEW_NAMES) for _ in range(40)]
    replies = who.chat([user(rng.choice(["What is your name?", "Who are you?"]), f"You are {x}, a helpful assistant.")
                        for x in names])
    score.add("name from the system prompt", names, replies, [x in r.text for x, r in zip(names, replies)])


def long_prompts(who, score, rng, n=40):
    """One question about one note among many in a system prompt of several hundred to 1,500 tokens."""
    chats, wanted = [], []
    while len(chats) < n:
        messages = corpus.with_notes(rng, rng.randint(10, 45))
        if messages[2][1] not in messages[0][1] or messages[1][1].split()[0] not in ("What", "Where", "Who"):
            continue                                                    # a question about a fact, not about a note
        chats.append([{"role": role, "content": text} for role, text in messages[:2]])
        wanted.append(messages[2][1])
    replies = who.chat(chats)
    score.add("one note of a long prompt", wanted, replies, [r.text == w for r, w in zip(replies, wanted)])


def manners(who, score, rng):
    polite = (talk.REFUSE, talk.REFUSE_SUM, talk.REFUSE_NOW)
    singles(who, score, "refusal of unseen requests", [(q, None) for q in held.UNSEEN_REFUSALS], lambda got,
            _: got in polite)
    singles(who, score, "small talk, unseen phrasings", [(q, k) for k, q in held.UNSEEN_SMALL], lambda got,
            want: got.startswith(want))
    singles(who, score, "small talk, trained phrasings", [(upper_first(expand(rng, rng.choice(p))), a) for p,
                                                          a in talk.SMALL for _ in range(2)])
    singles(who, score, "long answers", [(upper_first(expand(rng, rng.choice(p))) + ".", a) for p,
                                         a in talk.LONG for _ in range(5)])


def overlap(path):
    """Held-out prompts that occur among the training prompts; must be none."""
    with open(path) as f:
        seen = set(f.read().split("\n"))
    return [q for q in held.unseen() if normal(q) in seen]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--gguf")
    ap.add_argument("--url")
    ap.add_argument("--prompts", help="prompts.txt, checked against the held-out prompts")
    ap.add_argument("--parallel", type=int, default=4, help="requests at once with --url")
    ap.add_argument("--seed", type=int, default=2026)
    ap.add_argument("--json", help="write the figures here")
    ap.add_argument("--only", default="", help="comma-separated names of the task functions")
    ap.add_argument("--verbose", action="store_true", help="show every wrong answer")
    a = ap.parse_args()
    if a.prompts:
        found = overlap(a.prompts)
        print(f"held-out prompts {len(held.unseen())}, found in the training data {len(found)} {found or ''}")
        if found:
            sys.exit(1)
    who, score = Server(a.url, a.parallel) if a.url else File(a.gguf), Score(a.verbose)
    for i, task in enumerate((facts, sequences, json_tasks, tool_calls, memory, long_prompts, manners)):
        if a.only and task.__name__ not in a.only.split(","):
            continue
        task(who, score, random.Random(a.seed + i))
    score.rows.append(("an end-of-turn token came", score.ended, score.asked))
    print(f"{'an end-of-turn token came':34s} {score.ended:4d} of {score.asked:4d}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({task: [good, n] for task, good, n in score.rows}, f, indent=1)


if __name__ == "__main__":
    main()
