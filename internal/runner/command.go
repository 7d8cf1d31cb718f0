// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

const (
	// homeDir is the directory that belongs to the call alone.
	homeDir = "/work"
	// defaultPath is used where the image does not set PATH.
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// errTimedOut and errTerminated are the causes with which the context of an
// effect ends.
var (
	errTimedOut   = errors.New("the effect reached its time limit")
	errTerminated = errors.New("the Pod was asked to stop")
)

// commandRunner starts programs.
type commandRunner struct {
	// imagePath is PATH as the tool's image sets it.
	imagePath string
	secrets   secretStore
	limits    attest.Limits
	// work is the directory that belongs to the call.
	work string
	// grace is how long a program may take to end after TERM before KILL, and
	// how long its output may stay open after it ended.
	grace time.Duration
}

// run carries out a command effect: the words of argv become the arguments of
// one program, through execve and never through a shell.
func (c commandRunner) run(ctx context.Context, call contract.CommandCall) report {
	cmd, err := c.prepare(call)
	if err != nil {
		return refusedBy(err)
	}
	stdout, err := newStream(newCapture(c.limits.OutputMaxBytes, c.limits.StatusMaxBytes))
	if err != nil {
		return refused(ReasonStartFailed, err)
	}
	stderr, err := newStream(newCapture(c.limits.OutputMaxBytes, stderrMaxBytes))
	if err != nil {
		stdout.abandon()
		return refused(ReasonStartFailed, err)
	}
	cmd.Stdout, cmd.Stderr = stdout.write, stderr.write

	child, err := startChild(cmd)
	stdout.started()
	stderr.started()
	if err != nil {
		stdout.finish(0)
		stderr.finish(0)
		return refused(startReason(err), errors.New("starting the program failed"))
	}
	cause := child.supervise(ctx, c.grace, stdout, stderr)
	complete := stdout.finish(c.grace)
	complete = stderr.finish(c.grace) && complete

	r := exitReport(child.state, cause, complete)
	r.stdout, r.stderr, r.complete = stdout.capture, stderr.capture, complete
	if call.OutputFile != "" && r.outcome == attest.OutcomeSucceeded {
		return c.readOutputFile(call.OutputFile, r)
	}
	return r
}

// prepare resolves everything that can be wrong before a process exists.
func (c commandRunner) prepare(call contract.CommandCall) (*exec.Cmd, error) {
	if len(call.Argv) == 0 || call.Argv[0] == "" || call.WorkingDir == "" {
		return nil, refuse(ReasonEffectInvalid, "command: argv or workingDir is empty")
	}
	if err := checkOutputFile(call.OutputFile); err != nil {
		return nil, err
	}
	env, err := c.environment(call.Env)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(call.WorkingDir); err != nil || !info.IsDir() {
		return nil, refuse(ReasonWorkingDirMissing, "command: workingDir is not a directory of the image")
	}
	program, err := findProgram(call.Argv[0], call.WorkingDir, pathOf(env))
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{
		Path: program,
		Args: call.Argv,
		Env:  env,
		Dir:  call.WorkingDir,
		SysProcAttr: &syscall.SysProcAttr{
			// A session of its own is a process group of its own, which can be
			// killed as one, and has no terminal.
			Setsid: true,
			// Should the runner die, the program must not go on unobserved.
			Pdeathsig: syscall.SIGKILL,
		},
	}, nil
}

// environment is PATH, HOME and what the effect says. The runner's own
// variables, which hold every secret of the Pod, stay with the runner.
func (c commandRunner) environment(vars []contract.ResolvedVariable) ([]string, error) {
	path := c.imagePath
	if path == "" {
		path = defaultPath
	}
	env := []string{"PATH=" + path, "HOME=" + homeDir}
	for _, v := range vars {
		switch {
		case v.Value != nil && v.Secret == nil:
			env = append(env, v.Name+"="+*v.Value)
		case v.Secret != nil && v.Value == nil:
			value, err := c.secrets.value(v.Secret.Name)
			if err != nil {
				return nil, err
			}
			env = append(env, v.Name+"="+value)
		default:
			return nil, refuse(ReasonEffectInvalid, "command: env %s: exactly one of value and secret must be set", v.Name)
		}
	}
	// Of two variables of one name os/exec passes the last.
	return env, nil
}

// pathOf is the PATH that the program will see.
func pathOf(env []string) string {
	for _, entry := range slices.Backward(env) {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			return path
		}
	}
	return defaultPath
}

// findProgram looks a program up as execvp does, in the PATH that the program
// itself will see. Relative entries of PATH are ignored: they would make the
// program depend on the working directory.
func findProgram(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		return file, checkProgram(file)
	}
	found := error(nil)
	for _, entry := range filepath.SplitList(path) {
		if !filepath.IsAbs(entry) {
			continue
		}
		file := filepath.Join(entry, name)
		err := checkProgram(file)
		if err == nil {
			return file, nil
		}
		var r *refusal
		if errors.As(err, &r) && r.reason == ReasonProgramNotExecutable {
			found = err
		}
	}
	if found != nil {
		return "", found
	}
	return "", refuse(ReasonProgramNotFound, "command: argv[0] is not in PATH; name it by an absolute path or set PATH in command.env")
}

func checkProgram(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return refuse(ReasonProgramNotFound, "command: argv[0] does not exist in the image")
	case err != nil || info.IsDir() || info.Mode()&0o111 == 0:
		return refuse(ReasonProgramNotExecutable, "command: argv[0] is not an executable file")
	default:
		return nil
	}
}

func startReason(err error) Reason {
	switch {
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return ReasonProgramNotExecutable
	case errors.Is(err, fs.ErrNotExist):
		// The file exists, so what is missing is its interpreter or loader.
		return ReasonProgramNotExecutable
	default:
		return ReasonStartFailed
	}
}

// exitReport says how a program ended. What the runner did to it explains its
// exit status and therefore comes first.
func exitReport(state *os.ProcessState, cause error, complete bool) report {
	code, bySignal := exitCode(state)
	switch {
	case errors.Is(cause, errTimedOut):
		return report{outcome: attest.OutcomeTimedOut, reason: ReasonTimedOut, cause: cause}
	case errors.Is(cause, errOutputTooLarge):
		return report{outcome: attest.OutcomeFailed, reason: ReasonOutputTooLarge, cause: cause}
	case cause != nil:
		return report{outcome: attest.OutcomeFailed, reason: ReasonTerminated, cause: cause}
	case bySignal:
		return report{outcome: attest.OutcomeFailed, reason: ReasonKilledBySignal, exitCode: &code}
	case code != 0:
		return report{outcome: attest.OutcomeFailed, reason: ReasonNonZeroExit, exitCode: &code}
	case !complete:
		return report{outcome: attest.OutcomeFailed, reason: ReasonOutputIncomplete, exitCode: &code}
	default:
		return report{outcome: attest.OutcomeSucceeded, exitCode: &code}
	}
}

// exitCode is the program's own code, or 128 plus the number of the signal
// that ended it, as shells report it.
func exitCode(state *os.ProcessState) (code int32, bySignal bool) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal()), true //nolint:gosec // signals are below 128
	}
	return int32(state.ExitCode()), false //nolint:gosec // exit codes are below 256
}

func refusedBy(err error) report {
	if r, ok := errors.AsType[*refusal](err); ok {
		return refused(r.reason, r.cause)
	}
	// An error without a reason may quote values.
	return refused(ReasonEffectInvalid, errors.New("the effect cannot be carried out"))
}
