// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ended are the phases that nothing follows.
var ended = []string{"Succeeded", "Failed", "Denied", "Expired", "Cancelled", "Invalid", "Indeterminate"}

// call is what the demo reads of a ToolProposal.
type call struct {
	Metadata struct {
		Name, UID         string
		CreationTimestamp time.Time
	}
	Spec struct {
		Tool     string
		Prepared struct {
			Fingerprint, ArgsCanonicalJSON string
			Effect                         struct {
				HTTP struct{ Body string }
				MCP  struct{ Arguments string }
			}
		}
	}
	Status struct {
		Phase, Reason, Message string
		Decision               struct {
			Policies []string
		}
		Dispatch struct {
			JobName string
			Time    time.Time
		}
		Result struct {
			Output               string
			Time                 time.Time
			DurationMilliseconds int64
		}
		Audit struct{ Index *int64 }
	}
}

func (c call) outcome() string { return c.Status.Phase + "/" + c.Status.Reason }

// propose creates a call as somebody and returns its name, or what was said.
func (d *demo) propose(who, name, tool, arguments string) (string, error) {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		return "", err
	}
	meta := fmt.Sprintf(`{"generateName": "%s-", "namespace": "%s"}`, tool, namespace)
	if name != "" {
		meta = fmt.Sprintf(`{"name": "%s", "namespace": "%s"}`, name, namespace)
	}
	object := fmt.Sprintf(`{"apiVersion": "assent.dev/v1alpha1", "kind": "ToolProposal", "metadata": %s,
		"spec": {"tool": "%s", "callID": "demo-%d", "arguments": %s}}`, meta, tool, time.Now().UnixNano(), encoded)
	out, err := d.as(who, object, "create", "-f", "-", "-o", "jsonpath={.metadata.name}")
	return out, err
}

func (d *demo) get(name string) (call, error) {
	var c call
	out, err := d.admin("-n", namespace, "get", "toolproposal", name, "-o", "json")
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal([]byte(out), &c)
}

// await waits until the call's phase is one of these, or has ended.
func (d *demo) await(name string, phases ...string) (call, error) {
	deadline := time.Now().Add(patience)
	for {
		c, err := d.get(name)
		if err != nil {
			return c, err
		}
		if slices.Contains(phases, c.Status.Phase) || slices.Contains(ended, c.Status.Phase) {
			return c, nil
		}
		if time.Now().After(deadline) {
			return c, fmt.Errorf("%s is still %q after %s: %s", name, c.outcome(), patience, c.Status.Message)
		}
		select {
		case <-d.ctx.Done():
			return c, d.ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// receipt creates a receipt as somebody and returns what was said.
func (d *demo) receipt(who, proposal, uid, fingerprint string) (string, error) {
	object := fmt.Sprintf(`{"apiVersion": "assent.dev/v1alpha1", "kind": "ApprovalReceipt",
		"metadata": {"generateName": "receipt-", "namespace": "%s"},
		"spec": {"proposalRef": {"name": "%s", "uid": "%s"}, "fingerprint": "%s", "decision": "Approved", "reason": "shown in the demo"}}`,
		namespace, proposal, uid, fingerprint)
	return d.as(who, object, "create", "-f", "-")
}

// refused checks that something was refused with a reason.
func (d *demo) refused(what, said string, err error, reason string) {
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	d.check(what, err != nil && strings.Contains(said, reason), first)
}
