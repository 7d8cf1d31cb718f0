// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle starts and stops the development cluster: etcd and
// kube-apiserver alone for API tests, or a whole single-node Kubernetes.
//
// It never imports Kubernetes. All of Kubernetes is one binary that this package
// compiles and starts, so the tool itself builds in seconds and can show
// progress while the binary builds in minutes.
package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// longestSocket is the longest path of a Unix socket below the run folder
// (kubelet's device plugin socket), rounded up. The kernel allows 107 bytes for
// a whole path (unix(7)).
const (
	longestSocket  = len("/kubelet/device-plugins/kubelet.sock") + 8
	unixSocketPath = 107
)

// Layout is where everything of one cluster lies. State is the folder that the
// user named; Run is a folder whose path is short enough for Unix sockets.
type Layout struct {
	State string
	Run   string
}

// NewLayout makes state absolute and chooses the run folder: inside the state
// folder where socket paths fit, otherwise a folder under /var/tmp named after
// the state folder, so that the same state is found again.
func NewLayout(state string) (Layout, error) {
	absolute, err := filepath.Abs(state)
	if err != nil {
		return Layout{}, fmt.Errorf("resolving the state folder %s: %w", state, err)
	}
	run := filepath.Join(absolute, "run")
	if len(run)+longestSocket > unixSocketPath {
		sum := sha256.Sum256([]byte(absolute))
		run = filepath.Join("/var/tmp", "assent-"+hex.EncodeToString(sum[:6]))
	}
	return Layout{State: absolute, Run: run}, nil
}

func (l Layout) pki(name string) string  { return filepath.Join(l.State, "pki", name) }
func (l Layout) data(name string) string { return filepath.Join(l.State, "data", name) }
func (l Layout) conf(name string) string { return filepath.Join(l.State, "conf", name) }
func (l Layout) bin(name string) string  { return filepath.Join(l.State, "bin", name) }
func (l Layout) run(name string) string  { return filepath.Join(l.Run, name) }

// Log is the file that collects the output of the named process.
func (l Layout) Log(process string) string {
	return filepath.Join(l.State, "logs", process+".log")
}

// Kubeconfig is the administrator's kubeconfig (group system:masters).
func (l Layout) Kubeconfig() string { return filepath.Join(l.State, "kubeconfig") }

func (l Layout) record() string { return filepath.Join(l.State, "cluster.json") }
func (l Layout) lock() string   { return filepath.Join(l.State, "lock") }

func (l Layout) etcdSocket() string       { return l.run("etcd.sock") }
func (l Layout) containerdSocket() string { return l.run("containerd.sock") }

// create makes the folders of a cluster. Keys and sockets lie in them, so only
// the owner may look inside.
func (l Layout) create() error {
	for _, dir := range []string{
		l.State, l.pki(""), l.data(""), l.conf(""), l.bin(""), filepath.Join(l.State, "logs"),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("creating the state folder: %w", err)
		}
	}
	return l.createRun()
}

// createRun refuses a run folder that somebody else made: outside the state
// folder its parent is writable by everybody.
func (l Layout) createRun() error {
	err := os.Mkdir(l.Run, 0o700)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("creating the run folder: %w", err)
	}
	info, err := os.Lstat(l.Run)
	if err != nil {
		return fmt.Errorf("checking the run folder: %w", err)
	}
	if !info.IsDir() || !ownedByUs(info) {
		return fmt.Errorf("the run folder %s belongs to somebody else: remove it or choose another state folder", l.Run)
	}
	return nil
}

// removeCluster deletes what belongs to one life of the cluster. Logs stay for
// the person who wants to know what happened; the build cache stays too.
func (l Layout) removeCluster() error {
	var failures []error
	for _, path := range []string{
		l.Run, l.data(""), l.pki(""), l.conf(""), l.bin(""), l.Kubeconfig(), l.record(),
	} {
		if err := os.RemoveAll(path); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
