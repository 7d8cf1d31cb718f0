// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/assent-dev/assent/internal/audit/verify"
)

// Anchor remembers the latest checkpoint in a place that does not share the
// log's fate: another volume, another service, an object of the cluster. A log
// that was cut back, or restored from an older copy, is recognised by it.
type Anchor interface {
	// Load returns what Store was last given, or an error that wraps
	// [os.ErrNotExist] when there is nothing yet.
	Load(ctx context.Context) ([]byte, error)
	// Store replaces what is remembered.
	Store(ctx context.Context, checkpoint []byte) error
}

const maxAnchorBytes = 64 << 10

// errAnchor marks errors of anchors in what Report is told.
var errAnchor = errors.New("audit anchor")

// FileAnchor remembers a checkpoint in a file.
func FileAnchor(path string) Anchor { return fileAnchor(path) }

type fileAnchor string

func (a fileAnchor) Load(context.Context) ([]byte, error) {
	f, err := os.Open(string(a))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxAnchorBytes))
}

// Store writes a temporary file and renames it, so that a crash leaves the old
// or the new checkpoint.
func (a fileAnchor) Store(_ context.Context, checkpoint []byte) error {
	f, err := os.CreateTemp(filepath.Dir(string(a)), ".anchor-*")
	if err != nil {
		return err
	}
	_, errWrite := f.Write(checkpoint)
	if err := errors.Join(errWrite, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), string(a))
}

// HTTPAnchor remembers a checkpoint with GET and PUT on one URL. Status 404
// means that there is nothing yet. client may be nil.
func HTTPAnchor(url string, client *http.Client) Anchor {
	if client == nil {
		client = http.DefaultClient
	}
	return httpAnchor{url: url, client: client}
}

type httpAnchor struct {
	url    string
	client *http.Client
}

func (a httpAnchor) Load(ctx context.Context) ([]byte, error) {
	return a.do(ctx, http.MethodGet, nil)
}

func (a httpAnchor) Store(ctx context.Context, checkpoint []byte) error {
	_, err := a.do(ctx, http.MethodPut, checkpoint)
	return err
}

func (a httpAnchor) do(ctx context.Context, method string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "text/plain; charset=utf-8")
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotFound && method == http.MethodGet:
		return nil, fmt.Errorf("anchor: %w", os.ErrNotExist)
	case response.StatusCode/100 != 2:
		return nil, fmt.Errorf("anchor: the server answered with status %d", response.StatusCode)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxAnchorBytes))
}

// CheckAnchors compares the log with every anchor. It returns an error that
// wraps [ErrRestored] when one remembers records that the log does not have,
// and one that wraps [audit.ErrUnavailable] when an anchor cannot be read.
func (l *Log) CheckAnchors(ctx context.Context) error {
	size, err := l.Size(ctx)
	if err != nil {
		return err
	}
	return unavailableOrNil(l.checkAnchors(ctx, size))
}

func unavailableOrNil(err error) error {
	if err == nil {
		return nil
	}
	return unavailable(err)
}

func (l *Log) checkAnchors(ctx context.Context, size uint64) error {
	for i, anchor := range l.o.Anchors {
		text, err := anchor.Load(ctx)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w %d: %w", errAnchor, i, err)
		}
		remembered, err := verify.ParseCheckpoint(text, l.o.Keys, l.o.Origin)
		if err != nil {
			return fmt.Errorf("%w %d: %w", errAnchor, i, err)
		}
		same, err := verify.Consistent(ctx, l.Source(), remembered, size)
		if err != nil {
			return fmt.Errorf("%w %d: %w", errAnchor, i, err)
		}
		if !same {
			return fmt.Errorf("%w: %w %d remembers %d records, the log has %d", ErrRestored, errAnchor, i, remembered.Size, size)
		}
	}
	return nil
}

// startAnchors passes each new checkpoint on, until the log is closed.
func (l *Log) startAnchors() {
	if len(l.o.Anchors) == 0 {
		return
	}
	l.anchors.Go(func() {
		var stored []byte
		for {
			stored = l.feedAnchors(l.ctx, stored)
			select {
			case <-l.ctx.Done():
				// What Close has published last must be remembered too.
				l.feedAnchors(context.WithoutCancel(l.ctx), stored)
				return
			case <-time.After(checkpointInterval):
			}
		}
	})
}

// feedAnchors returns the checkpoint that all anchors have.
func (l *Log) feedAnchors(ctx context.Context, stored []byte) []byte {
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	at, err := l.Checkpoint(ctx)
	if err == nil && bytes.Equal(at.Text, stored) {
		return stored
	}
	for i, anchor := range l.o.Anchors {
		if err != nil {
			break
		}
		if storeErr := anchor.Store(ctx, at.Text); storeErr != nil {
			err = fmt.Errorf("%w %d: %w", errAnchor, i, storeErr)
		}
	}
	if err != nil {
		if l.o.Report != nil {
			l.o.Report(err)
		}
		return stored
	}
	return at.Text
}
