// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asTool as the first argument makes the test binary the tool of a call.
const asTool = "as-tool"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asTool {
		// Past the testing package, which would write about coverage.
		syscall.Exit(tools[os.Args[2]](os.Args[3:]))
	}
	if os.Getenv("HTTPS_PROXY") != noProxy {
		startAgain()
	}
	os.Exit(m.Run())
}

// noProxy is a proxy that is not there: whatever asks the environment for one
// fails.
const noProxy = "http://127.0.0.1:1"

// startAgain runs the tests in an environment that names the proxy. net/http
// reads its environment once, and a package may have made it do so already.
func startAgain() {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			env = append(env, entry)
		}
	}
	env = append(env, "HTTP_PROXY="+noProxy, "HTTPS_PROXY="+noProxy)
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, os.Args, env)
	}
	panic(err)
}

// tools are the programs that tests run as effects.
var tools = map[string]func(args []string) int{
	"describe":   describe,
	"exit":       func(args []string) int { return number(args[0]) },
	"say":        func(args []string) int { fmt.Print(args[0]); fmt.Fprint(os.Stderr, args[1]); return 0 },
	"repeat":     repeat,
	"kill":       func([]string) int { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); return forever() },
	"touch":      touch,
	"stubborn":   stubborn,
	"polite":     polite,
	"background": background,
	"sleep":      func([]string) int { return forever() },
	"harden":     harden,
	"leave":      leave,
	"pid1":       pidOne,
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// forever is a tool that does not end by itself.
func forever() int {
	for {
		_ = unix.Pause()
	}
}

// description is everything that a program can see of how it was started.
type description struct {
	Args  []string
	Env   []string
	Dir   string
	FDs   []string
	Stdin string
	// Leads says that the program leads its own session.
	Leads bool
}

func describe([]string) int {
	dir, _ := os.Getwd()
	d := description{Args: os.Args, Env: os.Environ(), Dir: dir}
	for fd := range 64 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			d.FDs = append(d.FDs, strconv.Itoa(fd))
		}
	}
	d.Stdin, _ = os.Readlink("/proc/self/fd/0")
	sid, _ := unix.Getsid(0)
	d.Leads = sid == os.Getpid()
	_ = json.NewEncoder(os.Stdout).Encode(d)
	return 0
}

// repeat writes its first argument as often as the second says.
func repeat(args []string) int {
	fmt.Print(strings.Repeat(args[0], number(args[1])))
	return 0
}

func touch(args []string) int {
	f, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	_, _ = f.WriteString("x")
	return 0
}

// ready tells the test, which waits for a writer of the pipe, that the tool has
// come so far.
func ready(pipe string) {
	f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	_ = f.Close()
}

// stubborn ignores TERM, as does its child, which holds the output open.
func stubborn(args []string) int {
	signal.Ignore(syscall.SIGTERM)
	if args[0] == "parent" {
		child := exec.Command(os.Args[0], asTool, "stubborn", args[1])
		child.Stdout = os.Stdout
		_ = child.Start()
	} else {
		ready(args[0])
	}
	return forever()
}

// polite ends on TERM with a code of its own.
func polite(args []string) int {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	ready(args[0])
	<-c
	fmt.Println("bye")
	return 3
}

// background leaves a child that holds the output open and ends itself. With
// "session" the child leaves the process group as well.
func background(args []string) int {
	child := exec.Command(os.Args[0], asTool, "sleep")
	child.Stdout = os.Stdout
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: args[0] == "session"}
	if err := child.Start(); err != nil {
		return 1
	}
	fmt.Println(child.Process.Pid)
	return 0
}

func harden([]string) int {
	if err := Harden(); err != nil {
		fmt.Println(err)
		return 1
	}
	dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	var core unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_CORE, &core)
	fmt.Print(dumpable, core.Cur, core.Max)
	return 0
}

// pidOne must run as the first process of a PID namespace. It carries out a
// command that leaves a child in a session of its own.
func pidOne([]string) int {
	if os.Getpid() != 1 {
		return 99
	}
	r := commandRunner{limits: testLimits(), grace: DefaultKillGrace}
	rep := r.run(context.Background(), toolCall("background", "session"))
	if rep.reason != "" {
		fmt.Println(rep.reason)
		return 1
	}
	if err := unix.Kill(-1, 0); !errors.Is(err, unix.ESRCH) {
		fmt.Println("something is left in the namespace:", err)
		return 1
	}
	return 0
}
