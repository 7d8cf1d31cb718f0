#!/usr/bin/env bash
# Copyright The Assent Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes every fuzz target of the module, each for the given time: Go fuzzes
# one target of one package at a time. Fails if there is none to fuzz.

set -euo pipefail
cd "$(dirname "$0")/.."

duration=${1:?usage: hack/fuzz.sh DURATION}
count=0
while read -r file; do
	while read -r target; do
		count=$((count + 1))
		echo "== $(dirname "$file") $target ($duration)"
		go test -run '^$' -fuzz "^$target\$" -fuzzminimizetime 1x -fuzztime "$duration" "$(dirname "$file")"
	done < <(grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | cut -d' ' -f2)
done < <(find . -path ./test/cluster -prune -o -name '*_test.go' -print | xargs grep -lE '^func Fuzz' | sort)

if [ "$count" -eq 0 ]; then
	echo "there is no fuzz target" >&2
	exit 1
fi
