// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command ledger is the service of the demo: it writes down what the demo's
// tools did, so that anybody can see which calls had an effect.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options say where to serve what.
type options struct {
	// listen is for reading entries and for the demo's command-line tool.
	listen string
	// secure is for requests with the token, over TLS; empty for none.
	secure string
	// cert, key and token name files.
	cert, key, token string
}

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", ":8080", "address to serve HTTP on")
	flag.StringVar(&o.secure, "secure-listen", "", "address to serve announcements and MCP on, over TLS and with a token")
	flag.StringVar(&o.cert, "cert", "", "file with the certificate for -secure-listen")
	flag.StringVar(&o.key, "key", "", "file with its key")
	flag.StringVar(&o.token, "token", "", "file with the token that requests to -secure-listen carry")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, o options) error {
	ledger := NewLedger(time.Now)
	plain := server(o.listen, ledger.Handler())
	failed := make(chan error, 2)
	go func() { failed <- plain.ListenAndServe() }()
	servers := []*http.Server{plain}
	if o.secure != "" {
		token, err := os.ReadFile(o.token)
		if err != nil {
			return fmt.Errorf("reading the token: %w", err)
		}
		secure := server(o.secure, ledger.SecureHandler(strings.TrimSpace(string(token))))
		go func() { failed <- secure.ListenAndServeTLS(o.cert, o.key) }()
		servers = append(servers, secure)
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, s := range servers {
		if err := s.Shutdown(stopping); err != nil && !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("stopping: %w", err)
		}
	}
	return nil
}

func server(listen string, handler http.Handler) *http.Server {
	return &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
}
