// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// auditOrigin is the name of the operator's log.
const auditOrigin = "assent.dev/audit"

// proofs checks what is left behind: that the log is whole, that it fits the
// calls of the cluster, and for each call of the demo a proof that its last
// record is in the log. It needs the log's files and the public keys only.
func (d *demo) proofs() error {
	if d.state == "" {
		d.say("the log's files are on a volume of this cluster: see docs/audit.md for how to check them")
		return nil
	}
	log := filepath.Join(d.state, "data", "audit")
	tool, key := filepath.Join(d.folder, "kubectl-assent"), filepath.Join(d.folder, "keys.pem")
	if _, err := d.program("go", "build", "-o", tool, "./cmd/kubectl-assent"); err != nil {
		return err
	}
	keys, err := d.admin("-n", "assent-system", "get", "configmap", "assent-public-keys", "-o", `jsonpath={.data.keys\.pem}`)
	if err != nil {
		return err
	}
	if err := os.WriteFile(key, []byte(keys), 0o600); err != nil {
		return err
	}
	calls, err := d.proofsOfCalls(tool, log, key)
	if err != nil {
		return err
	}
	d.check("a verified inclusion proof for each call", calls > 0, fmt.Sprintf("%d calls", calls))
	out, err := d.program(tool, "audit", "verify", log, "--key", key, "--origin", auditOrigin, "--cluster")
	for line := range strings.Lines(out) {
		d.say("%s", strings.TrimSuffix(line, "\n"))
	}
	note := "every record in place, no call without a record, no record without a call"
	if err != nil {
		note = err.Error()
	}
	d.check("the whole audit log", err == nil, note)
	return nil
}

// proofsOfCalls proves the last record of each call and checks each proof by
// itself, and returns how many there were.
func (d *demo) proofsOfCalls(tool, log, key string) (int, error) {
	out, err := d.admin("-n", namespace, "get", "toolproposals", "-o", "json")
	if err != nil {
		return 0, err
	}
	var list struct{ Items []call }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return 0, fmt.Errorf("reading the calls: %w", err)
	}
	proved := 0
	for _, c := range list.Items {
		if c.Status.Audit.Index == nil {
			// It still waits: nothing was granted or refused yet.
			continue
		}
		proof, err := d.program(tool, "audit", "prove", log, index(c), "--key", key, "--origin", auditOrigin)
		if err != nil {
			return proved, fmt.Errorf("proving record %s of %s: %w", index(c), c.Metadata.Name, err)
		}
		file := filepath.Join(d.folder, "proof-"+c.Metadata.Name)
		if err := os.WriteFile(file, []byte(proof), 0o600); err != nil {
			return proved, err
		}
		if _, err := d.program(tool, "audit", "prove", "--check", file, "--key", key, "--origin", auditOrigin); err != nil {
			return proved, fmt.Errorf("checking the proof of %s: %w", c.Metadata.Name, err)
		}
		d.say("%s %s: record %s, verified by a proof of %d bytes", c.Metadata.Name, c.outcome(), index(c), len(proof))
		proved++
	}
	return proved, nil
}
