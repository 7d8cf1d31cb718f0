// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

func testLimits() attest.Limits {
	return attest.Limits{TimeoutSeconds: 60, OutputMaxBytes: 10 << 20, StatusMaxBytes: 32 << 10}
}

// toolCall is a command effect that runs one of the tools of this binary.
func toolCall(words ...string) contract.CommandCall {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return contract.CommandCall{Image: "unused", Argv: append([]string{self, asTool}, words...), WorkingDir: "/"}
}

func testCommands() commandRunner {
	return commandRunner{limits: testLimits(), grace: 10 * time.Second}
}

func show(t *testing.T, rep report) (stdout, stderr string) {
	t.Helper()
	if rep.stdout == nil || rep.stderr == nil {
		t.Fatalf("no output was read: %s %s: %v", rep.outcome, rep.reason, rep.cause)
	}
	stdout, _ = rep.stdout.text(32 << 10)
	stderr, _ = rep.stderr.text(32 << 10)
	return stdout, stderr
}

func wantEnding(t *testing.T, rep report, outcome attest.Outcome, reason Reason) {
	t.Helper()
	if rep.outcome != outcome || rep.reason != reason {
		t.Errorf("ended %s %q (%v), want %s %q", rep.outcome, rep.reason, rep.cause, outcome, reason)
	}
}

func TestCommand_PassesTheWordsUnchanged(t *testing.T) {
	t.Parallel()
	words := []string{
		"", " ", "two words", "$(touch /tmp/x)", "`id`", ";rm -rf /", "|", "&&", ">out", "*", "~", "a\nb", "\t", `"`, `'`, `\`, "$HOME",
		"--flag=x", "é", "\u202e", strings.Repeat("x", 131071),
	}
	rep := testCommands().run(t.Context(), toolCall(append([]string{"describe"}, words...)...))
	wantEnding(t, rep, attest.OutcomeSucceeded, "")
	// The last word makes the description longer than what is reported.
	got := described(t, toolCall(append([]string{"describe"}, words[:len(words)-1]...)...), testCommands())
	if diff := cmp.Diff(words[:len(words)-1], got.Args[3:]); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}

func described(t *testing.T, call contract.CommandCall, c commandRunner) description {
	t.Helper()
	rep := c.run(t.Context(), call)
	wantEnding(t, rep, attest.OutcomeSucceeded, "")
	text, _ := show(t, rep)
	var d description
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("the description is cut or broken: %v", err)
	}
	return d
}

func TestCommand_GivesTheProgramNothingButWhatTheEffectSays(t *testing.T) {
	t.Setenv("LEAKED", "from the runner")
	call := toolCall("describe")
	call.WorkingDir = t.TempDir()
	call.Env = []contract.ResolvedVariable{
		{Name: "CONSTANT", Value: new("a=b c")},
		{Name: "TOKEN", Secret: &contract.ResolvedSecret{Name: "token"}},
		{Name: "HOME", Value: new("/elsewhere")},
	}
	c := testCommands()
	c.secrets = secretsFrom([]string{"ASSENT_SECRET_token=s3cret", "ASSENT_SECRET_other=0ther", "TOKEN=wrong"})
	c.imagePath = "/opt/tool/bin:/bin"
	got := described(t, call, c)
	slices.Sort(got.Env)
	want := description{
		Args: call.Argv, Env: []string{"CONSTANT=a=b c", "HOME=/elsewhere", "PATH=/opt/tool/bin:/bin", "TOKEN=s3cret"},
		Dir: call.WorkingDir, FDs: []string{"0", "1", "2"}, Stdin: "/dev/null", Leads: true,
	}
	// The Go runtime of the tool opens descriptors of its own for its poller.
	got.FDs = slices.DeleteFunc(got.FDs, func(fd string) bool { n, _ := strconv.Atoi(fd); return n > 2 && runtimeFD(t, n) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the program saw (-want +got):\n%s", diff)
	}
}

// runtimeFD reports whether a descriptor number is one that a fresh Go program
// has by itself, which a program started with only three shows.
func runtimeFD(t *testing.T, fd int) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, asTool, "describe").Output()
	if err != nil {
		t.Fatal(err)
	}
	var d description
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	return slices.Contains(d.FDs, strconv.Itoa(fd))
}

func TestCommand_HasAPathAndAHomeByDefault(t *testing.T) {
	t.Parallel()
	got := described(t, toolCall("describe"), testCommands())
	slices.Sort(got.Env)
	if diff := cmp.Diff([]string{"HOME=/work", "PATH=" + defaultPath}, got.Env); diff != "" {
		t.Error(diff)
	}
}

func TestCommand_ReportsHowTheProgramEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		words   []string
		outcome attest.Outcome
		reason  Reason
		code    int32
	}{
		"success":            {[]string{"exit", "0"}, attest.OutcomeSucceeded, "", 0},
		"a failure":          {[]string{"exit", "1"}, attest.OutcomeFailed, ReasonNonZeroExit, 1},
		"our own exit codes": {[]string{"exit", "75"}, attest.OutcomeFailed, ReasonNonZeroExit, 75},
		"the largest code":   {[]string{"exit", "255"}, attest.OutcomeFailed, ReasonNonZeroExit, 255},
		"a signal":           {[]string{"kill"}, attest.OutcomeFailed, ReasonKilledBySignal, 137},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rep := testCommands().run(t.Context(), toolCall(tc.words...))
			wantEnding(t, rep, tc.outcome, tc.reason)
			if rep.exitCode == nil || *rep.exitCode != tc.code {
				t.Errorf("exit code %v, want %d", rep.exitCode, tc.code)
			}
		})
	}
}

func TestCommand_KeepsStdoutAndStderrApart(t *testing.T) {
	t.Parallel()
	stdout, stderr := show(t, testCommands().run(t.Context(), toolCall("say", "out", "err")))
	if stdout != "out" || stderr != "err" {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
}

func TestCommand_DigestsOutputThatItDoesNotKeep(t *testing.T) {
	t.Parallel()
	const times = 5 << 20
	rep := testCommands().run(t.Context(), toolCall("repeat", "0123456789abcdef", strconv.Itoa(times/16)))
	wantEnding(t, rep, attest.OutcomeSucceeded, "")
	whole := sha256.Sum256([]byte(strings.Repeat("0123456789abcdef", times/16)))
	if got := rep.stdout.sum(); got != hex.EncodeToString(whole[:]) || rep.stdout.length != times {
		t.Errorf("digest %s over %d bytes", got, rep.stdout.length)
	}
	text, cut := rep.stdout.text(32 << 10)
	if len(text) != 32<<10 || !cut || cap(rep.stdout.kept) > 1<<20 {
		t.Errorf("%d bytes of text, cut %v, %d bytes of memory", len(text), cut, cap(rep.stdout.kept))
	}
}

func TestCommand_StopsAProgramThatSaysTooMuch(t *testing.T) {
	t.Parallel()
	c := testCommands()
	c.limits.OutputMaxBytes = 1000
	rep := c.run(t.Context(), toolCall("repeat", "x", strconv.Itoa(64<<20)))
	wantEnding(t, rep, attest.OutcomeFailed, ReasonOutputTooLarge)
	if _, cut := rep.stdout.text(10); rep.stdout.length != 1000 || !cut {
		t.Errorf("%d bytes were read, cut %v", rep.stdout.length, cut)
	}
	c.limits.OutputMaxBytes = 1000
	exactly := c.run(t.Context(), toolCall("repeat", "x", "1000"))
	wantEnding(t, exactly, attest.OutcomeSucceeded, "")
}

// stopWhenReady runs a tool and ends its context as soon as the tool has said
// that it is ready, by opening the pipe that its last word names.
func stopWhenReady(t *testing.T, c commandRunner, cause error, words ...string) report {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	opened := make(chan error, 1)
	go func() {
		f, err := os.Open(pipe)
		if err == nil {
			err = f.Close()
		}
		opened <- err
	}()
	done := make(chan report, 1)
	go func() { done <- c.run(ctx, toolCall(append(words, pipe)...)) }()
	select {
	case err := <-opened:
		if err != nil {
			t.Fatal(err)
		}
	case rep := <-done:
		t.Fatalf("the tool ended before it was ready: %s %s", rep.outcome, rep.reason)
	}
	cancel(cause)
	return <-done
}

func TestCommand_AsksAProgramToStopBeforeItIsKilled(t *testing.T) {
	t.Parallel()
	rep := stopWhenReady(t, testCommands(), errTimedOut, "polite")
	wantEnding(t, rep, attest.OutcomeTimedOut, ReasonTimedOut)
	if stdout, _ := show(t, rep); stdout != "bye\n" {
		t.Errorf("stdout %q: the program was not asked", stdout)
	}
	if rep.exitCode != nil {
		t.Errorf("exit code %d of a program that was stopped", *rep.exitCode)
	}
}

func TestCommand_KillsTheWholeGroupOfAProgramThatDoesNotStop(t *testing.T) {
	t.Parallel()
	c := testCommands()
	c.grace = 50 * time.Millisecond
	// The child holds the output open: its end shows that the child is dead.
	rep := stopWhenReady(t, c, errTimedOut, "stubborn", "parent")
	wantEnding(t, rep, attest.OutcomeTimedOut, ReasonTimedOut)
	if !rep.complete {
		t.Error("the output was still open after the group was killed")
	}
}

func TestCommand_StopsWhenThePodStops(t *testing.T) {
	t.Parallel()
	rep := stopWhenReady(t, testCommands(), errTerminated, "polite")
	wantEnding(t, rep, attest.OutcomeFailed, ReasonTerminated)
}

func TestCommand_EndsWithItsProgramAndNotWithWhatThatLeft(t *testing.T) {
	t.Parallel()
	rep := testCommands().run(t.Context(), toolCall("background", "group"))
	wantEnding(t, rep, attest.OutcomeSucceeded, "")
	if !rep.complete {
		t.Error("the child in the group was not killed")
	}
}

func TestCommand_SaysWhenSomethingElseHoldsTheOutput(t *testing.T) {
	t.Parallel()
	c := testCommands()
	c.grace = 50 * time.Millisecond
	rep := c.run(t.Context(), toolCall("background", "session"))
	wantEnding(t, rep, attest.OutcomeFailed, ReasonOutputIncomplete)
	stdout, _ := show(t, rep)
	pid, err := strconv.Atoi(strings.TrimSpace(stdout))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("killing the child that was left: %v", err)
	}
}

func TestCommand_LeavesNothingBehindInItsContainer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to make a PID namespace; the real container is one")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, asTool, "pid1", "-")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestCommand_RefusesBeforeAnyProgramRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	plain := write("plain", "text", 0o644)
	script := write("script", "#!/no/such/interpreter\n", 0o755)
	noFormat := write("noformat", "echo a shell would run this\n", 0o755)
	for name, tc := range map[string]struct {
		change func(*contract.CommandCall)
		want   Reason
	}{
		"no words":                       {func(c *contract.CommandCall) { c.Argv = nil }, ReasonEffectInvalid},
		"an empty program":               {func(c *contract.CommandCall) { c.Argv = []string{""} }, ReasonEffectInvalid},
		"no working directory":           {func(c *contract.CommandCall) { c.WorkingDir = "" }, ReasonEffectInvalid},
		"a working directory that is no": {func(c *contract.CommandCall) { c.WorkingDir = plain }, ReasonWorkingDirMissing},
		"a program that does not exist":  {func(c *contract.CommandCall) { c.Argv = []string{dir + "/none"} }, ReasonProgramNotFound},
		"a program below a file":         {func(c *contract.CommandCall) { c.Argv = []string{plain + "/none"} }, ReasonProgramNotFound},
		"a program not in PATH":          {func(c *contract.CommandCall) { c.Argv = []string{"no-such-program"} }, ReasonProgramNotFound},
		"a file without the right":       {func(c *contract.CommandCall) { c.Argv = []string{plain} }, ReasonProgramNotExecutable},
		"a directory":                    {func(c *contract.CommandCall) { c.Argv = []string{dir} }, ReasonProgramNotExecutable},
		"a script without interpreter":   {func(c *contract.CommandCall) { c.Argv = []string{script} }, ReasonProgramNotExecutable},
		"a script without a first line":  {func(c *contract.CommandCall) { c.Argv = []string{noFormat} }, ReasonProgramNotExecutable},
		"a word that is too long":        {func(c *contract.CommandCall) { c.Argv = append(c.Argv, strings.Repeat("x", 131072)) }, ReasonStartFailed},
		"a word with NUL":                {func(c *contract.CommandCall) { c.Argv = append(c.Argv, "a\x00b") }, ReasonStartFailed},
		"a secret that is not there": {func(c *contract.CommandCall) {
			c.Env = []contract.ResolvedVariable{{Name: "X", Secret: &contract.ResolvedSecret{Name: "x"}}}
		}, ReasonSecretMissing},
		"a variable without a value": {func(c *contract.CommandCall) { c.Env = []contract.ResolvedVariable{{Name: "X"}} }, ReasonEffectInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marker := filepath.Join(t.TempDir(), "marker")
			call := toolCall("touch", marker)
			tc.change(&call)
			rep := testCommands().run(t.Context(), call)
			wantEnding(t, rep, attest.OutcomeRefused, tc.want)
			if _, err := os.Stat(marker); !errors.Is(err, os.ErrNotExist) {
				t.Error("the program ran")
			}
		})
	}
}

func TestFindProgram_SearchesThePathOfTheProgramItself(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	for _, file := range []string{dir + "/tool", other + "/tool"} {
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(other+"/data", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		program, path, want string
		reason              Reason
	}{
		"the first directory wins":              {"tool", other + ":" + dir, other + "/tool", ""},
		"relative directories do not count":     {"tool", ".:" + dir, dir + "/tool", ""},
		"empty directories do not count":        {"tool", ":" + dir, dir + "/tool", ""},
		"a relative program is below the dir":   {"./tool", "", dir + "/tool", ""},
		"an absolute program needs no path":     {other + "/tool", "", other + "/tool", ""},
		"a file that cannot run does not count": {"data", other, "", ReasonProgramNotExecutable},
		"no path finds nothing":                 {"tool", "", "", ReasonProgramNotFound},
	} {
		got, err := findProgram(tc.program, dir, tc.path)
		var r *refusal
		if errors.As(err, &r); (r == nil) != (tc.reason == "") || (r != nil && r.reason != tc.reason) {
			t.Errorf("%s: error %v, want %q", name, err, tc.reason)
		} else if err == nil && got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestHarden_KeepsTheMemoryToItself(t *testing.T) {
	t.Parallel()
	rep := testCommands().run(t.Context(), toolCall("harden", "-"))
	if stdout, _ := show(t, rep); stdout != "0 0 0" {
		t.Errorf("dumpable and core limits = %q, want 0 0 0", stdout)
	}
}

func TestCommand_FindsItsProgramInThePathThatTheEffectSets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "only-here")); err != nil {
		t.Fatal(err)
	}
	call := toolCall("describe")
	call.Argv[0] = "only-here"
	call.Env = []contract.ResolvedVariable{{Name: "PATH", Value: new(dir)}}
	got := described(t, call, testCommands())
	if diff := cmp.Diff([]string{"PATH=" + dir}, slices.DeleteFunc(got.Env, func(e string) bool { return strings.HasPrefix(e, "HOME=") })); diff != "" {
		t.Error(diff)
	}
	if got.Args[0] != "only-here" {
		t.Errorf("the program was called %q; its first word must stay as it is", got.Args[0])
	}
}
