// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// Loaded is an image that the cluster can run.
type Loaded struct {
	// Name is the full name with its tag, as Pods may use it.
	Name string
	// Reference is NAME@sha256:DIGEST: Pods that use it start without a
	// registry if their imagePullPolicy is IfNotPresent or Never.
	Reference string
}

// runtimeNamespace is where the CRI plugin keeps its images.
const runtimeNamespace = "k8s.io"

// Load imports images from tar files into the node of a running cluster: OCI
// layouts, whose entries carry the annotation io.containerd.image.name, and
// docker archives ("docker save"). An OCI layout keeps its digest; a docker
// archive has none before the container runtime gives it one.
func Load(ctx context.Context, state string, files []string) ([]Loaded, error) {
	layout, err := NewLayout(state)
	if err != nil {
		return nil, err
	}
	rec, err := layout.load()
	if err != nil {
		return nil, err
	}
	if rec.Mode != ModeNode {
		return nil, fmt.Errorf("the cluster in %s is a control plane only: no node could run an image", layout.State)
	}
	var all []Loaded
	for _, file := range files {
		loaded, err := layout.loadFile(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("loading %s: %w", file, err)
		}
		all = append(all, loaded...)
	}
	return all, nil
}

func (l Layout) loadFile(ctx context.Context, file string) ([]Loaded, error) {
	names, err := imageNames(file)
	if err != nil {
		return nil, err
	}
	if _, err := l.ctr(ctx, "images", "import", file); err != nil {
		return nil, err
	}
	var loaded []Loaded
	for _, name := range names {
		image, err := l.register(ctx, name)
		if err != nil {
			return nil, err
		}
		loaded = append(loaded, image)
	}
	return withoutRepeats(loaded), nil
}

// register makes an imported image known under its digest too, unless that is
// the name it came with.
func (l Layout) register(ctx context.Context, name reference.Named) (Loaded, error) {
	if _, ok := name.(reference.Canonical); ok {
		return Loaded{Name: name.String(), Reference: name.String()}, nil
	}
	digest, err := l.imageDigest(ctx, name)
	if err != nil {
		return Loaded{}, err
	}
	byDigest := reference.TrimNamed(name).String() + "@" + digest
	if _, err := l.ctr(ctx, "images", "tag", "--force", name.String(), byDigest); err != nil {
		return Loaded{}, err
	}
	return Loaded{Name: name.String(), Reference: byDigest}, nil
}

// withoutRepeats drops entries that name an image only by its digest if another
// entry names the same one by a tag.
func withoutRepeats(images []Loaded) []Loaded {
	tagged := map[string]bool{}
	for _, image := range images {
		if image.Name != image.Reference {
			tagged[image.Reference] = true
		}
	}
	return slices.DeleteFunc(images, func(image Loaded) bool {
		return image.Name == image.Reference && tagged[image.Reference]
	})
}

func (l Layout) ctr(ctx context.Context, args ...string) (string, error) {
	program, err := lookProgram("ctr")
	if err != nil {
		return "", err
	}
	return output(ctx, program, append([]string{"--address", l.containerdSocket(), "--namespace", runtimeNamespace}, args...)...)
}

// imageDigest asks the container runtime: its answer is the one that counts
// when a Pod starts.
func (l Layout) imageDigest(ctx context.Context, name reference.Named) (string, error) {
	out, err := l.ctr(ctx, "images", "list", "name=="+name.String())
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		// REF TYPE DIGEST SIZE PLATFORMS LABELS
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == name.String() {
			return fields[2], nil
		}
	}
	return "", fmt.Errorf("the container runtime did not keep %s", name)
}

// imageNames reads the names out of either kind of file, in the long form in
// which the container runtime keeps them.
func imageNames(file string) ([]reference.Named, error) {
	members, err := readMembers(file, "index.json", "manifest.json")
	if err != nil {
		return nil, err
	}
	var raw []string
	// A file may be both at once; then containerd reads the OCI layout.
	switch {
	case members["index.json"] != nil:
		raw, err = layoutNames(members["index.json"])
	case members["manifest.json"] != nil:
		raw, err = archiveNames(members["manifest.json"])
	default:
		err = errors.New("it is neither an OCI layout nor a docker archive: it has no index.json and no manifest.json")
	}
	if err != nil {
		return nil, err
	}
	names := make([]reference.Named, 0, len(raw))
	for _, text := range raw {
		name, err := reference.ParseDockerRef(text)
		if err != nil {
			return nil, fmt.Errorf("image name %q: %w", text, err)
		}
		names = append(names, name)
	}
	return names, nil
}

func layoutNames(index []byte) ([]string, error) {
	var parsed struct {
		Manifests []struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal(index, &parsed); err != nil {
		return nil, fmt.Errorf("reading index.json: %w", err)
	}
	var names []string
	for i, manifest := range parsed.Manifests {
		name := manifest.Annotations[nameAnnotation]
		if name == "" {
			return nil, fmt.Errorf("entry %d of index.json has no name: add the annotation %s", i, nameAnnotation)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, errors.New("index.json lists no image")
	}
	return names, nil
}

func archiveNames(manifest []byte) ([]string, error) {
	var parsed []struct {
		RepoTags []string `json:"RepoTags"`
	}
	if err := json.Unmarshal(manifest, &parsed); err != nil {
		return nil, fmt.Errorf("reading manifest.json: %w", err)
	}
	var names []string
	for _, image := range parsed {
		names = append(names, image.RepoTags...)
	}
	if len(names) == 0 {
		return nil, errors.New("manifest.json names no image: save it with a name and a tag")
	}
	return names, nil
}

// maxMember bounds what is read of an index: real ones have a few kilobytes.
const maxMember = 4 << 20

func readMembers(file string, wanted ...string) (map[string][]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	members := map[string][]byte{}
	reader := tar.NewReader(opened)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return members, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the tar file: %w", err)
		}
		for _, name := range wanted {
			if strings.TrimPrefix(header.Name, "./") != name {
				continue
			}
			if members[name], err = io.ReadAll(io.LimitReader(reader, maxMember)); err != nil {
				return nil, fmt.Errorf("reading %s: %w", name, err)
			}
		}
	}
}

// loadOwnImages imports what the node itself runs.
func (c *cluster) loadOwnImages(ctx context.Context) error {
	for _, file := range c.o.Binaries.Images {
		if _, err := c.loadFile(ctx, file); err != nil {
			return fmt.Errorf("loading %s: %w", file, err)
		}
	}
	return nil
}
