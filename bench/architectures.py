#!/usr/bin/env python3
"""What models whose memory cannot be cut (a sliding window, a state, or both) find again of a chat, and what that costs:
bench/architectures.py [turns|pieces|window]. Figures are printed with what is promised beside them; medians.
"""
import os
import statistics
import sys
import tempfile

import paired
from asking import ask, words

KINDS = {"full attention": "random-24m-f16", "sliding window": "random-swa", "hybrid": "random-hybrid",
         "recurrent": "random-recurrent"}

SAID = """
{%%- for message in messages -%%}
{{- '<|im_start|>' + message.role + '\\n' + %s + '<|im_end|>\\n' -}}
{%%- endfor -%%}"""
BEGINS = "{%%- if add_generation_prompt -%%}{{- '<|im_start|>assistant\\n%s' -}}{%%- endif -%%}"
TEMPLATES = {
    "plain": SAID % "message.content" + BEGINS % "",
    # Drops the reasoning of earlier turns, and begins the answer with some.
    "thinking": SAID % "message.content.split('</think>')[-1]" + BEGINS % "<think>\\n",
    # The tools belong to the system message, and calls are JSON.
    "tools": """{%- if tools -%}
{{- '<|im_start|>system\\n' + messages[0].content + '\\n# Tools\\n' + (tools | tojson) + '<|im_end|>\\n' -}}
{%- set messages = messages[1:] -%}{%- endif -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.content -%}{{- message.content -}}{%- endif -%}
{%- for call in message.tool_calls or [] -%}
{{- '<tool_call>\\n' + ({'name': call.function.name, 'arguments': call.function.arguments} | tojson) + '\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}""" + BEGINS % "",
}
TOOLS = [{"type": "function", "function": {
    "name": name, "description": words(20, name),
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}
    for name in ("read", "write")]
LONG = paired.sized(600, 120)  # words of the system prompt


def model_of(kind):
    return os.path.join(paired.ROOT, "build/models", f"{KINDS[kind]}.gguf")


def turn(kind_of_template, number):
    """What a client adds between two requests: the answer, which it has changed as clients do, and what comes next."""
    if kind_of_template == "tools":
        call = {"id": f"c{number}", "type": "function",
                "function": {"name": "read", "arguments": f'{{"path": "{words(3, number)}"}}'}}
        return [{"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{number}", "content": words(30, f"result {number}")}]
    return [{"role": "assistant", "content": f"<think>{words(15, f'thought {number}')}</think>{words(10, number)}"},
            {"role": "user", "content": words(30, f"user {number}")}]


def conversation(server, template):
    """Shares of the prompts that came from the cache: turns 2 to 4, the last one again, edited, and another chat with the
    same system prompt (of which the share is)."""
    fields = {"max_tokens": 4, "temperature": 0, **({"tools": TOOLS, "tool_choice": "none"} if template == "tools" else {})}

    def cached(messages):
        answer, _ = ask(server, "/v1/chat/completions", {"messages": messages, **fields})
        return answer["timings"]["cache_n"], answer["usage"]["prompt_tokens"]

    system = {"role": "system", "content": words(LONG, "system")}
    messages = [system, {"role": "user", "content": words(30, "first")}]
    cached(messages)
    found = {}
    for number in (2, 3, 4):
        messages += turn(template, number)
        found[f"turn {number}"] = cached(messages)
    found["again"] = cached(messages)
    if template == "tools":  # the last message is a tool's, which clients do not edit
        messages += [{"role": "assistant", "content": words(10, "done")}, {"role": "user", "content": words(30, "more")}]
        cached(messages)
    messages[-1] = {**messages[-1], "content": words(30, "edited")}
    found["edited"] = cached(messages)
    beginning, _ = ask(server, "/apply-template", {"messages": [system], "add_generation_prompt": False, **fields})
    tokens, _ = ask(server, "/tokenize", {"content": beginning["prompt"], "parse_special": True, "add_special": True})
    other = [system, {"role": "user", "content": words(30, "other")}]
    found["another chat"] = (cached(other)[0], len(tokens["tokens"]))
    return {what: known / of for what, (known, of) in found.items()}


def turns():
    """A chat of four turns, with default flags but for slots, cells and template."""
    promised = {"turn 2": .85, "turn 3": .85, "turn 4": .85, "again": .99, "edited": .85, "another chat": .9}
    print(f"{'':<34}" + "".join(f"{what:>20}" for what in promised) + "\n" + f"{'promised':<34}"
          + "".join(f"{least:>20}" for least in promised.values()))
    with tempfile.TemporaryDirectory(prefix="chasqui-bench-") as folder:
        for template, text in TEMPLATES.items():
            path = os.path.join(folder, template)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            for kind in KINDS:
                figures = {}
                for side in paired.sides():
                    with paired.Server(side, model_of(kind), 2, 8192, "--chat-template-file", path, "--jinja") as server:
                        for what, share in conversation(server, template).items():
                            figures.setdefault(what, {})[side] = round(share, 3)
                print(f"{kind + ', ' + template:<34}"
                      + "".join(f"{' : '.join(f'{v:.3f}' for v in sides.values()):>20}" for sides in figures.values()),
                      flush=True)
                paired.record(f"Shares of prompts that were not computed: {kind}, {template}", figures)


def pieces():
    """What it costs that prompts are read in pieces: seconds of prefill, and CPU seconds, with checkpoints and without, in
    turns."""
    for name in ("random-hybrid-0.35b-q4_0", "random-qwen35-0.8b-q4_0", "random-swa", "random-hybrid", "random-recurrent"):
        path = os.path.join(paired.ROOT, "build/models", f"{name}.gguf")
        if not os.path.exists(path):
            continue
        with paired.Server("chasqui", path, 1, 8192) as kept, \
                paired.Server("chasqui", path, 1, 8192, "--checkpoint-every", "0") as whole:
            for length in paired.sized((300, 1000, 3000), (100,)):
                times, cpu = ({kept: [], whole: []} for _ in range(2))
                for number in range(paired.sized(9, 1)):
                    messages = [{"role": "system", "content": words(length // 2, f"system {length} {number}")},
                                {"role": "user", "content": words(length // 2, f"user {length} {number}")}]
                    for server in (kept, whole) if number % 2 else (whole, kept):
                        answer, _ = ask(server, "/v1/chat/completions", {"messages": messages, "max_tokens": 1})
                        times[server].append(answer["timings"]["prompt_ms"])
                        cpu[server].append(answer["timings"]["cpu_ms"])
                    tokens = answer["usage"]["prompt_tokens"]
                ratios = sorted(a / b for a, b in zip(times[kept], times[whole]))
                of_cpu = statistics.median(a / b for a, b in zip(cpu[kept], cpu[whole]))
                told = f"{name}, {tokens} tokens: with checkpoints over without"
                print(f"  {told:<80}{statistics.median(ratios):>8.3f}   ≤ 1.02   (ms {statistics.median(times[whole]):.0f}; "
                      f"{ratios[len(ratios) // 4]:.3f} … {ratios[-1 - len(ratios) // 4]:.3f}; CPU {of_cpu:.3f})", flush=True)
                paired.record("Prompts in pieces", {told: {"chasqui": statistics.median(ratios)}})


MEASURES = {each.__name__: each for each in (turns, pieces)}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or MEASURES:
        if wanted not in MEASURES:
            sys.exit(f"{wanted}: no such measure; there are {', '.join(MEASURES)}")
        print(f"{wanted}: {MEASURES[wanted].__doc__}", flush=True)
        MEASURES[wanted]()
