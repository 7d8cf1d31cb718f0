// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// progress shows how far a build is: one line that is written over on a
// terminal, a line now and then in a log.
type progress struct {
	out      io.Writer
	terminal bool
	interval time.Duration

	mu        sync.Mutex
	name      string
	started   time.Time
	downloads int
	done      int
	total     int
	planned   bool
	shown     bool
	stop      chan struct{}
	once      sync.Once
}

func newProgress(out io.Writer, name string) *progress {
	p := &progress{out: out, name: name, started: time.Now(), interval: 10 * time.Second, stop: make(chan struct{})}
	if file, ok := out.(*os.File); ok {
		_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
		p.terminal = err == nil
	}
	if p.terminal {
		p.interval = 500 * time.Millisecond
	}
	if out != nil {
		go p.tick()
	}
	return p
}

func (p *progress) tick() {
	ticker := time.NewTicker(p.interval)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.show()
		}
	}
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.line(time.Since(p.started))
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(p.out, line)
	}
	p.shown = true
}

// line says what is going on after elapsed time.
func (p *progress) line(elapsed time.Duration) string {
	elapsed = elapsed.Round(time.Second)
	switch {
	case !p.planned && p.downloads > 0:
		return fmt.Sprintf("%s: %d modules downloaded, %s", p.name, p.downloads, elapsed)
	case !p.planned:
		return fmt.Sprintf("%s: looking what is to be compiled, %s", p.name, elapsed)
	case p.done >= p.total:
		return fmt.Sprintf("%s: all packages compiled, linking, %s", p.name, elapsed)
	default:
		return fmt.Sprintf("%s: %d of %d packages compiled (%d%%), %s", p.name, p.done, p.total, 100*p.done/p.total, elapsed)
	}
}

func (p *progress) downloaded() { p.change(func() { p.downloads++ }) }
func (p *progress) compiled()   { p.change(func() { p.done++ }) }

func (p *progress) compiling(total int) {
	p.change(func() { p.planned, p.total = true, total })
}

func (p *progress) change(apply func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	apply()
}

// close stops the display, whether the build succeeded or not.
func (p *progress) close() {
	p.once.Do(func() { close(p.stop) })
}

// finish stops the display and leaves one last line.
func (p *progress) finish(message string) {
	p.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		return
	}
	if p.terminal && p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	fmt.Fprintln(p.out, message)
}
