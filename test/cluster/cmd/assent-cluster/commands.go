// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/test/cluster/lifecycle"
)

func buildCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Compile Kubernetes; does nothing if that was done before",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			binaries, err := f.build(cmd)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), binaries.Kube)
			return nil
		},
	}
}

func (f *flags) build(cmd *cobra.Command) (lifecycle.Binaries, error) {
	folders, err := f.folders()
	if err != nil {
		return lifecycle.Binaries{}, err
	}
	return lifecycle.Build(cmd.Context(), lifecycle.BuildOptions{
		Source: folders.source, Cache: folders.cache, Progress: os.Stderr,
	})
}

func upCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster and print the path of its kubeconfig; does nothing if it is up",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			binaries, err := f.build(cmd)
			if err != nil {
				return err
			}
			folders, err := f.folders()
			if err != nil {
				return err
			}
			layout, err := lifecycle.Up(cmd.Context(), lifecycle.Options{
				State: folders.state, Mode: f.mode(), Binaries: binaries, Progress: os.Stderr,
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), layout.Kubeconfig())
			return nil
		},
	}
	addMode(cmd, f)
	return cmd
}

func downCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster, delete its data and put the machine back as it was",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			folders, err := f.folders()
			if err != nil {
				return err
			}
			return lifecycle.Down(cmd.Context(), folders.state, os.Stderr)
		},
	}
}

func loadCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "load FILE.tar...",
		Short: "Import images into the node and print their references by digest",
		Long: "Import images into the node and print one line for each: its name and its reference by digest.\n" +
			"A file is an OCI layout, whose entries carry the annotation io.containerd.image.name, or a docker archive.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			folders, err := f.folders()
			if err != nil {
				return err
			}
			loaded, err := lifecycle.Load(cmd.Context(), folders.state, files)
			if err != nil {
				return err
			}
			for _, image := range loaded {
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", image.Name, image.Reference)
			}
			return nil
		},
	}
}

// disturbCommands are for tests of what happens when a part of a cluster hangs
// or dies.
func disturbCommands(f *flags) []*cobra.Command {
	disturb := func(use, short string, do func(ctx context.Context, state, program string) error) *cobra.Command {
		return &cobra.Command{
			Use:   use + " PROGRAM",
			Short: short,
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				folders, err := f.folders()
				if err != nil {
					return err
				}
				return do(cmd.Context(), folders.state, args[0])
			},
		}
	}
	return []*cobra.Command{
		disturb("pause", "Stop a program of the cluster where it is", func(_ context.Context, state, program string) error {
			return lifecycle.Pause(state, program)
		}),
		disturb("resume", "Let a paused program go on", func(_ context.Context, state, program string) error {
			return lifecycle.Resume(state, program)
		}),
		disturb("restart", "Kill a program of the node and start it again", lifecycle.Restart),
	}
}

func statusCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say what runs; exit status 1 unless all of it does",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			folders, err := f.folders()
			if err != nil {
				return err
			}
			up, err := lifecycle.Status(cmd.Context(), folders.state, cmd.OutOrStdout())
			if err == nil && !up {
				return exitError(1)
			}
			return err
		},
	}
}

func kubectlCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGUMENTS...]",
		Short: "Run kubectl against the cluster; --state goes before the word kubectl",
		// Every argument is kubectl's, also those that look like ours.
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			folders, err := f.folders()
			if err != nil {
				return err
			}
			return lifecycle.Kubectl(folders.state, args, os.Environ())
		},
	}
}

func userCommand(f *flags) *cobra.Command {
	var groups []string
	cmd := &cobra.Command{
		Use:   "user NAME",
		Short: "Print a kubeconfig for a user, authenticated by a client certificate",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folders, err := f.folders()
			if err != nil {
				return err
			}
			layout, err := lifecycle.NewLayout(folders.state)
			if err != nil {
				return err
			}
			config, err := layout.UserKubeconfig(args[0], groups, time.Now())
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(config)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&groups, "group", nil, "a group of the user; may be given several times")
	return cmd
}
