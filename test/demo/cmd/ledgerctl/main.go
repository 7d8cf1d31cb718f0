// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command ledgerctl is the tool of the demo: it tells the ledger service what
// a real tool would have done, and prints what the service answered.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = "usage: ledgerctl record --service URL --kind KIND --target NAME [--set KEY=VALUE]... [--call-id ID]"

// settings collects the values of a flag that may be given several times.
type settings []string

func (s *settings) String() string { return strings.Join(*s, " ") }

func (s *settings) Set(value string) error {
	if key, _, ok := strings.Cut(value, "="); !ok || key == "" {
		return errors.New("must be KEY=VALUE")
	}
	*s = append(*s, value)
	return nil
}

// action is what the tool was told to do.
type action struct {
	service, kind, target, callID string
	set                           settings
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledgerctl:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	a, err := parse(args)
	if err != nil {
		return err
	}
	sequence, err := record(ctx, a)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{
		"done": a.kind, "target": a.target, "settings": append(settings{}, a.set...), "sequence": sequence,
	})
}

func parse(args []string) (action, error) {
	if len(args) == 0 || args[0] != "record" {
		return action{}, errors.New(usage)
	}
	var a action
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&a.service, "service", "", "")
	flags.StringVar(&a.kind, "kind", "", "")
	flags.StringVar(&a.target, "target", "", "")
	flags.StringVar(&a.callID, "call-id", "", "")
	flags.Var(&a.set, "set", "")
	if err := flags.Parse(args[1:]); err != nil {
		return action{}, fmt.Errorf("%w\n%s", err, usage)
	}
	if a.service == "" || a.kind == "" || a.target == "" || flags.NArg() > 0 {
		return action{}, errors.New(usage)
	}
	return a, nil
}

// record makes one entry and returns its number. It is never repeated: a tool
// that tried again could do twice what was approved once.
func record(ctx context.Context, a action) (int, error) {
	detail := strings.Join(append([]string{a.target}, a.set...), " ")
	body, err := json.Marshal(map[string]string{"tool": a.kind, "detail": detail, "callID": a.callID})
	if err != nil {
		return 0, fmt.Errorf("encoding the entry: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(a.service, "/")+"/entries", bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("preparing the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("reaching the ledger: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return 0, fmt.Errorf("reading the ledger's answer: %w", err)
	}
	if response.StatusCode != http.StatusCreated {
		return 0, fmt.Errorf("the ledger answered %s", response.Status)
	}
	var entry struct {
		Sequence int `json:"sequence"`
	}
	if err := json.Unmarshal(answer, &entry); err != nil {
		return 0, fmt.Errorf("decoding the ledger's answer: %w", err)
	}
	return entry.Sequence, nil
}
