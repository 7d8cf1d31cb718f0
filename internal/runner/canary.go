// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

var errNotIsolated = errors.New("a connection that no rule allows succeeded; does the network plugin enforce NetworkPolicy?")

// isolated proves that the network is closed: connections to the canaries,
// which no rule allows and which answer in an open network, must all fail.
//
// A connection also fails while the Pod's network is not up yet. Therefore the
// execution service is reached first.
func (e *endpoint) isolated(ctx context.Context) error {
	if len(e.config.Canaries) == 0 {
		return nil
	}
	if err := e.reachable(ctx); err != nil {
		return err
	}
	for waited := time.Duration(0); ; waited += firstPause {
		if !e.anyCanaryAnswers(ctx) {
			return nil
		}
		if waited >= canaryPatience {
			return errNotIsolated
		}
		if err := e.pause(ctx, firstPause); err != nil {
			return fmt.Errorf("%w: %w", errNotIsolated, err)
		}
	}
}

func (e *endpoint) reachable(ctx context.Context) error {
	address := e.config.Endpoint.Host
	if e.config.Endpoint.Port() == "" {
		address = net.JoinHostPort(e.config.Endpoint.Hostname(), "443")
	}
	for {
		if connects(ctx, address) {
			return nil
		}
		if e.pause(ctx, firstPause) != nil {
			return errUnavailable
		}
	}
}

func (e *endpoint) anyCanaryAnswers(ctx context.Context) bool {
	answers := make(chan bool, len(e.config.Canaries))
	for _, canary := range e.config.Canaries {
		go func() { answers <- connects(ctx, canary.String()) }()
	}
	open := false
	for range e.config.Canaries {
		open = <-answers || open
	}
	return open
}

func connects(ctx context.Context, address string) bool {
	dialer := net.Dialer{Timeout: canaryTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
