#!/usr/bin/env python3
"""All of this folder in a short form, in half an hour at most: `make bench`. What it finds goes to docs/performance:
bench.md, one table with date, processor, commit and commands; bench.svg, how much of libllama's own speed is left; and
bench.json, the figures, so that parts can be measured again.

    bench/suite.py [NAME …]          all of them by default, see --list

Settings: those of bench/paired.py, with ROUNDS=1 by default; BENCH_OUT (a folder other than docs/performance), MINUTES (30).
"""
import datetime
import html
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

import paired

OUT = paired.from_environment("BENCH_OUT", os.path.join(paired.ROOT, "docs/performance"))
MINUTES = float(paired.from_environment("MINUTES", "30"))
BIN = os.path.dirname(os.path.abspath(paired.CHASQUI))
DEMO = os.path.join(paired.ROOT, "models/demo/chasqui-demo.gguf")
SETTINGS = ["ROUNDS", "SIZE", "MODEL", "THREADS", "NEIGHBOUR", "OUR_ARGS", "PEER_ARGS"]  # those that change what is measured
SIDES = {"chasqui": "Chasqui", "llama-server": "llama-server", "raw_decode": "libllama alone"}


def models(name):
    return os.path.join(paired.ROOT, "build/models", name)


def equal_streams(path, *streams):
    return [f"MODEL={path}", "bench/equal_streams.py", *paired.sized([str(n) for n in streams], ["2"])]


# Name: the commands, in the order in which they are run. delivery_cost is the last, since its threads raise the load
# average that is told for the one after it.
BENCHES = {
    "start_up": [["bench/start_up.py"]],
    "equal_streams": [equal_streams(DEMO, 1, 64, 128), equal_streams(models("random-24m-f16.gguf"), 1, 64, 128),
                      equal_streams(models("random-0.5b-q4_0.gguf"), 1, 32),
                      equal_streams(models("random-1.1b-q4_k_m.gguf"), 1, 8)],
    "serving_cost": [["bench/serving_cost.py", *paired.sized(["64", "256"], [])]],
    "frames": [["bench/frames.py", "1"]],
    "mixed_answers": [["bench/mixed_answers.py"]],
    "crowd": [["bench/crowd.py"]],
    "shared_prefix": [["bench/shared_prefix.py"]],
    "long_prompts": [["bench/long_prompts.py"]],
    "embeddings": [["bench/embeddings.py"]],
    "pictures": [["bench/pictures.py"]],
    "never_twice": [["bench/never_twice.py"]],
    "architectures": [["bench/architectures.py"]],
    "profile": [["bench/profile.py", *paired.sized(["1", "64"], ["1"])]],
    "speculation": [["bench/speculation.py", *paired.sized([], ["1"])]],
    "idle_streams": [["bench/idle_streams.py", *paired.sized(["10000"], ["200"])]],
    "record_cost": [["bench/record_cost.py", *paired.sized([], ["--rounds", "1", "--requests", "20"])]],
    "delivery_cost": [[os.path.join(BIN, "delivery_cost"), *paired.sized([], ["5", "1"])]],
}


def said(command, fallback="unknown"):
    try:
        done = subprocess.run(command, cwd=paired.ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True)
        return done.stdout.strip() or fallback
    except (OSError, subprocess.CalledProcessError):
        return fallback


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = re.findall(r"^model name\s*: (.*)$", file.read(), re.M)
    return f"{len(os.sched_getaffinity(0))} cores of {names[0] if names else 'an unknown processor'}"


def commit():
    changed = said(["git", "status", "--porcelain", "--untracked-files=no", "--", "src", "cmake", "third_party"], "")
    return said(["git", "rev-parse", "--short=10", "HEAD"]) + (" and changes" if changed else "")


def from_table(text):
    """The figures of a table in Markdown: what is no number in a row is its name."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    figures = {}
    for row in rows[2:]:
        numbers = {i: float(cell) for i, cell in enumerate(row) if i > 0 and re.fullmatch(r"[\d.]+", cell)}
        name = ", ".join(f"{row[i]} {rows[0][i]}" if i == 0 else row[i] for i in range(len(row)) if i not in numbers)
        for i, value in numbers.items():
            if "p99" not in rows[0][i]:
                figures[f"{name}: {rows[0][i]}"] = {"chasqui": value}
    return figures


def shown(command):
    """As a user would type it in the root of the repository."""
    words = [os.path.relpath(word, paired.ROOT) if word.startswith(paired.ROOT + "/") else word for word in command]
    words = [re.sub("=" + re.escape(paired.ROOT) + "/", "=", word) for word in words]
    return " ".join(word if re.fullmatch(r"[\w./=-]+", word) else
                    re.sub(r"^(\w+=)?(.*)$", lambda m: (m[1] or "") + shlex.quote(m[2]), word) for word in words)


def run(command, limit_s):
    """The records of one command; none when it failed, which is said."""
    settings = [word for word in command if re.match(r"[A-Z_]+=", word)]
    words = command[len(settings):]
    if words[0].endswith(".py"):
        words = [sys.executable, os.path.join(paired.ROOT, words[0]), *words[1:]]
    print(f"== {shown(command)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record")
        environment = {**os.environ, **dict(word.split("=", 1) for word in settings), "BENCH_RECORD": record}
        process = subprocess.Popen(words, cwd=paired.ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            text, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.terminate()  # its servers go with it
            text, _ = process.communicate()
            print(text + "== the time is over", flush=True)
            return None
        print(text, flush=True)
        if process.returncode != 0:
            print(f"== exit status {process.returncode}", flush=True)
            return None
        if not os.path.exists(record):
            return [{"title": "", "figures": from_table(text)}]
        with open(record, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def peer():
    """What llama-server says of itself."""
    if not paired.LLAMA_SERVER:
        return ""
    done = subprocess.run([paired.LLAMA_SERVER, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    found = re.search(r"version: *(.*)", done.stdout)
    return found[1] if found else "unknown"


def measure(name, end):
    """All commands of one bench; none when one failed."""
    given = [f"{key}={os.environ[key]}" for key in SETTINGS if os.environ.get(key)]
    entry = {"date": datetime.date.today().isoformat(), "commit": commit(), "processor": processor(), "peer": peer(),
             "load": round(os.getloadavg()[0], 2), "commands": [shown(given + each) for each in BENCHES[name]],
             "records": []}
    for command in BENCHES[name]:
        records = run(command, max(1, end - time.monotonic()))
        if records is None:
            return None
        entry["records"] += records
    return entry


def number(value):
    if value is None:
        return ""
    if value == int(value) and abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def table(results):
    """The page: what was measured, where and how, and the figures."""
    lines = ["# What `make bench` measured", "",
             "Made by `bench/suite.py`; a part is measured again by `make bench BENCH=name`. "
             "[performance.md](../performance.md) says what to expect and how to measure.", "",
             "| | date | commit | llama-server | on | load before | commands |", "|---|---|---|---|---|---:|---|"]
    for name, entry in results.items():
        commands = "<br>".join(f"`{each}`" for each in entry["commands"])
        facts = [name, *(str(entry[key]) for key in ("date", "commit", "peer", "processor", "load")), commands]
        lines.append("| " + " | ".join(facts) + " |")
    lines += ["", "| | | " + " | ".join(SIDES.values()) + " |", "|---|---|" + "---:|" * len(SIDES)]
    for name, entry in results.items():
        for record in entry["records"]:
            titles = ": ".join(filter(None, [name, record["title"]]))
            for what, values in record["figures"].items():
                cells = " | ".join(number(values.get(side)) for side in SIDES)
                lines.append(f"| {titles} | {what} | {cells} |")
    if shares(results):
        lines += ["", "![The share of libllama's own speed](bench.svg)"]
    return "\n".join(lines) + "\n"


def shares(results):
    """[(what, {side: the share of libllama's speed})]"""
    found = []
    for record in results.get("equal_streams", {}).get("records", []):
        values = record["figures"].get("share of raw", {})
        if any(values.get(side) is not None for side in SIDES):
            title = re.sub(r" equal streams of \d+ tokens", " streams", record["title"])
            found.append((title, values))
    return found


def plot(results):
    """Bars of shares, as SVG; the line is libllama alone."""
    rows = shares(results)
    left, wide, bar, gap, top = 300, 420, 14, 14, 50
    sides = [side for side in SIDES if any(values.get(side) is not None for _, values in rows)]
    colors = {"chasqui": "#2b6cb0", "llama-server": "#a0aec0"}
    most = max([1.1] + [values[side] for _, values in rows for side in sides if values.get(side) is not None])
    height = top + len(rows) * (len(sides) * bar + gap) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 70}" height="{height}" font-family="sans-serif" '
           'font-size="12">', f'<rect width="{left + wide + 70}" height="{height}" fill="white"/>']
    x = 10
    for side in sides:
        out.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{colors[side]}"/>'
                   f'<text x="{x + 18}" y="22">{SIDES[side]}</text>')
        x += 130
    out.append(f'<text x="{x}" y="22">tokens/s, prompts included, over libllama alone</text>')
    y = top
    for title, values in rows:
        out.append(f'<text x="{left - 8}" y="{y + len(sides) * bar / 2 + 4}" text-anchor="end">{html.escape(title)}</text>')
        for side in sides:
            value = values.get(side)
            if value is not None:
                length = wide * value / most
                out.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 2}" fill="{colors[side]}"/>'
                           f'<text x="{left + length + 5:.1f}" y="{y + bar - 4}">{value:.2f}</text>')
            y += bar
        y += gap
    one = left + wide / most
    out.append(f'<line x1="{one:.1f}" y1="{top - 10}" x2="{one:.1f}" y2="{y}" stroke="#c53030" stroke-dasharray="4 3"/>'
               f'<text x="{one:.1f}" y="{y + 14}" text-anchor="middle">1</text></svg>')
    return "\n".join(out) + "\n"


def write(name, text):
    path = os.path.join(OUT, name)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".part", path)


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(BENCHES))
        return
    wanted = [name for word in sys.argv[1:] for name in re.split(r"[, ]+", word) if name] or list(BENCHES)
    for name in wanted:
        if name not in BENCHES:
            sys.exit(f"{name}: no such bench; there are {', '.join(BENCHES)}")
    os.environ.setdefault("ROUNDS", "1")
    os.makedirs(OUT, exist_ok=True)
    before = os.path.join(OUT, "bench.json")
    results = {}
    if os.path.exists(before):
        with open(before, encoding="utf-8") as file:
            results = json.load(file)
    if os.getloadavg()[0] > 0.5:
        print(f"The load average is {os.getloadavg()[0]:.2f}: something else runs, and figures will show it.", flush=True)
    end = time.monotonic() + MINUTES * 60
    missing = []
    for name in wanted:
        entry = measure(name, end) if time.monotonic() < end else None
        if entry is None:
            missing.append(name)
            continue
        results[name] = entry
        results = {each: results[each] for each in BENCHES if each in results}
        # After each, so that nothing is lost when it is interrupted.
        write("bench.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        write("bench.md", table(results))
        if shares(results):
            write("bench.svg", plot(results))
    print(f"{len(wanted) - len(missing)} of {len(wanted)} measured: {OUT}/bench.md")
    if missing:
        sys.exit(f"not measured, since they failed or {MINUTES:g} minutes were over: {', '.join(missing)}")


if __name__ == "__main__":
    main()
