// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// endpoint serves the execution endpoint on every replica.
type endpoint struct {
	port    int
	handler http.Handler
	cert    *servingCert
}

// Start serves until the context ends, and then lets requests finish: a runner
// that was about to get its ticket gets it.
func (e *endpoint) Start(ctx context.Context) error {
	server := &http.Server{
		Handler:           e.handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       20 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: e.cert.get},
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", e.port))
	if err != nil {
		return fmt.Errorf("listening for runners: %w", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving runners: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(stop); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stopping the execution endpoint: %w", err)
	}
	return nil
}

// NeedLeaderElection says that every replica serves.
func (e *endpoint) NeedLeaderElection() bool { return false }
