// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/journal"
	"github.com/assent-dev/assent/internal/audit/verify"
)

func appendOne(t testing.TB, l *journal.Log, r audit.Record) uint64 {
	t.Helper()
	index, err := l.Append(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// verified closes the log and checks it with the verifier.
func verified(t testing.TB, dir string, visit func(uint64, *audit.Entry) error) *verify.Report {
	t.Helper()
	report, err := verify.Log(t.Context(), verify.DirSource(dir), verify.Options{Keys: keys(t, 1), Origin: origin, Visit: visit})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Fatalf("findings: %+v", report.Findings)
	}
	return report
}

func TestAppend_ReturnsTheIndexOfAnIntegratedRecord(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir, nil)
	for want := uint64(1); want < 4; want++ { // 0 is the journal's own record
		index := appendOne(t, l, sampleRecord())
		size, err := l.Size(t.Context())
		if err != nil || index != want || size != want+1 {
			t.Fatalf("index %d, size %d, %v; want %d", index, size, err, want)
		}
	}
	closeLog(t, l)
	if report := verified(t, dir, nil); report.Verified != 4 || report.Skipped != 0 {
		t.Errorf("report %+v", report)
	}
}

func TestAppend_KeepsTheRecordAsItWasGiven(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir, nil)
	want := sampleRecord()
	want.ID = strings.Repeat("ab", 16)
	want.Position = audit.Position{Log: "ignored", Writer: "ignored", Seq: 77}
	appendOne(t, l, want)
	closeLog(t, l)
	verified(t, dir, func(index uint64, e *audit.Entry) error {
		if index == 1 {
			got := e.Record
			if got.Position.Log != origin || got.Position.Seq != 1 {
				t.Errorf("position %+v", got.Position)
			}
			want.Position = got.Position
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		return nil
	})
}

func TestAppend_OrdersManyCallersWithoutGaps(t *testing.T) {
	const callers, each = 32, 20
	dir := t.TempDir()
	l := openLog(t, dir, nil)
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			last := uint64(0)
			for range each {
				index, err := l.Append(t.Context(), sampleRecord())
				if err != nil || index <= last {
					t.Errorf("index %d after %d, %v", index, last, err)
				}
				last = index
				mu.Lock()
				seen[index] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	closeLog(t, l)
	if len(seen) != callers*each || !seen[1] || !seen[callers*each] {
		t.Errorf("%d different indexes, want 1 to %d", len(seen), callers*each)
	}
	if report := verified(t, dir, nil); report.Verified != callers*each+1 || report.Skipped != 0 {
		t.Errorf("report %+v", report)
	}
}

func TestOpen_ContinuesALog(t *testing.T) {
	dir := t.TempDir()
	for turn := range uint64(3) {
		l := openLog(t, dir, nil)
		if index := appendOne(t, l, sampleRecord()); index != turn*2+1 {
			t.Errorf("turn %d: index %d", turn, index)
		}
		closeLog(t, l)
	}
	report := verified(t, dir, nil)
	if report.Writers != 3 || report.Verified != 6 || report.Records[audit.TypeJournalOpened] != 3 {
		t.Errorf("report %+v", report)
	}
}

func TestAppend_PutsLargeRecordsInParts(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir, nil)
	var objects []string
	for i := range 200 {
		objects = append(objects, fmt.Sprintf("%01000d", i))
	}
	want := audit.IntegrityAlarm{Reason: "EnforcementDrift", Objects: objects}
	index := appendOne(t, l, audit.Record{Time: at, Data: want})
	closeLog(t, l)
	report := verified(t, dir, func(i uint64, e *audit.Entry) error {
		if i == index {
			if diff := cmp.Diff(audit.Data(want), e.Record.Data); diff != "" {
				t.Error("the data changed on the way")
			}
		}
		return nil
	})
	if got := report.Records[audit.TypeRecordPart]; got != 7 || index != 8 {
		t.Errorf("%d parts, index %d", got, index)
	}
}

func TestAppend_RefusesInvalidRecordsAndWritesNothing(t *testing.T) {
	l := openLog(t, t.TempDir(), nil)
	for name, r := range map[string]audit.Record{
		"without data": {Time: at},
		"without time": {Data: audit.Denied{Reason: "x"}},
		"not UTF-8":    {Time: at, TraceID: "\xff", Data: audit.Denied{Reason: "x"}},
	} {
		if _, err := l.Append(t.Context(), r); !errors.Is(err, audit.ErrInvalidRecord) || errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrInvalidRecord", name, err)
		}
	}
	if index := appendOne(t, l, sampleRecord()); index != 1 {
		t.Errorf("index %d, want 1", index)
	}
}

func TestAppend_WritesNothingForACallerThatHasGone(t *testing.T) {
	l := openLog(t, t.TempDir(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, sampleRecord()); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	if index := appendOne(t, l, sampleRecord()); index != 1 {
		t.Errorf("index %d, want 1", index)
	}
}

func TestClose_EndsTheJournalOnce(t *testing.T) {
	l := openLog(t, t.TempDir(), nil)
	closeLog(t, l)
	closeLog(t, l)
	if _, err := l.Append(t.Context(), sampleRecord()); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("Append after Close: %v, want ErrUnavailable", err)
	}
	if _, err := l.Append(t.Context(), audit.Record{Time: at, Data: bigAlarm()}); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("Append of a large record after Close: %v, want ErrUnavailable", err)
	}
}

func bigAlarm() audit.IntegrityAlarm {
	return audit.IntegrityAlarm{Reason: "x", Objects: []string{strings.Repeat("x", 40<<10)}}
}

func TestOpen_AllowsOneWriter(t *testing.T) {
	dir := t.TempDir()
	first := openLog(t, dir, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := journal.Open(ctx, options(t, dir)); !errors.Is(err, journal.ErrLocked) || !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("second writer: %v, want ErrLocked", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		second, err := journal.Open(t.Context(), options(t, dir))
		if err != nil {
			t.Error(err)
			return
		}
		closeLog(t, second)
	}()
	appendOne(t, first, sampleRecord())
	closeLog(t, first)
	<-done
	if report := verified(t, dir, nil); report.Writers != 2 || report.Verified != 3 {
		t.Errorf("report %+v", report)
	}
}

func TestOpen_RefusesAnotherLog(t *testing.T) {
	dir := t.TempDir()
	closeLog(t, openLog(t, dir, nil))
	tests := map[string]func(*journal.Options){
		"another key":    func(o *journal.Options) { o.Keys = keys(t, 2) },
		"another origin": func(o *journal.Options) { o.Origin = "assent.test/other" },
	}
	for name, edit := range tests {
		o := options(t, dir)
		edit(&o)
		if _, err := journal.Open(t.Context(), o); !errors.Is(err, journal.ErrForeignLog) || !errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrForeignLog", name, err)
		}
	}
	// The refused attempts have left the log to its owner.
	closeLog(t, openLog(t, dir, nil))
	verified(t, dir, nil)
}

func TestOpen_ChecksItsOptions(t *testing.T) {
	broken := iotest.ErrReader(errors.New("no entropy"))
	tests := map[string]struct {
		edit        func(*journal.Options)
		unavailable bool
	}{
		"no directory":               {func(o *journal.Options) { o.Dir = "" }, false},
		"no keys":                    {func(o *journal.Options) { o.Keys = nil }, false},
		"no clock":                   {func(o *journal.Options) { o.Now = nil }, false},
		"no origin":                  {func(o *journal.Options) { o.Origin = "" }, false},
		"a directory below a file":   {func(o *journal.Options) { o.Dir = "/dev/null/log" }, true},
		"a directory not to lock in": {func(o *journal.Options) { o.Dir = "/proc/self" }, true},
		"no randomness":              {func(o *journal.Options) { o.Random = broken }, true},
	}
	for name, tc := range tests {
		o := options(t, t.TempDir())
		tc.edit(&o)
		l, err := journal.Open(t.Context(), o)
		if err == nil || errors.Is(err, audit.ErrUnavailable) != tc.unavailable {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}

func TestProve_WaitsForTheCheckpoint(t *testing.T) {
	l := openLog(t, t.TempDir(), nil)
	index := appendOne(t, l, sampleRecord())
	p, err := l.Prove(t.Context(), index)
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Verify(keys(t, 1), origin)
	if err != nil || e.Type != audit.TypeDispatched {
		t.Errorf("entry %+v, %v", e, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.Prove(ctx, 1000); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("a record that is not there: %v", err)
	}
}

func TestAppendAll_KeepsTheOrderAndSharesABatch(t *testing.T) {
	dir := t.TempDir()
	// A batch waits an eighth of its age, so that only few fit into the time of
	// one call: far fewer than there are records.
	l := openLog(t, dir, func(o *journal.Options) { o.BatchAge, o.Timeout = 1600*time.Millisecond, 4*time.Second })
	var records []audit.Record
	var want []uint64
	for i := range 40 {
		r := sampleRecord()
		r.ID = fmt.Sprintf("%032x", i)
		records, want = append(records, r), append(want, uint64(i)+1)
	}
	indexes, err := l.AppendAll(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, indexes); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
	closeLog(t, l)
	verified(t, dir, func(index uint64, e *audit.Entry) error {
		if index > 0 && e.Record.ID != records[index-1].ID {
			t.Errorf("record %d has ID %s", index, e.Record.ID)
		}
		return nil
	})
}

func TestAppendAll_TellsWhichAreDurableBeforeOneThatIsInvalid(t *testing.T) {
	l := openLog(t, t.TempDir(), nil)
	defer closeLog(t, l)
	indexes, err := l.AppendAll(t.Context(), []audit.Record{sampleRecord(), {}})
	if !errors.Is(err, audit.ErrInvalidRecord) || len(indexes) != 1 || indexes[0] != 1 {
		t.Errorf("got indexes %v, %v; want that of the first and %v", indexes, err, audit.ErrInvalidRecord)
	}
	if indexes, err := l.AppendAll(t.Context(), nil); err != nil || len(indexes) != 0 {
		t.Errorf("appending nothing: %v, %v", indexes, err)
	}
}
