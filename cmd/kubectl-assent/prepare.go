// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/snapshot"
)

// prepareOptions are the flags of kubectl assent prepare.
type prepareOptions struct {
	offlineOptions
	tool, arguments, agent string
}

// newPrepareCommand shows what a call would become.
func newPrepareCommand(streams Streams) *cobra.Command {
	var o prepareOptions
	c := &cobra.Command{
		Use:   "prepare -f FILES… --tool NAME --arguments FILE",
		Short: "Print the call that admission would freeze, without a cluster",
		Long: "Print the call that admission would freeze, without a cluster: the canonical arguments, the resolved effect and\n" +
			"their hashes, from ToolManifest, ArgumentType and ToolScope documents. Arguments that are refused give exit\n" +
			"code 2 and {\"stage\",\"reason\",\"path\",\"message\"} on standard error.\n\n" +
			"The hash of the contract covers the runner's image, so that it and the fingerprint are those of a cluster only\n" +
			"with the --runner-image that its operator runs with. The proposal hash also needs the agent's user name.",
		Example: "  kubectl assent prepare -f deploy/ --tool nmap-scan --arguments call.json\n" +
			"  kubectl assent import nmap.clad.toml --image IMAGE | kubectl assent prepare -f - --tool nmap-scan --arguments call.json",
		RunE: func(_ *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return o.run(streams)
		},
	}
	o.flags(c, &o.offlineOptions)
	f := c.Flags()
	f.StringVar(&o.tool, "tool", "", "name of the ToolManifest")
	f.StringVar(&o.arguments, "arguments", "", "file with the call's arguments, a JSON object; - for standard input")
	f.StringVar(&o.agent, "agent", "", "user name of the agent, such as system:serviceaccount:NAMESPACE:NAME")
	f.StringP("output", "o", "json", "output format: json")
	return c
}

// preparedCall is what is printed about a call.
type preparedCall struct {
	ArgsCanonicalJSON string          `json:"argsCanonicalJson"`
	ArgsDigest        string          `json:"argsDigest"`
	Effect            json.RawMessage `json:"effect"`
	ContractHash      string          `json:"contractHash"`
	ProposalHash      string          `json:"proposalHash"`
	Fingerprint       string          `json:"fingerprint"`
}

func (o *prepareOptions) run(streams Streams) error {
	if len(o.files) == 0 || o.tool == "" || o.arguments == "" {
		return errors.New("-f, --tool and --arguments are needed")
	}
	w, err := o.load(streams)
	if err != nil {
		return err
	}
	c, err := w.contract(o.tool)
	if err != nil {
		return err
	}
	p, err := prepareFrom(c, o.agent, o.arguments, streams)
	if err != nil {
		return refuseCall(err, streams.Err)
	}
	err = encodeLine(streams.Out, preparedCall{
		ArgsCanonicalJSON: p.ArgsCanonicalJSON, ArgsDigest: p.ArgsDigest, Effect: json.RawMessage(p.EffectJSON),
		ContractHash: p.ContractHash, ProposalHash: p.ProposalHash, Fingerprint: p.Fingerprint,
	})
	if err != nil {
		return fmt.Errorf("writing the call: %w", err)
	}
	return nil
}

// prepareFrom prepares the arguments in a file.
func prepareFrom(c *contract.Contract, agent, file string, streams Streams) (*contract.Prepared, error) {
	// One byte more than allowed is enough to refuse a file of any size.
	raw, err := readInput(file, snapshot.MaxBytes+1, streams)
	if err != nil {
		return nil, fmt.Errorf("reading the arguments: %w", err)
	}
	return c.Prepare(agent, string(raw))
}
