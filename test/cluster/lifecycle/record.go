// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Mode says how much of Kubernetes runs.
type Mode string

const (
	// ModeControlPlane is etcd and kube-apiserver on loopback, for API tests.
	ModeControlPlane Mode = "control-plane"
	// ModeNode is a whole Kubernetes with one node that runs Pods.
	ModeNode Mode = "node"
)

// record is what a running cluster leaves in its state folder so that a later
// command finds exactly its processes again and can put the machine back.
type record struct {
	Mode   Mode   `json:"mode"`
	BootID string `json:"bootID"`
	Server string `json:"server"`
	// Processes in the order they were started.
	Processes []Process `json:"processes"`
	// Machine is what a node has to put back; nil until it changes anything
	// outside of its folders, so that a node that was refused undoes nothing.
	Machine *machineBefore `json:"machine,omitempty"`
	// Ready is set when everything has started.
	Ready bool `json:"ready"`
}

// machineBefore is how the machine was before a node changed it.
type machineBefore struct {
	// Sysctls by path below /proc/sys.
	Sysctls map[string]string `json:"sysctls"`
	// OwnsPodCgroups is true if no kubelet's Pod cgroups existed, so that
	// whatever is in them later is this cluster's.
	OwnsPodCgroups bool `json:"ownsPodCgroups"`
	// FilterTable is true if iptables had its table for filters already, which
	// then stays when the agent's chains are removed from it.
	FilterTable bool `json:"filterTable"`
}

// ErrNotUp is the answer to whatever needs a cluster where none was started.
var ErrNotUp = errors.New("no cluster is up: start one with \"assent-cluster up\"")

// load fails with ErrNotUp when no cluster was started here.
func (l Layout) load() (*record, error) {
	data, err := os.ReadFile(l.record())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", l.State, ErrNotUp)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's record: %w", err)
	}
	var rec record
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, fmt.Errorf("reading the cluster's record %s: %w", l.record(), err)
	}
	return &rec, nil
}

// save replaces the record in one step, because a half-written one would make
// the processes that it names impossible to find.
func (l Layout) save(rec *record) error {
	data, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the cluster's record: %w", err)
	}
	temporary := l.record() + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the cluster's record: %w", err)
	}
	if err := os.Rename(temporary, l.record()); err != nil {
		return fmt.Errorf("writing the cluster's record: %w", err)
	}
	return nil
}

// running lists the recorded processes that still live.
func (r *record) running() []Process {
	if r.BootID != bootID() {
		return nil
	}
	var alive []Process
	for _, process := range r.Processes {
		if process.Alive() {
			alive = append(alive, process)
		}
	}
	return alive
}

// healthy is true if everything that was started still runs.
func (r *record) healthy() bool {
	return r.Ready && len(r.running()) == len(r.Processes)
}

// bootID tells one boot of the machine from another: after a reboot a recorded
// process ID may be anybody's, with any start time.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// lockState keeps two commands from changing the same cluster at once.
func (l Layout) lockState() (release func(), err error) {
	return lockFile(l.lock())
}

// lockFile waits for the lock on a file. It falls with the process that holds
// it. It is not inherited by what that process starts, because Go opens files
// close-on-exec.
func lockFile(path string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
