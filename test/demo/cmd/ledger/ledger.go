// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// maxEntryBytes is the largest accepted request body.
	maxEntryBytes = 16 << 10
	// maxEntries bounds the memory of the service.
	maxEntries = 10_000
)

// Entry is one thing that a tool did.
type Entry struct {
	// Sequence counts the entries from 1, in the order of their arrival.
	Sequence int `json:"sequence"`
	// Time the entry arrived.
	Time time.Time `json:"time"`
	// Tool says what was done.
	Tool string `json:"tool"`
	// Detail says to what it was done.
	Detail string `json:"detail"`
	// CallID is the caller's own name for the call, if it knows one.
	CallID string `json:"callID,omitempty"`
	// Received is the text that arrived over TLS: the body of a request, or
	// the arguments of an MCP tool.
	Received string `json:"received,omitempty"`
}

// Ledger keeps entries in memory.
type Ledger struct {
	now func() time.Time

	mu      sync.Mutex
	entries []Entry
}

// NewLedger returns an empty ledger that stamps entries with now.
func NewLedger(now func() time.Time) *Ledger {
	return &Ledger{now: now}
}

// Handler serves POST /entries, GET /entries (with ?callID= to select) and
// GET /healthz.
func (l *Ledger) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /entries", l.record)
	mux.HandleFunc("GET /entries", l.list)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

func (l *Ledger) record(w http.ResponseWriter, r *http.Request) {
	entry, err := readEntry(http.MaxBytesReader(w, r.Body, maxEntryBytes))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
		return
	}
	stored, ok := l.add(entry)
	if !ok {
		http.Error(w, errFull.Error(), http.StatusInsufficientStorage)
		return
	}
	reply(w, http.StatusCreated, stored)
}

func readEntry(body io.Reader) (Entry, error) {
	var in struct {
		Tool   string `json:"tool"`
		Detail string `json:"detail"`
		CallID string `json:"callID"`
	}
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return Entry{}, err
	}
	if in.Tool == "" {
		return Entry{}, errors.New("tool is empty")
	}
	return Entry{Tool: in.Tool, Detail: in.Detail, CallID: in.CallID}, nil
}

func (l *Ledger) add(e Entry) (Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) >= maxEntries {
		return Entry{}, false
	}
	e.Sequence, e.Time = len(l.entries)+1, l.now().UTC()
	l.entries = append(l.entries, e)
	return e, true
}

func (l *Ledger) list(w http.ResponseWriter, r *http.Request) {
	callID := r.URL.Query().Get("callID")
	l.mu.Lock()
	entries := make([]Entry, 0, len(l.entries))
	for _, e := range l.entries {
		if callID == "" || e.CallID == callID {
			entries = append(entries, e)
		}
	}
	l.mu.Unlock()
	reply(w, http.StatusOK, map[string]any{"entries": entries})
}

func reply(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}
