// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/test/cluster/lifecycle"
)

// backupCommands are for tests of what happens when a cluster is put back to an
// earlier state.
func backupCommands(f *flags) []*cobra.Command {
	command := func(use, short string, do func(ctx context.Context, state, dir string, progress io.Writer) error) *cobra.Command {
		return &cobra.Command{
			Use:   use + " DIR",
			Short: short,
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				folders, err := f.folders()
				if err != nil {
					return err
				}
				return do(cmd.Context(), folders.state, args[0], os.Stderr)
			},
		}
	}
	return []*cobra.Command{
		command("backup", "Copy what etcd holds into a new folder; the control plane is down meanwhile", lifecycle.Backup),
		command("restore", "Put etcd back to what backup copied", lifecycle.Restore),
	}
}
