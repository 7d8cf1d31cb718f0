// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// restoreMachine removes what the node left outside of its state folder. By now
// every process that was started directly has ended.
func (c *cluster) restoreMachine(ctx context.Context) error {
	var failures []error
	if c.rec.Machine.OwnsPodCgroups {
		failures = append(failures, killPodProcesses())
	}
	failures = append(failures, c.killShims())
	failures = append(failures, c.unmountAll())
	if c.rec.Machine.OwnsPodCgroups {
		failures = append(failures, removePodCgroups())
	}
	failures = append(failures, c.removeNetwork(ctx))
	failures = append(failures, c.removeLogLinks())
	failures = append(failures, removeNetworkResults())
	return errors.Join(failures...)
}

// killShims ends containerd's helper processes that stayed behind, which happens
// when containerd itself died first. They are told apart from those of any other
// containerd by the address of the socket in their arguments.
func (c *cluster) killShims() error {
	return eachProcess(func(pid int) error {
		if !c.isShim(pid) {
			return nil
		}
		return killPID(pid)
	})
}

func (c *cluster) isShim(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false // it has ended meanwhile
	}
	args := strings.Split(string(data), "\x00")
	return strings.Contains(args[0], "containerd-shim") && slices.Contains(args, c.containerdSocket())
}

func eachProcess(visit func(pid int) error) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("listing the processes: %w", err)
	}
	var failures []error
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			failures = append(failures, visit(pid))
		}
	}
	return errors.Join(failures...)
}

// killPID ends a process of which only the number is known.
func killPID(pid int) error {
	ticks, _, err := readStat(pid)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	return Process{Name: "process " + strconv.Itoa(pid), PID: pid, StartTicks: ticks}.stop(0)
}

// unmountAll unmounts everything below the state and run folders, innermost
// first. A mount that is still in use is detached; it goes with its last user.
func (c *cluster) unmountAll() error {
	var failures []error
	for _, root := range []string{c.State, c.Run} {
		mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(root))
		if err != nil {
			return fmt.Errorf("listing the mounts: %w", err)
		}
		slices.Reverse(mounts)
		for _, mount := range mounts {
			if unix.Unmount(mount.Mountpoint, 0) == nil {
				continue
			}
			if err := unix.Unmount(mount.Mountpoint, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
				failures = append(failures, fmt.Errorf("unmounting %s: %w", mount.Mountpoint, err))
			}
		}
	}
	return errors.Join(failures...)
}

// cgroupRoot is where systems mount the cgroup file systems.
const cgroupRoot = "/sys/fs/cgroup"

// podCgroups lists kubelet's top cgroups for Pods: one with cgroup v2, one for
// each controller with cgroup v1.
func podCgroups() []string {
	found, _ := filepath.Glob(filepath.Join(cgroupRoot, "kubepods"))
	perController, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", "kubepods"))
	return append(found, perController...)
}

// tree lists a folder and all folders below it, each before what it holds.
func tree(root string) []string {
	var folders []string
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		// What vanishes while this looks need not be listed.
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	return folders
}

// killPodProcesses ends what still runs in a Pod after the container runtime was
// asked to remove all Pods.
func killPodProcesses() error {
	var failures []error
	for _, root := range podCgroups() {
		for _, folder := range tree(root) {
			data, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
			if err != nil {
				continue // a cgroup that has been removed holds nothing
			}
			for line := range strings.FieldsSeq(string(data)) {
				if pid, err := strconv.Atoi(line); err == nil {
					failures = append(failures, killPID(pid))
				}
			}
		}
	}
	return errors.Join(failures...)
}

// removePodCgroups removes the empty cgroups, leaves first. The kernel takes a
// moment to forget processes that were killed.
func removePodCgroups() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var last error
	err := poll(ctx, func() (bool, error) {
		last = nil
		for _, root := range podCgroups() {
			last = errors.Join(last, removeTree(root))
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("removing the cgroups of the Pods: %w", last)
	}
	return nil
}

// removeTree removes folders only: the files of a cgroup cannot be removed and
// vanish with it.
func removeTree(root string) error {
	var failures []error
	for _, folder := range slices.Backward(tree(root)) {
		failures = append(failures, unix.Rmdir(folder))
	}
	return errors.Join(failures...)
}

// removeLogLinks removes the links that kubelet keeps for log collectors in
// /var/log/containers, whose place cannot be changed.
func (c *cluster) removeLogLinks() error {
	const folder = "/var/log/containers"
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing kubelet's log links: %w", err)
	}
	var failures []error
	for _, entry := range entries {
		link := filepath.Join(folder, entry.Name())
		target, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(target, c.State+"/") {
			failures = append(failures, os.Remove(link))
		}
	}
	return errors.Join(failures...)
}

// removeNetworkResults removes what the network plugins remember of Pods that
// were not removed in order. libcni keeps it in a folder that containerd does not
// let us choose, in files named after the network and the sandbox.
func removeNetworkResults() error {
	const folder = "/var/lib/cni/results/"
	ours, err := filepath.Glob(folder + networkName + "-*-eth0")
	if err != nil {
		return err
	}
	var failures []error
	for _, file := range ours {
		sandbox := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), networkName+"-"), "-eth0")
		failures = append(failures, os.Remove(file))
		if err := os.Remove(folder + "cni-loopback-" + sandbox + "-lo"); !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// output starts a program of the cluster and waits for it. Its output is part of
// the error if it fails.
func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(name), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
