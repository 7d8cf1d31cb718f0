// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// startSleep starts a harmless process that the test may end.
func startSleep(t *testing.T, l Layout) Process {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	process, err := l.start(t.Context(), spec{name: "sleep", path: sleep, args: []string{"600"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.stop(0) })
	return process
}

func newLayout(t *testing.T) Layout {
	t.Helper()
	l, err := NewLayout(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.create(); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestProcess_StopEndsExactlyTheRecordedProcess(t *testing.T) {
	t.Parallel()
	l := newLayout(t)
	process := startSleep(t, l)
	other := process
	other.StartTicks++ // the same number, given to a later process

	if other.Alive() {
		t.Error("a process with another start time counts as the recorded one")
	}
	if err := other.stop(0); err != nil {
		t.Fatal(err)
	}
	if !process.Alive() {
		t.Fatal("stopping a process that had ended killed the one that got its number")
	}
	if err := process.stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	if process.Alive() {
		t.Error("the process survived its stop")
	}
}

func TestProcess_IsDetachedFromTheTerminal(t *testing.T) {
	t.Parallel()
	process := startSleep(t, newLayout(t))
	session, err := unix.Getsid(process.PID)
	if err != nil {
		t.Fatal(err)
	}
	if session != process.PID {
		t.Errorf("the process belongs to session %d instead of its own: closing the terminal would end it", session)
	}
}

func TestReadStat_UnderstandsNamesWithSpacesAndParentheses(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a) S 1 (b")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := copyFile(sleep, name); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o700); err != nil {
		t.Fatal(err)
	}
	process, err := newLayout(t).start(t.Context(), spec{name: "odd", path: name, args: []string{"600"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.stop(0) })
	if process.StartTicks < 2 || !process.Alive() {
		t.Errorf("start time %d read, alive %t: the fields were counted from the wrong place", process.StartTicks, process.Alive())
	}
}

// fakeKube stands for the multi-call binary; it says its name and fails.
func fakeKube(t *testing.T, script string) Binaries {
	t.Helper()
	file := filepath.Join(t.TempDir(), "assent-kube")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return Binaries{Kube: file}
}

func TestUp_ShowsTheLogOfAProcessThatDiesWhileStarting(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	layout, err := Up(t.Context(), Options{
		State: state, Mode: ModeControlPlane,
		Binaries: fakeKube(t, `echo "$(basename "$0") cannot open its database"; exit 1`),
	})
	start, ok := errors.AsType[*StartError](err)
	if !ok {
		t.Fatalf("error %v, want a *StartError", err)
	}
	want := StartError{
		Process: "etcd", Reason: "ended while starting",
		LogFile: layout.Log("etcd"), LogTail: "etcd cannot open its database",
	}
	if diff := cmp.Diff(want, *start); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := layout.load(); !errors.Is(err, ErrNotUp) {
		t.Errorf("after the failure the record says %v, want %v", err, ErrNotUp)
	}
}

func TestUp_StopsWhatItStartedWhenItIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	state := filepath.Join(t.TempDir(), "state")
	// The fake tells its process ID and never gets ready.
	told := filepath.Join(t.TempDir(), "pid")
	if err := unix.Mkfifo(told, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := Up(ctx, Options{State: state, Mode: ModeControlPlane, Binaries: fakeKube(t, "echo started > "+told+"; exec sleep 600")})
		failed <- err
	}()
	if _, err := os.ReadFile(told); err != nil { // waits for the writer
		t.Fatal(err)
	}
	layout, err := NewLayout(state)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	err = eachProcess(func(pid int) error {
		data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		cwd, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
		if len(data) > 0 && strings.HasPrefix(cwd, layout.State) {
			return errors.New("process " + strconv.Itoa(pid) + " was left behind")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDown_IsNoErrorWhereNothingIsUp(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]string{
		"no folder at all": filepath.Join(t.TempDir(), "absent"),
		"an empty folder":  t.TempDir(),
	} {
		if err := Down(t.Context(), state, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecord_HealthyOnlyIfEveryProcessRunsSinceThisBoot(t *testing.T) {
	t.Parallel()
	process := startSleep(t, newLayout(t))
	gone := Process{Name: "gone", PID: process.PID, StartTicks: process.StartTicks + 1}
	for name, test := range map[string]struct {
		rec  record
		want bool
	}{
		"all run":                    {record{BootID: bootID(), Ready: true, Processes: []Process{process}}, true},
		"one has ended":              {record{BootID: bootID(), Ready: true, Processes: []Process{process, gone}}, false},
		"the start was interrupted":  {record{BootID: bootID(), Processes: []Process{process}}, false},
		"the machine was restarted":  {record{BootID: "another", Ready: true, Processes: []Process{process}}, false},
		"nothing was started, ready": {record{BootID: bootID(), Ready: true}, true},
	} {
		if got := test.rec.healthy(); got != test.want {
			t.Errorf("%s: healthy is %t, want %t", name, got, test.want)
		}
	}
}

func TestLayout_SocketPathsFitWhateverTheStateFolder(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("deep/", 60)
	for name, state := range map[string]string{"short": "/srv/state", "long": long} {
		l, err := NewLayout(state)
		if err != nil {
			t.Fatal(err)
		}
		for _, socket := range []string{l.etcdSocket(), l.containerdSocket(), l.run("kubelet/device-plugins/kubelet.sock")} {
			if len(socket) > 107 {
				t.Errorf("%s: the path %s has %d bytes; the kernel takes 107", name, socket, len(socket))
			}
		}
	}
	again, err := NewLayout(long)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewLayout(long + "other")
	if err != nil {
		t.Fatal(err)
	}
	if first, _ := NewLayout(long); first.Run != again.Run || first.Run == other.Run {
		t.Errorf("run folders %s, %s and %s: the same state must find the same, another one another", first.Run, again.Run, other.Run)
	}
}

func TestLayout_RefusesARunFolderOfSomebodyElse(t *testing.T) {
	t.Parallel()
	l := newLayout(t)
	if err := os.Remove(l.Run); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), l.Run); err != nil {
		t.Fatal(err)
	}
	err := l.createRun()
	if err == nil || !strings.Contains(err.Error(), "belongs to somebody else") {
		t.Errorf("error %v: a link put in the folder's place was followed", err)
	}
}

func TestTail_StartsAtTheCrashOfAGoProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	text := "fine\npanic: broken\n\ngoroutine 1:\n" + strings.Repeat("frame\n", 50)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tail(file); !strings.HasPrefix(got, "panic: broken\n") || strings.Count(got, "\n") != tailLines-1 {
		t.Errorf("the tail is\n%s", got)
	}
}

func TestWithoutProxies_KeepsEverythingElse(t *testing.T) {
	t.Parallel()
	got := withoutProxies([]string{"A=1", "HTTPS_PROXY=x", "http_proxy=y", "No_Proxy=z", "PROXY=kept"})
	if diff := cmp.Diff([]string{"A=1", "PROXY=kept"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRemoveTree_RemovesFoldersFromTheLeavesUp(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "kubepods")
	for _, folder := range []string{"burstable/pod1/container", "besteffort", "pod2"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeTree(root); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there (%v)", err)
	}
}
