// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// BinaryName is the name of the installed binary.
const BinaryName = "assent-runner"

// Install copies the binary at source to dir/assent-runner, readable and
// executable by everybody and writable by nobody. The file appears under its
// name only when it is complete.
func Install(source, dir string) error {
	in, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("opening the runner's own binary: %w", err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(dir, "."+BinaryName+"-*")
	if err != nil {
		return fmt.Errorf("creating the copy: %w", err)
	}
	defer func() { _ = os.Remove(out.Name()) }() // fails once it is renamed
	if err := fill(out, in); err != nil {
		return err
	}
	if err := os.Rename(out.Name(), filepath.Join(dir, BinaryName)); err != nil {
		return fmt.Errorf("naming the copy: %w", err)
	}
	return nil
}

func fill(out *os.File, in io.Reader) error {
	_, copyErr := io.Copy(out, in)
	modeErr := out.Chmod(0o555)
	closeErr := out.Close()
	for _, err := range []error{copyErr, modeErr, closeErr} {
		if err != nil {
			return fmt.Errorf("writing the copy: %w", err)
		}
	}
	return nil
}
