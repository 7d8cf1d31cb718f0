// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
)

// benchCallers are one caller, who sees latency, and many, who see throughput.
var benchCallers = []int{1, 64}

// BenchmarkAppend reports the median and the rate of signed, durable and
// integrated records, with an entry of about 1.5 KB.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range benchCallers {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := openLog(b, b.TempDir(), nil)
			measure(b, callers, func(ctx context.Context) error {
				_, err := l.Append(ctx, sampleRecord())
				return err
			})
		})
	}
}

// BenchmarkTessera is the storage alone with the same options and entry size:
// what the journal can be compared with.
func BenchmarkTessera(b *testing.B) {
	for _, callers := range benchCallers {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			skey, _, err := note.GenerateKey(nil, "bench")
			if err != nil {
				b.Fatal(err)
			}
			signer, err := note.NewSigner(skey)
			if err != nil {
				b.Fatal(err)
			}
			driver, err := posix.New(ctx, posix.Config{Path: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			appender, shutdown, _, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
				WithCheckpointSigner(signer).WithBatching(256, 5*time.Millisecond).WithCheckpointInterval(100*time.Millisecond))
			if err != nil {
				b.Fatal(err)
			}
			entry := []byte(strings.Repeat("x", 1500))
			measure(b, callers, func(ctx context.Context) error {
				_, err := appender.Add(ctx, tessera.NewEntry(entry))()
				return err
			})
			if err := shutdown(ctx); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func measure(b *testing.B, callers int, one func(context.Context) error) {
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	work := make(chan struct{})
	for range callers {
		wg.Go(func() {
			for range work {
				start := time.Now()
				if err := one(b.Context()); err != nil {
					b.Error(err)
				}
				d := time.Since(start)
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	b.ResetTimer()
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
