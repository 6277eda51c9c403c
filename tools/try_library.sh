#!/usr/bin/env bash
# Is libchasqui.so good? Looks at its symbols and what it needs, and runs the examples with it, from C and from Python:
# tools/try_library.sh BUILD_FOLDER
set -euo pipefail
readonly build=$1
readonly source=$(cd "$(dirname "$0")/.." && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
fail() { echo "try_library: $*" >&2; exit 1; }

cmake --install "$build" --strip --prefix "$stage" --component library > /dev/null
library=$(find "$stage" -name 'libchasqui.so.1')
[ -n "$library" ] || fail "it is not installed"
lib=$(dirname "$library")
for file in "$stage/include/chasqui.h" "$lib/pkgconfig/chasqui.pc" "$lib/libchasqui.so"; do
  [ -e "$file" ] || fail "$file is not installed"
done

# What the header declares, and nothing else.
sed -n 's/^.*CHASQUI_API .*[ *]\(chasqui_[a-z_]*\)(.*/\1/p' "$stage/include/chasqui.h" | sort > "$stage/declared"
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort > "$stage/exported"
[ -s "$stage/declared" ] || fail "the header declares nothing"
diff "$stage/declared" "$stage/exported" || fail "its symbols are not those of the header"

readonly known='What is a slot.*, [1-9][0-9]* of them known.*Who are you.*, [1-9][0-9]* of them known'
check() { tr '\n' ' ' < "$stage/said" | grep -qE "$known" || fail "$1 said: $(cat "$stage/said")"; }
cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I "$stage/include" "$source/examples/session.c" -L "$lib" -lchasqui \
  -Wl,-rpath,"$lib" -o "$stage/session"
"$stage/session" > "$stage/said"
check "the example in C"
LIBCHASQUI=$library python3 "$source/examples/session.py" > "$stage/said"
check "the example in Python"
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' | tr '\n' ' ')
echo "$library: $(du -hL "$library" | cut -f1), $(wc -l < "$stage/exported") functions, works from C and Python; needs $needed"
