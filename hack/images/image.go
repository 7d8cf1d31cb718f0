// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// user is the numeric user and group that every image runs as. Numeric,
	// since Pod Security's runAsNonRoot cannot judge a name.
	user = "65532:65532"

	rootsPath = "/etc/ssl/certs/ca-certificates.crt"
	accounts  = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	groups    = "root:x:0:\nnonroot:x:65532:\n"
)

// file is one regular file of an image.
type file struct {
	path string
	mode int64
	data []byte
}

// epoch is the only time that appears in an image: a digest must not depend
// on when the image was built.
var epoch = time.Unix(0, 0).UTC()

// assemble makes the image of a program. roots holds the PEM certificates of
// the system's authorities; it is only used when the spec asks for them.
func assemble(s spec, arch string, program, roots []byte) (v1.Image, error) {
	files := []file{
		{path: "/etc/passwd", mode: 0o444, data: []byte(accounts)},
		{path: "/etc/group", mode: 0o444, data: []byte(groups)},
	}
	if s.roots && len(roots) > 0 {
		files = append(files, file{path: rootsPath, mode: 0o444, data: roots})
	}
	files = append(files, file{path: s.binary, mode: 0o555, data: program})

	content, err := archiveFiles(files)
	if err != nil {
		return nil, fmt.Errorf("image %s: writing its layer: %w", s.name, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("image %s: compressing its layer: %w", s.name, err)
	}
	return configure(s, arch, layer)
}

func configure(s spec, arch string, layer v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "hack/images"},
	})
	if err != nil {
		return nil, fmt.Errorf("image %s: adding its layer: %w", s.name, err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image %s: reading its configuration: %w", s.name, err)
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture = "linux", arch
	cfg.Created = v1.Time{Time: epoch}
	cfg.Config = v1.Config{
		User:       user,
		WorkingDir: "/",
		Env:        []string{"PATH=/"},
		Entrypoint: []string{s.binary},
		Labels: map[string]string{
			"org.opencontainers.image.title":    s.title,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	img, err = mutate.ConfigFile(img, cfg)
	if err != nil {
		return nil, fmt.Errorf("image %s: writing its configuration: %w", s.name, err)
	}
	return img, nil
}

// archiveFiles writes files and the folders above them as a tar archive that
// is the same every time.
func archiveFiles(files []file) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	seen := map[string]bool{}
	for _, f := range files {
		name := strings.TrimPrefix(f.path, "/")
		if err := archiveFolders(w, path.Dir(name), seen); err != nil {
			return nil, err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: f.mode, Size: int64(len(f.data)), ModTime: epoch, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func archiveFolders(w *tar.Writer, dir string, seen map[string]bool) error {
	if dir == "." || seen[dir] {
		return nil
	}
	if err := archiveFolders(w, path.Dir(dir), seen); err != nil {
		return err
	}
	seen[dir] = true
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR})
}

// systemRoots returns the certificate authorities of the machine that builds,
// or nothing where it has none.
func systemRoots(from string) ([]byte, error) {
	data, err := os.ReadFile(from)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading certificate authorities: %w", err)
	}
	return data, nil
}
