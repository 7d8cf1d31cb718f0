// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/journal"
)

// roleVariable turns the test binary into the other process of a test.
const roleVariable = "ASSENT_JOURNAL_TEST_ROLE"

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // Tessera's lines between those of benchmarks
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "write":
		os.Exit(writeUntilKilled(os.Args[1]))
	case "hold":
		os.Exit(holdTreeLock(os.Args[1]))
	}
}

// otherProcess starts the test binary in a role and returns its output. It is
// killed at the end of the test.
func otherProcess(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Reader, io.Closer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, dir)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	stdout, errOut := cmd.StdoutPipe()
	stdin, errIn := cmd.StdinPipe()
	if err := errors.Join(errOut, errIn, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(stdout), stdin
}

// writeUntilKilled appends records and prints index and ID of each one that was
// acknowledged.
func writeUntilKilled(dir string) int {
	var tb testing.B // for helpers that only fail
	l, err := journal.Open(context.Background(), options(&tb, dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := 0; ; i++ {
		r := sampleRecord()
		r.ID = fmt.Sprintf("%032x", i)
		index, err := l.Append(context.Background(), r)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_, _ = fmt.Fprintln(os.Stdout, index, r.ID)
	}
}

// holdTreeLock keeps Tessera from integrating, as a stalled disk would, until
// its standard input is closed.
func holdTreeLock(dir string) int {
	f, err := os.OpenFile(filepath.Join(dir, ".state", "treeState.lock"), os.O_RDWR, 0)
	if err == nil {
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
		err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLKW, &lock)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = fmt.Fprintln(os.Stdout, "held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func TestAppend_LosesNothingWhenTheWriterIsKilled(t *testing.T) {
	dir := t.TempDir()
	child, out, _ := otherProcess(t, "write", dir)
	acknowledged := map[uint64]string{}
	read := func() bool {
		line, err := out.ReadString('\n')
		var index uint64
		var id string
		if err != nil || !strings.HasSuffix(line, "\n") {
			return false
		}
		if _, err := fmt.Sscan(line, &index, &id); err != nil {
			t.Fatal(err)
		}
		acknowledged[index] = id
		return true
	}
	for range 10 {
		if !read() {
			t.Fatal("the writer ended by itself")
		}
	}
	// The successor waits for the lock and gets it from the kernel.
	type opened struct {
		l   *journal.Log
		err error
	}
	successor := make(chan opened)
	go func() {
		l, err := journal.Open(t.Context(), options(t, dir))
		successor <- opened{l, err}
	}()
	if err := child.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for read() {
	}
	next := <-successor
	if next.err != nil {
		t.Fatal(next.err)
	}
	appendOne(t, next.l, sampleRecord())
	closeLog(t, next.l)
	report := verified(t, dir, func(index uint64, e *audit.Entry) error {
		if id, ok := acknowledged[index]; ok {
			if id != e.Record.ID {
				t.Errorf("record %d is another one", index)
			}
			delete(acknowledged, index)
		}
		return nil
	})
	if len(acknowledged) != 0 || report.Writers != 2 {
		t.Errorf("%d acknowledged records are lost; report %+v", len(acknowledged), report)
	}
}

// recovers checks that the journal refuses while broken, works again when
// repaired, and that the log is whole.
func recovers(t *testing.T, dir string, breakIt, repair func()) {
	t.Helper()
	l := openLog(t, dir, nil)
	appendOne(t, l, sampleRecord())
	breakIt()
	for range 3 {
		if _, err := l.Append(t.Context(), sampleRecord()); !errors.Is(err, audit.ErrUnavailable) {
			t.Fatalf("while broken: %v, want ErrUnavailable", err)
		}
	}
	if _, err := l.Append(t.Context(), audit.Record{Time: at, Data: bigAlarm()}); !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("a large record while broken: %v, want ErrUnavailable", err)
	}
	repair()
	if index := appendOne(t, l, sampleRecord()); index != 2 {
		t.Errorf("after the repair: index %d, want 2", index)
	}
	closeLog(t, l)
	report := verified(t, dir, nil)
	if report.Verified != 3 || report.Skipped < 4 {
		t.Errorf("report %+v", report)
	}
}

func TestAppend_RecoversFromWriteErrors(t *testing.T) {
	dir := t.TempDir()
	entries, aside := filepath.Join(dir, "tile", "entries"), filepath.Join(dir, "aside")
	recovers(t, dir, func() {
		if err := errors.Join(os.Rename(entries, aside), os.WriteFile(entries, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}, func() {
		if err := errors.Join(os.Remove(entries), os.Rename(aside, entries)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAppend_RecoversFromAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small file system: %v: the full disk was not tested", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	recovers(t, dir, func() {
		f, err := os.Create(ballast)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAppend_AnswersWhileTheDiskStalls(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir, func(o *journal.Options) {
		o.MaxOutstanding = 3
		o.Timeout = 0 // the default
	})
	holder, out, release := otherProcess(t, "hold", dir)
	if line, err := out.ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	// More callers than places: all are answered, none waits for the disk.
	for range 10 {
		short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := l.Append(short, sampleRecord()); !errors.Is(err, audit.ErrUnavailable) {
			t.Fatalf("while stalled: %v, want ErrUnavailable", err)
		}
		stop()
	}
	// A caller without a deadline of its own is answered as well.
	if _, err := l.Append(t.Context(), sampleRecord()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("while stalled: %v, want the journal's own deadline", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Close(ctx); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("Close while stalled: %v, want ErrUnavailable", err)
	}
	// The lock is kept as long as a write may follow.
	if _, err := journal.Open(ctx, options(t, dir)); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("a second writer while stalled: %v, want ErrLocked", err)
	}
	if err := errors.Join(release.Close(), holder.Wait()); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	next := openLog(t, dir, nil)
	appendOne(t, next, sampleRecord())
	closeLog(t, next)
	// What was in flight has arrived, and no more than there were places for.
	report := verified(t, dir, nil)
	if got := report.Records[audit.TypeDispatched]; got < 2 || got > 4 {
		t.Errorf("%d records, want one and at most three that were in flight", got)
	}
}
