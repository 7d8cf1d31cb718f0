// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/assent-dev/assent/internal/attest"
)

// leave is a tool that prints "printed", leaves something at its second argument
// and ends with the exit code of its third.
func leave(args []string) int {
	fmt.Print("printed")
	what, at := args[0], args[1]
	var err error
	switch kind, rest, _ := strings.Cut(what, " "); kind {
	case "file":
		err = os.WriteFile(at, []byte(rest), 0o600)
	case "large":
		err = os.WriteFile(at, make([]byte, number(rest)), 0o600)
	case "link":
		err = os.Symlink(rest, at)
	case "pipe":
		err = unix.Mkfifo(at, 0o600)
	case "directory":
		err = os.Mkdir(at, 0o700)
	}
	if err != nil {
		panic(err)
	}
	return number(args[2])
}

// fileOutcome is what an approver reads of a call with an output file.
type fileOutcome struct {
	Outcome attest.Outcome
	Reason  Reason
	Output  string
}

func TestOutputFile_IsTheOutputOfAProgramThatSucceeded(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		leave, at, file, code string
		want                  fileOutcome
	}{
		"a file":                     {"file <xml/>", "output", "output", "0", fileOutcome{attest.OutcomeSucceeded, "", "<xml/>"}},
		"an empty file":              {"file", "output", "output", "0", fileOutcome{attest.OutcomeSucceeded, "", ""}},
		"a file in a directory":      {"file x", "sub/output", "sub/output", "0", fileOutcome{attest.OutcomeSucceeded, "", "x"}},
		"a failure beside a file":    {"file x", "output", "output", "3", fileOutcome{attest.OutcomeFailed, ReasonNonZeroExit, "printed"}},
		"no file":                    {"nothing", "output", "output", "0", fileOutcome{attest.OutcomeFailed, ReasonOutputFileMissing, "printed"}},
		"no directory":               {"nothing", "output", "other/output", "0", fileOutcome{attest.OutcomeFailed, ReasonOutputFileMissing, "printed"}},
		"a link to what others have": {"link " + secret, "output", "output", "0", fileOutcome{attest.OutcomeFailed, ReasonOutputFileUnusable, "printed"}},
		"a link to nothing":          {"link nothing", "output", "output", "0", fileOutcome{attest.OutcomeFailed, ReasonOutputFileUnusable, "printed"}},
		"a link on the way":          {"link " + filepath.Dir(secret), "way", "way/secret", "0", fileOutcome{attest.OutcomeFailed, ReasonOutputFileUnusable, "printed"}},
		"a file on the way":          {"file x", "way", "way/output", "0", fileOutcome{attest.OutcomeFailed, ReasonOutputFileUnusable, "printed"}},
		"a pipe without a writer":    {"pipe", "output", "output", "0", fileOutcome{attest.OutcomeFailed, ReasonOutputFileUnusable, "printed"}},
		"a directory":                {"directory", "output", "output", "0", fileOutcome{attest.OutcomeFailed, ReasonOutputFileUnusable, "printed"}},
		"more than may be read":      {"large 1001", "output", "output", "0", fileOutcome{attest.OutcomeFailed, ReasonOutputTooLarge, strings.Repeat("\x00", 100)}},
		"as much as may be read":     {"large 1000", "output", "output", "0", fileOutcome{attest.OutcomeSucceeded, "", strings.Repeat("\x00", 100)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commands := testCommands()
			commands.work = t.TempDir()
			commands.limits.OutputMaxBytes, commands.limits.StatusMaxBytes = 1000, 100
			if err := os.Mkdir(filepath.Join(commands.work, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			call := toolCall("leave", c.leave, filepath.Join(commands.work, c.at), c.code)
			call.OutputFile = "/work/" + c.file
			rep := commands.run(t.Context(), call)
			text, _ := rep.stdout.text(100)
			if diff := cmp.Diff(c.want, fileOutcome{rep.outcome, rep.reason, text}); diff != "" {
				t.Errorf("ending (-want +got), cause %v:\n%s", rep.cause, diff)
			}
			if rep.cause != nil && strings.Contains(rep.cause.Error(), commands.work) {
				t.Errorf("the error shows a path: %v", rep.cause)
			}
		})
	}
}

// The digest and the length are those of what is the output.
func TestOutputFile_IsWhatDigestAndLengthCover(t *testing.T) {
	t.Parallel()
	commands := testCommands()
	commands.work = t.TempDir()
	call := toolCall("leave", "file 0123456789", filepath.Join(commands.work, "o"), "0")
	call.OutputFile = "/work/o"
	rep := commands.run(t.Context(), call)
	sum := sha256.Sum256([]byte("0123456789"))
	if rep.stdout.length != 10 || rep.stdout.sum() != hex.EncodeToString(sum[:]) {
		t.Errorf("length %d, digest %s", rep.stdout.length, rep.stdout.sum())
	}
}

// The path is checked again where it is opened.
func TestOutputFile_RefusesAPathOutsideBeforeTheProgramStarts(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"/etc/passwd", "work/o", "/work", "/work/", "/work/../etc/passwd", "/work/./o", "/work//o", "/work/a b", "/works/o"} {
		started := filepath.Join(t.TempDir(), "started")
		call := toolCall("leave", "file x", started, "0")
		call.OutputFile = file
		wantEnding(t, testCommands().run(t.Context(), call), attest.OutcomeRefused, ReasonEffectInvalid)
		if _, err := os.Stat(started); err == nil {
			t.Errorf("%s: the program ran", file)
		}
	}
}
