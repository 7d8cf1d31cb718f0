// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/transparency-dev/tessera/api/layout"
)

// Source gives the files of one log. Each method returns an error that wraps
// [os.ErrNotExist] for a file that is not there. partial is 0 for a full
// resource of 256 items and the number of items otherwise; a Source may answer
// a partial request with the full resource.
type Source interface {
	ReadCheckpoint(ctx context.Context) ([]byte, error)
	ReadTile(ctx context.Context, level, index uint64, partial uint8) ([]byte, error)
	ReadEntryBundle(ctx context.Context, index uint64, partial uint8) ([]byte, error)
}

const (
	// maxCheckpointBytes bounds a checkpoint with several signatures.
	maxCheckpointBytes = 64 << 10
	// maxTileBytes is 256 hashes of 32 bytes.
	maxTileBytes = 256 * 32
	// maxBundleBytes is 256 entries of at most 65535 bytes with their lengths.
	maxBundleBytes = 256 * (1<<16 + 1)
)

// errTooLarge is the cause when a file is longer than its format allows.
var errTooLarge = errors.New("the file is longer than its format allows")

// OpenSource returns the log at a location: an http or https URL, or a
// directory. client may be nil.
func OpenSource(location string, client *http.Client) (Source, error) {
	if !strings.HasPrefix(location, "http://") && !strings.HasPrefix(location, "https://") {
		info, err := os.Stat(location)
		if err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if !info.IsDir() {
			return nil, errors.New("audit log: give the directory of the log, or a URL")
		}
		return dirReader(location), nil
	}
	base, err := url.Parse(location)
	if err != nil {
		return nil, errors.New("audit log: the URL is not valid")
	}
	if client == nil {
		client = http.DefaultClient
	}
	return httpReader(base, client), nil
}

// DirSource returns the log in a directory.
func DirSource(dir string) Source { return dirReader(dir) }

// files reads a log by the paths of its layout. The function returns at most
// limit bytes of the file at a path relative to the log.
type files func(ctx context.Context, path string, limit int64) ([]byte, error)

func dirReader(dir string) files {
	return func(_ context.Context, path string, limit int64) ([]byte, error) {
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		return readLimited(f, limit)
	}
}

func httpReader(base *url.URL, client *http.Client) files {
	return func(ctx context.Context, path string, limit int64) (_ []byte, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), http.NoBody)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }()
		switch response.StatusCode {
		case http.StatusOK:
			return readLimited(response.Body, limit)
		case http.StatusNotFound, http.StatusGone:
			return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
		default:
			return nil, fmt.Errorf("%s: the server answered with status %d", path, response.StatusCode)
		}
	}
}

func readLimited(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, errTooLarge
	}
	return data, err
}

// ReadCheckpoint implements [Source].
func (f files) ReadCheckpoint(ctx context.Context) ([]byte, error) {
	return f(ctx, layout.CheckpointPath, maxCheckpointBytes)
}

// ReadTile implements [Source].
func (f files) ReadTile(ctx context.Context, level, index uint64, partial uint8) ([]byte, error) {
	return f.readEither(ctx, partial, maxTileBytes, func(p uint8) string { return layout.TilePath(level, index, p) })
}

// ReadEntryBundle implements [Source].
func (f files) ReadEntryBundle(ctx context.Context, index uint64, partial uint8) ([]byte, error) {
	return f.readEither(ctx, partial, maxBundleBytes, func(p uint8) string { return layout.EntriesPath(index, p) })
}

// readEither falls back to the full resource, because a writer may remove
// partial ones once the full one exists.
func (f files) readEither(ctx context.Context, partial uint8, limit int64, path func(uint8) string) ([]byte, error) {
	data, err := f(ctx, path(partial), limit)
	if partial != 0 && errors.Is(err, os.ErrNotExist) {
		return f(ctx, path(0), limit)
	}
	return data, err
}
