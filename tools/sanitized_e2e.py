#!/usr/bin/env python3
"""Runs a part of the end-to-end tests against a server under AddressSanitizer and UndefinedBehaviorSanitizer:
tools/sanitized_e2e.py [--part N] [--parts M] [--seconds S] [--binary FILE]. Without --part, parts take turns with the
commits, so that a few of them cover all tests. What ran is printed.

Exit status 1 when a sanitizer reported something. Tests that only fail are printed and do not count: a sanitized server
is several times slower and larger, and some tests are about time and memory.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
E2E = os.path.join(ROOT, "tests/e2e")
FILE_SECONDS_MAX = 300  # of one file of tests
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:log_path={}",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:log_path={}",
    "LSAN_OPTIONS": f"print_suppressions=0:suppressions={ROOT}/tools/lsan.supp",
}


def current_part(parts):
    count = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    return int(count.stdout.strip() or 0) % parts


def run_file(path, binary, log, seconds):
    environment = {**os.environ, "CHASQUI_BIN": binary}
    environment.update({name: options.format(log) for name, options in SANITIZERS.items()})
    begun = time.monotonic()
    try:
        done = subprocess.run(["node", "--test", path], cwd=E2E, env=environment, text=True, timeout=seconds,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        output, ended = done.stdout, "ended"
    except subprocess.TimeoutExpired as expired:
        output, ended = (expired.stdout or b"").decode(errors="replace"), "was cut off"
    counts = {what: int((re.findall(rf"^# {what} (\d+)$", output, re.M) or ["0"])[-1]) for what in ("pass", "fail")}
    failed = re.findall(r"^\s*not ok \d+ - (.*)$", output, re.M)
    print(f"  {os.path.basename(path):<34} {ended} after {time.monotonic() - begun:.0f} s: "
          f"{counts['pass']} passed, {counts['fail']} failed", flush=True)
    for name in failed[:10]:
        print(f"    failed, which does not count: {name}")


def tell_reports(folder):
    reports = sorted(glob.glob(f"{folder}/report.*"))
    for path in reports:
        with open(path, encoding="utf-8", errors="replace") as file:
            print(f"{os.path.basename(path)}:\n{file.read()[:6000]}", flush=True)
    return len(reports)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--part", type=int, help="which part; by the number of commits")
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=900, help="no file of tests is begun after them")
    parser.add_argument("--binary", default=os.path.join(ROOT, "build/asan/bin/chasqui"))
    arguments = parser.parse_args()
    part = (arguments.part if arguments.part is not None else current_part(arguments.parts)) % arguments.parts
    files = sorted(glob.glob(f"{E2E}/*.test.mjs"))[part::arguments.parts]
    print(f"sanitized e2e: part {part} of {arguments.parts} (0 to {arguments.parts - 1}), {len(files)} files", flush=True)
    end = time.monotonic() + arguments.seconds
    left_out = []
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            if time.monotonic() >= end:
                left_out.append(os.path.basename(path))
                continue
            run_file(path, os.path.abspath(arguments.binary), f"{folder}/report", FILE_SECONDS_MAX)
        reports = tell_reports(folder)
    if left_out:
        print(f"  no time left for {', '.join(left_out)}")
    print(f"sanitized e2e: {reports} reports of sanitizers")
    return 1 if reports else 0


if __name__ == "__main__":
    sys.exit(main())
