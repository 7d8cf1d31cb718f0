// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
	"strings"
)

// stat reads process ID, parent and state of a process; zero values when there
// is none.
func stat(pid string) (id, parent int, state string) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0, ""
	}
	// The name of the program, in parentheses, may hold anything.
	text := string(data)
	rest := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	id, _ = strconv.Atoi(pid)
	parent, _ = strconv.Atoi(rest[1])
	return id, parent, rest[0]
}

func itoa(n int) string { return strconv.Itoa(n) }
