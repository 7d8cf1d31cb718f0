// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
)

// folders are the places that a command works with.
type folders struct {
	source, state, cache string
}

// module is the folder of this Go module inside the repository.
const module = "test/cluster"

var errNoRepository = errors.New("no folder above holds " + module + "/go.mod: run this command inside the repository")

// folders looks for the repository above the current folder, then above this
// program, so that it also works when a test calls it from elsewhere.
func (f *flags) folders() (folders, error) {
	current, err := os.Getwd()
	if err != nil {
		return folders{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return folders{}, err
	}
	for _, start := range []string{current, filepath.Dir(program)} {
		if repository := above(start); repository != "" {
			return f.in(repository), nil
		}
	}
	return folders{}, errNoRepository
}

func above(start string) string {
	for folder := start; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, module, "go.mod")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			return ""
		}
	}
}

func (f *flags) in(repository string) folders {
	result := folders{source: filepath.Join(repository, module), state: f.state, cache: f.cache}
	if result.state == "" {
		result.state = filepath.Join(repository, ".cluster")
	}
	if result.cache == "" {
		result.cache = filepath.Join(repository, ".cluster", "cache")
	}
	return result
}
