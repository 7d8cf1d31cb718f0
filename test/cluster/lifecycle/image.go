// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Images of the cluster itself. No registry answers to this name: they exist
// only where they were loaded.
const (
	pauseImage = "assent.local/pause:1"
	dnsImage   = "assent.local/coredns:1"
)

// nameAnnotation tells containerd and its kin under which name to keep an image
// of an OCI layout.
const nameAnnotation = "io.containerd.image.name"

// WriteImage writes an OCI layout as a tar file: one image that holds one static
// program at the root and starts it. The layer is not compressed, because it is
// read once, on the machine that wrote it. The result is the same for the same
// program. It returns the digest of the image's manifest.
func WriteImage(file, name, program string) (digest string, err error) {
	image, err := programImage(program)
	if err != nil {
		return "", fmt.Errorf("building the image %s: %w", name, err)
	}
	hash, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("building the image %s: %w", name, err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add:        image,
		Descriptor: v1.Descriptor{Annotations: map[string]string{nameAnnotation: name}},
	})
	folder, err := os.MkdirTemp(filepath.Dir(file), "image-")
	if err != nil {
		return "", fmt.Errorf("writing the image %s: %w", name, err)
	}
	defer os.RemoveAll(folder)
	if _, err := layout.Write(folder, index); err != nil {
		return "", fmt.Errorf("writing the image %s: %w", name, err)
	}
	if err := tarFolder(folder, file); err != nil {
		return "", fmt.Errorf("writing the image %s: %w", name, err)
	}
	return hash.String(), nil
}

func programImage(program string) (v1.Image, error) {
	base := filepath.Base(program)
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(base, content)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, static.NewLayer(layer, types.OCIUncompressedLayer))
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint = []string{"/" + base}
	return mutate.ConfigFile(image, config)
}

func layerOf(name string, content []byte) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))}
	if err := writer.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	return out.Bytes(), writer.Close()
}

// tarFolder leaves no half-written file behind under the final name.
func tarFolder(folder, file string) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	defer temporary.Close()
	writer := tar.NewWriter(temporary)
	if err := addFolder(writer, os.DirFS(folder)); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}

func addFolder(writer *tar.Writer, folder fs.FS) error {
	return fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, path)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(len(content))}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		_, err = writer.Write(content)
		return err
	})
}
