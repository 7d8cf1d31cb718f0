// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/snapshot"
)

// simulateOptions are the flags of kubectl assent simulate.
type simulateOptions struct {
	offlineOptions
	call     callOptions
	replay   bool
	baseline []string
	output   string

	// fromCluster replays the calls of a namespace of a cluster.
	fromCluster bool
	without     []string
	cluster     clusterFlags
}

// callOptions describe one call.
type callOptions struct {
	tool, arguments, user string
	groups                []string
	session               string
	approvedBy            []string
}

// newSimulateCommand asks policies in files about a call, or about stored calls.
func newSimulateCommand(streams Streams) *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate -f FILES… --tool NAME --arguments FILE --user NAME",
		Short: "Ask policies what they would say of a call, without a cluster",
		Long: "Ask policies what they would say of a call, without a cluster: the call is prepared and decided on by the\n" +
			"operator's own code, from ToolManifest, ArgumentType, ToolScope, ToolPolicy and ClusterToolPolicy documents.\n" +
			"The exit code is 2 for Deny and for arguments that are refused.\n\n" +
			"With --replay it asks about ToolProposals among the documents instead, and tells which of the decisions that\n" +
			"were made on them would change. With --baseline the comparison is with other policy files.\n\n" +
			"With --from-cluster it reads tools, policies, sessions and calls of the namespace from the cluster, and tells what\n" +
			"would become of the calls there if the files were applied, compared with the policies in force. It writes nothing.",
		Example: "  kubectl assent simulate -f deploy/ --tool pay --arguments call.json --user alice --group staff\n" +
			"  kubectl get toolproposals -n shop -o yaml | kubectl assent simulate -n shop -f deploy/ -f - --replay\n" +
			"  kubectl assent simulate --from-cluster -n shop -f drafts/ -o text",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			if !o.fromCluster {
				return o.run(streams)
			}
			if cmd.Flags().Changed("namespace") {
				o.cluster.overrides.Context.Namespace = o.namespace
			}
			return o.runOnCluster(cmd.Context(), streams)
		},
	}
	o.flags(c, &o.offlineOptions)
	f := c.Flags()
	f.StringVar(&o.call.tool, "tool", "", "name of the ToolManifest")
	f.StringVar(&o.call.arguments, "arguments", "", "file with the call's arguments, a JSON object; - for standard input")
	f.StringVar(&o.call.user, "user", "", "username of the requester, such as system:serviceaccount:NAMESPACE:NAME")
	f.StringArrayVar(&o.call.groups, "group", nil, "group of the requester; can be given several times")
	f.StringVar(&o.call.session, "session-context", "", "file with the trusted context of the session, a JSON object")
	f.StringArrayVar(&o.call.approvedBy, "approved-by", nil,
		"name of somebody who approves; can be given several times. Whether they may, and their groups, is not checked")
	f.BoolVar(&o.replay, "replay", false, "ask about the ToolProposals among the documents")
	f.StringArrayVar(&o.baseline, "baseline", nil, "with --replay: policy files to compare with, in place of what was decided")
	f.BoolVar(&o.fromCluster, "from-cluster", false, "ask about the ToolProposals of a namespace of the cluster, as if the files were applied there")
	f.StringArrayVar(&o.without, "without", nil, "with --from-cluster: policy object to leave out, NAMESPACE/NAME, or /NAME for a ClusterToolPolicy")
	f.StringVarP(&o.output, "output", "o", "json", "output format: json or text")
	o.cluster.addConnection(f)
	for _, other := range []string{"tool", "arguments", "user", "group", "session-context", "approved-by", "baseline"} {
		c.MarkFlagsMutuallyExclusive("from-cluster", other)
	}
	return c
}

// flags adds the flags that offline commands share.
func (o *offlineOptions) flags(c *cobra.Command, to *offlineOptions) {
	f := c.Flags()
	f.StringArrayVarP(&to.files, "filename", "f", nil, "file or folder with documents, - for standard input; can be given several times")
	f.StringVarP(&to.namespace, "namespace", "n", "default", "namespace to work in, and of documents that name none")
	f.StringVar(&to.runnerImage, "runner-image", "",
		"image of the runner, by digest, as the operator is configured; without it hashes differ from the cluster's")
	f.BoolVar(&to.allowTags, "allow-image-tags", false, "accept command images without a digest")
	f.IntVar(&to.policyObjects, "max-policy-objects", policy.DefaultObjects,
		"how many policy objects the namespace, and the cluster, may have, as the operator is configured")
}

func (o *simulateOptions) checkOutput() error {
	if o.output != "json" && o.output != "text" {
		return fmt.Errorf("output format must be json or text, not %q", o.output)
	}
	return nil
}

func (o *simulateOptions) run(streams Streams) error {
	if err := o.checkOutput(); err != nil {
		return err
	}
	if len(o.files) == 0 {
		return errors.New("no files: name them with -f")
	}
	w, err := o.load(streams)
	if err != nil {
		return err
	}
	if !o.replay {
		return o.decide(w, streams)
	}
	before, err := o.before(w, streams)
	if err != nil {
		return err
	}
	return o.replayAll(w, before, streams)
}

func (o *simulateOptions) decide(w *offline, streams Streams) error {
	if o.call.tool == "" || o.call.arguments == "" || o.call.user == "" {
		return errors.New("--tool, --arguments and --user are needed")
	}
	call, err := o.call.prepare(w, streams)
	if err != nil {
		return refuseCall(err, streams.Err)
	}
	d := w.set.Decide(*call, policy.Options{})
	if err := o.print(w.set, d, call.Fingerprint, streams.Out); err != nil {
		return fmt.Errorf("writing the decision: %w", err)
	}
	if d.Answer == policy.Deny {
		return &ExitError{Code: exitRefused}
	}
	return nil
}

// prepare makes the call as admission would.
func (o *callOptions) prepare(w *offline, streams Streams) (*policy.Call, error) {
	c, err := w.contract(o.tool)
	if err != nil {
		return nil, err
	}
	raw, err := readInput(o.arguments, snapshot.MaxBytes+1, streams)
	if err != nil {
		return nil, fmt.Errorf("reading the arguments: %w", err)
	}
	call, err := w.call(c, string(raw), o.user, o.groups)
	if err != nil {
		return nil, err
	}
	if o.session != "" {
		context, err := readInput(o.session, snapshot.MaxBytes+1, streams)
		if err != nil {
			return nil, fmt.Errorf("reading the session's context: %w", err)
		}
		call.HasSession, call.SessionContext = true, string(context)
	}
	if approved(c, o.user, o.approvedBy) {
		call.Approved, call.ApprovedFingerprint = true, call.Fingerprint
	}
	return call, nil
}

// call prepares arguments against a contract.
func (w *offline) call(c *contract.Contract, raw, user string, groups []string) (*policy.Call, error) {
	prepared, err := c.Prepare(user, raw)
	if err != nil {
		return nil, err
	}
	return &policy.Call{
		Tool:              proposal.PolicyTool(w.namespace, c),
		Principal:         policy.Principal{Username: user, Groups: groups},
		ArgsCanonicalJSON: prepared.ArgsCanonicalJSON,
		Fingerprint:       prepared.Fingerprint,
		Effect:            proposal.EffectView(prepared.Effect),
	}, nil
}

// approved says whether enough different people approve, none of them the
// requester. Who may approve, and in which group, only a cluster knows.
func approved(c *contract.Contract, user string, names []string) bool {
	people := map[string]bool{}
	for _, name := range names {
		serviceAccount := strings.HasPrefix(name, "system:serviceaccount:")
		if name != user && (!serviceAccount || c.Approval().AllowServiceAccounts) {
			people[name] = true
		}
	}
	needed := 0
	for _, requirement := range c.Approval().Requirements {
		needed += int(requirement.Count)
	}
	return len(people) > 0 && len(people) >= needed
}

// refuseCall prints why a call was refused before any policy was asked; other
// errors are returned as they are.
func refuseCall(err error, to io.Writer) error {
	var refused *snapshot.Error
	if !errors.As(err, &refused) {
		return err
	}
	r := refusal{Stage: refused.Stage, Reason: refused.Reason, Path: refused.Path, Message: err.Error()}
	if err := encodeLine(to, r); err != nil {
		return fmt.Errorf("writing the refusal: %w", err)
	}
	return &ExitError{Code: exitRefused}
}

// simulation is what is printed about a decision.
type simulation struct {
	Decision    policy.Answer `json:"decision"`
	Reason      policy.Reason `json:"reason"`
	Message     string        `json:"message"`
	Policies    []string      `json:"policies"`
	NearMisses  []nearMiss    `json:"nearMisses"`
	Errors      []string      `json:"errors"`
	Fingerprint string        `json:"fingerprint"`
	SetDigest   string        `json:"policySetDigest"`
}

type nearMiss struct {
	Policy    string `json:"policy"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	Condition string `json:"condition"`
}

func newSimulation(d policy.Decision, fingerprint string) simulation {
	s := simulation{
		Decision: d.Answer, Reason: d.Reason, Message: d.Message, Fingerprint: fingerprint, SetDigest: d.SetDigest,
		Policies: append([]string{}, d.Policies...), NearMisses: []nearMiss{}, Errors: []string{},
	}
	for _, n := range d.NearMisses {
		s.NearMisses = append(s.NearMisses, nearMiss(n))
	}
	for _, e := range d.Errors {
		s.Errors = append(s.Errors, e.Policy+": "+e.Message)
	}
	return s
}

func (o *simulateOptions) print(set *policy.Set, d policy.Decision, fingerprint string, out io.Writer) error {
	s := newSimulation(d, fingerprint)
	if o.output == "json" {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n", s.Decision, s.Reason, s.Message)
	for _, id := range s.Policies {
		if info, ok := set.Describe(id); ok {
			fmt.Fprintf(&b, "  policy %s, line %d%s\n", id, info.Line, named(info.Name))
		}
	}
	for _, n := range s.NearMisses {
		fmt.Fprintf(&b, "  not %s, line %d: this did not hold: %s\n", n.Policy, n.Line, n.Condition)
	}
	for _, e := range s.Errors {
		fmt.Fprintf(&b, "  error in %s\n", e)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// named gives the @id of a policy for display.
func named(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", name)
}
