// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

// newRootCommand assembles the command tree. Every command lives in a file of
// its own and gets one line here.
func newRootCommand(streams Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-assent",
		Short: "Look at, decide on and check tool calls of AI agents",
		Long: "Look at, decide on and check tool calls of AI agents.\n\n" +
			"Exit codes: 0 done, 1 error, 2 refused or denied.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl assent"},
		SilenceUsage:  true, // a refusal is not a misuse of the command line
		SilenceErrors: true, // finish prints them, once
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.AddCommand(newApproveCommand(streams))
	root.AddCommand(newAuditCommand(streams))
	root.AddCommand(newCancelCommand(streams))
	root.AddCommand(newDenyCommand(streams))
	root.AddCommand(newDoctorCommand(streams))
	root.AddCommand(newGenerateCommand(streams))
	root.AddCommand(newImportCommand(streams))
	root.AddCommand(newLintCommand(streams))
	root.AddCommand(newListCommand(streams))
	root.AddCommand(newPolicyCommand(streams))
	root.AddCommand(newPrepareCommand(streams))
	root.AddCommand(newSchemaCommand(streams))
	root.AddCommand(newShowCommand(streams))
	root.AddCommand(newSimulateCommand(streams))
	root.AddCommand(newSnapshotCommand(streams))
	root.AddCommand(newWaitCommand(streams))
	root.AddCommand(newWhyCommand(streams))
	return root
}
