// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pollInterval is how often a state of the cluster is looked at while waiting.
const pollInterval = 25 * time.Millisecond

// Process names one process for its whole life: a process ID is reused after its
// process has ended, the pair with the start time is not.
type Process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// StartTicks is field 22 of /proc/PID/stat: clock ticks since boot (proc(5)).
	StartTicks uint64 `json:"startTicks"`
}

// spec is a process to start.
type spec struct {
	name string
	// path of the executable; the kernel hands its base name on as argv[0],
	// which is what the multi-call binary looks at.
	path string
	args []string
	env  []string
}

// StartError says that a process ended, or did not get ready, while the cluster
// was being started.
type StartError struct {
	Process string
	Reason  string
	LogFile string
	LogTail string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s %s; the end of %s:\n%s", e.Process, e.Reason, e.LogFile, e.LogTail)
}

// start runs a process detached from the terminal and from this command, with
// its output in its log file. With attached it dies with the calling thread's
// process instead; the caller must then be locked to its thread (prctl(2),
// PR_SET_PDEATHSIG).
func (l Layout) start(ctx context.Context, s spec, attached bool) (Process, error) {
	log, err := os.Create(l.Log(s.name))
	if err != nil {
		return Process{}, fmt.Errorf("starting %s: %w", s.name, err)
	}
	defer log.Close()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), s.path, s.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = l.State
	cmd.Env = append(withoutProxies(os.Environ()), s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if attached {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	if err := cmd.Start(); err != nil {
		return Process{}, fmt.Errorf("starting %s: %w", s.name, err)
	}
	ticks, _, err := readStat(cmd.Process.Pid)
	if err != nil {
		return Process{}, fmt.Errorf("starting %s: %w", s.name, err)
	}
	// While this command lives it is the parent and must collect the process.
	go func() { _ = cmd.Wait() }()
	return Process{Name: s.name, PID: cmd.Process.Pid, StartTicks: ticks}, nil
}

// withoutProxies drops the variables that would send the cluster's own traffic,
// such as a call of a webhook, through a proxy that cannot reach it.
func withoutProxies(env []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasSuffix(strings.ToUpper(name), "_PROXY")
	})
}

// readStat returns the start time and the state letter of a process.
func readStat(pid int) (startTicks uint64, state byte, err error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, err
	}
	// The second field is the command name in parentheses and may hold spaces
	// and parentheses itself: fields are counted from its end.
	end := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[end+1:]))
	if end < 0 || len(fields) < 20 {
		return 0, 0, fmt.Errorf("unexpected format of /proc/%d/stat", pid)
	}
	startTicks, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("unexpected format of /proc/%d/stat: %w", pid, err)
	}
	return startTicks, fields[0][0], nil
}

// Alive is true while exactly this process runs. One that has ended but was not
// collected by its parent counts as ended.
func (p Process) Alive() bool {
	ticks, state, err := readStat(p.PID)
	return err == nil && ticks == p.StartTicks && state != 'Z' && state != 'X'
}

// signal cannot hit another process: the handle is opened first and the start
// time compared afterwards, so it refers to the process that was looked at.
func (p Process) signal(sig unix.Signal) error {
	handle, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("signalling %s: %w", p.Name, err)
	}
	defer unix.Close(handle)
	if !p.Alive() {
		return nil
	}
	if err := unix.PidfdSendSignal(handle, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signalling %s: %w", p.Name, err)
	}
	return nil
}

// stop asks the process to end and kills it after grace. A grace of zero kills
// at once, for processes whose data is thrown away anyway.
func (p Process) stop(grace time.Duration) error {
	if grace > 0 {
		if err := p.signal(unix.SIGTERM); err != nil {
			return err
		}
		// A paused process notices once it goes on.
		if err := p.signal(unix.SIGCONT); err != nil {
			return err
		}
		if p.ended(grace) {
			return nil
		}
	}
	if err := p.signal(unix.SIGKILL); err != nil {
		return err
	}
	if !p.ended(10 * time.Second) {
		return fmt.Errorf("%s (process %d) cannot be ended", p.Name, p.PID)
	}
	return nil
}

func (p Process) ended(timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return poll(ctx, func() (bool, error) { return !p.Alive(), nil }) == nil
}

// poll calls done until it is true, fails, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// tailLines is how much of a log is shown when its process failed.
const tailLines = 15

// tail returns the last lines of a log, or those from where a Go program
// crashed: the trace below that line says less than the line itself.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if crash := bytes.LastIndex(data, []byte("\npanic: ")); crash >= 0 {
		data = data[crash+1:]
		lines := strings.Split(string(data), "\n")
		return strings.Join(lines[:min(len(lines), tailLines)], "\n")
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return strings.Join(lines, "\n")
}
