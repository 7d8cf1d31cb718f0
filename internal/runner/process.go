// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// child is one started program and everything in its process group.
type child struct {
	pid   int
	ended chan struct{} // closed after the program itself has ended
	state *os.ProcessState
}

// startChild starts the program on an operating-system thread that lives until
// the program has ended: the kernel delivers the parent-death signal when the
// thread that forked ends, not when the process does.
func startChild(cmd *exec.Cmd) (*child, error) {
	c := &child{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			c.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			c.wait(cmd)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	return c, nil
}

// wait waits for the program and then kills what it left in its group. The
// program is collected only after that: until then its process ID, which names
// the group, cannot belong to anything else.
func (c *child) wait(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	c.signal(unix.SIGKILL)
	// The state tells how it ended; the error would only say so in words.
	_ = cmd.Wait()
	c.state = cmd.ProcessState
	sweep()
	close(c.ended)
}

// supervise returns when the program has ended, and why the runner ended it,
// nil when it ended by itself.
func (c *child) supervise(ctx context.Context, grace time.Duration, stdout, stderr *stream) error {
	var cause error
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-stdout.tooLarge:
		cause = errOutputTooLarge
	case <-stderr.tooLarge:
		cause = errOutputTooLarge
	}
	c.signal(unix.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.signal(unix.SIGKILL)
		<-c.ended
	}
	return cause
}

// signal goes to the whole group. That it may be gone already is no error.
func (c *child) signal(s unix.Signal) { _ = unix.Kill(-c.pid, s) }

// sweep ends and collects what left the program's process group. It is
// possible only as the first process of a container, which can see nothing but
// the container: the call is over when its program is, whatever that has
// forked away.
func sweep() {
	if os.Getpid() != 1 {
		return
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	for {
		_, err := unix.Wait4(-1, nil, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// longAgo as a deadline makes a read return at once.
var longAgo = time.Unix(1, 0)

// stream is one output pipe of a program and the goroutine that reads it.
type stream struct {
	capture  *capture
	write    *os.File // the program's end
	read     *os.File
	tooLarge chan struct{} // closed when the limit was crossed
	done     chan bool     // receives whether the end of the output was seen
}

func newStream(c *capture) (*stream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for the program's output: %w", err)
	}
	s := &stream{capture: c, write: write, read: read, tooLarge: make(chan struct{}), done: make(chan bool, 1)}
	go s.copy()
	return s, nil
}

func (s *stream) copy() {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.read.Read(buf)
		if _, over := s.capture.Write(buf[:n]); over != nil {
			close(s.tooLarge)
			// Closing the pipe would end the program by a signal of which
			// the runner could not say that it was its own doing.
			s.discard(buf)
			s.done <- true
			return
		}
		if err != nil {
			s.done <- !errors.Is(err, os.ErrDeadlineExceeded)
			return
		}
	}
}

func (s *stream) discard(buf []byte) {
	for {
		if _, err := s.read.Read(buf); err != nil {
			return
		}
	}
}

// started closes the runner's copy of the program's end, so that the end of
// the output can be seen.
func (s *stream) started() { _ = s.write.Close() }

// finish waits until the output ended, at most for grace, and reports whether
// it did. The capture may be read afterwards.
func (s *stream) finish(grace time.Duration) bool {
	timer := time.AfterFunc(grace, func() { _ = s.read.SetReadDeadline(longAgo) })
	defer timer.Stop()
	complete := <-s.done
	_ = s.read.Close()
	return complete
}

// abandon releases a stream whose program is never started.
func (s *stream) abandon() {
	s.started()
	s.finish(0)
}
