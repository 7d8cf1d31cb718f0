// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	cache map[types.NamespacedName]compiled
}

type compiled struct {
	key      [sha256.Size]byte
	contract *contract.Contract
	err      error
}

// Compile returns the contract of a manifest. Errors are those of
// [contract.Compile]; they are kept as well, since they cost as much to find.
func (c *Compiler) Compile(m *v1alpha1.ToolManifest, tools Tools) (*contract.Contract, error) {
	if m.UID == "" {
		// It is not stored yet, so that nothing tells it from another like it.
		return c.compile(m, tools)
	}
	name, key := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, compileKey(m, tools)
	c.mu.Lock()
	hit, ok := c.cache[name]
	c.mu.Unlock()
	if ok && hit.key == key {
		return hit.contract, hit.err
	}
	result, err := c.compile(m, tools)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache == nil {
		c.cache = map[types.NamespacedName]compiled{}
	}
	c.cache[name] = compiled{key: key, contract: result, err: err}
	return result, err
}

func (c *Compiler) compile(m *v1alpha1.ToolManifest, tools Tools) (*contract.Contract, error) {
	in, err := ContractInput(m, tools, c.RunnerImage, c.AllowImageTags)
	if err != nil {
		return nil, err
	}
	return contract.Compile(in)
}

// Forget drops the contract of a manifest that does not exist any more.
func (c *Compiler) Forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cache, name)
}

// compileKey names every input by UID and generation: an object of the same
// name that was created anew is another input. It is a digest, since a
// namespace can have many types and every manifest keeps a key.
func compileKey(m *v1alpha1.ToolManifest, tools Tools) [sha256.Size]byte {
	parts := make([]string, 0, len(tools.Types)+len(tools.Scopes))
	for i := range tools.Types {
		parts = append(parts, inputKey("t/", &tools.Types[i].ObjectMeta))
	}
	for i := range tools.Scopes {
		parts = append(parts, inputKey("s/", &tools.Scopes[i].ObjectMeta))
	}
	slices.Sort(parts)
	return sha256.Sum256([]byte(inputKey("m/", &m.ObjectMeta) + " " + strings.Join(parts, " ")))
}

func inputKey(kind string, o *metav1.ObjectMeta) string {
	return kind + string(o.UID) + "/" + strconv.FormatInt(o.Generation, 10)
}
