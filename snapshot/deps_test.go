// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The package is the reference for other languages and the core of the runner,
// so that it must not drag Kubernetes, or anything else, along.
func TestDependencies_OnlyTheTwoJSONLibraries(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	permitted := []string{
		"github.com/assent-dev/assent/snapshot",
		"github.com/go-json-experiment/json",
		"github.com/gowebpki/jcs",
	}
	for path := range strings.FieldsSeq(string(out)) {
		found := false
		for _, p := range permitted {
			found = found || path == p || strings.HasPrefix(path, p+"/")
		}
		if !found {
			t.Errorf("snapshot depends on %s", path)
		}
	}
}
