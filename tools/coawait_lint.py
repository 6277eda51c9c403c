#!/usr/bin/env python3
"""Finds co_await expressions that g++ 12 miscompiles: it destroys some temporaries of a full expression with co_await
twice. The bad ones are temporaries with a destructor that are made by a braced list (aggregates), by a lambda
(capturing closures) or by `?:`. Reads clang 14's syntax tree, so it sees through types that a text search cannot.

    tools/coawait_lint.py -p BUILD [FILE…]   checks the files of BUILD/compile_commands.json, or only FILE…
    tools/coawait_lint.py --self-test        checks the checker

Prints `file:line: message` for each finding. Exit status: 0 nothing found, 1 findings, 2 a file does not compile.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

CLANG = os.environ.get("CLANG", "clang++-14")
NAMESPACE = "chasqui::"
ROOT = pathlib.Path(__file__).resolve().parent.parent

MESSAGES = {
    "InitListExpr": "aggregate temporary beside co_await: give it a name and std::move it, or its type a constructor",
    "LambdaExpr": "capturing closure beside co_await: give it a name and std::move it",
    "ConditionalOperator": "co_await inside ?: of class type: use if and else",
}
AGGREGATE_WITH_AWAIT = "co_await inside a braced list of class type: await into a variable first"

# Wrappers between a temporary and the expression that makes it.
TRANSPARENT = {"CXXFunctionalCastExpr", "ImplicitCastExpr", "ParenExpr", "CXXStdInitializerListExpr", "ConstantExpr",
               "MaterializeTemporaryExpr", "CXXStaticCastExpr"}
SCALAR = re.compile(r"(const |volatile )*((un)?signed|int|long|short|char\d*_t|char|bool|float|double|void|wchar_t|enum|"
                    r"std::size_t|std::u?int\d+_t|__int128)\b|.*[*&\]]$")


class Tree:
    """One dump of clang's. Positions are printed only where they differ from the one printed before, so they are
    filled in while the JSON is read, which happens in the order in which they were printed."""

    def __init__(self, text):
        self.file, self.line = "", 0
        self.decls = []
        decoder = json.JSONDecoder(object_hook=self.fill_in)
        for start in re.finditer(r"^\{$", text, re.M):
            self.file, self.line = "", 0
            self.decls.append(decoder.raw_decode(text, start.start())[0])

    def fill_in(self, node):
        if "offset" in node and "tokLen" in node:
            self.file = node.get("file", self.file)
            self.line = node.get("line", self.line)
            node["file"], node["line"] = self.file, self.line
        return node


def position(node):
    begin = node.get("range", {}).get("begin", {})
    begin = begin.get("expansionLoc", begin)
    return begin.get("file", ""), begin.get("line", 0)


def children(node):
    """Of a co_await only its operand: the rest repeats it, once for each of await_ready, _suspend and _resume."""
    inner = [child for child in node.get("inner", ()) if child.get("kind")]
    return inner[:1] if node["kind"] == "CoawaitExpr" else inner


def has_await(node):
    if node["kind"] == "LambdaExpr":
        return False
    return node["kind"] == "CoawaitExpr" or any(has_await(child) for child in children(node))


def maker(node):
    """The expression that makes this temporary."""
    while node["kind"] in TRANSPARENT | {"CXXBindTemporaryExpr"} and len(children(node)) == 1:
        node = children(node)[0]
    return node


def is_class(node):
    kind = node.get("type", {})
    return not SCALAR.match(kind.get("desugaredQualType", kind.get("qualType", "int")))


def scan(node, found):
    """`node` is inside a full expression with co_await."""
    kind = node["kind"]
    if kind == "LambdaExpr":
        return
    if kind == "CXXBindTemporaryExpr":  # only temporaries whose destructor does something have this node
        made = maker(node)
        if made["kind"] in ("InitListExpr", "LambdaExpr"):
            found.add((*position(made), MESSAGES[made["kind"]]))
    if kind == "ConditionalOperator" and is_class(node) and has_await(node):
        found.add((*position(node), MESSAGES[kind]))
    if kind == "InitListExpr" and is_class(node) and has_await(node):
        found.add((*position(node), AGGREGATE_WITH_AWAIT))
    for child in children(node):
        scan(child, found)


def walk(node, found):
    if node["kind"] == "ExprWithCleanups" and has_await(node):
        scan(node, found)
    for child in children(node):
        walk(child, found)


def dump(flags, file, name_filter):
    command = [CLANG, "-fsyntax-only", "-w", *flags, "-Xclang", "-ast-dump=json"]
    if name_filter:
        command += ["-Xclang", "-ast-dump-filter=" + name_filter]
    return subprocess.run([*command, str(file)], capture_output=True, text=True)


def check(flags, file, name_filter=NAMESPACE):
    """Findings in this file and in the headers it includes, or None when it does not compile."""
    result = dump(flags, file, name_filter)
    if result.returncode != 0:
        print(result.stderr, file=sys.stderr)
        return None
    found = set()
    for decl in Tree(result.stdout).decls:
        walk(decl, found)
    return found


def usable_flags(command):
    """Of g++'s command line what says how to read the source."""
    arguments, flags = iter(shlex.split(command)), []
    for argument in arguments:
        if argument in ("-isystem", "-I", "-D", "-include", "-iquote"):
            flags += [argument, next(arguments)]
        elif argument.startswith(("-I", "-D", "-U", "-std=")):
            flags.append(argument)
    return flags


def work_list(build, files):
    wanted = {os.path.realpath(file) for file in files}
    entries = {}
    for entry in json.loads((pathlib.Path(build) / "compile_commands.json").read_text()):
        path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        if path in wanted or (not wanted and ROOT / "src" in pathlib.Path(path).parents):
            entries[path] = usable_flags(entry["command"])
    for file in sorted(wanted - entries.keys()):
        print(f"{file}: not in {build}/compile_commands.json", file=sys.stderr)
    # A file that never awaits has no such expression; those of headers are seen through the files that use them.
    awaiting = {path: flags for path, flags in entries.items() if "co_await" in pathlib.Path(path).read_text()}
    return awaiting, wanted <= entries.keys()


def check_build(build, files):
    work, complete = work_list(build, files)
    with concurrent.futures.ProcessPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        results = list(pool.map(check, work.values(), work.keys()))
    found = set().union(*(result for result in results if result))
    ours = sorted({(os.path.realpath(file), line, message) for file, line, message in found})
    for file, line, message in ours:
        print(f"{os.path.relpath(file)}:{line}: {message}")
    if None in results or not complete:
        return 2
    return 1 if ours else 0


SELF_TEST = r"""
#include <coroutine>
#include <functional>
#include <string>
#include <utility>
template <class T> struct Task {
  struct promise_type {
    Task get_return_object(); std::suspend_never initial_suspend(); std::suspend_never final_suspend() noexcept;
    template <class U> void return_value(U&&); void unhandled_exception();
  };
  ~Task(); bool await_ready(); void await_suspend(std::coroutine_handle<>); T await_resume();
};
struct Agg { int a; std::string b; };
struct Opts { std::string name = "x"; int n = 3; };
struct Plain { int a, b; };
struct Made { Made(int, std::string); std::string b; };
Task<int> take(Agg); Task<int> opts(Opts); Task<int> plain(Plain); Task<int> made(Made);
Task<int> call(std::function<void()>); Task<int> text(std::string); Task<std::string> str();
template <class F> Task<int> run(F) { co_return 1; }
Task<int> cases(std::string s, bool c) {
  co_await take(Agg{1, s});                               // BAD
  co_await take({1, s});                                  // BAD
  int a = co_await run([s] { return s; });                // BAD
  co_await call([p = std::move(s)] {});                   // BAD
  co_await opts({});                                      // BAD
  co_await opts(Opts{});                                  // BAD
  std::string t = c ? co_await str() : std::string();     // BAD
  Agg z{co_await str() == "x", s};                        // BAD
  if (co_await take(Agg{1, s}) > 1) a += 1;               // BAD
  while (co_await text(Agg{1, s}.b) > 1) a += 2;          // BAD
  Agg named{1, s};
  co_await take(std::move(named));
  auto closure = [s] { return s; };
  co_await run(std::move(closure));
  co_await run([&s] { return s; });
  co_await run([a] { return a; });
  co_await plain({1, 2});
  co_await made({1, s});
  co_await text(s + "x");
  int n = c ? co_await text("a") : 0;
  int m{co_await text("a")};
  auto nested = [](std::string v) -> Task<int> { co_return co_await take({2, v}); };  // BAD
  co_return Agg{a + n + m, t};
}
"""


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "cases.cpp"
        file.write_text(SELF_TEST)
        found = check(["-std=c++20"], file, name_filter="cases")
    if found is None:
        return 2
    lines = {line for _, line, _ in found}
    expected = {number for number, line in enumerate(SELF_TEST.splitlines(), 1) if line.endswith("// BAD")}
    for number in sorted(expected - lines):
        print(f"not found: {SELF_TEST.splitlines()[number - 1]}")
    for number in sorted(lines - expected):
        print(f"found, but harmless: {SELF_TEST.splitlines()[number - 1]}")
    return 0 if lines == expected else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-p", metavar="BUILD", dest="build")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)
    if arguments.self_test:
        return self_test()
    if not arguments.build:
        parser.error("-p BUILD is needed")
    return check_build(arguments.build, arguments.files)


if __name__ == "__main__":
    sys.exit(main())
