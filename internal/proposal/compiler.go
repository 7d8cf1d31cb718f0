// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
)

// Compiler compiles manifests to contracts and keeps one contract per manifest
// for as long as nothing that went into it changes. It is safe for concurrent
// use and holds as many contracts as there are manifests.
type Compiler struct {
	// RunnerImage is the runner's image by digest; it is part of every contract.
	RunnerImage string
	// AllowImageTags accepts command images by tag.
	AllowImageTags bool

	mu    sync.Mutex
	cache map[types.UID]compiled
}

type compiled struct {
	key      string
	contract *contract.Contract
	err      error
}

// Compile returns the contract of a manifest. Errors are those of
// [contract.Compile]; they are kept as well, since they cost as much to find.
func (c *Compiler) Compile(m *v1alpha1.ToolManifest, tools Tools) (*contract.Contract, error) {
	key := compileKey(m, tools)
	c.mu.Lock()
	hit, ok := c.cache[m.UID]
	c.mu.Unlock()
	if ok && m.UID != "" && hit.key == key {
		return hit.contract, hit.err
	}
	result, err := c.compile(m, tools)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache == nil {
		c.cache = map[types.UID]compiled{}
	}
	c.cache[m.UID] = compiled{key: key, contract: result, err: err}
	return result, err
}

func (c *Compiler) compile(m *v1alpha1.ToolManifest, tools Tools) (*contract.Contract, error) {
	in, err := ContractInput(m, tools, c.RunnerImage, c.AllowImageTags)
	if err != nil {
		return nil, err
	}
	return contract.Compile(in)
}

// Forget drops the contract of a manifest that was deleted.
func (c *Compiler) Forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cache, uid)
}

// compileKey names every input by UID and generation: an object of the same
// name that was created anew is another input.
func compileKey(m *v1alpha1.ToolManifest, tools Tools) string {
	parts := make([]string, 0, len(tools.Types)+len(tools.Scopes))
	for i := range tools.Types {
		parts = append(parts, fmt.Sprintf("t/%s/%d", tools.Types[i].UID, tools.Types[i].Generation))
	}
	for i := range tools.Scopes {
		parts = append(parts, fmt.Sprintf("s/%s/%d", tools.Scopes[i].UID, tools.Scopes[i].Generation))
	}
	slices.Sort(parts)
	return fmt.Sprintf("m/%d %s", m.Generation, strings.Join(parts, " "))
}
