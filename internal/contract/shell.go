// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"strings"
)

// shells read their arguments as a program.
var shells = []string{
	"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "csh", "tcsh", "fish", "pwsh", "powershell", "cmd",
}

// launchers start the program that a later word names.
var launchers = []string{
	"busybox", "toybox", "env", "nice", "nohup", "timeout", "setsid", "sudo", "xargs", "time", "stdbuf", "chroot", "su",
}

// StartsShell reports whether a command starts a shell: directly, or through a
// program that starts another one. It looks at names only, so that it finds
// what an author wrote and not what somebody hid.
func StartsShell(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	if slices.Contains(shells, baseName(argv[0])) {
		return true
	}
	return slices.Contains(launchers, baseName(argv[0])) && slices.ContainsFunc(argv[1:], func(w string) bool {
		return slices.Contains(shells, baseName(w))
	})
}

// baseName is the name of a program without its folder.
func baseName(program string) string {
	return strings.TrimSuffix(program[strings.LastIndexByte(program, '/')+1:], ".exe")
}
