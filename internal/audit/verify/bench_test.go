// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"runtime"
	"testing"

	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/verify"
)

// BenchmarkLog100k checks a log of 100,000 records. peak-MB is the largest live
// heap seen while it runs, above that before; it must not follow the log's size
// (about 150 MB).
func BenchmarkLog100k(b *testing.B) {
	const n = 100_000
	k := keys(b, 1)
	dir := writeLog(b, k, newBuilder(b, k).open("a").denials(n-1).out)
	src := verify.DirSource(dir)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak uint64
	for b.Loop() {
		report, err := verify.Log(b.Context(), src, verify.Options{Keys: k, Visit: func(index uint64, _ *audit.Entry) error {
			if index%10_000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc)
			}
			return nil
		}})
		if err != nil || !report.OK() || report.Verified != n {
			b.Fatal(report, err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric((float64(peak)-float64(before.HeapAlloc))/1e6, "peak-MB")
}
