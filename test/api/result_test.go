// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/execution"
	"github.com/assent-dev/assent/internal/attest"
)

func TestResult_IsStoredOnceAndEndsTheCall(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	key := r.mustRedeem()
	if status := r.deliver(key, r.report()); status != http.StatusOK {
		t.Fatalf("delivering: got %d, want 200", status)
	}
	if status := r.deliver(key, r.report()); status != http.StatusOK {
		t.Errorf("delivering the same again: got %d, want 200", status)
	}
	p = f.reload(p)
	if p.Status.Result == nil || p.Status.Result.Output != "done" {
		t.Fatalf("got %v, want the output", p.Status.Result)
	}
	p = f.step(p)
	if got, want := outcome(p), "Succeeded/Succeeded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if status := r.deliver(key, r.report()); status != http.StatusOK {
		t.Errorf("delivering the same after the end: got %d, want 200", status)
	}
	if diff := gocmp.Diff(p.Status, f.reload(p).Status); diff != "" {
		t.Errorf("a second delivery changed the status:\n%s", diff)
	}
}

// Each row is a report that is not the runner's word about this call.
func TestResult_ThatIsNotTheRunnersWord_IsRefused(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	key := r.mustRedeem()
	otherCall, _ := f.dispatched("restart", `{"target":"db"}`)
	otherRunner := f.runnerFor(otherCall)
	otherKey := otherRunner.mustRedeem()
	idle := f.runnerFor(p)

	wrong := key
	wrong.ResultKey[0] ^= 1
	unknown := key
	unknown.KeyID = repeat("0", len(key.KeyID))
	for name, tc := range map[string]struct {
		by     *fakeRunner
		key    attest.RedeemResponse
		change func(*attest.Result)
	}{
		"another key":                    {r, wrong, func(*attest.Result) {}},
		"another call's key":             {r, otherKey, func(*attest.Result) {}},
		"a key that nobody has":          {r, unknown, func(*attest.Result) {}},
		"about another call":             {r, key, func(x *attest.Result) { x.ProposalUID = string(otherCall.UID) }},
		"about another Pod":              {r, key, func(x *attest.Result) { x.PodUID = string(otherRunner.pod.UID) }},
		"about another fingerprint":      {r, key, func(x *attest.Result) { x.Fingerprint = otherCall.Spec.Prepared.Fingerprint }},
		"from the Pod of another call":   {otherRunner, key, func(*attest.Result) {}},
		"from a Pod that did not redeem": {idle, key, func(*attest.Result) {}},
	} {
		t.Run(name, func(t *testing.T) {
			if status := tc.by.deliver(tc.key, r.report(tc.change)); status != http.StatusConflict {
				t.Errorf("got %d, want 409", status)
			}
		})
	}
	t.Run("one byte changed", func(t *testing.T) {
		signed, err := attest.SealResult(key.ResultKey, key.KeyID, r.report())
		if err != nil {
			t.Fatal(err)
		}
		signed.Result = strings.Replace(signed.Result, "done", "dine", 1)
		body, err := attest.Encode(signed)
		if err != nil {
			t.Fatal(err)
		}
		if status, _ := r.post(execution.PathResult, body); status != http.StatusConflict {
			t.Errorf("got %d, want 409", status)
		}
	})
	t.Run("too long", func(t *testing.T) {
		if status, _ := r.post(execution.PathResult, bytes.Repeat([]byte(" "), attest.MaxSignedResultBytes+1)); status != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d, want 413", status)
		}
	})
	for _, p := range []*v1alpha1.ToolProposal{p, otherCall} {
		if f.reload(p).Status.Result != nil {
			t.Errorf("%s has a result", p.Name)
		}
	}
}

func TestResult_ThatContradictsTheFirst_IsRefused(t *testing.T) {
	f := callFixture(t)
	for name, change := range map[string]func(*attest.Result){
		"another output":    func(x *attest.Result) { x.StdoutSHA256 = repeat("c", 64) },
		"another outcome":   func(x *attest.Result) { x.Outcome, x.Reason = attest.OutcomeFailed, "NonZeroExit" },
		"another exit code": func(x *attest.Result) { x.ExitCode = new(int32(1)) },
		"another text":      func(x *attest.Result) { x.Stdout = "dine" },
		"another duration":  func(x *attest.Result) { x.DurationMillis++ },
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p, _ := f.dispatched("restart", web)
			r := f.runnerFor(p)
			key := r.mustRedeem()
			if status := r.deliver(key, r.report()); status != http.StatusOK {
				t.Fatalf("got %d, want 200", status)
			}
			before := f.reload(p)
			if status := r.deliver(key, r.report(change)); status != http.StatusConflict {
				t.Errorf("got %d, want 409", status)
			}
			if diff := gocmp.Diff(before.Status, f.reload(p).Status); diff != "" {
				t.Errorf("the second report changed the status:\n%s", diff)
			}
		})
	}
}

func TestResult_AfterTheCallWasGivenUp_IsRefused(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	key := r.mustRedeem()
	f.clock.advance(24 * time.Hour)
	p = f.step(p)
	if got, want := outcome(p), "Indeterminate/ResultLost"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if status := r.deliver(key, r.report()); status != http.StatusConflict {
		t.Errorf("got %d, want 409", status)
	}
	if got, want := outcome(f.step(p)), "Indeterminate/ResultLost"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestResult_OfASensitiveTool_IsStoredByDigestAlone(t *testing.T) {
	const secret = "canary-output"
	f := callFixture(t, func(m *v1alpha1.ToolManifest) {
		m.Spec.Output = &v1alpha1.Output{Format: v1alpha1.OutputText, Sensitive: true}
	})
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	status := r.deliver(r.mustRedeem(), r.report(func(x *attest.Result) { x.Stdout, x.Stderr = secret, secret }))
	if status != http.StatusOK {
		t.Fatalf("got %d, want 200", status)
	}
	p = f.step(p)
	if got, want := outcome(p), "Succeeded/Succeeded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := p.Status.Result.OutputDigest, repeat("a", 64); got != want {
		t.Errorf("got digest %s, want %s", got, want)
	}
	if strings.Contains(jsonOf(t, p), secret) {
		t.Error("the output is stored")
	}
}

// What is kept out of the status is held to format and schema all the same, by
// the only one who ever sees it.
func TestResult_OfASensitiveTool_IsHeldToItsSchema(t *testing.T) {
	f := callFixture(t, func(m *v1alpha1.ToolManifest) {
		m.Spec.Output = &v1alpha1.Output{
			Format: v1alpha1.OutputJSON, Sensitive: true,
			Schema: `{"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}`,
		}
	})
	for name, c := range map[string]struct {
		change        func(*attest.Result)
		want, problem string
	}{
		"it satisfies the schema": {func(x *attest.Result) { x.Stdout = `{"id": 7}` }, "Succeeded/Succeeded", ""},
		"it breaks the schema": {
			func(x *attest.Result) { x.Stdout = `{"id": "canary-output"}` },
			"Failed/ResultSchemaViolation", "ResultSchemaViolation: the output does not satisfy spec.output.schema",
		},
		"it cannot be read": {
			func(x *attest.Result) { x.Stdout = `canary-output` },
			"Failed/ResultSchemaViolation", "ResultSchemaViolation: the output is not a JSON text",
		},
		"it was cut": {
			func(x *attest.Result) { x.Stdout, x.StdoutBytes, x.Truncated = `{"id": 7}`, 40000, true },
			"Failed/ResultSchemaViolation", "ResultSchemaViolation: the output is longer than what is kept, so that it cannot be read as json",
		},
		"only its error output was cut": {
			func(x *attest.Result) { x.Stdout, x.StdoutBytes, x.Truncated = `{"id": 7}`, 9, true },
			"Succeeded/Succeeded", "",
		},
		"the tool failed": {
			func(x *attest.Result) {
				x.Stdout, x.Outcome, x.Reason, x.ExitCode = `no`, attest.OutcomeFailed, "NonZeroExit", new(int32(1))
			},
			"Failed/NonZeroExit", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p, _ := f.dispatched("restart", web)
			r := f.runnerFor(p)
			key := r.mustRedeem()
			for range 2 { // the answer to the first may have been lost
				if status := r.deliver(key, r.report(c.change)); status != http.StatusOK {
					t.Fatalf("got %d, want 200", status)
				}
			}
			p = f.step(p)
			if got := outcome(p); got != c.want || p.Status.Result.OutputProblem != c.problem {
				t.Errorf("got %s, %q, want %s, %q", got, p.Status.Result.OutputProblem, c.want, c.problem)
			}
			if strings.Contains(jsonOf(t, p), "canary-output") {
				t.Error("the output is stored")
			}
		})
	}
}

// A tool that says much beside its result has still given one.
func TestResult_WithMuchErrorOutput_IsReadAllTheSame(t *testing.T) {
	f := callFixture(t, func(m *v1alpha1.ToolManifest) { m.Spec.Output = &v1alpha1.Output{Format: v1alpha1.OutputJSON} })
	for name, c := range map[string]struct {
		bytes int64
		want  string
	}{
		"the error output was cut": {9, "Succeeded/Succeeded"},
		"the output was cut":       {40000, "Failed/ResultSchemaViolation"},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p, _ := f.dispatched("restart", web)
			r := f.runnerFor(p)
			status := r.deliver(r.mustRedeem(), r.report(func(x *attest.Result) { x.Stdout, x.StdoutBytes, x.Truncated = `{"id": 7}`, c.bytes, true }))
			if status != http.StatusOK {
				t.Fatalf("got %d, want 200", status)
			}
			if got := outcome(f.step(p)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A result that somebody else wrote into the status, or changed there.
func TestStoredResult_ThatSomebodyElseWrote_EndsAsTampered(t *testing.T) {
	f := callFixture(t)
	for name, change := range map[string]func(*v1alpha1.Result){
		"output":    func(x *v1alpha1.Result) { x.Output = "forged" },
		"outcome":   func(x *v1alpha1.Result) { x.Outcome = "Failed" },
		"exit code": func(x *v1alpha1.Result) { x.ExitCode = new(int32(7)) },
		"seal":      func(x *v1alpha1.Result) { x.Seal = repeat("0", 64) },
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p, _ := f.dispatched("restart", web)
			r := f.runnerFor(p)
			if status := r.deliver(r.mustRedeem(), r.report()); status != http.StatusOK {
				t.Fatalf("got %d, want 200", status)
			}
			p = f.reload(p)
			change(p.Status.Result)
			f.mustWriteStatus(p)
			if got, want := outcome(f.step(p)), "Indeterminate/StatusTampered"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			for _, j := range f.liveJobs() {
				if j.Name == p.Status.Dispatch.JobName {
					t.Error("its Job runs on")
				}
			}
		})
	}
}
