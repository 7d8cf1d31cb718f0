// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// annotationImageName is the annotation from which containerd takes the name
// of an image that it imports.
const annotationImageName = "io.containerd.image.name"

// dockerEntry is one entry of the manifest.json that Docker and older tools read.
type dockerEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// blob is one file of the archive.
type blob struct {
	name string
	size int64
	open func() (io.ReadCloser, error)
}

// writeArchive writes an image as one tar archive that is an OCI layout and
// has Docker's manifest.json beside it.
//
// The index names the manifest twice, once by tag and once by digest.
// containerd registers both names when it imports the archive, with no option
// given, and Pods may name the digest at once. With Docker's format alone the
// digest reference would exist only after "ctr images import --digests
// --base-name", which kind does not pass.
func writeArchive(w io.Writer, img v1.Image, repository, tag string) error {
	blobs, err := archiveBlobs(img, repository, tag)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR}
		if err := out.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", dir, err)
		}
	}
	for _, b := range blobs {
		if err := writeBlob(out, b); err != nil {
			return fmt.Errorf("writing %s: %w", b.name, err)
		}
	}
	return out.Close()
}

func writeBlob(out *tar.Writer, b blob) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: b.name, Mode: 0o644, Size: b.size, ModTime: epoch, Format: tar.FormatUSTAR}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	in, err := b.open()
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = in.Close()
		return err
	}
	return in.Close()
}

func archiveBlobs(img v1.Image, repository, tag string) ([]blob, error) {
	config, err := img.RawConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	configName, err := img.ConfigName()
	if err != nil {
		return nil, fmt.Errorf("hashing the configuration: %w", err)
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, fmt.Errorf("hashing the manifest: %w", err)
	}
	layers, err := layerBlobs(img)
	if err != nil {
		return nil, err
	}

	entry := dockerEntry{Config: blobPath(configName), RepoTags: []string{repository + ":" + tag}}
	for _, l := range layers {
		entry.Layers = append(entry.Layers, l.name)
	}
	files := []struct {
		name  string
		value any
	}{
		{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}},
		{"index.json", index(repository, tag, digest, int64(len(manifest)))},
		{"manifest.json", []dockerEntry{entry}},
	}
	blobs := slices.Concat(layers, []blob{bytesBlob(blobPath(configName), config), bytesBlob(blobPath(digest), manifest)})
	for _, f := range files {
		data, err := json.Marshal(f.value)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", f.name, err)
		}
		blobs = append(blobs, bytesBlob(f.name, data))
	}
	return blobs, nil
}

// index lists the one manifest under both of its names.
func index(repository, tag string, digest v1.Hash, size int64) v1.IndexManifest {
	descriptor := func(name, ref string) v1.Descriptor {
		annotations := map[string]string{annotationImageName: name}
		if ref != "" {
			annotations["org.opencontainers.image.ref.name"] = ref
		}
		return v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: digest, Size: size, Annotations: annotations}
	}
	return v1.IndexManifest{
		SchemaVersion: 2,
		MediaType:     types.OCIImageIndex,
		Manifests: []v1.Descriptor{
			descriptor(repository+":"+tag, tag),
			descriptor(repository+"@"+digest.String(), ""),
		},
	}
}

func layerBlobs(img v1.Image) ([]blob, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, fmt.Errorf("listing layers: %w", err)
	}
	blobs := make([]blob, 0, len(layers))
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return nil, fmt.Errorf("hashing a layer: %w", err)
		}
		size, err := l.Size()
		if err != nil {
			return nil, fmt.Errorf("measuring a layer: %w", err)
		}
		blobs = append(blobs, blob{name: blobPath(digest), size: size, open: l.Compressed})
	}
	return blobs, nil
}

func blobPath(h v1.Hash) string {
	return "blobs/" + h.Algorithm + "/" + h.Hex
}

func bytesBlob(name string, data []byte) blob {
	return blob{name: name, size: int64(len(data)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
}
