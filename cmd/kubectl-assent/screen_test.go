// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/snapshot"
)

var writeScreens = flag.Bool("write-screens", false, "write the golden screens anew")

// hostile is a call in which the agent put a text wherever it can.
func hostile(t *testing.T, text string) *v1alpha1.ToolProposal {
	t.Helper()
	encoded, err := json.Marshal(map[string]string{"note": text})
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := snapshot.DecodeText(string(encoded))
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := snapshot.New(arguments)
	if err != nil {
		t.Fatal(err)
	}
	created := metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	p := &v1alpha1.ToolProposal{
		ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "call", UID: "0b5c7a1e-0000-4000-8000-000000000001", CreationTimestamp: created},
		Spec: v1alpha1.ToolProposalSpec{
			Tool: "note", CallID: text[:min(len(text), 40)], Reason: text[:min(len(text), 40)], Arguments: string(encoded),
			SessionRef: &v1alpha1.SessionReference{Name: "run"},
			Requester:  &v1alpha1.Identity{Username: "system:serviceaccount:agents:bot", Groups: []string{"system:serviceaccounts"}},
			Prepared: &v1alpha1.PreparedCall{
				ArgsCanonicalJSON: canonical.Canonical(), ArgsDigest: canonical.Digest(),
				Effect: v1alpha1.Effect{Command: &v1alpha1.CommandCall{
					Image: "registry.example/note@sha256:" + strings.Repeat("1", 64), Argv: []string{"note", text}, WorkingDir: "/",
					Env: []v1alpha1.ResolvedVariable{{Name: "TOKEN", Secret: &v1alpha1.ResolvedSecret{Name: "token", SecretName: "tokens", Key: "t"}}},
				}},
				Contract: v1alpha1.Contract{Name: "note", Version: "1", Hash: strings.Repeat("2", 64)},
			},
		},
		Status: v1alpha1.ToolProposalStatus{
			Phase: v1alpha1.PhaseAwaitingApproval, Reason: "AwaitingApproval", ExpiresAt: new(metav1.NewTime(created.Add(time.Hour))),
			Decision: &v1alpha1.Decision{Answer: "NeedsApproval", Reason: "ApprovalRequired", Policies: []string{"agents/people#0"}},
		},
	}
	if p.Spec.Prepared.Fingerprint, err = fingerprintOf(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func shownView(t *testing.T, p *v1alpha1.ToolProposal) *view {
	t.Helper()
	fingerprint, err := fingerprintOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return &view{
		Proposal: p, Fingerprint: fingerprint, FingerprintMatches: fingerprint == p.Spec.Prepared.Fingerprint, Seal: sealUnchecked,
		Manifest: &v1alpha1.ToolManifest{
			Spec:   v1alpha1.ToolManifestSpec{RiskTier: v1alpha1.RiskHigh, Description: "Takes a note."},
			Status: v1alpha1.ToolManifestStatus{ContractHash: p.Spec.Prepared.Contract.Hash},
		},
	}
}

func screenOf(t *testing.T, v *view) string {
	t.Helper()
	var b strings.Builder
	if err := v.render(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestScreen_ShowsHostileTextAsItIs(t *testing.T) {
	for name, text := range map[string]string{
		"plain":       "restart web",
		"bidi":        "pay \u202e001$ to bob\u202c",
		"zero-width":  "ad\u200bmin\u2060\ufeff",
		"terminal":    "keep\x1b[2K\x1b[1Gdelete \x1b]0;x\x07",
		"return":      "delete everything\rkeep everything  ",
		"homoglyphs":  "\u0430dmin e\u0301 \u3164 \u2800 \u05d0\u05d1",
		"line breaks": "a\n  stored       the same\u2028b",
	} {
		t.Run(name, func(t *testing.T) {
			got := screenOf(t, shownView(t, hostile(t, text)))
			for _, r := range got {
				if r != '\n' && !plain(r) {
					t.Errorf("the screen has the character %U", r)
				}
			}
			golden := filepath.Join("testdata", "screens", strings.ReplaceAll(name, " ", "-")+".txt")
			if *writeScreens {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("screen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScreen_NeverShortensWhatIsApproved(t *testing.T) {
	var b strings.Builder
	for b.Len() < 32<<10-16 {
		b.WriteString("x\u200b7")
	}
	text := b.String()
	got := screenOf(t, shownView(t, hostile(t, text)))
	if want := escapeText(text); strings.Count(got, want) != 2 {
		t.Errorf("the whole text stands %d times on the screen, want it in the arguments and in argv", strings.Count(got, want))
	}
}

func TestScreen_WarnsOfACallThatIsNotWhatItSays(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*view)
		want string
		err  string
	}{
		"another fingerprint stored": {func(v *view) { v.FingerprintMatches = false }, "ANOTHER ONE: do not approve", "the stored fingerprint is not that of the call"},
		"an invalid seal":            {func(v *view) { v.Seal = sealInvalid }, "INVALID: do not approve", "the seal is not valid for the call"},
		"a changed contract":         {func(v *view) { v.Manifest.Status.ContractHash = "x" }, "the contract CHANGED since", ""},
		"no manifest":                {func(v *view) { v.Manifest = nil }, "the manifest could not be read", ""},
		"nobody stamped":             {func(v *view) { v.Proposal.Spec.Requester = nil }, "NOT STAMPED: do not approve", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := shownView(t, hostile(t, "x"))
			tc.edit(v)
			if got := screenOf(t, v); !strings.Contains(got, tc.want) {
				t.Errorf("the screen lacks %q:\n%s", tc.want, got)
			}
			err := v.problem()
			var exit *ExitError
			if tc.err == "" && err == nil {
				return
			}
			if !errors.As(err, &exit) || exit.Code != exitRefused || err.Error() != tc.err {
				t.Errorf("got %v, want %q with exit code 2", err, tc.err)
			}
		})
	}
}

func TestFingerprintOf_ReadsNothingThatIsStoredAsAFingerprint(t *testing.T) {
	p := hostile(t, "x")
	want := p.Spec.Prepared.Fingerprint
	p.Spec.Prepared.Fingerprint, p.Spec.Prepared.ProposalHash = strings.Repeat("0", 64), strings.Repeat("0", 64)
	if got, err := fingerprintOf(p); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	p.Spec.Prepared.Effect.Command.Argv[1] = "y"
	if got, err := fingerprintOf(p); err != nil || got == want {
		t.Errorf("another program has the same fingerprint (%v)", err)
	}
}

func TestScreen_ShowsEveryMemberOfEveryEffect(t *testing.T) {
	secrets := []v1alpha1.ResolvedSecret{{Name: "token", SecretName: "tokens", Key: "t", Hosts: []string{"a.example"}}}
	headers := []v1alpha1.ResolvedHeader{{Name: "X-One", Value: "1"}}
	for name, tc := range map[string]struct {
		effect v1alpha1.Effect
		want   string
	}{
		"http": {v1alpha1.Effect{HTTP: &v1alpha1.HTTPCall{
			Method: "POST", URL: "https://a.example/x", Headers: headers, Body: "b", SuccessStatus: []int32{200, 202},
			CABundle: "pem", AllowPrivate: true, Secrets: secrets,
		}}, `
Effect: send an HTTP request
  method       POST
  url          "https://a.example/x"
  header       X-One = "1"
  body         "b"
  success      200 202
  addresses    private ones are allowed
  CA           "pem"
  secret       token = key t of Secret tokens, only for a.example
`},
		"mcp": {v1alpha1.Effect{MCP: &v1alpha1.MCPCall{
			URL: "https://a.example/", Tool: "t", ToolDigest: "d", Arguments: `{"a":1}`, Headers: headers,
			CABundle: "pem", AllowPrivate: true, Secrets: secrets,
		}}, `
Effect: call a tool of an MCP server
  server       "https://a.example/"
  tool         t
  definition   d
  arguments    {"a":1}
  header       X-One = "1"
  addresses    private ones are allowed
  CA           "pem"
  secret       token = key t of Secret tokens, only for a.example
`},
		"command": {v1alpha1.Effect{Command: &v1alpha1.CommandCall{
			Image: "i", Argv: []string{"a", ""}, OutputFile: "/w/\u202eo", WorkingDir: "/w",
			Env: []v1alpha1.ResolvedVariable{{Name: "A", Value: new("v")}, {Name: "B", Secret: &secrets[0]}},
		}}, `
Effect: start a program
  image        i
  argv[0]      "a"
  argv[1]      ""
  directory    "/w"
  output file  "/w/\u202eo"
  environment  A = "v"
  environment  B = key t of Secret tokens, only for a.example
`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &screen{width: 11}
			s.title("x")
			renderEffect(s, tc.effect)
			if diff := cmp.Diff("x\n"+tc.want, s.b.String()); diff != "" {
				t.Errorf("effect (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEscape_TellsEveryTwoTextsApart(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{"\u202e", `\u202e`, "\x1b", "\\", `\\`, "\U000e0041", "\xff", `\xff`, "é", "e\u0301", "\u00a0", " ", "\n", `\n`, ""} {
		shown := quoteText(text)
		if !utf8.ValidString(text) {
			// JSON has no such text; names are shown by escapeName.
			continue
		}
		if other, ok := seen[shown]; ok {
			t.Errorf("%q and %q are both shown as %s", text, other, shown)
		}
		seen[shown] = text
		var back string
		if err := json.Unmarshal([]byte(shown), &back); err != nil || back != text {
			t.Errorf("%s does not read back as %q: %q, %v", shown, text, back, err)
		}
	}
	if got, want := escapeName("a\xffb\u0430"), `a\xffb\u0430`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestConfirm_TakesNothingButTheBeginningOfTheFingerprint(t *testing.T) {
	fingerprint := strings.Repeat("0123456789abcdef", 4)
	for typed, want := range map[string]string{
		"01234567\n":         "",
		" 01234567 \r\n":     "", //nolint:gocritic // the spaces are the case
		"01234567":           "",
		"y\n":                "not approved: that is not how the fingerprint begins",
		"0123456\n":          "not approved: that is not how the fingerprint begins",
		"012345678\n":        "not approved: that is not how the fingerprint begins",
		"\n":                 "not approved: that is not how the fingerprint begins",
		"":                   "not approved: nothing was typed",
		"89abcdef\n01234567": "not approved: that is not how the fingerprint begins",
	} {
		var prompt strings.Builder
		err := confirm(fingerprint, Streams{In: strings.NewReader(typed), Err: &prompt})
		var exit *ExitError
		if want == "" && err != nil || want != "" && (!errors.As(err, &exit) || exit.Code != exitRefused || err.Error() != want) {
			t.Errorf("%q: got %v, want %q", typed, err, want)
		}
	}
}

func TestApprove_RefusesAnyOtherFingerprintThanTheOneGiven(t *testing.T) {
	v := shownView(t, hostile(t, "x"))
	for name, tc := range map[string]struct {
		given string
		edit  func(*view)
		want  string
	}{
		"the same":                       {v.Fingerprint, func(*view) {}, ""},
		"another":                        {strings.Repeat("0", 64), func(*view) {}, "the call has another fingerprint than the one given: show it and compare"},
		"only its beginning":             {v.Fingerprint[:8], func(*view) {}, "the call has another fingerprint than the one given: show it and compare"},
		"the same and another is stored": {v.Fingerprint, func(v *view) { v.FingerprintMatches = false }, "the stored fingerprint is not that of the call"},
	} {
		o := decideOptions{decision: v1alpha1.ReceiptApproved, fingerprint: tc.given}
		changed := *v
		tc.edit(&changed)
		err := o.check(&changed, Streams{In: strings.NewReader(""), Err: &strings.Builder{}})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestApprove_MakesTheReceiptFromWhatWasShown(t *testing.T) {
	v := shownView(t, hostile(t, "x"))
	o := decideOptions{decision: v1alpha1.ReceiptApproved, reason: "fine"}
	got := o.receipt(v)
	want := v1alpha1.ApprovalReceiptSpec{
		ProposalRef: v1alpha1.ProposalReference{Name: "call", UID: v.Proposal.UID},
		Fingerprint: v.Fingerprint, Decision: v1alpha1.ReceiptApproved, Reason: "fine",
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("receipt (-want +got):\n%s", diff)
	}
	if got.Namespace != "agents" {
		t.Errorf("namespace %s", got.Namespace)
	}
}

func TestCheckSeal_SaysWhetherItIsTheOperators(t *testing.T) {
	o := showOptions{}
	if got, err := o.checkSeal(hostile(t, "x")); err != nil || got != sealUnchecked {
		t.Errorf("without keys: %s, %v", got, err)
	}
	o.keys = filepath.Join(t.TempDir(), "none")
	if _, err := o.checkSeal(hostile(t, "x")); err == nil {
		t.Error("a missing file passes")
	}
}

func TestEndCode_TellsScriptsHowACallEnded(t *testing.T) {
	for phase, want := range map[v1alpha1.Phase]int{
		v1alpha1.PhaseSucceeded: exitDone, v1alpha1.PhaseDenied: exitRefused, v1alpha1.PhaseExpired: exitRefused,
		v1alpha1.PhaseCancelled: exitRefused, v1alpha1.PhaseInvalid: exitRefused,
		v1alpha1.PhaseFailed: exitError, v1alpha1.PhaseIndeterminate: exitError,
	} {
		got := exitDone
		if exit, is := errors.AsType[*ExitError](endCode(phase)); is {
			got = exit.Code
		}
		if got != want {
			t.Errorf("%s: exit code %d, want %d", phase, got, want)
		}
	}
}
