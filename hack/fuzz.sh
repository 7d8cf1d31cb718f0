#!/usr/bin/env bash
# Copyright The Assent Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes every fuzz target of the module, each for the given time: Go fuzzes
# one target of one package at a time. Fails if there is none to fuzz.

set -euo pipefail
cd "$(dirname "$0")/.."

duration=${1:?usage: hack/fuzz.sh DURATION}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz FOLDER TARGET. Go sometimes reports its own time limit as a failure, when
# a worker is within an input as time ends. That is no finding: it names no
# input. Such a target is fuzzed once more.
fuzz() {
	for attempt in 1 2; do
		if go test -run '^$' -fuzz "^$2\$" -fuzzminimizetime 1x -fuzztime "$duration" "$1" 2>&1 | tee "$log"; then
			return 0
		fi
		if [ "$attempt" = 2 ] || grep -q 'Failing input' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
			return 1
		fi
	done
}

count=0
while read -r file; do
	while read -r target; do
		count=$((count + 1))
		echo "== $(dirname "$file") $target ($duration)"
		fuzz "$(dirname "$file")" "$target"
	done < <(grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | cut -d' ' -f2)
done < <(find . -path ./test/cluster -prune -o -name '*_test.go' -print | xargs grep -lE '^func Fuzz' | sort)

if [ "$count" -eq 0 ]; then
	echo "there is no fuzz target" >&2
	exit 1
fi
