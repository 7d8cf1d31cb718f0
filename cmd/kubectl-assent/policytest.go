// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/snapshot"
)

// newPolicyCommand holds what is done with policies.
func newPolicyCommand(streams Streams) *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Test policies"}
	c.AddCommand(newPolicyTestCommand(streams))
	return c
}

type policyTestOptions struct {
	offlineOptions
	output string
}

func newPolicyTestCommand(streams Streams) *cobra.Command {
	var o policyTestOptions
	c := &cobra.Command{
		Use:   "test -f FILES… CASES…",
		Short: "Run test cases against policies, without a cluster",
		Long: "Run test cases against policies, without a cluster, and print pass or fail for each. Policies that cannot\n" +
			"be right fail the run, too: a typo must not pass because no case touches it. The exit code is 2 when\n" +
			"anything fails.",
		Example: "  kubectl assent policy test -f deploy/ policy-cases.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return o.run(args, streams) },
	}
	o.flags(c, &o.offlineOptions)
	c.Flags().StringVarP(&o.output, "output", "o", "text", "output format: text, or json for one line per case")
	return c
}

// policyCase is one call and what the policies must say of it.
type policyCase struct {
	// Name says what is tested.
	Name string `json:"name"`
	// Tool is the name of the ToolManifest.
	Tool string `json:"tool"`
	// Arguments of the call, as an object; or ArgumentsJSON, the text itself.
	Arguments     map[string]any `json:"arguments,omitempty"`
	ArgumentsJSON string         `json:"argumentsJson,omitempty"`
	// User and Groups of the requester.
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
	// Session is the trusted context of the call's session, where it has one.
	Session *map[string]any `json:"session,omitempty"`
	// ApprovedBy are people who approve the call.
	ApprovedBy []string `json:"approvedBy,omitempty"`
	// Expect is the outcome.
	Expect expectation `json:"expect"`
}

// expectation is the outcome that a case demands. What is empty is not
// compared.
type expectation struct {
	// Decision is Allow, NeedsApproval or Deny, or Refused when the arguments
	// must not even get as far as the policies.
	Decision string `json:"decision"`
	// Reason is that of the decision, or of the refusal.
	Reason string `json:"reason,omitempty"`
	// Policy is the ID or the @id annotation of a policy that must be among
	// those that determined the decision.
	Policy string `json:"policy,omitempty"`
}

// decisionRefused is the expectation that the arguments are refused.
const decisionRefused = "Refused"

// caseResult is what is printed about a case.
type caseResult struct {
	Name     string   `json:"name"`
	Pass     bool     `json:"pass"`
	Expected string   `json:"expected"`
	Got      string   `json:"got"`
	Details  []string `json:"details"`
}

func (o *policyTestOptions) run(files []string, streams Streams) error {
	if o.output != "json" && o.output != "text" {
		return fmt.Errorf("output format must be json or text, not %q", o.output)
	}
	if len(o.files) == 0 {
		return errors.New("no policies: name their files with -f")
	}
	w, err := o.load(streams)
	if err != nil {
		return err
	}
	results := healthResults(w)
	for _, file := range files {
		cases, err := loadCases(file, streams)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for i := range cases {
			result, err := w.runCase(&cases[i])
			if err != nil {
				return fmt.Errorf("%s, case %q: %w", file, cases[i].Name, err)
			}
			results = append(results, result)
		}
	}
	return o.report(results, streams.Out)
}

// healthResults turns each error of a policy into a failed case.
func healthResults(w *offline) []caseResult {
	var results []caseResult
	for _, p := range w.set.Problems(w.namespace) {
		if p.Severity == policy.SeverityError {
			results = append(results, caseResult{Name: "the policies are sound", Expected: "no errors", Got: "an error", Details: []string{p.String()}})
		}
	}
	return results
}

// maxCaseBytes bounds a file of cases.
const maxCaseBytes = 16 << 20

func loadCases(file string, streams Streams) ([]policyCase, error) {
	raw, err := readInput(file, maxCaseBytes, streams)
	if err != nil {
		return nil, err
	}
	text, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, err
	}
	var list struct {
		Cases []policyCase `json:"cases"`
	}
	strict, err := kjson.UnmarshalStrict(text, &list)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	if len(list.Cases) == 0 {
		return nil, errors.New("there are no cases; list them under cases")
	}
	for i := range list.Cases {
		if err := list.Cases[i].check(); err != nil {
			return nil, fmt.Errorf("cases[%d]: %w", i, err)
		}
	}
	return list.Cases, nil
}

func (c *policyCase) check() error {
	decisions := []string{string(policy.Allow), string(policy.NeedsApproval), string(policy.Deny), decisionRefused}
	switch {
	case c.Name == "" || c.Tool == "" || c.User == "":
		return errors.New("name, tool and user are needed")
	case (c.Arguments == nil) == (c.ArgumentsJSON == ""):
		return errors.New("set exactly one of arguments and argumentsJson")
	case !slices.Contains(decisions, c.Expect.Decision):
		return fmt.Errorf("expect.decision must be one of %s", strings.Join(decisions, ", "))
	default:
		return nil
	}
}

// runCase prepares and decides one call. The error is about the case itself.
func (w *offline) runCase(c *policyCase) (caseResult, error) {
	call, err := w.caseCall(c)
	var refused *snapshot.Error
	switch {
	case errors.As(err, &refused):
		got := expectation{Decision: decisionRefused, Reason: string(refused.Reason)}
		return c.compare(got, nil, []string{err.Error()}), nil
	case err != nil:
		return caseResult{}, err
	}
	d := w.set.Decide(*call, policy.Options{})
	return c.compare(expectation{Decision: string(d.Answer), Reason: string(d.Reason)}, w.withAnnotations(d.Policies), details(d)), nil
}

func (w *offline) caseCall(c *policyCase) (*policy.Call, error) {
	compiled, err := w.contract(c.Tool)
	if err != nil {
		return nil, err
	}
	raw := c.ArgumentsJSON
	if c.Arguments != nil {
		text, err := json.Marshal(c.Arguments)
		if err != nil {
			return nil, err
		}
		raw = string(text)
	}
	call, err := w.call(compiled, raw, c.User, c.Groups)
	if err != nil {
		return nil, err
	}
	if c.Session != nil {
		text, err := json.Marshal(*c.Session)
		if err != nil {
			return nil, err
		}
		call.HasSession, call.SessionContext = true, string(text)
	}
	if approved(compiled, c.User, c.ApprovedBy) {
		call.Approved, call.ApprovedFingerprint = true, call.Fingerprint
	}
	return call, nil
}

// withAnnotations gives the IDs of policies with their @id annotations.
func (w *offline) withAnnotations(ids []string) []string {
	names := slices.Clone(ids)
	for _, id := range ids {
		if info, ok := w.set.Describe(id); ok && info.Name != "" {
			names = append(names, info.Name)
		}
	}
	return names
}

// details explains a decision in lines.
func details(d policy.Decision) []string {
	lines := []string{d.Message}
	for _, n := range d.NearMisses {
		lines = append(lines, fmt.Sprintf("not %s, line %d: this did not hold: %s", n.Policy, n.Line, n.Condition))
	}
	for _, e := range d.Errors {
		lines = append(lines, fmt.Sprintf("error in %s: %s", e.Policy, e.Message))
	}
	return lines
}

// compare judges one outcome.
func (c *policyCase) compare(got expectation, policies, details []string) caseResult {
	want := c.Expect
	pass := want.Decision == got.Decision &&
		(want.Reason == "" || want.Reason == got.Reason) &&
		(want.Policy == "" || slices.Contains(policies, want.Policy))
	got.Policy = strings.Join(policies, ", ")
	return caseResult{Name: c.Name, Pass: pass, Expected: want.String(), Got: got.String(), Details: details}
}

// String gives the outcome in words.
func (e expectation) String() string {
	text := e.Decision
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	if e.Policy != "" {
		text += " by " + e.Policy
	}
	return text
}

func (o *policyTestOptions) report(results []caseResult, out io.Writer) error {
	failed := 0
	for _, r := range results {
		if !r.Pass {
			failed++
		}
		if err := o.printResult(r, out); err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
	}
	if o.output == "text" {
		if _, err := fmt.Fprintf(out, "%d passed, %d failed\n", len(results)-failed, failed); err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
	}
	if failed > 0 {
		return &ExitError{Code: exitRefused}
	}
	return nil
}

func (o *policyTestOptions) printResult(r caseResult, out io.Writer) error {
	if o.output == "json" {
		return encodeLine(out, r)
	}
	if r.Pass {
		_, err := fmt.Fprintf(out, "PASS  %s\n", r.Name)
		return err
	}
	lines := slices.Concat([]string{"FAIL  " + r.Name, "expected " + r.Expected, "got      " + r.Got}, r.Details)
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n      "))
	return err
}
