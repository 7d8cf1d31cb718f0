// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"
)

func (d *demo) allowed() error {
	began := time.Now()
	name, err := d.propose("agent", "", "restart-service", `{"service": "web"}`)
	if err != nil {
		return err
	}
	d.say("the agent proposed %s", name)
	c, err := d.await(name)
	if err != nil {
		return err
	}
	d.check("allowed call", c.outcome() == "Succeeded/Succeeded", c.outcome()+" "+c.Status.Message)
	d.say("output: %s", strings.TrimSpace(c.Status.Result.Output))
	d.say("result after %s, audit record %s", time.Since(began).Round(100*time.Millisecond), index(c))
	return nil
}

func index(c call) string {
	if c.Status.Audit.Index == nil {
		return "missing"
	}
	return fmt.Sprint(*c.Status.Audit.Index)
}

func (d *demo) forbidden() error {
	name, err := d.propose("agent", "", "delete-database", `{"database": "orders"}`)
	if err != nil {
		return err
	}
	c, err := d.await(name)
	if err != nil {
		return err
	}
	policies := strings.Join(c.Status.Decision.Policies, ", ")
	d.check("forbidden call", c.outcome() == "Denied/Forbidden" && policies == "/no-deleted-databases#0" && c.Status.Dispatch.JobName == "",
		c.outcome()+" by policy "+policies)
	return nil
}

func (d *demo) approved() error {
	name, err := d.propose("agent", "", "scale-service", `{"service": "worker", "replicas": 3}`)
	if err != nil {
		return err
	}
	c, err := d.await(name, "AwaitingApproval")
	if err != nil {
		return err
	}
	d.check("call that needs approval waits", c.Status.Phase == "AwaitingApproval" && c.Status.Dispatch.JobName == "", c.outcome())
	d.say("alice approves fingerprint %s", c.Spec.Prepared.Fingerprint)
	if _, err := d.receipt("alice", c.Metadata.Name, c.Metadata.UID, c.Spec.Prepared.Fingerprint); err != nil {
		return err
	}
	if c, err = d.await(name); err != nil {
		return err
	}
	d.check("approved call runs", c.outcome() == "Succeeded/Succeeded", c.outcome())
	d.say("output: %s", strings.TrimSpace(c.Status.Result.Output))
	return nil
}

func (d *demo) refusedReceipts() error {
	name, err := d.propose("bob", "", "scale-service", `{"service": "web", "replicas": 2}`)
	if err != nil {
		return err
	}
	c, err := d.await(name, "AwaitingApproval")
	if err != nil {
		return err
	}
	other := strings.Repeat("0", 64)
	said, err := d.receipt("alice", name, c.Metadata.UID, other)
	d.refused("receipt with another fingerprint", said, err, "FingerprintMismatch")
	said, err = d.receipt("bob", name, c.Metadata.UID, c.Spec.Prepared.Fingerprint)
	d.refused("receipt by the requester", said, err, "SelfApproval")
	if c, err = d.get(name); err != nil {
		return err
	}
	d.check("the call still waits", c.Status.Phase == "AwaitingApproval" && c.Status.Dispatch.JobName == "", c.outcome())
	return nil
}

func (d *demo) duplicateKey() error {
	said, err := d.propose("agent", "", "restart-service", `{"service": "web", "service": "payments"}`)
	d.refused("duplicate key", said, err, "stage decode: DuplicateKey")
	return nil
}

func (d *demo) recreated() error {
	name := fmt.Sprintf("scale-again-%d", d.began.Unix())
	if _, err := d.propose("agent", name, "scale-service", `{"service": "web", "replicas": 5}`); err != nil {
		return err
	}
	old, err := d.await(name, "AwaitingApproval")
	if err != nil {
		return err
	}
	if _, err := d.admin("-n", namespace, "delete", "toolproposal", name, "--timeout", patience.String()); err != nil {
		return err
	}
	if _, err := d.propose("agent", name, "scale-service", `{"service": "web", "replicas": 5}`); err != nil {
		return err
	}
	c, err := d.await(name, "AwaitingApproval")
	if err != nil {
		return err
	}
	d.check("same call, another object", c.Metadata.UID != old.Metadata.UID && c.Spec.Prepared.Fingerprint == old.Spec.Prepared.Fingerprint,
		"same fingerprint, another UID")
	said, err := d.receipt("alice", name, old.Metadata.UID, old.Spec.Prepared.Fingerprint)
	d.refused("receipt of the earlier proposal", said, err, "UIDMismatch")
	return nil
}

// servers runs one call of each effect that is not a program. What arrived at
// the service must be, byte by byte, what was decided on.
func (d *demo) servers() error {
	names := map[string]string{}
	for tool, arguments := range map[string]string{
		"announce": `{"service": "web", "text": "Back again, 3 of 3 replicas run \u2014 gr\u00fc\u00dfe"}`,
		"release":  `{"version": "1.4.2", "service": "worker"}`,
	} {
		name, err := d.propose("agent", "", tool, arguments)
		if err != nil {
			return err
		}
		names[tool] = name
	}
	for _, tool := range []string{"announce", "release"} {
		c, err := d.await(names[tool])
		if err != nil {
			return err
		}
		d.check(map[string]string{"announce": "HTTP call", "release": "MCP call"}[tool],
			c.outcome() == "Succeeded/Succeeded", c.outcome()+" "+c.Status.Message)
		d.say("output: %s", strings.TrimSpace(c.Status.Result.Output))
		if err := d.received(tool, c); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) received(tool string, c call) error {
	entries, err := d.entries()
	if err != nil {
		return err
	}
	var got []string
	for _, e := range entries[min(d.before, len(entries)):] {
		if e.Tool == tool {
			got = append(got, e.Received)
		}
	}
	decided := c.Spec.Prepared.Effect.HTTP.Body + c.Spec.Prepared.Effect.MCP.Arguments
	d.check("the "+tool+" arrived as decided", decided != "" && len(got) == 1 && got[0] == decided,
		fmt.Sprintf("%d time: %s", len(got), strings.Join(got, ", ")))
	return nil
}

// entry is what the service wrote down of one call.
type entry struct{ Tool, Detail, Received string }

func (d *demo) entries() ([]entry, error) {
	out, err := d.admin("get", "--raw", "/api/v1/namespaces/"+namespace+"/services/ledger:8080/proxy/entries")
	if err != nil {
		return nil, err
	}
	var answer struct{ Entries []entry }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	return answer.Entries, nil
}

func (d *demo) ledger() error {
	entries, err := d.entries()
	if err != nil {
		return err
	}
	var seen []string
	for _, e := range entries[min(d.before, len(entries)):] {
		seen = append(seen, e.Tool+" "+e.Detail)
	}
	sort.Strings(seen)
	got := strings.Join(seen, ", ")
	d.check("what the service saw", got == "announce web, release worker 1.4.2, restart web, scale worker replicas=3", got)
	return nil
}

func (d *demo) show() {
	d.heading("What kubectl shows")
	for _, args := range [][]string{
		{"get", "tm,tp,ar", "-A"},
		{"get", "tp", "-A", "-o", "wide"},
	} {
		fmt.Printf("\n$ kubectl %s\n", strings.Join(args, " "))
		if out, err := d.admin(args...); err == nil {
			fmt.Print(out)
		}
	}
}

// table prints what held and returns how much did not.
func (d *demo) table(took time.Duration) (failed int) {
	fmt.Printf("\n%-42s %s\n%s\n", "CHECK", "HELD", strings.Repeat("-", 47))
	for _, c := range d.checks {
		answer := "yes"
		if !c.held {
			answer, failed = "NO", failed+1
		}
		fmt.Printf("%-42s %s\n", c.what, answer)
	}
	fmt.Printf("\n%d of %d checks held, in %s\n", len(d.checks)-failed, len(d.checks), took.Round(time.Second))
	return failed
}

func (d *demo) lookAround() {
	if d.state == "" {
		fmt.Printf("\nLook around: kubectl -n %s get tm,tp,ar\n", namespace)
		return
	}
	fmt.Printf("\nWith \"make demo KEEP=1\" the cluster stays. Look around, then stop it:\n"+
		"  bin/assent-cluster kubectl -n %s get tm,tp,ar\n"+
		"  bin/assent-cluster kubectl -n %s describe tp\n"+
		"  make cluster-down\n", namespace, namespace)
}
