#!/usr/bin/env python3
"""What --record costs: the processor time of one server for the same load, with and without it, in turns.

    bench/record_cost.py [--binary build/bin/chasqui] [--rounds 5] [--requests 400] [-- MORE FLAGS OF serve]

Prints the processor time of each run, the medians, and their ratio. Run it on a machine that does nothing else.
"""
import argparse
import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import tempfile
import urllib.request


def ask(url, number):
    body = {
        "messages": [{"role": "user", "content": f"Question {number % 7}: " + "What is a slot? " * (number % 40)}],
        "max_tokens": 16 + 8 * (number % 8), "temperature": 0, "ignore_eos": True, "seed": number,
    }
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)["usage"]["completion_tokens"]


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(binary, flags, requests, clients):
    command = [binary, "serve", "--port", "0", "-t", "1", "-np", "8", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        url = None
        for line in server.stdout:
            found = re.match(r"listening on (http\S+)", line)
            url = found.group(1) if found else url
            if line.startswith("serving "):
                break
        for number in range(16):
            ask(url, number)
        before = processor_seconds(server.pid)
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            tokens = sum(pool.map(lambda number: ask(url, number), range(requests)))
        used = processor_seconds(server.pid) - before
        server.terminate()
        return used, tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/bin/chasqui")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("flags", nargs="*", help="more flags of serve, after --")
    options = parser.parse_args()
    seconds = {"without": [], "with": []}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "record")
        for turn in range(options.rounds):
            for name, more in (("without", []), ("with", ["--record", path])):
                used, tokens = run(options.binary, [*more, *options.flags], options.requests, options.clients)
                seconds[name].append(used)
                print(f"round {turn + 1}, {name} --record: {used:.2f} s of processor time, {tokens} tokens", flush=True)
        size = os.path.getsize(path)
    without, with_it = (statistics.median(seconds[name]) for name in ("without", "with"))
    print(f"medians: {without:.2f} s without, {with_it:.2f} s with: {100 * (with_it / without - 1):+.2f} %; "
          f"the file has {size} bytes")


if __name__ == "__main__":
    main()
