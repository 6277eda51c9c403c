#!/usr/bin/env python3
"""Runs the commands of docs/promises.md and prints which promises were kept: tools/promises.py [P1 P2 …].

Exit status 1 when one was broken. Two short forms are for the commands themselves:
    tools/promises.py --e2e NAME …          the end-to-end tests of these names, one file after the other
    tools/promises.py --unit FOLDER FILTER  the unit tests of a folder of src, by gtest's filter
"""
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "build/promises")
ROW = re.compile(r"^\| (P\d+) \| (.+?) \| `(.+)` \|$")
COMMAND_LIMIT_S = 300


def promises():
    with open(os.path.join(ROOT, "docs/promises.md"), encoding="utf-8") as file:
        return [match.groups() for match in map(ROW.match, file.read().splitlines()) if match]


def check(name, text, command):
    """True when it was kept."""
    begun = time.monotonic()
    with open(os.path.join(OUT, f"{name}.log"), "w", encoding="utf-8") as log:
        log.write(f"{text}\n$ {command}\n")
        log.flush()
        try:
            done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=subprocess.STDOUT, timeout=COMMAND_LIMIT_S, check=False)
            kept = done.returncode == 0
        except subprocess.TimeoutExpired:
            log.write(f"\nended after {COMMAND_LIMIT_S} s\n")
            kept = False
    print(f"{name:<4} {'kept' if kept else 'BROKEN':<7} {time.monotonic() - begun:>5.0f} s   {text}", flush=True)
    if not kept:
        print(f"     see build/promises/{name}.log, or run: {command}", flush=True)
    return kept


def main(wanted):
    known = promises()
    unknown = set(wanted) - {name for name, _, _ in known}
    if unknown or not known:
        sys.exit(f"docs/promises.md has no {', '.join(sorted(unknown)) or 'promises'}")
    os.makedirs(OUT, exist_ok=True)
    if (busy := os.getloadavg()[0]) > 1:
        print(f"the load average is {busy:.1f}: figures (P1, P5, P7, P8) say little on a machine with other work")
    begun = time.monotonic()
    results = [check(*promise) for promise in known if not wanted or promise[0] in wanted]
    print(f"{sum(results)} of {len(results)} kept, in {time.monotonic() - begun:.0f} s")
    return 0 if all(results) else 1


def end_to_end(names):
    files = [f"{name}.test.mjs" for name in names]
    command = ["node", "--test", "--test-concurrency=1", "--test-reporter=spec", *files]
    return subprocess.run(command, cwd=os.path.join(ROOT, "tests/e2e"), check=False).returncode


def unit(folder, pattern):
    program = os.path.join(ROOT, "build/bin", f"test_{folder}")
    listed = subprocess.run([program, f"--gtest_filter={pattern}", "--gtest_list_tests"], stdout=subprocess.PIPE,
                            text=True, check=True)
    if not listed.stdout.strip():
        sys.exit(f"no unit test of {folder} is called {pattern}")
    return subprocess.run([program, f"--gtest_filter={pattern}"], check=False).returncode


if __name__ == "__main__":
    if sys.argv[1:2] == ["--e2e"]:
        sys.exit(end_to_end(sys.argv[2:]))
    if sys.argv[1:2] == ["--unit"]:
        sys.exit(unit(*sys.argv[2:4]))
    sys.exit(main(sys.argv[1:]))
