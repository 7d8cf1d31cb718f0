// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/journal"
)

const auditOrigin = "assent.test/audit"

var auditTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// auditLog is a log on disk with the file of its public key.
type auditLog struct {
	dir, key string
	keys     *attest.Keyring
}

func newAuditLog(t *testing.T, seed byte) auditLog {
	t.Helper()
	keys, err := attest.NewKeyring(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return auditLog{
		dir:  filepath.Join(t.TempDir(), "log"),
		key:  writeFile(t, string(attest.EncodePublicKeysPEM(keys.PublicKeys()...))),
		keys: keys,
	}
}

// write opens the log, appends, and closes it.
func (l auditLog) write(t *testing.T, data ...audit.Data) {
	t.Helper()
	j, err := journal.Open(t.Context(), journal.Options{
		Dir: l.dir, Origin: auditOrigin, Keys: l.keys, Software: "test", Now: func() time.Time { return auditTime }, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range data {
		if _, err := j.Append(t.Context(), audit.Record{
			ID: fmt.Sprintf("%032x", i), Time: auditTime, Data: d,
			Proposal: &attest.ObjectRef{Namespace: "agents", Name: fmt.Sprintf("p-%d", i), UID: fmt.Sprintf("u-%d", i)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (l auditLog) checkpoint(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run runs an audit command on the log.
func (l auditLog) run(t *testing.T, command string, args ...string) result {
	t.Helper()
	return runWith(t, "", append([]string{"audit", command, l.dir, "--key", l.key}, args...)...)
}

func largeAlarm() audit.IntegrityAlarm {
	return audit.IntegrityAlarm{Reason: "EnforcementDrift", Objects: []string{strings.Repeat("x", 40<<10)}}
}

func TestAuditVerify_ReportsAWholeLog(t *testing.T) {
	t.Parallel()
	l := newAuditLog(t, 1)
	l.write(t, audit.Denied{Reason: "Forbidden"}, largeAlarm())
	seen := filepath.Join(t.TempDir(), "seen")
	got := l.run(t, "verify", "--save", seen)
	if got.Code != 0 || got.Err != "" || !strings.HasSuffix(got.Out, "\nOK\n") {
		t.Fatalf("got %+v", got)
	}
	for _, line := range []string{"log          assent.test/audit", "records      5 of 5 verified", "writers      1, with 0 numbers left out by failed writes"} {
		if !strings.Contains(got.Out, line+"\n") {
			t.Errorf("no line %q in\n%s", line, got.Out)
		}
	}
	if text, err := os.ReadFile(seen); err != nil || string(text) != l.checkpoint(t) {
		t.Errorf("remembered %q, %v", text, err)
	}
	l.write(t, audit.Denied{Reason: "Forbidden"})
	server := httptest.NewServer(http.FileServer(http.Dir(l.dir)))
	defer server.Close()
	got = runWith(t, "", "audit", "verify", server.URL, "--key", l.key, "--checkpoint", seen, "--origin", auditOrigin, "-o", "json")
	var report struct {
		OK         bool
		FirstBad   *struct{}
		Size       uint64
		Remembered int
		Records    map[string]int
	}
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil || got.Code != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	if !report.OK || report.FirstBad != nil || report.Size != 7 || report.Remembered != 1 || report.Records["Denied"] != 2 {
		t.Errorf("report %+v", report)
	}
}

func TestAuditVerify_RefusesADamagedLogAndNamesTheIndex(t *testing.T) {
	t.Parallel()
	other := newAuditLog(t, 2)
	tests := map[string]struct {
		damage func(t *testing.T, l auditLog) []string
		want   string
	}{
		"a flipped byte": {func(t *testing.T, l auditLog) []string {
			name := filepath.Join(l.dir, "tile", "entries", "000.p", "4")
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)-300] ^= 1
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "FAILED       first bad index 3: "},
		"everything removed": {func(t *testing.T, l auditLog) []string {
			if err := os.Remove(filepath.Join(l.dir, "checkpoint")); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "FAILED       first bad index 0: CheckpointMissing"},
		"another key": {
			func(_ *testing.T, _ auditLog) []string { return []string{"--key", other.key} },
			"FAILED       first bad index 0: UntrustedKey",
		},
		"another name": {
			func(_ *testing.T, _ auditLog) []string { return []string{"--origin", "assent.test/other"} },
			"FAILED       first bad index 0: ForeignLog",
		},
		"fewer records than remembered": {func(t *testing.T, l auditLog) []string {
			earlier := filepath.Join(t.TempDir(), "earlier")
			if err := os.CopyFS(earlier, os.DirFS(l.dir)); err != nil {
				t.Fatal(err)
			}
			l.write(t)
			seen := writeFile(t, l.checkpoint(t))
			if err := os.RemoveAll(l.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(earlier, l.dir); err != nil {
				t.Fatal(err)
			}
			return []string{"--checkpoint", seen}
		}, "FAILED       first bad index 4: Truncated"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newAuditLog(t, 1)
			l.write(t, audit.Denied{Reason: "a"}, audit.Denied{Reason: "b"}, audit.Denied{Reason: "c"})
			extra := tc.damage(t, l)
			saved := filepath.Join(t.TempDir(), "saved")
			got := l.run(t, "verify", append(extra, "--save", saved)...)
			if got.Code != 2 || got.Err != "" || !strings.Contains(got.Out, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
			if _, err := os.Stat(saved); err == nil {
				t.Error("the checkpoint of a damaged log was remembered")
			}
			if listed := l.run(t, "list", extra...); name != "fewer records than remembered" &&
				(listed.Code != 2 || !strings.HasPrefix(listed.Err, "error: the log did not verify: ")) {
				t.Errorf("list: %+v", listed)
			}
		})
	}
}

func TestAuditList_FiltersAndEscapes(t *testing.T) {
	t.Parallel()
	l := newAuditLog(t, 1)
	l.write(t,
		audit.Denied{Reason: "Forbidden"},
		audit.IntegrityAlarm{Reason: "bad\x1b[2K\u202e\n\U000e0041é"},
		audit.ToolCompleted{CallID: "c", Phase: "Succeeded", Reason: "Done"},
	)
	lines := func(args ...string) []string {
		got := l.run(t, "list", args...)
		if got.Code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		return strings.Split(strings.TrimSuffix(got.Out, "\n"), "\n")
	}
	all := lines()
	if len(all) != 5 || !strings.HasPrefix(all[0], "INDEX") || !strings.HasPrefix(all[1], "0 ") {
		t.Errorf("all:\n%s", strings.Join(all, "\n"))
	}
	if want := `bad\u001b[2K\u202e\n\udb40\udc41é`; !strings.HasSuffix(all[3], want) {
		t.Errorf("line %q, want it to end in %q", all[3], want)
	}
	for want, args := range map[string][]string{
		"1": {"--type", "Denied"}, "3": {"--from", "3"}, "0": {"--limit", "1"}, "2": {"--proposal", "u-1", "-n", "agents"},
	} {
		got := lines(args...)
		if len(got) != 2 || !strings.HasPrefix(got[1], want+" ") {
			t.Errorf("%v:\n%s", args, strings.Join(got, "\n"))
		}
	}
	for _, args := range [][]string{{"-n", "other"}, {"--fingerprint", "x"}, {"--proposal", "p-9"}} {
		if got := lines(args...); len(got) != 1 {
			t.Errorf("%v:\n%s", args, strings.Join(got, "\n"))
		}
	}
	for i, line := range lines("-o", "json") {
		var view struct{ Index int }
		if err := json.Unmarshal([]byte(line), &view); err != nil || view.Index != i || strings.ContainsAny(line, "\u202e\x1b\U000e0041") {
			t.Errorf("line %d: %v %s", i, err, line)
		}
	}
}

func TestAuditShow_ShowsARecordWithItsParts(t *testing.T) {
	t.Parallel()
	l := newAuditLog(t, 1)
	l.write(t, audit.Denied{Reason: "Forbidden", Policies: []string{"agents/p#0"}}, largeAlarm())
	got := l.run(t, "show", "1")
	var view struct {
		Index    uint64
		Type     string
		Proposal attest.ObjectRef
		Data     audit.Denied
	}
	if err := json.Unmarshal([]byte(got.Out), &view); err != nil || got.Code != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	if view.Index != 1 || view.Type != "Denied" || view.Proposal.Name != "p-0" || view.Data.Policies[0] != "agents/p#0" {
		t.Errorf("view %+v", view)
	}
	if got := l.run(t, "show", "4", "-o", "json"); got.Code != 0 || strings.Count(got.Out, "\n") != 1 || len(got.Out) < 40<<10 {
		t.Errorf("large record: code %d, %d bytes", got.Code, len(got.Out))
	}
	for index, want := range map[string]result{
		"5": {1, "", "error: the log has no record with this index\n"},
		"x": {1, "", "error: INDEX must be the number of a record\n"},
	} {
		if diff := cmp.Diff(want, l.run(t, "show", index)); diff != "" {
			t.Errorf("%s: %s", index, diff)
		}
	}
	if got := l.run(t, "show", "1", "--origin", "other"); got.Code != 2 {
		t.Errorf("another origin: %+v", got)
	}
}

func TestAuditProve_MakesProofsThatNeedNoLog(t *testing.T) {
	t.Parallel()
	l := newAuditLog(t, 1)
	l.write(t, audit.Denied{Reason: "Forbidden"}, largeAlarm(), audit.Denied{Reason: "Later"})
	for index, want := range map[string]string{"1": `"Forbidden"`, "5": `"Later"`, "4": `"parts"`} {
		proof := l.run(t, "prove", index)
		if proof.Code != 0 {
			t.Fatalf("%+v", proof)
		}
		file := writeFile(t, proof.Out)
		checked := runWith(t, "", "audit", "prove", "--check", file, "--key", l.key)
		if checked.Code != 0 || !strings.Contains(checked.Out, want) {
			t.Errorf("record %s: %+v", index, checked)
		}
		broken := writeFile(t, strings.Replace(proof.Out, `"index":`+index, `"index":2`, 1))
		if got := runWith(t, "", "audit", "prove", "--check", broken, "--key", l.key); got.Code != 2 || got.Out != "" {
			t.Errorf("record %s at another index: %+v", index, got)
		}
		other := newAuditLog(t, 2)
		if got := runWith(t, "", "audit", "prove", "--check", file, "--key", other.key); got.Code != 2 || got.Out != "" {
			t.Errorf("record %s with another key: %+v", index, got)
		}
	}
	if got := l.run(t, "prove", "99"); got.Code != 1 {
		t.Errorf("no such record: %+v", got)
	}
}

func TestAudit_FailsWithCode1WhenItCannotWork(t *testing.T) {
	t.Parallel()
	l := newAuditLog(t, 1)
	l.write(t)
	missing := filepath.Join(t.TempDir(), "missing")
	garbage := writeFile(t, "garbage")
	for name, args := range map[string][]string{
		"no key":                    {"verify", l.dir},
		"no log":                    {"verify", missing, "--key", l.key},
		"a key that is missing":     {"verify", l.dir, "--key", missing},
		"a key that is none":        {"list", l.dir, "--key", garbage},
		"another format":            {"verify", l.dir, "--key", l.key, "-o", "yaml"},
		"no checkpoint file":        {"verify", l.dir, "--key", l.key, "--checkpoint", missing},
		"an empty checkpoint file":  {"verify", l.dir, "--key", l.key, "--checkpoint", writeFile(t, "\n")},
		"a checkpoint that is none": {"verify", l.dir, "--key", l.key, "--checkpoint", garbage},
		"no place to save":          {"verify", l.dir, "--key", l.key, "--save", filepath.Join(missing, "x")},
		"no index":                  {"show", l.dir, "--key", l.key},
		"a proof and a log":         {"prove", l.dir, "0", "--key", l.key, "--check", garbage},
		"a proof that is none":      {"prove", "--key", l.key, "--check", garbage},
		"a proof that is missing":   {"prove", "--key", l.key, "--check", missing},
		"a proof without a key":     {"prove", "--key", missing, "--check", garbage},
		"a log that is none":        {"show", missing, "0", "--key", l.key},
	} {
		if got := runWith(t, "", append([]string{"audit"}, args...)...); got.Code != 1 || !strings.HasPrefix(got.Err, "error: ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := runWith(t, "", "audit"); got.Code != 0 || !strings.Contains(got.Out, "verify") {
		t.Errorf("without a command: %+v", got)
	}
	for _, args := range [][]string{{"verify", l.dir}, {"verify", l.dir, "-o", "json"}, {"list", l.dir}, {"show", l.dir, "0"}, {"prove", l.dir, "0"}} {
		var errs bytes.Buffer
		code := run(append(append([]string{"audit"}, args...), "--key", l.key), Streams{In: strings.NewReader(""), Out: broken{}, Err: &errs})
		if code != 1 || !strings.Contains(errs.String(), "disk full") {
			t.Errorf("%v to a full disk: code %d, %s", args, code, errs.String())
		}
	}
}

// TestAudit_NamesWhatEachRecordIsAbout keeps the list from having silent lines.
func TestAudit_NamesWhatEachRecordIsAbout(t *testing.T) {
	t.Parallel()
	user := attest.User{Username: "dana"}
	receipt := audit.Receipt{Name: "r", Decision: "Approved", Approver: user}
	for want, d := range map[string]audit.Data{
		"fetch for dana":    audit.ProposalAdmitted{Tool: "fetch", Requester: user},
		"decode: Syntax":    audit.ProposalRefused{Stage: "decode", Reason: "Syntax"},
		"Allow: Permitted":  audit.PolicyEvaluated{Decision: audit.DecisionAllow, Reason: "Permitted"},
		"Approved by dana":  audit.ReceiptAdmitted{Receipt: receipt},
		"r by dana":         audit.ReceiptConsumed{Receipt: receipt},
		"r: SelfApproval":   audit.ReceiptRejected{Receipt: receipt, Reason: "SelfApproval"},
		"job":               audit.Dispatched{JobName: "job"},
		"pod":               audit.Redeemed{PodName: "pod"},
		"ClaimDenied":       audit.RedeemRefused{Reason: "ClaimDenied"},
		"Expired: Timeout":  audit.ProposalEnded{Phase: "Expired", Reason: "Timeout"},
		"s: Revoked":        audit.SessionChanged{Session: attest.SessionRef{Name: "s"}, Reason: "Revoked"},
		"Succeeded: Done":   audit.ToolCompleted{Phase: "Succeeded", Reason: "Done"},
		"StatusTampered":    audit.IntegrityAlarm{Reason: "StatusTampered"},
		"Forbidden":         audit.Denied{Reason: "Forbidden"},
		"b: complete":       audit.ToolBatchCompleted{Batch: attest.BatchRef{ID: "b"}, Complete: true},
		"b: MissingOutcome": audit.ToolBatchCompleted{Batch: attest.BatchRef{ID: "b"}, Reason: "MissingOutcome"},
		"from 1 to 2":       audit.EpochChanged{From: 1, To: 2},
		"version v1":        audit.JournalOpened{Software: "v1"},
		"part 3":            audit.RecordPart{Number: 3},
	} {
		if got := gist(d); got != want {
			t.Errorf("%T: %q, want %q", d, got, want)
		}
	}
}
