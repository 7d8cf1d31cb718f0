// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe is the tool of the end-to-end tests: it ends, waits or writes
// as its words say.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: probe print|fail|sleep|flood|env VALUE")
		os.Exit(2)
	}
	value := os.Args[2]
	number, _ := strconv.Atoi(value) // 0 where the value is text
	switch os.Args[1] {
	case "print":
		fmt.Println(value)
	case "fail":
		fmt.Fprintln(os.Stderr, "the probe was told to fail")
		os.Exit(number)
	case "sleep":
		time.Sleep(time.Duration(number) * time.Second)
		fmt.Println("slept")
	case "flood":
		fmt.Print(strings.Repeat("x", number))
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	default:
		fmt.Fprintln(os.Stderr, "the probe knows no such word")
		os.Exit(2)
	}
}
