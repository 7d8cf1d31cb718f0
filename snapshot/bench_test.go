// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package snapshot_test

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	cyberphone "github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/gowebpki/jcs"

	"github.com/assent-dev/assent/snapshot"
)

// document is one input that all subjects are measured on.
type document struct {
	name string
	text string
}

// benchDocuments are three calls as a model would write them and the two shapes
// that cost most per byte, at the limit of elements.
func benchDocuments() []document {
	return []document{
		{"200B", smallCall},
		{"4KiB", call(4 << 10)},
		{"64KiB", call(64 << 10)},
		{"ones", list("1", snapshot.MaxValues)},
		{"empties", list("{}", snapshot.MaxValues)},
	}
}

const smallCall = `{"path": "/srv/data/report.txt", "mode": 420, "recursive": false, "ratio": 0.25, ` +
	`"note": "first line\nsecond line", "tags": ["daily", "größe"], "owner": {"uid": 1000, "name": "agent"}, "dry_run": true}`

// call returns a call of just under size bytes.
func call(size int) string {
	const (
		head  = `{"path": "/srv/data", "mode": 420, "recursive": true, "rate": 0.25, "items": [`
		tail  = `]}`
		entry = `{"name": "report-%d.txt", "note": "Größe \"%d\"\nand a second line of text, as people write them", ` +
			`"bytes": %d, "ratio": %d.5e-3, "tags": ["a", "b"]}`
	)
	var b strings.Builder
	b.WriteString(head)
	for i := 0; ; i++ {
		next := fmt.Sprintf(entry, i, i*7, i*104729, i)
		if i > 0 {
			next = ", " + next
		}
		if b.Len()+len(next)+len(tail) > size {
			break
		}
		b.WriteString(next)
	}
	b.WriteString(tail)
	return b.String()
}

// subject is something that is measured against one jcs.Transform.
type subject struct {
	name string
	run  func(text []byte) error
}

func byJCS(text []byte) error { _, err := jcs.Transform(text); return err }

// benchSubjects: the pipeline with and without a schema step, a stored text
// taken back, a view, and for comparison what other libraries need.
func benchSubjects() []subject {
	return []subject{
		{"pipeline", func(text []byte) error { _, err := snapshot.Prepare(string(text), nil); return err }},
		{"pipeline+schema", func(text []byte) error { _, err := snapshot.Prepare(string(text), asIs); return err }},
		{"decode", func(text []byte) error { _, err := snapshot.Decode(string(text)); return err }},
		{"jsontext", func(text []byte) error { _, err := formatCanonical(text); return err }},
		{"cyberphone", func(text []byte) error { _, err := cyberphone.Transform(text); return err }},
		{"sha256", func(text []byte) error { sha256.Sum256(text); return nil }},
	}
}

// BenchmarkPipeline reports ratios, because times say more about the machine.
// Each subject takes turns with jcs.Transform, so that whatever else the machine
// does slows both down alike, and what counts is the time of the processor. A
// turn is long enough for the garbage collector to run several times in it;
// otherwise chance decides who pays for it.
//
//	x-jcs      median of the ratio of the times
//	B/B-over   bytes allocated per byte of input, beyond jcs.Transform
func BenchmarkPipeline(b *testing.B) {
	for _, d := range benchDocuments() {
		for _, s := range benchSubjects() {
			b.Run(d.name+"/"+s.name, func(b *testing.B) { compare(b, []byte(d.text), s.run) })
		}
	}
}

func compare(b *testing.B, text []byte, run func([]byte) error) {
	turn := func(f func([]byte) error, rounds int) time.Duration {
		start := processTime(b)
		for range rounds {
			if err := f(text); err != nil {
				b.Fatal(err)
			}
		}
		return processTime(b) - start
	}
	const turnLength, trial = 10 * time.Millisecond, 20
	turn(run, trial) // warms up
	rounds := 1 + int(turnLength*trial/max(time.Microsecond, turn(byJCS, trial)))
	var ratios, times []float64
	for b.Loop() {
		own, other := turn(run, rounds), turn(byJCS, rounds)
		ratios = append(ratios, float64(own)/float64(other))
		times = append(times, float64(own.Nanoseconds())/float64(rounds))
	}
	beyond := float64(allocated(b, text, run)) - float64(allocated(b, text, byJCS))
	b.ReportMetric(median(times), "ns/op")
	b.ReportMetric(median(ratios), "x-jcs")
	b.ReportMetric(beyond/float64(len(text)), "B/B-over")
}

// processTime returns how long processors have worked for this process.
func processTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// allocated returns how many bytes one run allocates, in steady state.
func allocated(tb testing.TB, text []byte, run func([]byte) error) uint64 {
	tb.Helper()
	const runs = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		if err := run(text); err != nil {
			tb.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}

// worstDocuments are accepted texts of 64 KiB that stress one part each.
func worstDocuments() []document {
	fill := func(element string) string {
		n := min(snapshot.MaxValues, (snapshot.MaxBytes-1)/(len(element)+1))
		return list(element, n)
	}
	names := make([]string, 0, snapshot.MaxValues)
	for i := range snapshot.MaxValues {
		names = append(names, fmt.Sprintf(`"%09d":%d`, snapshot.MaxValues-i, i%10)) // backwards
	}
	return []document{
		{"ones", list("1", snapshot.MaxValues)},
		{"numbers", fill("1.234567890e-99")},
		{"long-numbers", fill("0." + strings.Repeat("1", 790))},
		{"control-characters", fill(`"\u0001\u0002"`)},
		{"one-string", `["` + strings.Repeat(`\u0001`, 10900) + `"]`},
		{"objects", list(`{"abcdefghi":{}}`, snapshot.MaxValues/2)},
		{"backwards", "{" + strings.Join(names, ",") + "}"},
		{"deep", list(nested(snapshot.MaxDepth-1), 60)},
	}
}

// BenchmarkWorst reports what the most expensive accepted texts cost.
func BenchmarkWorst(b *testing.B) {
	for _, d := range worstDocuments() {
		b.Run(d.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := snapshot.Prepare(d.text, asIs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// No accepted text may cost more than 16 MiB of garbage. Not parallel, because
// it looks at the memory of the whole process.
func TestWorstInput_StaysUnder16MiB(t *testing.T) {
	for _, d := range worstDocuments() {
		cost := allocated(t, []byte(d.text), func(text []byte) error {
			_, err := snapshot.Prepare(string(text), asIs)
			return err
		})
		if cost > 16<<20 {
			t.Errorf("%s: %d bytes", d.name, cost)
		}
		t.Logf("%s: %d bytes of text, %d bytes allocated", d.name, len(d.text), cost)
	}
}
