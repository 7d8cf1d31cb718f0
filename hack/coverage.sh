#!/usr/bin/env bash
# Copyright The Assent Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Fails unless each package of tier 0 that decides about calls has all of its
# statements covered by its own tests.

set -euo pipefail
cd "$(dirname "$0")/.."

complete=(
	./snapshot
	./internal/contract ./internal/contract/scope ./internal/contract/clad ./internal/contract/lint
	./internal/policy ./internal/policy/cedartext
	./internal/attest
)
status=0
while read -r line; do
	echo "$line"
	case "$line" in
	*"coverage: 100.0% of statements"*) ;;
	*) status=1 ;;
	esac
done < <(go test -cover "${complete[@]}")
if [ "$status" -ne 0 ]; then
	echo "a package is not covered completely, or its tests fail" >&2
fi
exit "$status"
