// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkPipeline/200B/pipeline-2     100   8000 ns/op   1.50 x-jcs
BenchmarkPipeline/200B/sha256-2       100    200 ns/op   0.03 x-jcs
BenchmarkPipeline/4KiB/pipeline-2     100   9000 ns/op   1.40 x-jcs
BenchmarkWorst/ones                   100   9000 ns/op
PASS
`

func TestRun_WritesRowsAndColumnsInOrder(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader(output), &out, "x-jcs"); err != nil {
		t.Fatal(err)
	}
	want := "| | pipeline | sha256 |\n|---|---|---|\n| 200B | 1.50 | 0.03 |\n| 4KiB | 1.40 |  |\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestRun_RefusesAFailedRunAndAnUnknownMetric(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader(output+"FAIL\n"), &out, "x-jcs"); err == nil {
		t.Error("a failed run has a table")
	}
	if err := run(strings.NewReader(output), &out, "parsecs"); err == nil {
		t.Error("an unknown metric has a table")
	}
	if out.Len() != 0 {
		t.Errorf("something was written: %s", out.String())
	}
}
